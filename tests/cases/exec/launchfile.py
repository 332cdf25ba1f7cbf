"""Launch descriptions: the input generators and the text of a NAME.ron file.

The generators are the same as those of the loader (src/sim/launch): a reference computes with the numbers, the file names the rule.
"""

import math
from exact import F32, bits32, bits64, f32, signed, unsigned

INTEGERS = {k + w: int(w) for k in "us" for w in ("8", "16", "32", "64")}


class Data(list):
    """Numbers together with the text that stands for them in the file."""

    text = None


def listed(values):
    return Data(values)


def named(text, values):
    data = Data(values)
    data.text = text
    return data


def convert(kind, value):
    """What the loader makes of a generated number."""
    if kind == "f32":
        return f32(value)
    if kind == "f64":
        return float(value)
    width = INTEGERS[kind]
    return signed(value, width) if kind[0] == "s" else unsigned(value, width)


def iota(kind, n, start, step):
    """start, start + step, start + 2 step, ...; for f32 computed in f64 and rounded once."""
    return named(f"iota({n}, {start}, {step})", [convert(kind, start + i * step) for i in range(n)])


def fill(kind, n, value):
    return named(f"fill({n}, {value})", [convert(kind, value)] * n)


def lcg(kind, n, seed, mask):
    """A 64-bit linear congruential generator; each number is its state with the halves swapped, and the mask."""
    out, x = [], seed
    for _ in range(n):
        x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(convert(kind, ((x >> 32 | x << 32) % 2**64) & mask))
    return named(f"lcg({n}, {seed}, 0x{mask:x})", out)


def scalar(kind, value):
    return f"{kind}({number(kind, value)})"


def STRUCT(text):
    """A structure by value, its items as they stand in the file."""
    return f"struct([{text}])"


# Numbers of the types of elements in a tensor map.
ELEMENTS = {"u8": 0, "u16": 1, "u32": 2, "s32": 3, "u64": 4, "s64": 5, "f16": 6, "f32": 7, "f64": 9, "bf16": 10}


SIZES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "f32": 4, "f64": 8, "bf16": 2}


def TENSOR(arg, kind, sizes, strides, box, steps=(), swizzle=0, nan=0, offset=0, image=None):
    """A tensor map by value: of the tensor at an offset in the buffer of an argument, with strides in bytes. An image
    has the corners of the box of pixels and a number of pixels."""
    rank, steps = len(sizes), list(steps) or [1] * len(sizes)
    bits = 0
    put = lambda at, value: value << at - 64
    bits |= put(68, rank - 1) | put(71, ELEMENTS[kind]) | put(77, swizzle) | put(79, nan)
    for i, stride in enumerate(strides):
        bits |= put(96 + 32 * i, stride >> 4 & 0xFFFFFFFF) | put(224 + 4 * i, stride >> 36)
    for i in range(rank):
        bits |= put(256 + 32 * i, sizes[i] - 1) | put(416 + 3 * i, steps[i] - 1) | (put(440 + 8 * i, box[i] - 1) if i < len(box) else 0)
    rows = math.prod((b + s - 1) // s for b, s in zip(box[1:], steps[1:]))
    if image is not None:
        width = {3: 16, 4: 8, 5: 5}[rank]
        for at, corner in zip((448, 464), image):
            for i, c in enumerate(corner):
                bits |= put(at + width * i, c & (1 << width) - 1)
        rows = image[2]
        bits |= put(64, 1) | put(480, rows - 1)
    bits |= put(512, rows * box[0] * SIZES[kind]) | put(576, 128 << swizzle if swizzle else 16)
    words = [f"u64(0x{bits >> 64 * i & 0xFFFFFFFFFFFFFFFF:x})" for i in range(15)]
    return STRUCT(f"at({arg}, {offset}), " + ", ".join(words))


def IN(kind, data):
    return "in", kind, data, None


def OUT(kind, expect, hexadecimal=False):
    return "out", kind, None, (expect, hexadecimal)


def INOUT(kind, data, expect, hexadecimal=False):
    assert len(data) == len(expect)
    return "inout", kind, data, (expect, hexadecimal)


def MEMORY(arg):
    """A buffer that is no parameter."""
    return "memory", arg


def launch(kernel, grid, block, args, smem=0, targets=()):
    return dict(kernel=kernel, grid=three(grid), block=three(block), smem=smem, args=args, targets=targets)


def three(size):
    size = (size,) if isinstance(size, int) else size
    return tuple(size) + (1,) * (3 - len(size))


def number(kind, value, hexadecimal=False):
    """A number that the loader reads back to the same bits: a short exact decimal, or the bits in hexadecimal; `nan` is any NaN."""
    if kind in INTEGERS:
        assert convert(kind, value) == value, (kind, value)
        return f"0x{value:0{INTEGERS[kind] // 4}x}" if hexadecimal else str(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = repr(value)
    if len(text.lstrip("-").replace(".", "").lstrip("0")) <= 7 and "e" not in text:
        return text.removesuffix(".0") if value != 0 or text[0] != "-" else text
    return f"0x{bits32(value):08x}" if kind == "f32" else f"0x{bits64(value):016x}"


def block_of(kind, values, hexadecimal, indent):
    """A bracketed list, wrapped."""
    words = [number(kind, v, hexadecimal) for v in values]
    pad, lines, line = " " * (indent + 4), [], ""
    for word in words:
        if line and len(pad) + len(line) + len(word) + 2 > 118:
            lines.append(line)
            line = ""
        line += (" " if line else "") + word + ","
    lines.append(line)
    if len(lines) == 1 and len(line) < 80:
        return "[" + line.removesuffix(",") + "]"
    return "[\n" + "".join(pad + text + "\n" for text in lines) + " " * indent + "]"


def argument(arg):
    if isinstance(arg, str):
        return " " * 16 + arg + ",\n"
    if arg[0] == "memory":
        return " " * 16 + f"memory({argument(arg[1]).strip().removesuffix(',')}),\n"
    role, kind, data, expect = arg
    parts = [f"type: {kind}"]
    if data is not None:
        parts.append("data: " + (getattr(data, "text", None) or block_of(kind, data, False, 16)))
    if expect is not None:
        parts.append("expect: " + block_of(kind, expect[0], expect[1], 16))
    return " " * 16 + f"{role}({', '.join(parts)}),\n"


def render(module, launches):
    text = "// Written by expected.py from the meaning of the kernel; change the numbers there.\n"
    text += f'(\n    module: "{module}",\n    launches: [\n'
    for l in launches:
        text += f'        (\n            kernel: "{l["kernel"]}",\n            grid: {l["grid"]},\n            block: {l["block"]},\n'
        text += f'            smem: {l["smem"]},\n            tolerance: exact,\n'
        if l["targets"]:
            text += "            targets: [" + ", ".join(f'"{t}"' for t in l["targets"]) + "],\n"
        text += "            args: [\n"
        text += "".join(argument(a) for a in l["args"]) + "            ],\n        ),\n"
    return text + "    ],\n)\n"


def number_lines(numbers, hexadecimal):
    """Lines of numbers of 32 bits, as the scripts that write whole modules print them."""
    out, line = "", " " * 20
    for number in numbers:
        text = (f"0x{number:08x}" if hexadecimal else str(number)) + ","
        if len(line) + len(text) + 1 > 118:
            out, line = out + line.rstrip() + "\n", " " * 20
        line += text + " "
    return out + line.rstrip() + "\n"
