"""Writes tensor_unit.ptx and .ron: copies to tensor memory, a shift, and products of factors with scales.

The layouts are those of the PTX manual; expected.py imports FILES."""
from exact import f32
from group_products import addr
from launchfile import IN, OUT, launch, lcg, render, scalar
from tensor_memory import FACTORS, HEAD, LAYOUT, TAIL, several, stored

WORDS = 8192
SCALES = (28672, 29184)  # Bytes of shared memory where the scales of each factor are.
COLUMNS = (48, 52)  # Columns that they are copied to.
FORM = {"e4m3": (4, 3), "e5m2": (5, 2), "e2m3": (2, 3), "e3m2": (3, 2), "e2m1": (2, 1)}
CODE = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
kernels, launches = [], []


def descriptor(start, leading, stride, span):
    value = start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | LAYOUT[span] << 62
    return value - 2**64 if value >= 2**63 else value


def fill_shared(name):
    return f"""    mov.u32 %r3, area;
    shl.b32 %r4, %r0, 2;
    add.u32 %r3, %r3, %r4;
    mad.wide.u32 %rd3, %r0, 4, %rd1;
    mov.u32 %r5, 0;
{name}_copy:
    ld.global.b32 %r6, [%rd3];
    st.shared.b32 [%r3], %r6;
    add.u32 %r3, %r3, 512;
    add.u64 %rd3, %rd3, 512;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, {WORDS // 128};
    @%p3 bra {name}_copy;"""


def elected(name):
    return f"""    fence.proxy.async.shared::cta;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @%p1 bra {name}_issued;
    elect.sync _|%p3, 0xffffffff;
    @!%p3 bra {name}_issued;
    mov.u32 %r8, area;
    shr.u32 %r8, %r8, 4;
    cvt.u64.u32 %rd4, %r8;"""


def finish(name, n):
    return f"""    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
{name}_issued:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra {name}_issued;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x{n}.b32 {several(0, n)}, [%r2];
    tcgen05.wait::ld.sync.aligned;"""


def widened(words, bits):
    """Sixteen elements of so many bits, a byte each; four bits lie in the middle of theirs."""
    packed = sum(word << (32 * i) for i, word in enumerate(words))
    elements = [packed >> (bits * i) & ((1 << bits) - 1) for i in range(16)]
    whole = sum(e << (8 * i + (2 if bits == 4 else 0)) for i, e in enumerate(elements))
    return [whole >> (32 * i) & 0xFFFFFFFF for i in range(4)]


