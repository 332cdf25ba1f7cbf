"""torch.compile, a process for each compiler."""
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "triton.py"


class Inductor:
    """One side's process, started again where it dies, with the models that it has not tried."""

    def __init__(self, side, ptxas, options, folder):
        self.side, self.ptxas, self.options, self.folder = side, ptxas, options, folder
        self.results, self.tries, self.process, self.skip = {"models": {}}, 0, None, []
        self.done = False
        self.start()

    def start(self):
        self.tries += 1
        self.result = self.folder / f"inductor.{self.side}.{self.tries}.json"
        environment = dict(os.environ)
        if self.ptxas:
            environment["TRITON_PTXAS_PATH"] = self.ptxas
        environment.update(
            TRITON_CACHE_DIR=str(self.folder / f"cache.{self.side}"),
            TORCHINDUCTOR_CACHE_DIR=str(self.folder / f"inductor.{self.side}"), TORCHINDUCTOR_COMPILE_THREADS="4",
            OMP_NUM_THREADS="2",
        )
        left = [name for name in self.wanted() if name not in self.results["models"]]
        command = [sys.executable, str(SCRIPT), "--inductor-side", self.side, "--result", str(self.result),
                   "--folder", str(self.folder), "--until", str(self.options.inductor_until), "--only", ",".join(left)]
        log = open(self.folder / f"inductor.{self.side}.log", "ab")
        self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def wanted(self):
        only = [part for part in self.options.only.split(",") if part]
        names = ["gelu_mlp", "layernorm", "softmax", "rmsnorm", "cumsum_gate", "argmax_topk", "conv_bn_relu",
                 "embedding_loss", "transformer_block", "group_norm_silu", "sort_small"]
        if not only or "inductor" in only:
            return names
        return [name for name in names if any(part in name for part in only)]

    def collect(self):
        try:
            found = json.loads(self.result.read_text())
        except (OSError, ValueError):
            return False
        models = {**self.results["models"], **found["models"]}
        self.results.update(found)
        self.results["models"] = models
        return found.get("finished", False)

    def poll(self):
        """True when nothing more comes."""
        if self.done:
            return True
        if self.process.poll() is None:
            if time.time() > self.options.inductor_until + 12:
                self.stop()
                self.done = True
            return self.done
        finished = self.collect()
        left = [name for name in self.wanted() if name not in self.results["models"]]
        if finished or not left or self.tries >= 6 or time.time() > self.options.inductor_until:
            self.done = True
        else:
            if self.process.returncode not in (0, 3):
                # It died within a model: the first that has no result.
                self.results["models"][left[0]] = {"error_text": f"process died: {self.process.returncode}"}
            if len(left) > 1 or self.process.returncode in (0, 3):
                self.start()
            else:
                self.done = True
        return self.done

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)
        except BaseException:
            pass
        self.collect()
