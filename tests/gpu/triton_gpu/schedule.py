"""The options, and what runs when."""
import argparse
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from .child import Child
from .common import START, number, say, short
from .compiling import spawn_compile
from .inductor import Inductor
from .inductor_side import inductor_side
from .kernels_of import dry, load_kernels
from .report import report


def main(about):
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours")
    parser.add_argument("--ptxas", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--jobs", type=int, default=max(2, min(16, (os.cpu_count() or 4) - 5)))
    parser.add_argument("--rep", type=float, default=25, help="milliseconds of kernel time for each side")
    parser.add_argument("--kernels", default="", help="the folder that holds kernels/")
    parser.add_argument("--no-inductor", action="store_true")
    parser.add_argument("--keep", default="", help="folder for PTX and cubins, kept")
    parser.add_argument("--fake", action="store_true", help="no GPU: tries the script itself")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--dry-compile", action="store_true")
    parser.add_argument("--inductor-side", dest="side", default="")
    parser.add_argument("--result", default="")
    parser.add_argument("--folder", default="")
    parser.add_argument("--until", type=float, default=0)
    options = parser.parse_args()
    if options.side:
        return inductor_side(options)
    end = START + options.seconds - 7
    options.inductor_until = START + options.seconds * 0.52
    out = Path(os.environ.get("OUT") or ".")
    out.mkdir(parents=True, exist_ok=True)
    folder = Path(options.keep or tempfile.mkdtemp(prefix="triton-gpu-"))
    folder.mkdir(parents=True, exist_ok=True)
    if options.dry:
        return dry(load_kernels(options))
    if not options.ours or not os.path.exists(options.ours):
        sys.exit("--ours PATH is needed")
    options.ours = os.path.abspath(options.ours)
    if options.ptxas:
        options.ptxas = os.path.abspath(options.ptxas)
        os.environ["TRITON_PTXAS_PATH"] = options.ptxas
    os.environ["TRITON_CACHE_DIR"] = str(folder / "cache.kernels")
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    try:
        (folder / "gpu.lock").touch()
    except OSError:
        pass
    inductor = {}
    only = [part for part in options.only.split(",") if part]
    if not options.no_inductor and not options.dry_compile:
        try:
            for side, path in (("ptxas", options.ptxas), ("ours", options.ours)):
                one = Inductor.__new__(Inductor)
                one.options = options
                if one.wanted():
                    inductor[side] = Inductor(side, path, options, folder)
        except BaseException as error:
            say("inductor:", short(error))
    for module in ("torch", "triton"):
        try:
            __import__(module)
        except BaseException as error:
            say(f"{module}:", short(error))
    entries = load_kernels(options) if not only or only != ["inductor"] else []
    records = {e.name: {"name": e.name, "state": "not run", "reason": "no time left"} for e in entries}
    say(f"{len(entries)} kernels, {options.jobs} processes, files in {folder}")
    note = ""
    child = None
    try:
        # Products and attention take longest to compile.
        slow = re.compile(r"matmul|flash|gemm|moe|conv|paged|dot|bmm|sort|special|linear")
        todo = sorted(range(len(entries)), key=lambda i: (not slow.search(entries[i].name), i))
        compiling, checks, times = {}, [], []
        deaths = 0
        timing = False
        while True:
            now = time.time()
            if now > end:
                note = "; the time was up"
                break
            busy = False
            # Compile.
            while todo and len(compiling) < options.jobs:
                index = todo.pop(0)
                compiling[spawn_compile(entries[index], options, folder)] = (index, now)
            for pid, (index, since) in list(compiling.items()):
                if now - since > 80:
                    try:
                        os.killpg(pid, signal.SIGKILL)
                    except OSError:
                        pass
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    continue
                busy = True
                del compiling[pid]
                record = records[entries[index].name]
                try:
                    found = json.loads((folder / f"{entries[index].name}.json").read_text())
                except (OSError, ValueError):
                    log = folder / f"{entries[index].name}.log"
                    found = {"refused": "the compiling process died: " + (log.read_text()[-200:] if log.exists() else "")}
                record.update(found)
                if "refused" in found:
                    record.update(state="skipped", reason=found["refused"])
                else:
                    if "ours_error" in found:
                        record.update(verdict="no cubin")
                    checks.append(index)
            if not todo and not compiling and options.dry_compile:
                break
            # Run.
            if not options.dry_compile:
                if child is None and (checks or times or todo or compiling) and deaths < 60:
                    child = Child(entries, options, folder)
                if child is not None:
                    event = child.poll()
                    if event:
                        busy = True
                        kind, what = event
                        if kind == "ready":
                            say("a runner is ready")
                        elif kind == "broken" or (kind == "dead" and not child.ready):
                            say("a runner could not start:", what)
                            child.bury()
                            child = None
                            deaths += 12
                        else:
                            index, phase = child.job or (None, None)
                            at = child.at
                            child.job = None
                            if index is not None:
                                record, what = records[entries[index].name], what or {}
                                trouble = what.pop("error_text", None)
                                if kind == "dead" and not trouble:
                                    trouble = "the process died"
                                record.update(what)
                                if trouble:
                                    trouble = f"at {at}: {trouble}"
                                if trouble and at == "waiting" and phase == "correct" and not record.get("again"):
                                    record["again"] = True
                                    checks.append(index)
                                elif phase == "correct":
                                    record.pop("reason", None)
                                    if trouble:
                                        record["failure"] = trouble
                                        record["state"] = "failed" if at == "ours" else "baseline"
                                        record["verdict"] = "FAILED" if at == "ours" else "baseline"
                                    else:
                                        record["state"] = "failed" if record.get("verdict") == "no cubin" else "ran"
                                        times.append(index)
                                elif trouble:
                                    record["timing_failure"] = trouble
                            if kind == "dead":
                                say(f"{entries[index].name if index is not None else ''}: {trouble if index is not None else ''}")
                                child.bury()
                                child = None
                                deaths += 1
                    if child is not None and child.ready and child.job is None:
                        if checks:
                            child.give(checks.pop(0), "correct")
                        elif times and not todo and not compiling and all(i.poll() for i in inductor.values()):
                            if not timing:
                                say("all checked; timing")
                                timing = True
                            child.give(times.pop(0), "time")
                models_done = all([i.poll() for i in inductor.values()])
                idle = child is None or child.job is None
                if not todo and not compiling and models_done and (
                        (idle and not checks and not times) or (child is None and deaths >= 60)):
                    break
            if not busy:
                time.sleep(0.01)
    except BaseException as error:
        note = f"; stopped by {short(error)}"
        traceback.print_exc()
    for pid in compiling if "compiling" in locals() else ():
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass
    if child is not None:
        child.bury()
    for one in inductor.values():
        one.stop()
    if options.dry_compile:
        for r in records.values():
            print(f"{r['name']:28} triton {number(r.get('triton_s'))} ptxas {number(r.get('ptxas_s'))} "
                  f"ours {number(r.get('ours_s'))} shared {r.get('shared')} {r.get('refused') or r.get('ours_error') or ''}"[:230])
            if r.get("launcher_note"):
                print("   launcher:", r["launcher_note"][:150])
        bad = [r["name"] for r in records.values() if r.get("ours_error")]
        refused = [r["name"] for r in records.values() if r.get("refused")]
        print(f"{len(records)} kernels, {len(refused)} refused by Triton {refused}, {len(bad)} refused by ours {bad}")
        return 0
    report(records, inductor, out, folder, note)
    if not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0
