"""Compiling: Triton with ptxas fills its cache and makes the launcher; our compiler is run on the PTX."""
import json
import os
import signal
import subprocess
import time
import traceback

from .common import short


def source_of(entry):
    from triton.compiler import ASTSource

    return ASTSource(entry.function, entry.types(), entry.constants, entry.attributes())


def compile_triton(entry):
    import triton
    from triton.backends.compiler import GPUTarget

    source = source_of(entry)
    return source, triton.compile(source, target=GPUTarget("cuda", 90, 32), options=dict(entry.options))


def compile_one(entry, options, folder):
    """In a child process. Writes NAME.json, and the PTX and cubins beside it."""
    from triton import knobs

    result = {"name": entry.name}
    base = folder / entry.name
    times = {}

    def listener(**event):
        for stage, microseconds in event["times"].lowering_stages:
            times[stage] = microseconds / 1e6

    try:
        try:
            knobs.compilation.listener = listener
        except Exception:
            pass
        started = time.time()
        source, compiled = compile_triton(entry)
        result["triton_s"] = round(time.time() - started, 3)
        result["ptxas_s"] = round(times.get("cubin", 0), 3)
        result["shared"] = compiled.metadata.shared
        result["warps"] = compiled.metadata.num_warps
        base.with_suffix(".ptx").write_text(compiled.asm["ptx"])
        base.with_suffix(".ptxas.cubin").write_bytes(compiled.asm["cubin"])
    except BaseException as error:
        result["refused"] = short(error)
        return result
    try:
        command = [options.ours, "-lineinfo", "-v", "--gpu-name=sm_90a", str(base.with_suffix(".ptx")), "-o",
                   str(base.with_suffix(".ours.cubin"))]
        started = time.time()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        result["ours_s"] = round(time.time() - started, 3)
        text = done.stdout.decode(errors="replace")
        if done.returncode != 0 or not base.with_suffix(".ours.cubin").exists():
            result["ours_error"] = f"exit {done.returncode}: {text.strip()[-250:]}"
    except BaseException as error:
        result["ours_error"] = short(error)
    try:
        # The launcher is C that Triton compiles: now, while there are processors to spare.
        from triton.backends.nvidia import driver

        constants = {(entry.function.arg_names.index(k),) if isinstance(k, str) else k: v
                     for k, v in source.constants.items()}
        text = driver.make_launcher(constants, dict(source.signature.items()),
                                    getattr(compiled.metadata, "tensordesc_meta", None))
        driver.compile_module_from_src(src=text, name="__triton_launcher", library_dirs=driver.library_dirs(),
                                       include_dirs=driver.include_dirs, libraries=driver.libraries)
    except BaseException as error:
        result["launcher_note"] = short(error)
    return result


def spawn_compile(entry, options, folder):
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        log = os.open(str(folder / f"{entry.name}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        signal.alarm(75)
        result = compile_one(entry, options, folder)
        part = folder / f"{entry.name}.part"
        part.write_text(json.dumps(result))
        part.rename(folder / f"{entry.name}.json")
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)
