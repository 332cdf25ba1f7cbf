#!/usr/bin/env python3
"""make.py OUT [--target 80,90,...] [--only PART,...] [--jobs N] [--examples]: compiles the sources to PTX.

No GPU is needed, and no ptxas. The files are OUT/SOURCE.VARIANT.sm_NN.ptx; those of objects have
`object` in their variant. A source whose compiler or headers are missing is reported as skipped;
one that its compiler refuses is an error.
"""
import argparse
import shutil
import site
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TARGETS = [75, 80, 89, 90, 100, 120]
HERE = Path(__file__).parent / "sources"
# What nvcc is given for each of its variants.
NVCC = {
    "plain": [],
    "lines": ["-lineinfo"],
    "debug": ["-G"],
    "object": ["-rdc=true"],
    "slow": ["-Xcicc", "-O0"],
    **{f"part{part}": [f"-DPART={part}"] for part in range(1, 6)},
}
SOURCES = {
    "blocks.cu": ["plain", "lines"],
    "devices.cu": ["plain"],
    "barriers.cu": ["plain", "debug"],
    "numbers.cu": ["plain", "slow"],
    "tensors.cu": ["plain"],
    "objects.cu": ["object"],
    "algorithms.cu": [f"part{part}" for part in range(1, 6)],
    "meetings.cu": ["plain"],
    "atomics.cu": ["plain"],
    "draws.cu": ["plain"],
    "narrow.cu": ["plain"],
    "functions.cu": ["plain"],
    "plain.cu": ["clang0", "clang2", "clangs"],
    "offload.c": ["clang2object"],
}

# CUTLASS's own examples, by target: a part of the name of a file below its folder. They take minutes each,
# so they are made with --examples alone.
EXAMPLES = {
    "75": ["08_turing_tensorop_gemm", "09_turing_tensorop_conv2dfprop"],
    "80": ["14_ampere_tf32", "16_ampere_tensorop_conv2dfprop", "41_*/*fixed_seqlen", "47_*/*streamk"],
    "90a": ["48_hopper", "49_hopper", "54_hopper", "57_hopper", "62_hopper", "88_hopper"],
    "100a": ["70_*/*fp16", "72_*/72a", "72_*/72b", "72_*/72c", "74_blackwell", "77_*/77_blackwell_fmha"],
    "120a": ["79_*/79a", "79_*/79c", "80_*/80a"],
}


def packages():
    """Folders of packages, of this Python and of the user."""
    return [Path(folder) for folder in [*site.getsitepackages(), site.getusersitepackages()]]


def nvcc():
    """The path of nvcc: of the package nvidia-cuda-nvcc, or of the system."""
    found = [path for folder in packages() for path in folder.glob("nvidia/cu*/bin/nvcc")]
    return str(found[0]) if found else shutil.which("nvcc")


def cutlass():
    """The folder of CUTLASS's headers, of the package nvidia-cutlass."""
    found = [folder / "cutlass_library/source/include" for folder in packages()]
    return next((folder for folder in found if folder.is_dir()), None)


def by_nvcc(source, variant, target, out):
    """The command of nvcc, or what is missing."""
    compiler, headers = nvcc(), cutlass()
    if compiler is None:
        return "nvcc"
    if source == "tensors.cu" and headers is None:
        return "nvidia-cutlass"
    command = [compiler, "-ptx", "-w", "-std=c++17", "--extended-lambda", "--expt-relaxed-constexpr"]
    command += [f"-arch=compute_{target}", *NVCC[variant], str(HERE / source), "-o", str(out)]
    command += [f"-DSASSAFRAS_SM{least}" for least in (80, 90) if target >= least]
    # The package's headers of CUB and libcu++ stand beside the compiler.
    command += [f"-I{folder}" for folder in Path(compiler).parent.parent.glob("include/cccl")]
    return command + ([f"-I{headers}"] if headers else [])