def copies():
    """Each shape side by side, and then a shift of the first one in the lanes of the first warp."""
    name, data = "copies", lcg("u32", WORDS, 4711, 0xFFFFFFFF)
    lanes = {
        "128x256b": lambda line: [line],
        "128x128b": lambda line: [line],
        "64x128b.warpx2::02_13": lambda line: [line % 32 + 64 * (line // 32) + 32 * half for half in (0, 1)],
        "64x128b.warpx2::01_23": lambda line: [line, line + 64],
        "32x128b.warpx4": lambda line: [line + 32 * quarter for quarter in range(4)],
    }
    each = [
        ("128x256b", 0, 128, 8, 0, (16, 256, 32), None),
        ("128x128b", 4096, 128, 4, 8, (16, 128, 0), None),
        ("64x128b.warpx2::02_13", 8192, 64, 4, 12, (16, 128, 0), None),
        ("64x128b.warpx2::01_23", 10240, 64, 4, 16, (16, 256, 0), None),
        ("32x128b.warpx4", 16384, 32, 4, 20, (16, 512, 64), None),
        ("32x128b.warpx4", 20480, 32, 4, 24, (16, 128, 0), 4),
        ("32x128b.warpx4", 24576, 32, 4, 28, (16, 128, 0), 6),
    ]
    cells = [[0] * 32 for _ in range(128)]
    o = [HEAD.format(name=name, words=32, columns=32, more=""), fill_shared(name)]
    o += [f"    mov.b32 %w{i}, 0;" for i in range(32)]
    o.append(f"    tcgen05.st.sync.aligned.32x32b.x32.b32 [%r2], {several(0, 32)};\n    tcgen05.wait::st.sync.aligned;")
    o.append(elected(name))
    for shape, start, lines, words, column, (leading, stride, span), narrow in each:
        form = {None: "", 4: ".b8x16.b4x16_p64", 6: ".b8x16.b6x16_p32"}[narrow]
        o.append(f"    add.u64 %rd5, %rd4, {descriptor(start, leading, stride, span)};")
        o.append(f"    tcgen05.cp.cta_group::1.{shape}{form} [%r1+{column}], %rd5;")
        for line in range(lines):
            row = [data[addr(start, leading, stride, span, 32, 0, line, w) // 32] for w in range(words)]
            row = widened(row, narrow) if narrow else row
            for lane in lanes[shape](line):
                cells[lane][column : column + words] = row
    o.append("    tcgen05.shift.cta_group::1.down [%r1];")
    for lane in range(31):
        cells[lane][:8] = cells[lane + 1][:8]
    o.append(finish(name, 32))
    o += stored(0, 32, 32)
    o.append(TAIL.format(name=name, columns=32))
    kernels.append("\n".join(o))
    flat = [word for row in cells for word in row]
    launches.append(launch(name, 1, 128, [IN("u32", data), OUT("u32", flat, True), scalar("u32", 0)]))


def number(kind, bits):
    exp, mant = FORM[kind]
    sign, e, m = bits >> (exp + mant), bits >> mant & ((1 << exp) - 1), bits & ((1 << mant) - 1)
    bias = (1 << (exp - 1)) - 1
    value = (m / 2**mant) * 2.0 ** (1 - bias) if e == 0 else (1 + m / 2**mant) * 2.0 ** (e - bias)
    return -value if sign else value


def product(name, kind, form, ta, tb, mask, blocks, ids, base, n=16, spans=(0, 0), in_tensor=False, power=True):
    """Sums of lane minus twice the column, to which scaled products of what the input has there are added."""
    nibbles = kind != "mxf8f6f4"
    depth, each = (64, 64 // blocks) if nibbles else (32, 32)
    data = lcg("u32", WORDS, 2000 + len(launches), mask)
    image = lambda bit, width: data[bit // 32] >> (bit % 32) & ((1 << width) - 1)

    def geometry(lines, span):
        return (128 * (lines // 8), 128) if span == 0 else (16, 8 * span)

    def factor(start, lines, span, t):
        leading, stride = geometry(lines, span)
        exp, mant = FORM[t]
        width = 1 + exp + mant

        def element(line, k):
            if nibbles:
                return image(addr(start, leading, stride, span, 4, 0, line, k), 4)
            bit = k % 16 * width
            byte = lambda i: image(addr(start, leading, stride, span, 8, 0, line, k // 16 * 16 + i), 8)
            return (byte(bit // 8) | byte(min(bit // 8 + 1, 15)) << 8) >> (bit % 8) & ((1 << width) - 1)

        return [[number(t, element(line, k)) for k in range(depth)] for line in range(lines)]

    def scale(which, line, k):
        byte = 8 * (SCALES[which] + line % 32 * 16 + line // 32 * 4 + ids[which] + k // each)
        code = (image(byte, 8) & 3) + base
        return 2.0 ** (code - 127) if power else number("e4m3", code)

    codes = (1, 1) if nibbles else (CODE[ta], CODE[tb])
    of = ids[1] << 4 | codes[0] << 7 | codes[1] << 10 | n // 8 << 17 | int(power) << 23 | 1 << 27 | ids[0] << 29
    of = of - 2**32 if of >= 2**31 else of
    o = [HEAD.format(name=name, words=n + 8, columns=64, more=""), fill_shared(name)]
    o.append("    bar.sync 0;\n    mov.u32 %r3, area;\n    shl.b32 %r4, %r0, 3;\n    add.u32 %r3, %r3, %r4;")
    for at in (0, 4):
        o.append(f"    ld.shared.b32 %r6, [%r3+{SCALES[0] + at}];\n    and.b32 %r6, %r6, 50529027;")
        o.append(f"    add.u32 %r6, %r6, {base * 0x01010101};\n    st.shared.b32 [%r3+{SCALES[0] + at}], %r6;")
    for i in range(n):
        o.append(f"    sub.u32 %w{i}, %r0, {2 * i};\n    cvt.rn.f32.s32 %w{i}, %w{i};")
    o.append(f"    tcgen05.st.sync.aligned.32x32b.x{n}.b32 [%r2], {several(0, n)};")
    if in_tensor:
        o.append("    mad.wide.u32 %rd3, %r0, 32, %rd1;")
        o += [f"    ld.global.b32 %w{n + i}, [%rd3+{4 * i}];" for i in range(8)]
        o.append(f"    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r2+32], {several(n, 8)};")
    o.append("    tcgen05.wait::st.sync.aligned;")
    o.append(elected(name))
    for which in (0, 1):
        o.append(f"    add.u64 %rd5, %rd4, {descriptor(SCALES[which], 16, 128, 0)};")
        o.append(f"    tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1+{COLUMNS[which]}], %rd5;")
    o.append(f"    add.u64 %rd5, %rd4, {descriptor(0, *geometry(128, spans[0]), spans[0])};")
    o.append(f"    add.u64 %rd6, %rd4, {descriptor(FACTORS, *geometry(n, spans[1]), spans[1])};")
    o.append("    add.u32 %r9, %r1, 32;\n    setp.eq.u32 %p4, %r0, %r0;")
    what = "[%r9]" if in_tensor else "%rd5"
    places = f"[%r1+{COLUMNS[0]}], [%r1+{COLUMNS[1]}]"
    o.append(f"    tcgen05.mma.cta_group::1.kind::{kind}.block_scale{form} [%r1], {what}, %rd6, {of}, {places}, %p4;")
    o.append(finish(name, n))
    o += stored(0, n, n)
    o.append(TAIL.format(name=name, columns=64))
    kernels.append("\n".join(o))

    if in_tensor:
        at = 2 if ta == "e2m1" and not nibbles else 0
        wide = 4 if nibbles else 8
        word = lambda row, k: data[8 * row + k * wide // 32] >> (k * wide % 32) & ((1 << wide) - 1)
        a = [[number(ta, word(row, k) >> at) for k in range(depth)] for row in range(128)]
    else:
        a = factor(0, 128, spans[0], ta)
    b = factor(FACTORS, n, spans[1], tb)
    flat = []
    for row in range(128):
        for column in range(n):
            terms = (a[row][k] * scale(0, row, k) * b[column][k] * scale(1, column, k) for k in range(depth))
            flat.append(f32(float(row - 2 * column + sum(terms))))
    launches.append(launch(name, 1, 128, [IN("u32", data), OUT("f32", flat), scalar("u32", 0)]))


copies()
product("bytes_scaled", "mxf8f6f4", ".scale_vec::1X", "e4m3", "e5m2", 0xC3C3C3C3, 1, (1, 3), 126, spans=(128, 32))
product("six_bits_scaled", "mxf8f6f4", ".block32", "e2m3", "e3m2", 0xFFFFFFFF, 1, (0, 2), 125)
product("four_bits_widened", "mxf8f6f4", "", "e2m1", "e2m3", 0x3FFFFFFF, 1, (3, 0), 126, spans=(32, 0))
product("six_bits_in_tensor", "mxf8f6f4", "", "e3m2", "e4m3", 0x3F3F3F3F, 1, (2, 1), 126, in_tensor=True)
product("nibbles_scaled", "mxf4", ".scale_vec::2X", "e2m1", "e2m1", 0xFFFFFFFF, 2, (2, 0), 126, spans=(32, 0))
product("nibbles_of_16", "mxf4nvf4", ".scale_vec::4X", "e2m1", "e2m1", 0xFFFFFFFF, 4, (0, 0), 0x38, power=False)
product("nibbles_in_tensor", "mxf4nvf4", ".block16", "e2m1", "e2m1", 0xFFFFFFFF, 4, (0, 0), 0x7C, in_tensor=True)

PTX = """// The unit of tensor memory: copies in each shape, a shift, and products with scales for blocks of elements, which
// are copied to tensor memory. Each kernel copies its input to shared memory as it is.
.version 8.8
.target sm_100a
.address_size 64
.shared .align 1024 .b8 area[32768];

""" + "\n".join(kernels)
RON = render("tensor_unit.ptx", launches)

def second_kept():
    """six_bits_scaled with what PTX 9.4 added: both factors stay in the buffers of the unit, and two commits."""
    name, new = "six_bits_scaled", "second_kept_107"
    start = PTX.index(f".visible .entry {name}")
    body = PTX[start : PTX.index(".visible .entry", start + 1)].rstrip("\n") + "\n"
    commit = "    tcgen05.commit.cta_group::1.mbarrier::arrive::one"
    body = body.replace("mbarrier.init.shared::cta.b64 [done], 1;", "mbarrier.init.shared::cta.b64 [done], 2;")
    body = body.replace(".block_scale.block32 [", ".block_scale.block32.collector::a::fill.collector::b::fill [")
    body = body.replace(
        f"{commit}.shared::cluster.b64 [done];",
        f"    mov.u32 %r10, 1;\n{commit}.sync_restrict::shared::read::mma::a.shared::cluster.b64 [done];\n"
        f"{commit}.shared::cluster.multicast::cluster::32b.b64 [done], %r10;",
    )
    head = """// A product that leaves both factors in the buffers of the unit, a commit that waits for reads of the first factor
// alone, and one to the blocks of a mask of 32 bits: the sums are those of six_bits_scaled in tensor_unit.ptx.
.version 9.4
.target sm_107f
.address_size 64
.shared .align 1024 .b8 area[32768];

"""
    lines = RON.split("\n")
    first, last = (next(n for n, line in enumerate(lines) if f'"{k}"' in line) - 1 for k in (name, "four_bits_widened"))
    launch = "\n".join(lines[first:last])
    text = f'// The numbers of {name} in tensor_unit.ron.\n(\n    module: "tensor_unit_107.ptx",\n    launches: [\n{launch}\n    ],\n)\n'
    return (head + body).replace(name, new).replace(f"of {new} in", f"of {name} in"), text.replace(f'"{name}"', f'"{new}"')


SECOND = second_kept()
FILES = {"tensor_unit.ptx": PTX, "tensor_unit.ron": RON, "tensor_unit_107.ptx": SECOND[0], "tensor_unit_107.ron": SECOND[1]}
