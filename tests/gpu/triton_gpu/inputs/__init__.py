"""The arguments of the kernels, one file for each subject as in tests/bench/triton/kernels.

Each maker takes the Maker and the constants; it gives a dict of the arguments, and the grid. Importing this package
registers all of them.
"""
from . import attention, conv, elementwise, matmul, moe, norms, quantized, reductions, scans
from .build import build

__all__ = ["build"]
