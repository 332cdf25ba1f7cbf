"""The process that runs the models with one compiler."""
import fcntl
import hashlib
import json
import os
import time
import traceback
from pathlib import Path

from .common import short
from .compare import difference
from .models import inductor_models


def inductor_side(options):
    """The whole of one process: writes its results to a file after every model."""
    import torch

    results = {"models": {}}
    path = Path(options.result)

    def save():
        path.with_suffix(".part").write_text(json.dumps(results))
        path.with_suffix(".part").rename(path)

    try:
        from triton import knobs

        results["ptxas_path"] = str(knobs.nvidia.ptxas.path)
        results["ptxas_version"] = str(knobs.nvidia.ptxas.version)
    except BaseException as error:
        results["ptxas_path"] = short(error)
    save()
    try:
        import torch._inductor.config as config

        config.max_autotune = False
        for owner, name in ((config.triton, "autotune_pointwise"), (config, "fx_graph_cache")):
            if hasattr(owner, name):
                setattr(owner, name, False)
    except BaseException as error:
        results["config_note"] = short(error)
    lock = open(Path(options.folder) / "gpu.lock", "w")
    watched = {"name": None, "stage": "", "until": 0.0}

    def watch():
        # A kernel that hangs would hold the lock for ever.
        while True:
            time.sleep(0.25)
            if watched["name"] and time.time() > watched["until"]:
                results["models"][watched["name"]]["error_text"] = f"no end while {watched['stage']}"
                save()
                os._exit(3)

    import threading

    threading.Thread(target=watch, daemon=True).start()
    only = [part for part in options.only.split(",") if part and part not in ("inductor", "kernels")]
    for name, make in inductor_models(torch).items():
        if only and not any(part in name for part in only):
            continue
        if time.time() > options.until:
            results["models"][name] = {"not_run": True}
            continue
        entry = results["models"][name] = {}
        try:
            watched.update(name=name, stage="compiling", until=time.time() + 60)
            torch.manual_seed(5)
            function, inputs = make()
            grads = [t for t in inputs if t.requires_grad]

            def step(f):
                out = f(*inputs)
                outs = list(out) if isinstance(out, (tuple, list)) else [out]
                if grads:
                    loss = outs[0] if outs[0].dim() == 0 else outs[0].float().square().mean() * 100
                    outs = outs + list(torch.autograd.grad(loss, grads))
                return [t.detach() for t in outs]

            torch._dynamo.reset()
            started = time.time()
            compiled = torch.compile(function)
            step(compiled)
            torch.cuda.synchronize()
            entry["compile_s"] = round(time.time() - started, 2)
            watched.update(stage="waiting", until=time.time() + 60)
            fcntl.flock(lock, fcntl.LOCK_EX)
            watched.update(stage="running", until=time.time() + 15)
            reference, mine = step(function), step(compiled)
            torch.cuda.synchronize()
            worst, wrong, digest = 0.0, [], hashlib.sha256()
            for i, (a, b) in enumerate(zip(reference, mine)):
                digest.update(b.contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()
                              if b.numel() < 1 << 24 else str(float(b.double().sum())).encode())
                if not a.dtype.is_floating_point:
                    share = float((a != b).double().mean())
                    if share > 1e-4:
                        wrong.append(f"output {i}: {share:.2e} of the integers differ")
                    continue
                error, _ = difference(torch, a, b)
                worst = max(worst, error)
                limit = {"float32": 2e-3}.get(str(a.dtype).removeprefix("torch."), 6e-2)
                if bool(torch.isfinite(a).all()) and error > limit:
                    wrong.append(f"output {i}: {error:.2e}")
            entry.update(error=worst, wrong=wrong, digest=digest.hexdigest()[:16])
            from triton.testing import do_bench

            entry["ms"] = do_bench(lambda: step(compiled), warmup=10, rep=60, return_mode="median")
            if options.side == "ptxas":
                entry["eager_ms"] = do_bench(lambda: step(function), warmup=5, rep=20, return_mode="median")
        except BaseException as error:
            entry["error_text"] = short(error, 600)
            entry["trace"] = traceback.format_exc()[-2500:]
            save()
            text = str(error)
            if "CUDA error" in text or "illegal" in text or isinstance(error, (KeyboardInterrupt, SystemExit)):
                # The context is lost: a new process goes on with the models that are left.
                os._exit(3)
        finally:
            watched["name"] = None
            try:
                fcntl.flock(lock, fcntl.LOCK_UN)
            except BaseException:
                pass
        save()
    results["finished"] = True
    save()
    os._exit(0)
