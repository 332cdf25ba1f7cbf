#!/usr/bin/env python3
"""Writes a module for each of the newer families, and its launches: forms that no other kernel of the tests executes.

`python3 forms.py` writes tests/corpus/FAMILY.TARGET.ptx and tests/cases/corpus/FAMILY.ron. What a kernel leaves is what the
interpreter says; the cubins of both compilers must leave the same (tests/kernels/corpus_launches.rs).
"""

import math
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "exec"))
sys.dont_write_bytecode = True

from launchfile import TENSOR  # noqa: E402

MAGIC = 0x58455453
KINDS = {"u8": 0, "s8": 1, "u16": 2, "s16": 3, "u32": 4, "s32": 5, "f16": 6, "f32": 7}
LETTER = {"b16": "q", "b32": "r", "f32": "r", "b64": "l"}
SIZE = {"b16": 4, "b32": 4, "f32": 4, "b64": 8}


def image(kind, channels, size, cube=False, layers=0, levels=1, linear=False, normalized=False, samples=0, drawn=False, seed=1, mask=0xFFFFFFFF):
    """A texture or surface: a header of 16 words (src/sim/ops/texture.rs), and numbers behind it."""
    dimensions = 3 if cube else len(size)
    sides = list(size) + [1] * (3 - len(size))
    shape = dimensions | cube << 2 | (layers > 0) << 3
    header = [MAGIC, KINDS[kind] | channels << 8 | shape << 16, *sides, layers, levels, linear | normalized << 1 | 0x2A00 | drawn << 16, samples] + [0] * 7
    texels = 0
    for level in range(levels):
        at = [max(n >> level, 1) if i < dimensions or i < len(size) else n for i, n in enumerate(sides)]
        texels += at[0] * at[1] * at[2] * max(layers, 1) * (6 if cube else 1) * max(samples, 1)
    words = -(-texels * channels * int(kind[1:]) // 32)
    return f"concat([{header}, lcg({words}, {seed}, 0x{mask:x})])", 16 + words


class Module:
    """Kernels for one target, and their launches."""

    def __init__(self, name, target, version, about):
        self.name, self.target, self.about = name, target, about
        self.text = f"// {about}\n// Written by tests/cases/corpus/forms.py.\n.version {version}\n.target {target}\n.address_size 64\n"
        self.launches = []

    def kernel(self, name, params, lines, args, block=32, grid=1, head="", targets=()):
        params = ", ".join(p if p.startswith(".") else f".param .u64 {p}" for p in params)
        self.text += f"\n.visible .entry {name}({params}){head}\n{{\n" + "".join(f"{line}\n" if line.endswith(":") else f"    {line}\n" for line in lines) + "}\n"
        named = f" targets: [{', '.join(chr(34) + t + chr(34) for t in targets)}]," if targets else ""
        args = "".join(f"                {arg},\n" for arg in args)
        self.launches.append(
            f'        (\n            kernel: "{name}", grid: ({grid}, 1, 1), block: ({block}, 1, 1),{named}\n            args: [\n{args}            ],\n        ),\n')

    def write(self):
        file = f"{self.name}.{self.target}.ptx"
        (HERE / "../../corpus" / file).write_text(self.text)
        head = f"// {self.about}\n// Written by forms.py.\n"
        (HERE / f"{self.name}.ron").write_text(
            f'{head}(\n    module: "../../corpus/{file}",\n    launches: [\n{"".join(self.launches)}    ],\n)\n')


class Results:
    """Statements with results, which a kernel stores one behind the other, those of each thread side by side."""

    def __init__(self):
        self.body, self.counts = [], {"q": 0, "r": 0, "l": 0}
        self.stores = []

    def take(self, kind):
        letter = LETTER[kind]
        number = self.counts[letter]
        self.counts[letter] += 1
        name = f"%{letter}{number}"
        if kind == "b16":
            wide = self.take("b32")
            del self.stores[-1]
            self.stores.append([f"cvt.u32.u16 {wide}, {name};", f"st.global.b32 [%to+{{}}], {wide};", 4])
        else:
            self.stores.append([f"st.global.{'b64' if kind == 'b64' else 'b32'} [%to+{{}}], {name};", None, SIZE[kind]])
        return name

    def add(self, opcode, kinds, operands):
        """A statement whose results have these types; a list of several is a vector."""
        names = [self.take(kind) for kind in kinds]
        first = names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"
        self.body.append(f"{opcode} {first}, {operands};")

    def line(self, text):
        self.body.append(text)

    def finish(self):
        """The stores, and how many bytes a thread has."""
        out, at = [], 0
        for first, second, size in sorted(self.stores, key=lambda s: -s[2]):
            if second is None:
                out.append(first.format(at))
            else:
                out += [first, second.format(at)]
            at += size
        return out, -(-at // 8) * 8

    def registers(self):
        sizes = {"q": "b16", "r": "b32", "l": "b64"}
        return [f".reg .{sizes[k]} %{k}<{max(n, 1)}>;" for k, n in self.counts.items()]


def surfaces():
    m = Module("surfaces", "sm_75", "8.1", "Loads, stores and reductions of surfaces by every width, shape, cache and clamping.")
    place = ["mov.u32 %t, %tid.x;", "and.b32 %x, %t, 7;", "shr.u32 %y, %t, 3;", "shl.b32 %b, %x, 4;", "and.b32 %z, %t, 1;"]
    base = [".reg .b64 %h, %to, %w<2>;", ".reg .b32 %t, %x, %y, %z, %b, %o, %v<4>;", ".reg .b16 %s<4>;", "ld.param.u64 %h, [image];"]
    values = ["mad.lo.u32 %v0, %t, 2654435769, 77;", "xor.b32 %v1, %v0, 1431655765;", "shr.u32 %v2, %v0, 7;", "sub.u32 %v3, 5, %v0;",
              "cvt.u16.u32 %s0, %v0;", "cvt.u16.u32 %s1, %v1;", "cvt.u16.u32 %s2, %v2;", "cvt.u16.u32 %s3, %v3;", "mov.b64 %w0, {%v0, %v1};", "mov.b64 %w1, {%v2, %v3};"]

    loads = [("b8", ["b16"]), ("b16", ["b16"]), ("b64", ["b64"]), ("v2.b8", ["b16"] * 2), ("v4.b8", ["b16"] * 4), ("v2.b16", ["b16"] * 2), ("v4.b16", ["b16"] * 4),
             ("v2.b32", ["b32"] * 2), ("v4.b32", ["b32"] * 4)]
    r = Results()
    for width, kinds in loads:
        r.add(f"suld.b.2d.{width}.trap", kinds, "[%h, {%b, %y}]")
    for cache in ("", "ca.", "cg.", "cs.", "cv."):
        r.add(f"suld.b.2d.{cache}b32.trap", ["b32"], "[%h, {%b, %y}]")
    r.line("shl.b32 %o, %b, 1;")
    r.line("sub.u32 %o, %o, 32;")
    r.add("suld.b.2d.b32.clamp", ["b32"], "[%h, {%o, %y}]")
    r.add("suld.b.2d.b32.zero", ["b32"], "[%h, {%o, %y}]")
    loaded(m, "loads", r, base, place, image("u32", 1, (32, 4), seed=11))
    for shape, operand, size, layers in [("3d", "{%b, %y, %z, 0}", (32, 4, 2), 0), ("a1d", "{%z, %b}", (32,), 2)]:
        r = Results()
        r.add(f"suld.b.{shape}.b32.trap", ["b32"], f"[%h, {operand}]")
        loaded(m, f"loads_{shape}", r, base, place, image("u32", 1, size, layers=layers, seed=12))

    stores = [(f"sust.b.2d.{w}.trap", v) for w, v in [("b32", "%v0"), ("wb.b32", "%v1"), ("cg.b32", "%v2"), ("cs.b32", "%v3"), ("wt.b32", "%v0"), ("b8", "%s1"),
              ("v4.b16", "{%s0, %s1, %s2, %s3}"), ("v2.b64", "{%w0, %w1}"), ("v4.b32", "{%v0, %v1, %v2, %v3}")]]
    lines = []
    for i, (opcode, value) in enumerate(stores):
        lines += [f"add.u32 %o, %y, {4 * i};", f"{opcode} [%h, {{%b, %o}}], {value};"]
    # At the edges lanes whose place is beyond them write nothing, or meet at one place with one value.
    lines += [f"add.u32 %o, %y, {4 * len(stores)};", "shl.b32 %x, %b, 1;", "sub.u32 %x, %x, 32;", "sust.b.2d.b32.zero [%h, {%x, %o}], %v0;"]
    lines += [f"add.u32 %o, %y, {4 * len(stores) + 4};", "sust.b.2d.b32.clamp [%h, {%x, %o}], %y;"]
    written(m, "stores", base, place + values, lines, image("u32", 1, (32, 4 * len(stores) + 8), seed=13))

    for shape, operand, size, layers in [("1d", "{%t}", (64,), 0), ("2d", "{%x, %y}", (8, 4), 0), ("3d", "{%x, %y, %z, 0}", (8, 4, 2), 0), ("a1d", "{%z, %t}", (32,), 2),
                                         ("a2d", "{%z, %x, %y, 0}", (8, 4), 2)]:
        written(m, f"formatted_{shape}", base, place + values, [f"sust.p.{shape}.b32.trap [%h, {operand}], %v0;"], image("u32", 1, size, layers=layers, seed=14))
        four = f"sust.p.{shape}.v4.b32.trap [%h, {operand}], {{%v0, %v1, %v2, %v3}};"
        written(m, f"formatted_four_{shape}", base, place + values, [four], image("u32", 4, size, layers=layers, seed=15))
    for shape, operand, size, layers in [("3d", "{%b, %y, %z, 0}", (32, 4, 2), 0), ("a1d", "{%z, %b}", (32,), 2), ("a2d", "{%z, %b, %y, 0}", (32, 4), 2)]:
        # In one line of a row lanes that differ in %y alone meet, so they write the same.
        value = "%z" if shape == "a1d" else "%v0"
        written(m, f"stores_{shape}", base, place + values, [f"sust.b.{shape}.b32.trap [%h, {operand}], {value};"], image("u32", 1, size, layers=layers, seed=16))

    sums = [("b.min", "u32.trap", "%v0"), ("b.min", "s32.trap", "%v0"), ("b.max", "s32.trap", "%v1"), ("b.max", "u32.trap", "%v1"), ("b.and", "b32.trap", "%v0"), ("b.or", "b32.trap", "%v0"),
            ("b.add", "u32.trap", "%v0"), ("b.min", "u64.trap", "%w0"), ("b.add", "u64.trap", "%w0"), ("b.max", "s64.trap", "%w0")]
    lines = []
    for i, (op, kind, value) in enumerate(sums):
        lines += [f"add.u32 %o, %y, {4 * i};", f"sured.{op}.2d.{kind} [%h, {{%b, %o}}], {value};"]
    lines += [f"add.u32 %o, %y, {4 * len(sums)};", "shl.b32 %x, %b, 1;", "sub.u32 %x, %x, 32;", "sured.b.add.2d.u32.zero [%h, {%x, %o}], %v0;"]
    lines += [f"add.u32 %o, %y, {4 * len(sums) + 4};", "sured.b.add.2d.u32.clamp [%h, {%x, %o}], %v0;"]
    written(m, "sums", base, place + values, lines, image("u32", 1, (32, 4 * len(sums) + 8), seed=17))
    written(m, "sums_1d", base, place + values, ["shl.b32 %o, %x, 2;", "sured.b.add.1d.u32.trap [%h, {%o}], %v0;"], image("u32", 1, (32,), seed=18))
    written(m, "sums_3d", base, place + values, ["sured.b.add.3d.u32.trap [%h, {%b, %y, %z, 0}], %v0;"], image("u32", 1, (32, 4, 2), seed=19))
    written(m, "bounds_formatted", base, place + values, ["sured.p.min.2d.b64.trap [%h, {%x, %y}], %w0;"], image("u32", 2, (8, 4), seed=21))
    written(m, "sums_formatted", base, place + values, ["sured.p.add.2d.b32.trap [%h, {%x, %y}], %v0;"], image("u32", 1, (8, 4), seed=20))
    m.write()


def stored(words):
    """Words side by side, by fours where that can be."""
    out = [f"st.global.v4.b32 [%to+{4 * i}], {{{', '.join(words[i:i + 4])}}};" for i in range(0, len(words) // 4 * 4, 4) if len(words) % 4 == 0]
    return out or [f"st.global.b32 [%to+{4 * i}], {word};" for i, word in enumerate(words)]


def loaded(m, name, r, base, place, made):
    stores, size = r.finish()
    lines = base + r.registers() + ["ld.param.u64 %to, [out];"] + place + r.body + [f"mad.wide.u32 %to, %t, {size}, %to;"] + stores + ["ret;"]
    data, _ = made
    m.kernel(name, ["image", "out"], lines, [f"in(type: u32, data: {data})", f"out(type: u32, expect: interpreter({8 * size}))"])


def written(m, name, base, place, body, made):
    data, _ = made
    m.kernel(name, ["image"], base + place + body + ["ret;"], [f"inout(type: u32, data: {data}, expect: interpreter)"])


def textures():
    m = Module("textures", "sm_75", "8.0", "Reads of textures by shape, level, gradient and component.")
    base = [".reg .b64 %h, %to;", ".reg .b32 %t, %x, %y, %z, %v;", ".reg .f32 %f<4>, %c<3>, %d<4>;", "ld.param.u64 %h, [image];"]
    place = ["mov.u32 %t, %tid.x;", "and.b32 %x, %t, 7;", "shr.u32 %y, %t, 3;", "and.b32 %z, %t, 1;", "shr.u32 %v, %x, 2;",
             # In the middle of texels.
             "cvt.rn.f32.u32 %f0, %x;", "add.f32 %f0, %f0, 0f3F000000;", "cvt.rn.f32.u32 %f1, %y;", "add.f32 %f1, %f1, 0f3F000000;",
             "cvt.rn.f32.u32 %f2, %z;", "add.f32 %f2, %f2, 0f3F000000;", "cvt.rn.f32.u32 %f3, %v;",
             # The middle of texels of a face of four by four: the axis by the lane, and the signs.
             "and.b32 %v, %t, 3;", "cvt.rn.f32.u32 %c0, %v;", "fma.rn.f32 %c0, %c0, 0f3F000000, 0fBF400000;", "shr.u32 %v, %t, 3;", "cvt.rn.f32.u32 %c1, %v;",
             "fma.rn.f32 %c1, %c1, 0f3F000000, 0fBF400000;", "and.b32 %v, %t, 4;", "cvt.rn.f32.u32 %c2, %v;", "fma.rn.f32 %c2, %c2, 0f3F000000, 0fBF800000;",
             "shr.u32 %v, %x, 2;", "mov.f32 %d0, 0f3E000000;", "mul.f32 %d1, %f3, 0f3E000000;", "mov.f32 %d2, 0f00000000;", "mov.f32 %d3, 0f3D800000;"]

    def read(name, forms, made):
        r = Results()
        for opcode, kinds, operands in forms:
            r.add(opcode, kinds, operands)
        loaded(m, name, r, base, place, made)

    four = ["b32"] * 4
    plane = image("f32", 4, (8, 4), seed=31, mask=0x3F7FFFFF)
    read("plane", [("tex.2d.v4.f32.s32", four, "[%h, {%x, %y}]"), ("tex.2d.v2.f16x2.s32", ["b32"] * 2, "[%h, {%x, %y}]"), ("tld4.b.2d.v4.f32.f32", four, "[%h, {%f0, %f1}]")], plane)
    read("numbers_2d", [("tex.2d.v4.u32.s32", four, "[%h, {%x, %y}]")], image("u32", 4, (8, 4), seed=32))
    read("numbers_3d", [("tex.3d.v4.u32.s32", four, "[%h, {%x, %y, %z, 0}]")], image("u32", 4, (8, 4, 2), seed=33))
    read("numbers_a1d", [("tex.a1d.v4.u32.s32", four, "[%h, {%z, %t}]")], image("u32", 4, (32,), layers=2, seed=34))
    read("layers_1d", [("tex.a1d.v4.f32.f32", four, "[%h, {%z, %f0}]")], image("f32", 4, (32,), layers=2, seed=35, mask=0x3F7FFFFF))
    read("numbers_a2d", [("tex.a2d.v4.u32.s32", four, "[%h, {%z, %x, %y, 0}]"), ("tld4.r.a2d.v4.u32.f32", four, "[%h, {%z, %f0, %f1, 0f00000000}]")],
         image("u32", 4, (8, 4), layers=2, seed=36))
    directions = [("tex.acube.v4.f32.f32", "{%z, %c2, %c0, %c1}", "", 2), ("tex.level.cube.v4.f32.f32", "{%c0, %c2, %c1, 0f00000000}", ", %f3", 0),
                  ("tex.level.acube.v4.f32.f32", "{%z, %c1, %c0, %c2}", ", %f3", 2),
                  ("tex.grad.cube.v4.f32.f32", "{%c2, %c0, %c1, 0f00000000}", ", {%d0, %d2, %d3, %d3}, {%d2, %d1, %d0, %d0}", 0)]
    for opcode, at, more, layers in directions:
        made = image("f32", 2, (4, 4), cube=True, layers=layers, levels=2, normalized=True, seed=37, mask=0x3F7FFFFF)
        read(opcode.split(".v4")[0].replace(".", "_"), [(opcode, four, f"[%h, {at}]{more}")], made)
    read("gathered_cube", [("tld4.r.cube.v4.u32.f32", four, "[%h, {%c2, %c0, %c1, 0f00000000}]")], image("u32", 1, (4, 4), cube=True, normalized=True, seed=38))
    read("gathered_acube", [("tld4.r.acube.v4.u32.f32", four, "[%h, {%z, %c0, %c2, %c1}]")], image("u32", 1, (4, 4), cube=True, layers=2, normalized=True, seed=39))
    read("levels_3d", [("tex.level.3d.v4.f32.f32", four, "[%h, {%c0, %c1, %f2, 0f00000000}], %f3")], image("f32", 4, (8, 4, 2), levels=2, normalized=True, seed=40, mask=0x3F7FFFFF))
    read("levels_a1d", [("tex.level.a1d.v4.f32.f32", four, "[%h, {%z, %c0}], %f3")], image("f32", 4, (32,), layers=2, levels=3, normalized=True, seed=41, mask=0x3F7FFFFF))
    read("gradients_1d", [("tex.grad.1d.v4.f32.f32", four, "[%h, {%c0}], {%d0}, {%d1}")], image("f32", 4, (32,), levels=4, normalized=True, seed=42, mask=0x3F7FFFFF))
    read("gradients_a2d", [("tex.grad.a2d.v4.f32.f32", four, "[%h, {%z, %c0, %c1, 0f00000000}], {%d0, %d2}, {%d1, %d3}")],
         image("f32", 4, (8, 4), layers=2, levels=3, normalized=True, seed=43, mask=0x3F7FFFFF))
    for of, queries in (("txq", ("depth", "force_unnormalized_coords")), ("suq", ("height", "memory_layout"))):
        read(f"asked_{of}", [(f"{of}.{query}.b32", ["b32"], "[%h]") for query in queries], image("u32", 1, (8, 4, 2), drawn=of == "suq", seed=44))
    m.write()


def several_devices():
    m = Module("several_devices", "sm_90", "8.2", "Operations on memory that several devices share, of which there is one here, by every kind and type.")
    base = [".reg .b64 %in, %to, %at, %w<2>;", ".reg .b32 %t, %v<4>;", ".reg .f32 %f<4>;", "ld.param.u64 %in, [in];", "mov.u32 %t, %tid.x;", "mad.wide.u32 %at, %t, 16, %in;"]
    halves = ["b16"] * 8
    loads = [("min.s32", ["b32"]), ("max.u32", ["b32"]), ("add.s32", ["b32"]), ("add.u64", ["b64"]), ("and.b32", ["b32"]), ("or.b32", ["b32"]), ("xor.b32", ["b32"]), ("add.f64", ["b64"]),
             ("add.v4.f16x2", ["b32"] * 4), ("add.v2.f16x2", ["b32"] * 2), ("add.f16x2", ["b32"]), ("add.v8.f16", halves), ("add.v4.bf16x2", ["b32"] * 4), ("add.v8.bf16", halves),
             ("add.acc::f32.v4.f16x2", ["b32"] * 4), ("add.acc::f32.v4.bf16x2", ["b32"] * 4), ("min.v4.f16x2", ["b32"] * 4), ("max.v4.bf16x2", ["b32"] * 4)]
    r = Results()
    for kind, results in loads:
        r.add(f"multimem.ld_reduce.relaxed.sys.global.{kind}", results, "[%at]")
    r.add("multimem.ld_reduce.weak.global.add.u32", ["b32"], "[%at+4]")
    r.add("multimem.ld_reduce.acquire.gpu.global.add.u32", ["b32"], "[%at+8]")
    stores, size = r.finish()
    # Halves of either kind without infinities and NaN.
    source = "in(type: u32, data: lcg(128, 51, 0x3bff3bff))"
    m.kernel("reduced", ["in", "out"], base + r.registers() + ["ld.param.u64 %to, [out];"] + r.body + [f"mad.wide.u32 %to, %t, {size}, %to;"] + stores + ["ret;"],
             [source, f"out(type: u32, expect: interpreter({8 * size}))"])

    written = [("st.relaxed.sys.global.u32", "%v0", 4), ("st.weak.global.u32", "%v1", 4), ("st.release.gpu.global.u32", "%v2", 4), ("red.relaxed.sys.global.min.s32", "%v0", 4),
               ("red.relaxed.sys.global.and.b32", "%v1", 4), ("red.release.gpu.global.add.u32", "%v3", 4), ("red.relaxed.sys.global.add.bf16x2", "%v1", 4),
               ("red.relaxed.sys.global.add.u64", "%w0", 8), ("red.relaxed.sys.global.add.f64", "%w1", 8), ("st.relaxed.sys.global.v4.f16x2", "{%v0, %v1, %v2, %v3}", 16),
               ("red.relaxed.sys.global.add.v4.f16x2", "{%v0, %v1, %v2, %v3}", 16), ("red.relaxed.sys.global.add.v4.f32", "{%f0, %f1, %f2, %f3}", 16)]
    lines = ["ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%at];", "mov.b64 %w0, {%v0, %v1};", "mov.b64 %w1, {%v2, %v3};"] + [f"mov.b32 %f{i}, %v{i};" for i in range(4)]
    at = 0
    lines.append("mad.wide.u32 %to, %t, 128, %to;")
    for opcode, value, bytes in sorted(written, key=lambda w: -w[2]):
        lines.append(f"multimem.{opcode} [%to+{at}], {value};")
        at += bytes
    m.kernel("written", ["in", "out"], base + ["ld.param.u64 %to, [out];"] + lines + ["ret;"],
             [source, "inout(type: u32, data: lcg(1024, 52, 0x3bff3bff), expect: interpreter)"])
    m.write()
    own = Module("several_devices_own", "sm_100a", "8.6", "The same of floats of 8 bits.")
    r = Results()
    for kind, results in [("add.v4.e4m3x4", ["b32"] * 4), ("add.v2.e5m2x4", ["b32"] * 2), ("add.e4m3x4", ["b32"]), ("add.acc::f16.v4.e4m3x4", ["b32"] * 4)]:
        r.add(f"multimem.ld_reduce.relaxed.sys.global.{kind}", results, "[%at]")
    stores, size = r.finish()
    own.kernel("reduced", ["in", "out"], base + r.registers() + ["ld.param.u64 %to, [out];"] + r.body + [f"mad.wide.u32 %to, %t, {size}, %to;"] + stores + ["ret;"],
               ["in(type: u32, data: lcg(128, 53, 0x3b3b3b3b))", f"out(type: u32, expect: interpreter({8 * size}))"])
    own.write()


def tensor_memory():
    m = Module("tensor_memory", "sm_100a", "8.8", "Loads and stores of tensor memory by every shape and number.")
    reductions = Module("tensor_memory_extremes", "sm_103a", "8.8", "Loads of tensor memory that give the extremes too, by shape and type.")

    def kernel(m, name, body, registers, results, extra=0):
        lines = [".shared .align 4 .b32 place;", ".reg .b64 %in, %to, %more;", ".reg .pred %p;", f".reg .b32 %t, %c, %d, %last, %w<{registers}>, %m<1>;", "ld.param.u64 %in, [in];", "ld.param.u64 %to, [out];",
                 "mov.u32 %t, %tid.x;", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 256;", "ld.shared.b32 %c, [place];", "mad.wide.u32 %in, %t, 4, %in;"]
        # What every column of the lanes has first.
        lines += ["mov.b32 %d, %c;", "mov.b64 %more, %in;", "add.u32 %last, %c, 256;", f"{name}_fill:"] + [f"ld.global.b32 %w{i}, [%more+{128 * i}];" for i in range(32)]
        lines += ["tcgen05.st.sync.aligned.32x32b.x32.b32 [%d], {" + ", ".join(f"%w{i}" for i in range(32)) + "};", "tcgen05.wait::st.sync.aligned;", "add.u64 %more, %more, 4096;",
                  "add.u32 %d, %d, 32;", "setp.lt.u32 %p, %d, %last;", f"@%p bra {name}_fill;"]
        lines += body
        lines += ["tcgen05.wait::ld.sync.aligned;", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %c, 256;", "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"]
        lines += [f"mad.wide.u32 %to, %t, {4 * results}, %to;"] + stored([f"%w{i}" for i in range(results - extra)] + ["%m0"] * extra) + ["ret;"]
        m.kernel(name, ["in", "out"], lines, ["in(type: u32, data: lcg(8192, 61, 0xffffffff))", f"out(type: u32, expect: interpreter({32 * results}))"])

    def vector(n, first=0):
        return "{" + ", ".join(f"%w{first + i}" for i in range(n)) + "}"

    words = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4}
    for shape, n in [("16x64b", 1), ("16x64b", 32), ("16x64b", 128), ("16x128b", 1), ("16x128b", 4), ("16x128b", 32), ("16x128b", 64), ("16x256b", 4), ("16x256b", 32), ("32x32b", 4), ("32x32b", 64), ("32x32b", 128)]:
        count = n * words[shape]
        kernel(m, f"load_{shape}_{n}", [f"tcgen05.ld.sync.aligned.{shape}.x{n}.b32 {vector(count)}, [%c];"], max(count, 32), count)
    kernel(m, "load_packed", [f"tcgen05.ld.sync.aligned.32x32b.x4.pack::16b.b32 {vector(4)}, [%c];"], 32, 4)
    kernel(m, "load_apart", [f"tcgen05.ld.sync.aligned.16x32bx2.x32.b32 {vector(32)}, [%c], 40;"], 32, 32)
    # Stores, and what the columns have then.
    for shape, n, more in [("16x64b", 1, ""), ("16x64b", 4, ""), ("16x128b", 1, ""), ("16x128b", 4, ""), ("16x256b", 1, ""), ("32x32b", 4, ""), ("32x32b", 4, ".unpack::16b"), ("32x32b", 64, ""), ("32x32b", 128, ""),
                           ("16x64b", 32, ""), ("16x64b", 128, ""), ("16x128b", 32, ""), ("16x128b", 64, ""), ("16x256b", 4, ""), ("16x256b", 32, "")]:
        count = n * words[shape]
        back = min(128, max(8, 2 * count))
        made = [f"ld.global.b32 %w{i}, [%in+{128 * ((i + 5) % 64)}];" for i in range(count)]
        body = made + [f"tcgen05.st.sync.aligned.{shape}.x{n}{more}.b32 [%c], {vector(count)};", "tcgen05.wait::st.sync.aligned;", f"tcgen05.ld.sync.aligned.32x32b.x{back}.b32 {vector(back)}, [%c];"]
        kernel(m, f"store_{shape}_{n}{'_unpacked' if more else ''}", body, max(count, back, 32), back)
    for n in (16, 32):
        made = [f"ld.global.b32 %w{i}, [%in+{128 * ((i + 5) % 64)}];" for i in range(n)]
        body = made + [f"tcgen05.st.sync.aligned.16x32bx2.x{n}.b32 [%c], 40, {vector(n)};", "tcgen05.wait::st.sync.aligned;", f"tcgen05.ld.sync.aligned.32x32b.x128.b32 {vector(128)}, [%c];"]
        kernel(m, f"store_apart_{n}", body, 128, 128)
    for shape, kind, at in [("32x32b", "min.f32", ""), ("32x32b", "max.abs.NaN.f32", ""), ("32x32b", "max.s32", ""), ("16x32bx2", "min.u32", ", 8")]:
        body = [f"tcgen05.ld.red.sync.aligned.{shape}.x4.{kind} {vector(4)}, %m0, [%c]{at};"]
        kernel(reductions, f"{kind.replace('.', '_')}_{shape}", body, 32, 5, extra=1)
    m.write()
    reductions.write()


# What a word of a factor keeps of its bits, and what it has anyway: small numbers whose sums are exact.
SMALL = {"f16": (0x86008600, 0x38003800), "bf16": (0x80C080C0, 0x3F003F00), "tf32": (0x80C00000, 0x3F000000), "e4m3": (0x8C8C8C8C, 0x30303030), "e5m2": (0x86868686, 0x38383838),
         "s8": (0xFFFFFFFF, 0), "u8": (0xFFFFFFFF, 0), "b1": (0xFFFFFFFF, 0), "f32": (0x80C00000, 0x3F000000), "s32": (0xFFFFFFFF, 0)}
WIDTH = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}


def taken(word, kind):
    keeps, has = SMALL[kind]
    return [f"and.b32 {word}, {word}, 0x{keeps:08x};", f"or.b32 {word}, {word}, 0x{has:08x};"]


def warp_groups():
    m = Module("warp_groups", "sm_90a", "8.7", "Products of warp groups of 64 columns and others, by type.")

    def kernel(n, k, sums, a, b, more="", sparse=False):
        name = f"n{n}_{'sparse_' if sparse else ''}{sums}_{a}_{b}{more.replace('.', '_')}"
        count = n // (4 if sums == "f16" else 2)
        wide = k * WIDTH[a] // 8 // (2 if sparse else 1)
        deep = k * WIDTH[b] // 8
        strides = [wide * 8, deep * 8]
        sizes = [64 * wide, n * deep]
        # 128 threads write a word each at a time.
        area = -(-sum(sizes) // 512) * 512
        d = ", ".join(f"%d{i}" for i in range(count))
        lines = [".shared .align 1024 .b8 area[%d];" % area, ".reg .b64 %in, %to, %at, %da, %db;", f".reg .b32 %d<{count}>;", ".reg .b32 %t, %s, %i, %v, %m, %last;", ".reg .pred %p;",
                 "ld.param.u64 %in, [in];", "ld.param.u64 %to, [out];", "mov.u32 %t, %tid.x;", "mad.wide.u32 %at, %t, 4, %in;"]
        lines += ["mov.u32 %s, area;", "mad.lo.u32 %i, %t, 4, %s;"]
        for part, (kind, size) in enumerate([(a, sizes[0]), (b, sizes[1])]):
            label = f"{name}_{'ab'[part]}"
            lines += [f"add.u32 %last, %s, {sum(sizes[:part + 1])};", f"{label}:", "ld.global.b32 %v, [%at];"] + taken("%v", kind)
            lines += ["st.shared.b32 [%i], %v;", "add.u32 %i, %i, 512;", "add.u64 %at, %at, 512;", "setp.lt.u32 %p, %i, %last;", f"@%p bra {label};"]
        for i in range(count):
            lines += [f"ld.global.b32 %d{i}, [%at+{512 * i}];"] + (taken(f"%d{i}", sums) if sums != "s32" else [])
        lines += ["fence.proxy.async;", "bar.sync 0;"]
        for which, start, stride in [("%da", 0, strides[0]), ("%db", sizes[0], strides[1])]:
            lines += [f"add.u32 %v, %s, {start};", "shr.u32 %v, %v, 4;", f"cvt.u64.u32 {which}, %v;", f"or.b64 {which}, {which}, {128 >> 4 << 16 | stride >> 4 << 32};"]
        lines += ["and.b32 %v, %t, 1;", "setp.ne.u32 %p, %v, 0;", "selp.b32 %m, 0x44e4e44e, 0xe44e44e4, %p;"] if sparse else []
        turned = ", 0, 0" if a in ("f16", "bf16") else ""
        signs = "" if sums == "s32" else ", 1, 1" + turned
        lines += ["setp.eq.u32 %p, %t, %t;", "wgmma.fence.sync.aligned;",
                  f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.m64n{n}k{k}.{sums}.{a}.{b}{more} {{{d}}}, %da, %db,{' %m, 0,' if sparse else ''} %p{signs};",
                  "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;", f"mad.wide.u32 %to, %t, {4 * count}, %to;"]
        lines += stored([f"%d{i}" for i in range(count)]) + ["ret;"]
        m.kernel(name, ["in", "out"], lines, [f"in(type: u32, data: lcg({area // 4 + 128 * count}, {70 + len(m.launches)}, 0xffffffff))", f"out(type: u32, expect: interpreter({128 * count}))"], block=128)

    for n in (24, 64, 128, 256):
        kernel(n, 16, "f32", "f16", "f16")
    kernel(64, 16, "f16", "f16", "f16")
    kernel(8, 16, "f16", "f16", "f16")
    kernel(64, 16, "f32", "bf16", "bf16")
    kernel(64, 8, "f32", "tf32", "tf32")
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            kernel(64, 32, "f32", a, b)
    kernel(64, 32, "f16", "e4m3", "e4m3")
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            kernel(64, 32, "s32", a, b)
    kernel(64, 32, "s32", "s8", "s8", ".satfinite")
    kernel(64, 256, "s32", "b1", "b1", ".and.popc")
    kernel(64, 32, "f32", "f16", "f16", sparse=True)
    kernel(64, 16, "f32", "tf32", "tf32", sparse=True)
    kernel(64, 64, "f32", "e4m3", "e4m3", sparse=True)
    kernel(64, 64, "s32", "s8", "s8", sparse=True)
    m.write()


def transactions():
    m = Module("transactions", "sm_90", "8.6", "Barriers of transactions, copies in bulk and stores in a cluster, in the forms that no other kernel has.")
    begin = ["ld.param.u64 %in, [in];", "ld.param.u64 %to, [out];", "mov.u32 %t, %tid.x;", "mad.wide.u32 %in, %t, 4, %in;"]
    source = "in(type: u32, data: lcg(32, 91, 0xffffffff))"

    def wait(name, what):
        return [f"{name}:", f"mbarrier.{what};", f"@!%done bra {name};"]

    # A barrier for each way to arrive; behind those that order what is written, each lane reads what its neighbour wrote.
    lines = [".shared .align 8 .b64 bar[8];", ".shared .align 4 .b32 slots[64];", ".reg .b64 %in, %to, %g, %k;", ".reg .b32 %t, %v, %w, %a, %b, %c, %r<8>;", ".reg .pred %p, %done;"] + begin
    lines += ["ld.global.b32 %v, [%in];", "mov.u32 %b, bar;", "setp.ne.u32 %p, %t, 0;", "@%p bra arrivals_made;", "cvt.u64.u32 %g, %b;", "cvta.shared.u64 %g, %g;", "mbarrier.init.b64 [%g], 32;"]
    lines += [f"mbarrier.init.shared::cta.b64 [bar+{8 * i}], {n};" for i, n in [(1, 32), (2, 64), (3, 33), (4, 33), (5, 33), (6, 32), (7, 32)]]
    lines += [f"mbarrier.arrive.shared::cta.b64 %k, [bar+{8 * i}];" for i in (3, 4, 5)] + ["arrivals_made:", "bar.sync 0;"]
    lines += ["mapa.shared::cluster.u32 %c, %b, 0;", "mov.u32 %a, slots;", "mad.lo.u32 %a, %t, 4, %a;"]
    near = ["add.u32 %w, %t, 1;", "and.b32 %w, %w, 31;", "shl.b32 %w, %w, 2;"]
    lines += near + ["mov.u32 %r0, slots;", "add.u32 %w, %w, %r0;"]
    lines += ["mbarrier.arrive.relaxed.cta.shared::cta.b64 %k, [bar], 1;"] + wait("arrivals_0", "test_wait.relaxed.cta.shared::cta.b64 %done, [bar], %k")
    lines += ["st.shared.b32 [%a], %v;", "mbarrier.arrive.release.cluster.shared::cta.b64 %k, [bar+8], 1;"] + wait("arrivals_1", "test_wait.acquire.cluster.shared::cta.b64 %done, [bar+8], %k")
    lines += ["ld.shared.b32 %r1, [%w];", "st.shared.b32 [%a+128], %r1;", "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %k, [bar+16], 1;", "mbarrier.arrive.shared.b64 %k, [bar+16];"]
    lines += wait("arrivals_2", "try_wait.shared.b64 %done, [bar+16], %k") + ["ld.shared.b32 %r2, [%w+128];"]
    lines += ["st.shared.b32 [%a], %r2;", "mbarrier.arrive_drop.shared::cta.b64 %k, [bar+24];"] + wait("arrivals_3", "try_wait.shared.b64 %done, [bar+24], %k") + ["ld.shared.b32 %r3, [%w];"]
    lines += ["st.shared.b32 [%a+128], %r3;", "mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%c+32], 1;"]
    lines += wait("arrivals_4", "try_wait.parity.acquire.cluster.shared::cta.b64 %done, [bar+32], 0") + ["ld.shared.b32 %r4, [%w+128];"]
    lines += ["st.shared.b32 [%a], %r4;", "mbarrier.arrive_drop.expect_tx.shared::cta.b64 %k, [bar+40], 16;", "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar+40], 16;"]
    lines += wait("arrivals_5", "try_wait.shared.b64 %done, [bar+40], %k") + ["ld.shared.b32 %r5, [%w];"]
    lines += ["st.shared.b32 [%a+128], %r5;", "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%c+48], 8;", "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%c+48], 8;"]
    lines += wait("arrivals_6", "try_wait.parity.acquire.cluster.shared::cta.b64 %done, [bar+48], 0") + ["ld.shared.b32 %r6, [%w+128];"]
    lines += ["st.shared.b32 [%a], %r6;", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar+56], 4;", "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%c+56], 4;",
              "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar+56], 8;", "mbarrier.arrive.shared::cta.b64 %k, [bar+56];"]
    lines += wait("arrivals_7", "try_wait.shared.b64 %done, [bar+56], %k") + ["ld.shared.b32 %r7, [%w];"]
    lines += ["mad.wide.u32 %to, %t, 28, %to;"] + [f"st.global.b32 [%to+{4 * i}], %r{i + 1};" for i in range(7)] + ["ret;"]
    m.kernel("arrivals", ["in", "out"], lines, [source, "out(type: u32, expect: interpreter(224))"])

    # Reductions of a whole array in shared memory by another, and with a policy of the cache.
    ops = ["add.u64", "inc.u32", "and.b32", "add.s32", "xor.b32", "or.b32", "dec.u32", "max.u32"]
    count = len(ops)
    lines = [".shared .align 16 .b32 from[32];", f".shared .align 16 .b32 joined[{32 * count}];", ".shared .align 8 .b64 bar;", ".reg .b64 %in, %to, %policy, %base, %last;", ".reg .b32 %t, %v, %a, %b, %c, %w;",
             ".reg .pred %p, %done;"] + ["ld.param.u64 %base, [in];", "ld.param.u64 %last, [out];"] + begin
    lines += ["ld.global.b32 %v, [%in];", "mov.u32 %a, from;", "mad.lo.u32 %a, %t, 4, %a;", "st.shared.b32 [%a], %v;", "mov.u32 %b, joined;", "mad.lo.u32 %b, %t, 4, %b;", "not.b32 %w, %v;", "shr.u32 %w, %w, 1;"]
    lines += [f"st.shared.b32 [%b+{128 * i}], %w;" for i in range(count)]
    lines += ["setp.ne.u32 %p, %t, 0;", "@%p bra joined_made;", "mbarrier.init.shared::cta.b64 [bar], 1;", "fence.mbarrier_init.release.cluster;", "joined_made:", "fence.proxy.async.shared::cluster;",
              "barrier.cluster.arrive;", "barrier.cluster.wait;", "createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;", "@%p bra joined_issued;", f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {128 * count};",
              "mov.u32 %b, joined;", "mapa.shared::cluster.u32 %b, %b, 0;", "mov.u32 %c, bar;", "mapa.shared::cluster.u32 %c, %c, 0;"]
    for i, op in enumerate(ops):
        lines += [f"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op} [%b], [from], 128, [%c];", "add.u32 %b, %b, 128;"]
    lines += ["cp.async.bulk.prefetch.L2.global.L2::cache_hint [%base], 128, %policy;", f"cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.u32 [%last+{128 * count}], [from], 128, %policy;",
              f"cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%last+{128 * count + 128}], [from], 128, %policy;", "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;", "joined_issued:"]
    lines += wait("joined_over", "try_wait.parity.shared::cta.b64 %done, [bar], 0") + ["mov.u32 %b, joined;", "mad.lo.u32 %b, %t, 4, %b;", "mad.wide.u32 %to, %t, 4, %to;"]
    for i in range(count):
        lines += [f"ld.shared.b32 %w, [%b+{128 * i}];", f"st.global.b32 [%to+{128 * i}], %w;"]
    m.kernel("joined", ["in", "out"], lines + ["ret;"], [source, f"inout(type: u32, data: lcg({32 * count + 64}, 92, 0xffffffff), expect: interpreter)"])

    # Two blocks store to each other.
    stores = [("b32", "%v", 4), ("u32", "%v", 4), ("s64", "%l", 8), ("v2.b32", "{%v, %w}", 8), ("v4.b32", "{%v, %w, %t, %r}", 16), ("v2.b64", "{%l, %m}", 16)]
    sums = ["add.s32", "dec.u32", "min.u32", "max.s32", "and.b32", "or.b32", "xor.b32"]
    bytes = sum(32 * n for *_, n in stores) + 32 * 4 + 32 * 4 * len(sums)
    lines = [f".shared .align 16 .b8 area[{sum(32 * n for *_, n in stores) + 128}];", f".shared .align 16 .b32 sums[{32 * len(sums)}];", ".shared .align 8 .b64 bar;", ".reg .b64 %in, %to, %l, %m, %g;",
             ".reg .b32 %t, %v, %w, %r, %a, %b, %c, %s, %x<4>;", ".reg .pred %p, %done;"] + begin
    lines += ["mov.u32 %r, %cluster_ctarank;", "ld.global.b32 %v, [%in];", "mad.lo.u32 %v, %r, 77777, %v;", "not.b32 %w, %v;", "mov.b64 %l, {%v, %w};", "mov.b64 %m, {%t, %r};", "mov.u32 %s, sums;",
              "mad.lo.u32 %s, %t, 4, %s;"] + [f"st.shared.b32 [%s+{128 * i}], %w;" for i in range(len(sums))]
    lines += ["setp.ne.u32 %p, %t, 0;", "@%p bra exchanged_made;", "mbarrier.init.shared::cta.b64 [bar], 1;", f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes};", "fence.mbarrier_init.release.cluster;",
              "exchanged_made:", "barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire.aligned;", "xor.b32 %c, %r, 1;", "mov.u32 %b, bar;", "mapa.shared::cluster.u32 %b, %b, %c;", "mov.u32 %a, area;",
              "mapa.shared::cluster.u32 %a, %a, %c;", "mapa.shared::cluster.u32 %s, %s, %c;"]
    for kind, value, n in stores:
        lines += [f"mad.lo.u32 %x0, %t, {n}, %a;", f"st.async.shared::cluster.mbarrier::complete_tx::bytes.{kind} [%x0], {value}, [%b];", f"add.u32 %a, %a, {32 * n};"]
    lines += ["mad.lo.u32 %x0, %t, 4, %a;", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%x0], %w, [%b];"]
    lines += [f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op} [%s+{128 * i}], %v, [%b];" for i, op in enumerate(sums)]
    lines += wait("exchanged_over", "try_wait.parity.acquire.cluster.shared::cta.b64 %done, [bar], 0")
    lines += ["mad.lo.u32 %to_, %r, 32, %t;".replace("%to_", "%x1"), "mad.wide.u32 %to, %x1, %d, %to;".replace("%d", str(bytes // 32)), "mov.u32 %a, area;"]
    at = 0
    for n in [n for *_, n in stores] + [4]:
        lines.append(f"mad.lo.u32 %x0, %t, {n}, %a;")
        for i in range(n // 4):
            lines += [f"ld.shared.b32 %x1, [%x0+{4 * i}];", f"st.global.b32 [%to+{at}], %x1;"]
            at += 4
        lines.append(f"add.u32 %a, %a, {32 * n};")
    lines += ["mov.u32 %s, sums;", "mad.lo.u32 %s, %t, 4, %s;"]
    for i in range(len(sums)):
        lines += [f"ld.shared.b32 %x1, [%s+{128 * i}];", f"st.global.b32 [%to+{at}], %x1;"]
        at += 4
    assert at == bytes // 32
    # A barrier without an order, before a block ends whose memory the other one has written.
    lines += ["barrier.cluster.arrive.relaxed.aligned;", "barrier.cluster.wait.aligned;", "ret;"]
    m.kernel("exchanged", ["in", "out"], lines, [source, f"out(type: u32, expect: interpreter({2 * bytes // 4}))"], grid=2, head=" .reqnctapercluster 2, 1, 1")

    lines = [".shared .align 16 .b32 area[128];", ".reg .b64 %in, %to, %g, %h;", ".reg .b32 %t, %v, %r, %c, %a, %x<6>;", ".reg .f32 %f;"] + begin
    lines += ["mov.u32 %r, %cluster_ctarank;", "ld.global.b32 %v, [%in];", "mad.lo.u32 %v, %r, 99991, %v;", "mov.u32 %a, area;", "mad.lo.u32 %a, %t, 16, %a;", "not.b32 %x0, %v;", "st.shared.v4.b32 [%a], {%v, %x0, %t, %r};",
              "barrier.cluster.arrive;", "barrier.cluster.wait;", "xor.b32 %c, %r, 1;", "mapa.shared::cluster.u32 %c, %a, %c;", "ld.shared::cluster.v4.u32 {%x0, %x1, %x2, %x3}, [%c];",
              "cvt.u64.u32 %g, %c;", "cvta.shared::cluster.u64 %h, %g;", "ld.u32 %x4, [%h+4];", "cvta.to.shared::cluster.u64 %g, %h;", "cvt.u32.u64 %c, %g;", "ld.shared::cluster.f32 %f, [%c+8];", "mov.b32 %x5, %f;",
              "mad.lo.u32 %c, %r, 32, %t;", "mad.wide.u32 %to, %c, 24, %to;"] + [f"st.global.b32 [%to+{4 * i}], %x{i};" for i in range(6)]
    m.kernel("seen", ["in", "out"], lines + ["barrier.cluster.arrive;", "barrier.cluster.wait;", "ret;"], [source, "out(type: u32, expect: interpreter(384))"], grid=2, head=" .reqnctapercluster 2, 1, 1")
    m.write()


def products():
    m = Module("warp_products", "sm_120a", "8.8", "Products of a warp of narrow floats, with scales and sparse.")
    narrow = {"e4m3": 0x8C8C8C8C, "e5m2": 0x86868686, "e2m3": 0xACACACAC, "e3m2": 0xA6A6A6A6, "e2m1": 0x3C3C3C3C}
    has = {"e4m3": 0x30303030, "e5m2": 0x38383838, "e2m3": 0, "e3m2": 0x08080808, "e2m1": 0}

    def kernel(name, opcode, a, b, sums="f32", scaled=False, sparse=False, packed=False):
        counts = [4, 4 if sparse else 2, 2 if sums == "f16" else 4]
        lines = [".reg .b64 %in, %to;", ".reg .b32 %t, %m, %u, %w, %a<4>, %b<4>;", ".reg .b32 %x<4>;", ".reg .f32 %c<4>, %d<4>;", ".reg .b32 %e<2>;", ".reg .pred %p;", "ld.param.u64 %in, [in];", "ld.param.u64 %to, [out];",
                 "mov.u32 %t, %tid.x;", "mad.wide.u32 %in, %t, 64, %in;"]
        at = 0
        for letter, count, kind in [("a", counts[0], a), ("b", counts[1], b)]:
            for i in range(count):
                lines += [f"ld.global.b32 %{letter}{i}, [%in+{at}];"]
                if not packed:
                    lines += [f"and.b32 %{letter}{i}, %{letter}{i}, 0x{narrow[kind]:08x};", f"or.b32 %{letter}{i}, %{letter}{i}, 0x{has[kind]:08x};"]
                at += 4
        for i in range(counts[2]):
            lines += [f"ld.global.b32 %x{i}, [%in+{at}];"] + taken(f"%x{i}", "f16" if sums == "f16" else "f32") + ([f"mov.b32 %c{i}, %x{i};"] if sums != "f16" else [])
            at += 4
        lines += ["ld.global.b32 %u, [%in+52];", "and.b32 %u, %u, 0x03030303;", "add.u32 %u, %u, 0x7e7e7e7e;", "ld.global.b32 %w, [%in+56];", "and.b32 %w, %w, 0x03030303;", "add.u32 %w, %w, 0x7e7e7e7e;"] if scaled else []
        lines += ["and.b32 %m, %t, 1;", "setp.ne.u32 %p, %m, 0;", "selp.b32 %m, 0x44e4e44e, 0xe44e44e4, %p;"] if sparse else []
        vector = lambda letter, n: "{" + ", ".join(f"%{letter}{i}" for i in range(n)) + "}"
        d, c = (vector("e", 2), vector("x", 2)) if sums == "f16" else (vector("d", 4), vector("c", 4))
        more = (", %m, 0" if sparse else "") + (", {%u}, {0, 0}, {%w}, {0, 0}" if scaled else "")
        lines += [f"{opcode} {d}, {vector('a', 4)}, {vector('b', counts[1])}, {c}{more};", f"mad.wide.u32 %to, %t, {4 * counts[2]}, %to;"]
        lines += [f"st.global.b32 [%to+{4 * i}], %{'e' if sums == 'f16' else 'd'}{i};" for i in range(counts[2])] + ["ret;"]
        m.kernel(name, ["in", "out"], lines, [f"in(type: u32, data: lcg(512, {95 + len(m.launches)}, 0xffffffff))", f"out(type: u32, expect: interpreter({32 * counts[2]}))"])

    for a, b in [("e4m3", "e4m3"), ("e3m2", "e2m3"), ("e2m1", "e4m3"), ("e2m1", "e2m1")]:
        kernel(f"scaled_{a}_{b}", f"mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.{a}.{b}.f32.ue8m0", a, b, scaled=True)
    for a, b in [("e4m3", "e4m3"), ("e5m2", "e3m2"), ("e2m1", "e2m1"), ("e3m2", "e4m3"), ("e3m2", "e2m3")]:
        kernel(f"plain_{a}_{b}", f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{a}.{b}.f32", a, b)
    kernel("halves", "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e4m3.e4m3.f16", "e4m3", "e4m3", sums="f16")
    for kind in ("e4m3", "e2m1"):
        kernel(f"sparse_{kind}", f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.{kind}.{kind}.f32", kind, kind, sparse=True)
    kernel("sparse_scaled", "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0", "e4m3", "e4m3", scaled=True, sparse=True)
    m.write()


def tensor_copies():
    m = Module("tensors", "sm_90", "8.6", "Tensor copies, reductions and prefetches by dimension, destination and policy.")
    own = Module("tensors_own", "sm_100a", "8.8", "Tensor copies whose barrier may be in either block of a pair.")
    MAP = ".param .align 64 .b8 map[128]"
    sizes = {1: (64,), 2: (16, 12), 3: (16, 6, 4), 4: (8, 4, 3, 3), 5: (8, 3, 3, 2, 2)}
    boxes = {1: (32,), 2: (8, 4), 3: (8, 2, 2), 4: (4, 2, 2, 2), 5: (4, 2, 2, 2, 1)}
    start = {1: (8,), 2: (4, 10), 3: (8, 2, 1), 4: (4, -1, 1, 2), 5: (0, 1, 0, 1, 1)}

    def plain(rank, arg, kind="u32"):
        return TENSOR(arg, kind, sizes[rank], [4 * math.prod(sizes[rank][:i]) for i in range(1, rank)], boxes[rank])

    def pixels(rank, arg):
        """Pixels of four channels, eight at a time."""
        space = {3: (6, 3), 4: (4, 5, 2), 5: (3, 2, 3, 2)}[rank]
        lower, upper = [-1] + [0] * (rank - 3), [-1] + [0] * (rank - 3)
        return TENSOR(arg, "u32", (4, *space), [16 * math.prod(space[:i]) for i in range(rank - 1)], (4,), image=(lower, upper, 8))

    def at(place):
        return "{" + ", ".join(map(str, place)) + "}"

    def head(registers=""):
        return [".shared .align 128 .b32 box[64];", ".shared .align 8 .b64 bar;", ".reg .b64 %in, %to, %map, %policy;", f".reg .b32 %t, %a, %v{registers};", ".reg .b16 %h, %own;", ".reg .pred %p, %done;",
                "mov.b64 %map, map;", "cvta.param.u64 %map, %map;", "mov.u32 %t, %tid.x;", "setp.ne.u32 %p, %t, 0;", "mov.u32 %a, box;", "mad.lo.u32 %a, %t, 4, %a;",
                "createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;", "mov.b16 %h, 1;"]
    # The bit of the own block.
    mask = ["mov.u32 %v, %cluster_ctarank;", "mov.u32 %a, 1;", "shl.b32 %v, %a, %v;", "mov.u32 %a, box;", "mad.lo.u32 %a, %t, 4, %a;", "cvt.u16.u32 %own, %v;"]

    def load(m, name, opcode, place, map, more="", cluster="", shape=32, blocks=1):
        lines = head(", %r") + ["ld.param.u64 %to, [out];", f"@%p bra {name}_made;", "mbarrier.init.shared::cta.b64 [bar], 1;", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;",
                                "fence.mbarrier_init.release.cluster;", f"{name}_made:"]
        lines += ["barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"] + mask if cluster else ["bar.sync 0;"]
        lines += [f"@%p bra {name}_issued;", f"cp.async.bulk.tensor.{opcode} [box], [%map, {at(place)}], [bar]{more};", f"{name}_issued:", "mbarrier.try_wait.parity.shared::cta.b64 %done, [bar], 0;",
                  f"@!%done bra {name}_issued;", "ld.shared.b32 %v, [%a];", "mov.u32 %r, %ctaid.x;", "mad.lo.u32 %r, %r, 32, %t;", "mad.wide.u32 %to, %r, 4, %to;", "st.global.b32 [%to], %v;"]
        lines += ["barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"] if cluster else []
        m.kernel(name, ["in", "out", MAP], lines + ["ret;"], ["in(type: u32, data: lcg(512, 81, 0xffffffff))", f"out(type: u32, expect: interpreter({32 * blocks}))", map], head=cluster, grid=blocks)

    cluster, bytes = "shared::cluster.global.tile.mbarrier::complete_tx::bytes", "mbarrier::complete_tx::bytes"
    for rank in (1, 2, 4, 5):
        load(m, f"load_{rank}d", f"{rank}d.{cluster}", start[rank], plain(rank, 0))
    load(m, "load_cta", "2d.shared::cta.global.tile." + bytes, start[2], plain(2, 0))
    load(m, "load_policy", f"2d.{cluster}.L2::cache_hint", start[2], plain(2, 0), ", %policy")
    load(m, "load_several", f"2d.{cluster}.multicast::cluster", start[2], plain(2, 0), ", %h")
    load(m, "load_several_plainly", "2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster", start[2], plain(2, 0), ", %h")
    load(m, "load_several_policy", f"2d.{cluster}.multicast::cluster.L2::cache_hint", start[2], plain(2, 0), ", %h, %policy")
    load(m, "load_3d_policy", f"3d.{cluster}.L2::cache_hint", start[3], plain(3, 0), ", %policy")
    load(m, "pixels_several", f"4d.shared::cluster.global.im2col.{bytes}.multicast::cluster", (0, -1, 0, 0), pixels(4, 0), ", {1, 0}, %h")
    pair = " .reqnctapercluster 2, 1, 1"
    for group in (1, 2):
        load(own, f"load_group_{group}", f"2d.{cluster}.cta_group::{group}", start[2], plain(2, 0), cluster=pair, blocks=2)
        load(own, f"load_several_group_{group}", f"2d.{cluster}.multicast::cluster.cta_group::{group}", start[2], plain(2, 0), ", %own", cluster=pair, blocks=2)

    # Fields of a map in global and in shared memory.
    fields = [("rank", 3), ("interleave_layout", 1), ("swizzle_atomicity", 2)]
    lines = [".shared .align 128 .b32 map[32];", ".reg .b64 %to, %at;", ".reg .b32 %t, %a, %v;", ".reg .pred %p;", "ld.param.u64 %to, [out];", "mov.u32 %t, %tid.x;", "setp.ne.u32 %p, %t, 0;",
             "mad.wide.u32 %at, %t, 4, %to;", "mov.u32 %a, map;", "mad.lo.u32 %a, %t, 4, %a;", "ld.global.b32 %v, [%at+128];", "st.shared.b32 [%a], %v;", "bar.sync 0;", "@%p bra replaced_over;"]
    lines += [f"tensormap.replace.tile.{field}.global.b1024.b32 [%to], {value};" for field, value in fields] + ["tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [map], 3;"]
    lines += ["replaced_over:", "bar.sync 0;", "ld.shared.b32 %v, [%a];", "st.global.b32 [%at+128], %v;", "ret;"]
    own.kernel("replaced", ["out"], lines, ["inout(type: u32, data: lcg(64, 84, 0xffffffff), expect: interpreter)"])

    def store(name, opcode, place, map, more="", count=512):
        lines = head() + ["ld.param.u64 %in, [in];", "mad.wide.u32 %in, %t, 4, %in;", "ld.global.b32 %v, [%in];", "st.shared.b32 [%a], %v;", "fence.proxy.async.shared::cta;", "bar.sync 0;", f"@%p bra {name}_over;",
                          f"{opcode} [%map, {at(place)}], [box]{more};", "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;", f"{name}_over:", "ret;"]
        m.kernel(name, ["in", "out", MAP], lines, ["in(type: u32, data: lcg(32, 82, 0xffffffff))", f"inout(type: u32, data: lcg({count}, 83, 0x7fffffff), expect: interpreter)", map])

    for rank in (1, 3, 4, 5):
        store(f"store_{rank}d", f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group", start[rank], plain(rank, 1))
    store("store_policy", "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint", start[2], plain(2, 1), ", %policy")
    for rank, place in ((3, (0, 0, 1)), (5, (0, 0, 1, 1, 0))):
        store(f"store_pixels_{rank}d", f"cp.async.bulk.tensor.{rank}d.global.shared::cta.im2col_no_offs.bulk_group", place, pixels(rank, 1))
    for op in ("min", "max", "inc", "dec", "and", "or", "xor"):
        store(f"join_{op}", f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.tile.bulk_group", start[2], plain(2, 1))
    store("join_policy", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group.L2::cache_hint", start[2], plain(2, 1), ", %policy")
    store("join_pixels", "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.im2col_no_offs.bulk_group", (0, 0, 1), pixels(3, 1))

    # A prefetch leaves nothing, so the box is loaded too.
    load(m, "prefetched", f"2d.{cluster}", start[2], plain(2, 0))
    for opcode, more in (("cp.async.bulk.prefetch.tensor.2d.L2.global.tile", ""), ("cp.async.bulk.prefetch.tensor.2d.L2.global.tile.L2::cache_hint", ", %policy")):
        m.text = m.text.replace("prefetched_made:\n", f"    {opcode} [%map, {at(start[2])}]{more};\nprefetched_made:\n", 1)
    m.write()
    own.write()


CODE = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "u8": 0, "s8": 1, "e2m1": 1}
# The column of tensor memory from which on scales are.
SCALES = 64


def tensor_unit():
    m = Module("tensor_unit", "sm_100a", "8.8", "Products of the tensor unit by kind, group, collector and size of blocks, and its copies and shifts.")

    def kernel(name, acts, group, parts, scales="ue8m0"):
        """One lane asks for one of `acts` after the other; `parts` are the kinds and bytes of what shared memory has. All
        columns of the sums are written behind each."""
        pair, count = group == 2, 32
        size = sum(bytes for _, bytes in parts)
        lines = [f".shared .align 1024 .b8 area[{size}];", ".shared .align 4 .b32 place;", ".shared .align 8 .b64 done;", ".reg .b64 %in, %to, %at, %da, %db;", f".reg .b32 %t, %c, %d, %s, %i, %v, %rank, %last, %w<{count}>;",
                 ".reg .pred %p, %first, %over, %yes, %idle;", "ld.param.u64 %in, [in];", "ld.param.u64 %to, [out];", "mov.u32 %t, %tid.x;", "mov.u32 %rank, %ctaid.x;", "mad.lo.u32 %v, %rank, 64, %t;",
                 "mad.wide.u32 %at, %v, 4, %in;", "setp.ge.u32 %first, %t, 32;", f"@%first bra {name}_allocated;", f"tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [place], 128;",
                 f"tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;", f"{name}_allocated:", "setp.ne.u32 %p, %t, 0;", f"@%p bra {name}_made;", "mbarrier.init.shared::cta.b64 [done], 1;", f"{name}_made:",
                 "mov.u32 %s, area;", "mad.lo.u32 %i, %t, 4, %s;"]
        for part, (kind, bytes) in enumerate(parts):
            label = f"{name}_{'ab'[part]}"
            lines += [f"add.u32 %last, %s, {sum(b for _, b in parts[:part + 1])};", f"{label}:", "ld.global.b32 %v, [%at];"] + taken("%v", kind)
            lines += ["st.shared.b32 [%i], %v;", "add.u32 %i, %i, 512;", "add.u64 %at, %at, 512;", "setp.lt.u32 %p, %i, %last;", f"@%p bra {label};"]
        together = ["tcgen05.fence::before_thread_sync;"] + (["barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"] if pair else ["bar.sync 0;"]) + ["tcgen05.fence::after_thread_sync;"]
        lines += ["fence.proxy.async.shared::cta;"] + together + ["ld.shared.b32 %c, [place];", "and.b32 %d, %t, 96;", "shl.b32 %d, %d, 16;", "add.u32 %d, %d, %c;"]
        integer = any(".kind::i8" in act for act in acts)
        vector = lambda n: "{" + ", ".join(f"%w{i}" for i in range(n)) + "}"
        for i in range(count):
            lines += [f"ld.global.b32 %w{i}, [%in+{64 * i}];", f"xor.b32 %w{i}, %w{i}, %t;"] + ([] if integer else taken(f"%w{i}", "f32"))
        lines += [f"tcgen05.st.sync.aligned.32x32b.x{count}.b32 [%d], {vector(count)};", "tcgen05.wait::st.sync.aligned;", "and.b32 %v, %t, 31;", "mad.wide.u32 %at, %v, 4, %in;"]
        # Scales are the same in each quarter of the lanes.
        for i in range(8):
            lines += [f"ld.global.b32 %w{i}, [%at+{128 * i}];", f"and.b32 %w{i}, %w{i}, 0x03030303;", f"add.u32 %w{i}, %w{i}, {'0x7e7e7e7e' if scales == 'ue8m0' else '0x38383838'};"]
        lines += [f"tcgen05.st.sync.aligned.32x32b.x8.b32 [%d+{SCALES}], {vector(8)};", "tcgen05.wait::st.sync.aligned;", "setp.eq.u32 %yes, %t, %t;", "mad.lo.u32 %v, %rank, 128, %t;",
                  f"mad.wide.u32 %to, %v, {4 * count * len(acts)}, %to;", "setp.ne.u32 %idle, %rank, 0;"]
        for which, start in [("%da", 0), ("%db", parts[0][1])]:
            descriptor = 128 >> 4 << 16 | 8 * 32 >> 4 << 32 | 1 << 46
            lines += [f"add.u32 %v, %s, {start};", "shr.u32 %v, %v, 4;", f"cvt.u64.u32 {which}, %v;", f"or.b64 {which}, {which}, {descriptor};"]
        for turn, act in enumerate(acts):
            here = f"{name}_{turn}"
            lines += together + [f"@%first bra {here}_issued;"] + ([f"@%idle bra {here}_issued;"] if pair else [])
            lines += ["elect.sync _|%p, 0xffffffff;", f"@!%p bra {here}_issued;", f"add.u32 %w1, %c, {SCALES};", f"add.u32 %w2, %c, {SCALES + 4};", act,
                      f"tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 [done];", f"{here}_issued:"]
            # The barrier of the first block tells; the other one waits for that block.
            lines += ([f"@%idle bra {here}_told;"] if pair else []) + [f"{here}_wait:", f"mbarrier.try_wait.parity.shared::cta.b64 %over, [done], {turn & 1};", f"@!%over bra {here}_wait;", f"{here}_told:"] + together
            lines += [f"tcgen05.ld.sync.aligned.32x32b.x{count}.b32 {vector(count)}, [%d];", "tcgen05.wait::ld.sync.aligned;"]
            lines += [line.replace("[%to+", f"[%to+{4 * count * turn}+") for line in stored([f"%w{i}" for i in range(count)])]
        lines += together + [f"@%first bra {name}_end;", f"tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %c, 128;", f"{name}_end:", "ret;"]
        lines = [re.sub(r"\[%to\+(\d+)\+(\d+)\]", lambda n: f"[%to+{int(n[1]) + int(n[2])}]", line) for line in lines]
        words = max(size // 4 + 256, 2048)
        m.kernel(name, ["in", "out"], lines, [f"in(type: u32, data: lcg({words}, {100 + len(m.launches)}, 0xffffffff))", f"out(type: u32, expect: interpreter({group * 128 * count * len(acts)}))"], block=128,
                 grid=group, head=" .reqnctapercluster 2, 1, 1" if pair else "")

    def described(kind, a, group):
        rows, columns = 128 * group, 16 * group
        if kind.startswith("mx"):
            return CODE[a] << 7 | CODE[a] << 10 | columns >> 3 << 17 | 1 << 23 | rows >> 7 << 27
        return (2 if kind == "i8" else 1) << 4 | CODE[a] << 7 | CODE[a] << 10 | columns >> 3 << 17 | rows >> 4 << 24

    def product(kind, a, group, more="", block=""):
        scaled, word = kind.startswith("mx"), described(kind, a, group)
        if block in ("scale_vec::4X", "block16"):
            word &= ~(1 << 23)
        opcode = f"tcgen05.mma.cta_group::{group}.kind::{kind}" + (".block_scale" if scaled else "") + (f".{block}" if block else "") + more
        return f"{opcode} [%c], %da, %db, {word}, " + ("[%w1], [%w2], " if scaled else "") + "%yes;"

    SMALL["e2m1"] = (0xFFFFFFFF, 0)
    factors = lambda kind: [(kind, 128 * 32), (kind, 16 * 32)]
    collectors = [f".collector::a::{use}" for use in ("fill", "use", "lastuse", "discard")]
    for group in (1, 2):
        kernel(f"halves_{group}", [product("f16", "f16", group, more) for more in collectors], group, factors("f16"))
    kernel("words_2", [product("tf32", "tf32", 2)], 2, factors("tf32"))
    kernel("bytes_2", [product("f8f6f4", "e4m3", 2)], 2, factors("e4m3"))
    kernel("integers_2", [product("i8", "s8", 2)], 2, factors("s8"))
    for group in (1, 2):
        kernel(f"scaled_bytes_{group}", [product("mxf8f6f4", "e4m3", group, block=block) for block in ("scale_vec::1X", "block32", "")], group, factors("e4m3"))
        quarters = [("mxf4", "scale_vec::2X"), ("mxf4", "block32"), ("mxf4nvf4", "scale_vec::2X"), ("mxf4nvf4", "block32")]
        kernel(f"scaled_quarters_{group}", [product(kind, "e2m1", group, block=block) for kind, block in quarters], group, factors("e2m1"))
        finely = [product("mxf4nvf4", "e2m1", group, block=block) for block in ("scale_vec::4X", "block16")]
        kernel(f"scaled_quarters_finely_{group}", finely, group, factors("e2m1"), scales="ue4m3")
    shapes = ["128x256b.b8x16.b6x16_p32", "128x256b.b8x16.b4x16_p64", "128x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4"]
    for group in (1, 2):
        kernel(f"copies_{group}", [f"tcgen05.cp.cta_group::{group}.{shape} [%c], %da;" for shape in (shapes[:2] if group == 1 else shapes)], group, [("b1", 4096), ("b1", 512)])
    kernel("shifted_2", ["tcgen05.shift.cta_group::2.down [%c];"], 2, [("b1", 4096), ("b1", 512)])
    m.write()


if __name__ == "__main__":
    surfaces()
    textures()
    several_devices()
    tensor_memory()
    warp_groups()
    transactions()
    products()
    tensor_copies()
    tensor_unit()
