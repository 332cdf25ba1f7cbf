"""The table, and the files of what is wrong."""
import io
import json
import math
import sys
import tarfile
import time

from .common import START, number, say, short


def report(records, inductor, out, folder, note):
    order = {"same": 0, "close": 0, "noisy": 0}
    rows = sorted(records.values(), key=lambda r: (r.get("ratio", 0 if r.get("verdict") in order else 1e9), r["name"]))
    width = max([len(r["name"]) for r in rows] + [10])
    print(f"\n{'kernel':{width}} {'result':8} {'error':>8} {'regs p/o':>9} {'spill p/o':>9} {'shared':>6} "
          f"{'ptxas ms':>9} {'our ms':>9} {'ratio':>6}")
    for r in rows:
        if r["state"] in ("skipped", "not run"):
            continue
        print(f"{r['name']:{width}} {r.get('verdict', r['state']):8.8} {number(r.get('error'), '{:.1e}'):>8} "
              f"{str(r.get('regs_ptxas', '-')) + '/' + str(r.get('regs_ours', '-')):>9} "
              f"{str(r.get('spills_ptxas', '-')) + '/' + str(r.get('spills_ours', '-')):>9} {str(r.get('shared', '-')):>6} "
              f"{number(r.get('ms_ptxas'), '{:.4f}'):>9} {number(r.get('ms_ours'), '{:.4f}'):>9} "
              f"{number(r.get('ratio')):>6}")
    print()
    for r in rows:
        words = []
        if r["state"] in ("skipped", "not run"):
            words.append(f"{r['state']}: {r.get('reason', '')}")
        for key in ("ours_error", "failure", "timing_failure"):
            if r.get(key):
                words.append(f"{key}: {r[key]}")
        if r.get("verdict") == "WRONG":
            words.append("wrong: " + json.dumps(r.get("details")))
        for key in ("unstable", "not_finite"):
            if r.get(key):
                words.append(f"{key}: {json.dumps(r[key])}")
        if r.get("ptxas_ran") and not r.get("written"):
            words.append("ptxas's kernel wrote nothing")
        for text in words:
            print(f"  {r['name']}: {text}"[:330])
    models = []
    if inductor:
        print(f"\n{'torch.compile':20} {'ptxas':>7} {'ours':>7} {'error p':>8} {'error o':>8} {'bits':>6} {'eager ms':>9} "
              f"{'ptxas ms':>9} {'our ms':>9} {'ratio':>6}")
        theirs, mine = (inductor[s].results["models"] if s in inductor else {} for s in ("ptxas", "ours"))
        for name in dict.fromkeys(list(theirs) + list(mine)):
            p, o = theirs.get(name, {}), mine.get(name, {})

            def word(e):
                if e.get("error_text"):
                    return "FAILED"
                if "ms" not in e and "wrong" not in e:
                    return "not run"
                return "WRONG" if e.get("wrong") else "right"

            ratio = o["ms"] / p["ms"] if "ms" in o and "ms" in p else None
            models.append((name, word(p), word(o), ratio))
            bits = "-" if not (p.get("digest") and o.get("digest")) else "same" if p["digest"] == o["digest"] else "differ"
            print(f"{name:20} {word(p):>7} {word(o):>7} {number(p.get('error'), '{:.1e}'):>8} "
                  f"{number(o.get('error'), '{:.1e}'):>8} {bits:>6} {number(p.get('eager_ms')):>9} {number(p.get('ms')):>9} "
                  f"{number(o.get('ms')):>9} {number(ratio):>6}")
        for side, models_of in (("ptxas", theirs), ("ours", mine)):
            for name, e in models_of.items():
                if e.get("error_text") or e.get("wrong"):
                    print(f"  {name} with {side}: {e.get('error_text') or e['wrong']}"[:600])
        for side, one in inductor.items():
            print(f"  {side}: {one.results.get('ptxas_path')} {one.results.get('ptxas_version')}")

    def count(*verdicts):
        return sum(r.get("verdict") in verdicts for r in records.values())

    ratios = [r["ratio"] for r in records.values() if r.get("ratio")]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    states = {s: sum(r["state"] == s for r in records.values()) for s in ("failed", "baseline", "skipped", "not run")}
    print(f"\nkernels: {count('same', 'close', 'noisy')} right ({count('same')} bit for bit, {count('close')} close, "
          f"{count('noisy')} as noisy as ptxas's), {count('WRONG')} wrong, {states['failed']} failed with ours, "
          f"{states['baseline']} failed with ptxas's cubin too, {states['skipped']} skipped, {states['not run']} not run")
    if ratios:
        print(f"times ours/ptxas: geometric mean {mean:.3f} of {len(ratios)}; "
              f"{sum(x <= 1.02 for x in ratios)} at most 1.02, {sum(x > 1.1 for x in ratios)} above 1.1, "
              f"{sum(x > 1.5 for x in ratios)} above 1.5, worst {max(ratios):.2f}")
    both = [(r["ptxas_s"], r["ours_s"]) for r in records.values() if r.get("ptxas_s") and r.get("ours_s")]
    if both:
        print(f"compile times, all processors busy: ptxas {sum(x for x, _ in both):.1f} s, ours {sum(y for _, y in both):.1f} s")
    good = [x for *_, x in models if x]
    if models:
        print(f"models: {sum(o == 'right' for _, _, o, _ in models)} right, {sum(o == 'WRONG' for _, _, o, _ in models)} wrong, "
              f"{sum(o == 'FAILED' for _, _, o, _ in models)} failed, {sum(o == 'not run' for _, _, o, _ in models)} not run"
              + (f"; geometric mean {math.exp(sum(map(math.log, good)) / len(good)):.3f}" if good else ""))
    print(f"{time.time() - START:.0f} s{note}")
    sys.stdout.flush()
    try:
        data = {"kernels": records, "inductor": {s: i.results for s, i in (inductor or {}).items()}, "note": note,
                "mean": mean}
        (out / "triton.json").write_text(json.dumps(data, indent=1, default=str))
    except BaseException as error:
        say("triton.json:", short(error))
    try:
        room = 13_000_000
        with tarfile.open(out / "bad.tar.gz", "w:gz") as tar:
            def add(path, name):
                nonlocal room
                if path.exists() and path.stat().st_size:
                    body = path.read_bytes()
                    squeezed = len(body) // 3
                    if squeezed < room:
                        room -= squeezed
                        info = tarfile.TarInfo(name)
                        info.size = len(body)
                        tar.addfile(info, io.BytesIO(body))

            for r in rows:
                if r["state"] == "failed" or r.get("verdict") in ("WRONG", "no cubin") or r.get("unstable"):
                    for ending in (".ptx", ".ours.cubin", ".ptxas.cubin"):
                        add(folder / f"{r['name']}{ending}", f"{r['name']}{ending}")
            for log in ["runner.log", "inductor.ours.log", "inductor.ptxas.log"]:
                path = folder / log
                if path.exists():
                    (folder / (log + ".end")).write_bytes(path.read_bytes()[-200_000:])
                    add(folder / (log + ".end"), log)
            if inductor and "ours" in inductor and any(e.get("error_text") or e.get("wrong")
                                                       for e in inductor["ours"].results["models"].values()):
                for side in ("ours", "ptxas"):
                    for path in sorted((folder / f"cache.{side}").rglob("*.*")) + \
                            sorted((folder / f"inductor.{side}").rglob("*.*")):
                        if path.suffix in (".ptx", ".cubin"):
                            add(path, f"inductor.{side}/{path.parent.name[:12]}/{path.name[:120]}")
        if (out / "bad.tar.gz").stat().st_size > 15_000_000:
            (out / "bad.tar.gz").unlink()
            say("bad.tar.gz was too large")
    except BaseException as error:
        say("bad.tar.gz:", short(error))