def by_nvcc_an_example(source, target, out):
    """The command of nvcc for an example of CUTLASS, or what is missing."""
    compiler, headers = nvcc(), cutlass()
    if compiler is None or headers is None:
        return "nvcc" if compiler is None else "nvidia-cutlass"
    command = [compiler, "-ptx", "-w", "-std=c++17", "--expt-relaxed-constexpr", f"-arch=compute_{target}"]
    folders = [headers, headers.parent / "tools/util/include", headers.parent / "examples/common", source.parent]
    return [*command, "-DFP16", *[f"-I{folder}" for folder in folders], str(source), "-o", str(out)]


def by_clang(source, variant, target, out):
    """The command of clang, or what is missing."""
    compiler = shutil.which("clang")
    if compiler is None:
        return "clang"
    # Debian's clang knows no newer target.
    architecture = f"sm_{min(target, 86)}"
    level = f"-O{variant.removeprefix('clang').removesuffix('object')}"
    if source.endswith(".cu"):
        command = [compiler, "-x", "cuda", "--cuda-device-only", f"--cuda-gpu-arch={architecture}"]
        return command + ["-nocudainc", "-nocudalib", level, "-S", str(HERE / source), "-o", str(out)]
    # The device's side takes the names of the regions from the host's.
    host, cpu, gpu = f"{out}.bc", "x86_64-pc-linux-gnu", "nvptx64-nvidia-cuda"
    both = [compiler, "-cc1", "-fopenmp", str(HERE / source), level]
    first = [*both, "-triple", cpu, f"-fopenmp-targets={gpu}", "-emit-llvm-bc", "-o", host]
    subprocess.run(first, capture_output=True)
    device = [*both, "-triple", gpu, "-aux-triple", cpu, "-fopenmp-is-device", "-fopenmp-host-ir-file-path", host]
    return [*device, "-target-cpu", architecture, "-target-feature", "+ptx70", "-S", "-o", str(out)]


def one(job):
    """Compiles a job; gives its line of the report and whether it is an error."""
    source, variant, target, folder = job
    name = f"{Path(source).stem}.{variant}.sm_{target}.ptx"
    part = folder / (name + ".part")
    if isinstance(source, Path):
        command = by_nvcc_an_example(source, target, part)
    else:
        command = (by_clang if variant.startswith("clang") else by_nvcc)(source, variant, target, part)
    if isinstance(command, str):
        return f"skipped: {name}: {command} is missing", False
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tempfile.gettempdir())
    if ran.returncode:
        lines = [line for line in ran.stderr.splitlines() if "error" in line]
        return f"refused: {name}: {' '.join(lines[:1])[:300]}", True
    part.rename(folder / name)
    Path(f"{part}.bc").unlink(missing_ok=True)
    return None, False


def examples(folder):
    """The jobs of CUTLASS's examples."""
    headers = cutlass()
    found = headers.parent / "examples" if headers else Path("missing")
    return [
        (source, "example", target, folder)
        for target, parts in EXAMPLES.items()
        for part in parts
        for source in sorted(found.glob(f"{part}*.cu" if "/" in part else f"{part}*/*.cu"))[:1]
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--target", default=",".join(map(str, TARGETS)))
    parser.add_argument("--only", default="", help="parts of names, with commas")
    parser.add_argument("--examples", action="store_true", help="CUTLASS's examples instead, each for its target")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    parts = [part for part in options.only.split(",") if part]
    jobs = [
        (source, variant, target, options.out.resolve())
        for source, variants in SOURCES.items()
        for variant in variants
        for target in map(int, options.target.split(","))
        if not parts or any(part in f"{source}.{variant}" for part in parts)
    ]
    if options.examples:
        made = examples(options.out.resolve())
        jobs = [job for job in made if not parts or any(part in str(job[0]) for part in parts)]
    with ThreadPoolExecutor(options.jobs) as pool:
        said = list(pool.map(one, jobs))
    lines = sorted(line for line, _ in said if line)
    print(*lines, f"{len(jobs) - len(lines)} files, {len(lines)} not made", sep="\n")
    sys.exit(any(error for _, error in said))


if __name__ == "__main__":
    main()
