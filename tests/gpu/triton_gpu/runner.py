"""Runs kernels, in a child that holds the GPU."""
import fcntl
import os
import traceback

from .common import short
from .compare import SOFT, TOLERANCE, difference, same_bits
from .compiling import compile_triton
from .fake import FakeKernel, fake_cuda
from .inputs import build


class Runner:
    def __init__(self, pipe, entries, options, folder):
        import torch

        self.torch, self.pipe, self.entries, self.options, self.folder = torch, pipe, entries, options, folder
        self.device = "cuda"
        if options.fake:
            fake_cuda(torch)
            self.device = "cpu"
        torch.cuda.set_device(0)
        self.flush = torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int, device=self.device)
        self.flush.zero_()
        torch.cuda.synchronize()
        try:
            import triton

            triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
        except Exception:
            pass
        self.lock = open(folder / "gpu.lock", "w")

    def stage(self, text):
        self.pipe.send({"stage": text})

    def load(self, entry):
        if self.options.fake:
            return FakeKernel(entry, "ptxas"), FakeKernel(entry, "ours")
        from triton.compiler import CompiledKernel

        source, theirs = compile_triton(entry)
        ours = None
        path = self.folder / f"{entry.name}.ours.cubin"
        if path.exists():
            ours = CompiledKernel(source, theirs.metadata_group, theirs.hash)
            ours.kernel = path.read_bytes()
            ours.asm["cubin"] = ours.kernel
        return theirs, ours

    def facts(self, kernel, side, result):
        kernel._init_handles()
        result[f"regs_{side}"] = kernel.n_regs
        result[f"spills_{side}"] = kernel.n_spills

    def correct(self, entry, result):
        torch = self.torch
        m, values, grid = build(entry, self.device, 20261126)
        result["grid"] = grid
        result["mbytes"] = round(sum(t.numel() * t.element_size() for t in m.tensors) / 1e6, 1)
        first = [t.clone() for t in m.tensors]
        theirs, ours = self.load(entry)

        def go(kernel):
            for t, old in zip(m.tensors, first):
                t.copy_(old)
            torch.cuda.synchronize()
            kernel[grid](*values)
            torch.cuda.synchronize()

        self.stage("ptxas")
        self.facts(theirs, "ptxas", result)
        go(theirs)
        reference = [t.clone() for t in m.tensors]
        written = [i for i, t in enumerate(reference) if not same_bits(torch, t, first[i])]
        result["written"] = [m.labels[i] for i in written]
        for i in written:
            if reference[i].dtype.is_floating_point:
                t = reference[i].reshape(-1)
                bad = sum(int((~torch.isfinite(t[at:at + (1 << 26)].to(torch.float32))).sum())
                          for at in range(0, t.numel(), 1 << 26))
                if bad:
                    result.setdefault("not_finite", {})[m.labels[i]] = bad / t.numel()
        go(theirs)
        noise = {}
        for i, t in enumerate(m.tensors):
            if not same_bits(torch, t, reference[i]):
                noise[i] = difference(torch, reference[i], t)
        result["noise"] = {m.labels[i]: n for i, n in noise.items()}
        result["ptxas_ran"] = True
        if ours is None:
            result["verdict"] = "no cubin"
            return
        self.stage("ours")
        self.facts(ours, "ours", result)
        go(ours)
        verdict, worst, details = "same", 0.0, {}
        for i, t in enumerate(m.tensors):
            label = m.labels[i]
            if label in m.ignored or same_bits(torch, t, reference[i]):
                continue
            error, wrong = difference(torch, reference[i], t)
            if wrong == 0:
                continue  # zeros of two signs, or other NaNs
            kind = str(t.dtype).removeprefix("torch.")
            limit = TOLERANCE.get(kind, 0.13 if kind.startswith("float8") else 0.0)
            noisy_error, noisy_wrong = noise.get(i, (0.0, 0))
            share = wrong / t.numel()
            if error <= limit or error <= 4 * noisy_error < float("inf") or share <= SOFT.get(entry.name, 0):
                level = "close"
            elif noisy_wrong and wrong <= 4 * noisy_wrong:
                level = "noisy"
            else:
                level = "WRONG"
                where = (t.reshape(-1).view(torch.uint8) != reference[i].reshape(-1).view(torch.uint8)).nonzero()
                at = int(where[0]) // t.element_size()
                details[label + "_first"] = [at, float(reference[i].reshape(-1)[at].to(torch.float64)),
                                             float(t.reshape(-1)[at].to(torch.float64))]
            details[label] = [level, error, share]
            worst = max(worst, error)
            verdict = max(verdict, level, key=["same", "close", "noisy", "WRONG"].index)
        result.update(verdict=verdict, error=worst, details=details)
        mine = [t.clone() for t in m.tensors]
        go(ours)
        unstable = [m.labels[i] for i, t in enumerate(m.tensors)
                    if i not in noise and m.labels[i] not in m.ignored and not same_bits(torch, t, mine[i])]
        if unstable:
            result["unstable"] = unstable

    def timed(self, entry, result):
        torch = self.torch
        m, values, grid = build(entry, self.device, 20261126)
        theirs, ours = self.load(entry)
        sides = {"ptxas": theirs}
        if ours is not None:
            sides["ours"] = ours
        launch = {side: kernel[grid] for side, kernel in sides.items()}

        def once(side):
            for t in m.resets:
                t.zero_()
            self.flush.zero_()
            before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            before.record()
            launch[side](*values)
            after.record()
            return before, after

        self.stage("timing")
        rough = {}
        for side in sides:
            for _ in range(3):
                pair = once(side)
            torch.cuda.synchronize()
            rough[side] = pair[0].elapsed_time(pair[1])
        count = max(6, min(60, int(self.options.rep / max(sum(rough.values()) / 2, 0.01))))
        if max(rough.values()) > 200:
            count = 2
        pairs = {side: [] for side in sides}
        for number in range(count):
            for side in (list(sides) if number % 2 else list(sides)[::-1]):
                pairs[side].append(once(side))
        torch.cuda.synchronize()
        for side, events in pairs.items():
            times = sorted(a.elapsed_time(b) for a, b in events)
            result[f"ms_{side}"] = times[len(times) // 2]
            result[f"best_{side}"] = times[0]
        if ours is not None:
            result["ratio"] = result["ms_ours"] / result["ms_ptxas"]
            result["ratio_best"] = result["best_ours"] / result["best_ptxas"]

    def serve(self):
        self.pipe.send({"ready": True})
        while True:
            index, phase = self.pipe.recv()
            entry, result = self.entries[index], {}
            fatal = False
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX)
                self.stage("start")
                (self.correct if phase == "correct" else self.timed)(entry, result)
            except BaseException as error:
                result["error_text"] = short(error)
                result["trace"] = traceback.format_exc()[-1500:]
                try:
                    self.torch.cuda.synchronize()
                except BaseException:
                    fatal = True
            if fatal:
                # The context is lost; the kernel lets go of the lock with the process.
                self.pipe.send({"result": result, "fatal": True})
                os._exit(1)
            fcntl.flock(self.lock, fcntl.LOCK_UN)
            self.pipe.send({"result": result, "fatal": False})
