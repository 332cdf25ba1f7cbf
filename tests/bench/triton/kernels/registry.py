"""What is compiled: a function with the types of its arguments, its constants and options.

A signature is written "x:*fp16 n:i32 stride:i32/16". Pointers and integers with /16 are multiples of 16,
as a launcher finds them most of the time; Triton specialises on that.
"""
from dataclasses import dataclass, field

KERNELS = []


@dataclass
class Kernel:
    name: str
    function: object
    signature: str
    constants: dict
    options: dict = field(default_factory=dict)
    since: int = 75
    until: int = 999

    def allows(self, target):
        return self.since <= target <= self.until

    def _arguments(self):
        return dict(item.split(":", 1) for item in self.signature.split())

    def types(self):
        types = {name: kind.removesuffix("/16") for name, kind in self._arguments().items()}
        # Triton wants the arguments in the order of the function, constants among them.
        return {name: types.get(name, "constexpr") for name in self.function.arg_names}

    def attributes(self):
        attributes = {}
        for name, kind in self._arguments().items():
            if kind.endswith("/16") or kind.startswith("*"):
                attributes[(self.function.arg_names.index(name),)] = [["tt.divisibility", 16]]
        return attributes


def kernel(name, signature, warps=4, stages=3, since=75, until=999, options=None, **constants):
    """Registers the function under it; several of these make several variants."""

    def register(function):
        settings = dict(num_warps=warps, num_stages=stages, **(options or {}))
        KERNELS.append(Kernel(name, function, signature, constants, settings, since, until))
        return function

    return register
