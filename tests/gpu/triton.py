#!/usr/bin/env python3
"""triton.py --ours SASSAFRAS [--ptxas PTXAS] [--only PART,...] [--seconds 150]

Runs the Triton kernels of tests/bench/triton on a GPU, each with ptxas's cubin and with ours: same PTX, same launcher,
same inputs, in one process, so that results are compared on the GPU and times are taken in turn.
Also runs torch.compile's models, a process for each compiler.

--only takes parts of names; "inductor" alone stands for all models, "kernels" for all kernels.
--dry needs no GPU: it builds the arguments of every kernel without memory and checks them against the signature.
--dry-compile compiles every kernel with both compilers and runs nothing.
Results: a table on stdout, $OUT/triton.json, $OUT/bad.tar.gz (PTX and both cubins of what is wrong or failed).
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from triton_gpu.schedule import main  # noqa: E402

# This file must not stand for the package `triton`.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != HERE]

if __name__ == "__main__":
    sys.exit(main(__doc__))
