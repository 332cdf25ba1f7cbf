"""The arguments and the grid of a kernel, checked against its signature."""
import re

from .maker import MAKERS, Maker


class Constants:
    def __init__(self, values):
        self.__dict__.update(values)


def build(entry, device, seed):
    """(maker, values in the order of the function, grid of three)."""
    name = entry.function.__name__ if hasattr(entry.function, "__name__") else entry.function.fn.__name__
    m = Maker(entry, device, seed)
    args, grid = MAKERS[name](m, Constants(entry.constants))
    check(entry, args)
    values = [args[p] if p in args else entry.constants[p] for p in entry.function.arg_names]
    return m, values, tuple(grid) + (1,) * (3 - len(grid))


def check(entry, args):
    """The arguments against the signature: names, kinds, ranges, multiples."""
    kinds = entry._arguments()
    assert set(args) == set(kinds), f"arguments differ: {set(args) ^ set(kinds)}"
    for name, kind in kinds.items():
        value = args[name]
        if kind.startswith("tensordesc<"):
            block = re.search(r"\[([\d,]+)\]", kind).group(1)
            assert ",".join(map(str, value.block_shape)) == block, f"{name}: block"
        elif kind.startswith("*"):
            sizes = {"fp64": 8, "i64": 8, "u64": 8, "fp32": 4, "i32": 4, "u32": 4, "fp16": 2, "bf16": 2, "i16": 2}
            assert value.element_size() == sizes.get(kind[1:], 1), f"{name}: size of elements"
            assert value.data_ptr() % 16 == 0, f"{name}: alignment"
        elif kind.startswith("fp"):
            assert isinstance(value, float), f"{name}: not a float"
        else:
            assert isinstance(value, int), f"{name}: not an int"
            bits = int(re.match(r"[iu](\d+)", kind).group(1))
            assert -(1 << (bits - 1)) <= value < 1 << (bits if kind[0] == "u" else bits - 1), f"{name}: range"
            assert not kind.endswith("/16") or value % 16 == 0, f"{name}: no multiple of 16"
