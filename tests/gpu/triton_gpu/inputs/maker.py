"""Makes tensors and registers makers of arguments.

Every tensor that a Maker makes is watched: all are compared after the launch.
"""
import re

SMS = 132
POISON = 0x5B


class Maker:
    """Makes the arguments of one registered kernel; names are those of its signature."""

    def __init__(self, entry, device, seed):
        import torch

        self.torch, self.entry, self.device = torch, entry, device
        self.kinds = entry._arguments()
        self.tensors, self.labels = [], []
        self.ignored, self.resets = set(), []
        self.generator = None
        if device != "meta":
            self.generator = torch.Generator(device=device)
            self.generator.manual_seed(seed)
        self.numpy_seed = seed

    def dtype(self, kind):
        torch = self.torch
        return {
            "fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64,
            "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2, "i1": torch.bool, "i8": torch.int8,
            "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "u32": torch.int32, "i64": torch.int64,
            "u64": torch.int64,
        }[kind]

    def of(self, name):
        kind = self.kinds.get(name, name)
        if kind.startswith("tensordesc<"):
            kind = kind[len("tensordesc<"):].split("[")[0]
        return self.dtype(kind.lstrip("*"))

    def watch(self, name, tensor):
        assert tensor.is_contiguous()
        self.tensors.append(tensor)
        self.labels.append(name)
        return tensor

    def randn(self, name, *shape, scale=1.0, shift=0.0):
        t = self.torch.randn(shape, device=self.device, generator=self.generator, dtype=self.torch.float32)
        t.mul_(scale)
        if shift:
            t.add_(shift)
        return self.watch(name, t.to(self.of(name)))

    def rand(self, name, *shape, low=0.0, high=1.0):
        exact = self.of(name) == self.torch.float64
        kind = self.torch.float64 if exact else self.torch.float32
        t = self.torch.rand(shape, device=self.device, generator=self.generator, dtype=kind)
        t.mul_(high - low).add_(low)
        return self.watch(name, t.to(self.of(name)))

    def softmax(self, name, *shape):
        t = self.torch.randn(shape, device=self.device, generator=self.generator, dtype=self.torch.float32)
        return self.watch(name, self.torch.softmax(t, -1).to(self.of(name)))

    def ints(self, name, low, high, *shape):
        t = self.torch.randint(low, high, shape, device=self.device, generator=self.generator, dtype=self.torch.int64)
        return self.watch(name, t.to(self.of(name)))

    def list(self, name, values):
        return self.watch(name, self.torch.tensor(values, dtype=self.torch.int64).to(self.of(name)).to(self.device))

    def out(self, name, *shape):
        t = self.torch.empty(shape, device=self.device, dtype=self.of(name))
        t.view(self.torch.uint8).fill_(POISON)
        return self.watch(name, t)

    def full(self, name, value, *shape):
        return self.watch(name, self.torch.full(shape, value, device=self.device, dtype=self.of(name)))

    def zero(self, name, *shape):
        return self.full(name, 0, *shape)

    def size(self, name, value):
        """value where the kernel was told that the number is a multiple of 16, a bit less elsewhere."""
        return value if self.kinds[name].endswith("/16") else value - 5

    def desc(self, name, tensor):
        from triton.tools.tensor_descriptor import TensorDescriptor

        block = [int(x) for x in re.search(r"\[([\d,]+)\]", self.kinds[name]).group(1).split(",")]
        return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), block)

    def numpy(self):
        import numpy

        return numpy.random.default_rng(self.numpy_seed)


MAKERS = {}


def maker(*names):
    def register(function):
        for name in names:
            MAKERS[name] = function
        return function

    return register
