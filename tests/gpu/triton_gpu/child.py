"""The process that runs kernels, seen from outside."""
import multiprocessing
import os
import signal
import time
import traceback

from .runner import Runner


class Child:
    """The process that runs kernels; replaced when it dies."""

    def __init__(self, entries, options, folder):
        self.pipe, other = multiprocessing.Pipe()
        self.started = time.time()
        self.since, self.job, self.at, self.ready = time.time(), None, "init", False
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.pipe.close()
                log = os.open(str(folder / "runner.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                os.dup2(log, 1)
                os.dup2(log, 2)
                Runner(other, entries, options, folder).serve()
            except EOFError:
                pass
            except BaseException:
                traceback.print_exc()
                try:
                    other.send({"broken": traceback.format_exc()[-800:]})
                except BaseException:
                    pass
            finally:
                os._exit(1)
        other.close()

    def give(self, index, phase):
        self.job, self.since, self.at = (index, phase), time.time(), "waiting"
        self.pipe.send((index, phase))

    def poll(self):
        """None, or ("ready" | "done" | "dead" | "broken", what)."""
        try:
            while self.pipe.poll():
                message = self.pipe.recv()
                if "stage" in message:
                    self.at, self.since = message["stage"], time.time()
                elif "ready" in message:
                    self.ready = True
                    return "ready", None
                elif "broken" in message:
                    return "broken", message["broken"]
                else:
                    return ("dead" if message["fatal"] else "done"), message["result"]
        except (EOFError, OSError):
            return "dead", None
        limit = {"init": 60, "waiting": 60, "start": 25}.get(self.at, 10)
        if (self.job or not self.ready) and time.time() - self.since > limit:
            self.kill()
            return "dead", {"error_text": f"no answer in {limit} s", "hang": True}
        return None

    def kill(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except OSError:
            pass

    def bury(self):
        self.kill()
        for _ in range(40):  # a process with a kernel that hangs may take long to go
            try:
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    break
            except OSError:
                break
            time.sleep(0.05)
        self.pipe.close()
