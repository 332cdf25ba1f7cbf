#!/usr/bin/env python3
"""make.py OUT [--target 80,90,...] [--only TEXT]: compiles the kernels of Warp's examples to PTX.

No GPU is needed, and no ptxas: Warp's own compiler makes the PTX. The files are
OUT/tNN/NAME.smNN.ptx. The modules take the targets in turn, so that one run makes each module once;
`--all` makes each for every target. A module that cannot be imported or compiled is named and is no
error. Where the package warp is missing, nothing is made and `skipped` is printed.
"""
import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

TARGETS = [90, 80, 75, 120, 100, 86]
# Seconds that one example may take with all modules that it imports.
LIMIT = 300
# Folders of examples that need no other package.
FOLDERS = ["core", "fem", "geometry", "optim", "tile", "benchmarks"]


def examples():
    """The names of the examples' modules, in order."""
    root = Path(importlib.util.find_spec("warp").origin).parent / "examples"
    files = sorted(path for folder in FOLDERS for path in (root / folder).glob("*.py"))
    return [f"warp.examples.{path.parent.name}.{path.stem}" for path in files if path.stem != "__init__"]


def compile_one(name, target, folder):
    """Compiles the kernels of a module and of those that it imports; run in a process of its own."""
    import importlib

    import warp
    from warp._src import context

    warp.config.quiet = True
    warp.init()
    importlib.import_module(name)
    for module in list(context.user_modules):
        try:
            warp.compile_aot_module(module, arch=target, module_dir=folder, use_ptx=True)
        except RuntimeError as error:
            if "No compilable kernels" not in str(error):
                print(f"{module}: {error}", file=sys.stderr)


def strip(folder):
    """Takes off the character that ends a text in memory, which neither compiler reads in a file."""
    for path in Path(folder).glob("*.ptx"):
        data = path.read_bytes()
        path.write_bytes(data.rstrip(b"\0"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--target", default=",".join(map(str, TARGETS)))
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if importlib.util.find_spec("warp") is None:
        print("skipped: no package warp")
        return 0
    if options.one:
        compile_one(options.one[0], int(options.one[1]), options.out)
        return 0
    targets = [int(target) for target in options.target.split(",")]
    missing = []
    for number, name in enumerate(name for name in examples() if options.only in name):
        for target in targets if options.all else [targets[number % len(targets)]]:
            folder = os.path.join(options.out, f"t{target}")
            os.makedirs(folder, exist_ok=True)
            command = [sys.executable, __file__, folder, "--one", name, str(target)]
            try:
                result = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
                last = result.stderr.strip().splitlines()[-1:] if result.returncode else []
            except subprocess.TimeoutExpired:
                last = [f"took more than {LIMIT} s"]
            missing += [f"{name} sm_{target}: {line}" for line in last]
            strip(folder)
    print("\n".join(["not made:"] + missing if missing else ["all made"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
