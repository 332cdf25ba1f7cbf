#!/usr/bin/env python3
"""make.py OUT [--target 80,90,...] [--only PART,...] [--jobs N]: compiles the kernels to PTX.

No GPU is needed, and no ptxas: Triton's stages are run up to PTX. The files are OUT/tNN/NAME.sm_NN.ptx.
A kernel that Triton refuses for a target is reported at the end and is no error. Where the package
triton is missing, nothing is made and `skipped` is printed.
"""
import argparse
import importlib.util
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

TARGETS = [75, 80, 89, 90, 100, 103, 120]
# Seconds that one kernel may take; some combinations keep Triton's layout passes busy for ever.
LIMIT = 180


def compile_to_ptx(entry, target):
    """The PTX of one registered kernel for one target."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend

    source = ASTSource(entry.function, entry.types(), entry.constants, entry.attributes())
    gpu = GPUTarget("cuda", target, 32)
    backend = make_backend(gpu)
    options = backend.parse_options(dict(entry.options))
    stages, metadata = {}, {"target": gpu, **options.__dict__}
    backend.add_stages(stages, options, source.language)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        gpu, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    for name, stage in stages.items():
        module = stage(module, metadata)
        if name == "ptx":
            return module
    raise RuntimeError("Triton has no stage that makes PTX")


def one(job):
    """Compiles job number (index, target); gives (name, target, error or None, seconds)."""
    index, target, folder = job
    from kernels import KERNELS

    entry = KERNELS[index]
    path = Path(folder) / f"t{target}" / f"{entry.name}.sm_{target}.ptx"
    start = time.time()
    errors = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        child = os.fork()
        if child == 0:
            # Triton ends its process on some broken invariants: only the child goes.
            signal.alarm(LIMIT)
            code = 1
            try:
                text = compile_to_ptx(entry, target)
                part = path.with_suffix(".part")
                part.write_text(text)
                part.rename(path)
                code = 0
            except BaseException as error:
                lines = [line for line in str(error).splitlines() if line.strip()]
                reason = " | ".join(lines[:1] + lines[-1:]) if lines else ""
                os.write(2, f"\nWHY {type(error).__name__}: {reason[:300]}\n".encode())
            os._exit(code)
        status = os.waitpid(child, 0)[1]
        os.dup2(errors, 2)
        os.close(errors)
        if status == 0:
            return entry.name, target, None, time.time() - start
        log.seek(0)
        lines = log.read().decode(errors="replace").splitlines()
    # An error of a pass says more than the exception after it.
    why = [line for line in lines if "error:" in line or "Assertion" in line]
    why += [line for line in lines if line.startswith("WHY ")]
    ending = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "failed"
    return entry.name, target, (why[0].removeprefix("WHY ") if why else ending)[:300], time.time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--target", default=",".join(map(str, TARGETS)))
    parser.add_argument("--only", default="", help="parts of names, with commas")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if importlib.util.find_spec("triton") is None:
        print("skipped: this Python has no triton")
        return
    # Line tables name files of this machine; without them the same kernels give the same bytes.
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="triton-cache-"))
    sys.path.insert(0, str(Path(__file__).parent))
    from kernels import KERNELS

    parts = [part for part in options.only.split(",") if part]
    jobs = []
    for target in map(int, options.target.split(",")):
        (options.out / f"t{target}").mkdir(parents=True, exist_ok=True)
        for index, entry in enumerate(KERNELS):
            if entry.allows(target) and (not parts or any(part in entry.name for part in parts)):
                jobs.append((index, target, str(options.out)))
    refused = []
    with multiprocessing.Pool(options.jobs) as pool:
        for name, target, error, seconds in pool.imap_unordered(one, jobs, chunksize=1):
            if error:
                refused.append(f"refused: {name} for {target}: {error}")
            if seconds > 20:
                print(f"{name} for {target}: {seconds:.0f} s", flush=True)
    print(*sorted(refused), sep="\n")
    print(f"{len(jobs) - len(refused)} files, {len(refused)} refused")


if __name__ == "__main__":
    main()
