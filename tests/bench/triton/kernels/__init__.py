"""The kernels, one file for each subject. Importing this package registers all of them."""
from .registry import KERNELS
from . import attention, conv, elementwise, matmul, moe, norms, quantized, reductions, scans

__all__ = ["KERNELS"]
