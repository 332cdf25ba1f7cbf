"""Finds the kernels, and tries their arguments without a GPU."""
import math
import sys
from pathlib import Path

from .common import short
from .inputs import build


def load_kernels(options):
    places = [options.kernels] if options.kernels else []
    here = Path(__file__).resolve().parents[1]
    places += ["tests/bench/triton", here, here / "tests/bench/triton"]
    for place in places:
        if (Path(place) / "kernels" / "registry.py").exists():
            sys.path.insert(0, str(Path(place).resolve()))
            break
    else:
        sys.exit("no kernels: give --kernels tests/bench/triton")
    sys.dont_write_bytecode = True
    from kernels import KERNELS

    only = [part for part in options.only.split(",") if part]
    chosen = [e for e in KERNELS if e.allows(90)]
    if only and "kernels" not in only:
        chosen = [e for e in chosen if any(part in e.name for part in only)]
    return chosen


def dry(entries):
    """Builds all arguments without memory."""
    bad = total = 0
    for entry in entries:
        try:
            m, values, grid = build(entry, "meta", 1)
            size = sum(t.numel() * t.element_size() for t in m.tensors) / 1e6
            blocks = math.prod(grid)
            note = "  SMALL" if blocks < 100 else ""
            assert all(g >= 1 for g in grid) and grid[1] < 65536 and grid[2] < 65536, f"grid {grid}"
            print(f"{entry.name:28} {size:8.1f} MB  {len(values):2} values  grid {grid}{note}")
            total += 1
        except BaseException as error:
            bad += 1
            print(f"{entry.name:28} BAD {short(error)}")
    print(f"{total} of {len(entries)} kernels have launches, {bad} bad")
    return 1 if bad else 0
