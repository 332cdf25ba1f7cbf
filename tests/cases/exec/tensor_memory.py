"""Writes tensor_memory.ptx and .ron: loads and stores of tensor memory, and products of factors of 0, 2 and -2.

The layouts are those of the PTX manual; expected.py imports FILES."""
from exact import f32
from group_products import addr
from launchfile import IN, OUT, launch, lcg, named, render, scalar

WORDS = 8192
FACTORS = 16384  # Bytes of shared memory for each factor.
LAYOUT = {0: 0, 128: 1, 64: 2, 32: 3}
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
KIND = {"f16": "f16", "bf16": "f16", "tf32": "tf32", "e4m3": "f8f6f4", "e5m2": "f8f6f4", "s8": "i8", "u8": "i8"}
CODE = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "u8": 0, "s8": 1}
SUM = {"f16": 0, "f32": 1, "s32": 2}
kernels, launches = [], []

HEAD = """.visible .entry {name}(.param .u64 in, .param .u64 out, .param .u32 added)
{{
    .shared .align 4 .b32 place;
    .shared .align 8 .b64 done;
    .reg .b32 %r<20>;
    .reg .b32 %w<{words}>;
    .reg .b64 %rd<8>;
    .reg .pred %p<5>;
{more}
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    mov.u32 %r0, %tid.x;
    setp.ge.u32 %p1, %r0, 32;
    @%p1 bra {name}_allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], {columns};
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
{name}_allocated:
    setp.ne.u32 %p2, %r0, 0;
    @%p2 bra {name}_made;
    mbarrier.init.shared::cta.b64 [done], 1;
{name}_made:
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %r1, [place];
    and.b32 %r2, %r0, 96;
    shl.b32 %r2, %r2, 16;
    add.u32 %r2, %r2, %r1;
"""
TAIL = """    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    @%p1 bra {name}_end;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, {columns};
{name}_end:
    ret;
}}
"""


def several(first, count):
    return "{" + ", ".join(f"%w{i}" for i in range(first, first + count)) + "}"


def stored(first, count, total):
    """Stores words to the thread's own part of the output."""
    lines = [f"    mad.wide.u32 %rd3, %r0, {4 * total}, %rd2;"]
    lines += [f"    st.global.b32 [%rd3+{4 * i}], %w{first + i};" for i in range(count)]
    return lines


def pieces():
    """Each shape reads what another one wrote; a cell has its lane and column, and a number of the input."""
    name, data = "pieces", lcg("u32", 1, 77, 0xFFFF0000)
    cell = lambda lane, column: data[0] + (lane << 8) + column
    loads = [
        ("16x64b.x4", 0, 0, 4, lambda r, l: (l // 4 + 8 * (l % 2), 2 * r + l // 2 % 2)),
        ("16x128b.x2", 16, 4, 4, lambda r, l: (l // 4 + 8 * (r % 2), 4 * (r // 2) + l % 4)),
        ("16x256b.x1", 0, 8, 4, lambda r, l: (l // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (l % 4) + r % 2)),
        ("16x32bx2.x4", 16, 1, 4, lambda r, l: (l % 16, r + (7 if l >= 16 else 0))),
        ("32x32b.x1", 0, 15, 1, lambda r, l: (l, r)),
    ]
    o = [HEAD.format(name=name, words=48, columns=64, more="")]
    o.append("    ld.global.b32 %r3, [%rd1];\n    shl.b32 %r4, %r0, 8;\n    add.u32 %r3, %r3, %r4;")
    o += [f"    add.u32 %w{i}, %r3, {i};" for i in range(16)]
    o.append(f"    tcgen05.st.sync.aligned.32x32b.x16.b32 [%r2], {several(0, 16)};")
    o.append("    tcgen05.wait::st.sync.aligned;")
    at, results = 16, []
    for shape, lane, column, count, place in loads:
        half = ", 7" if "bx2" in shape else ""
        o.append(f"    add.u32 %r5, %r2, {(lane << 16) + column};")
        o.append(f"    tcgen05.ld.sync.aligned.{shape}.b32 {several(at, count)}, [%r5]{half};")
        results.append((lane, column, count, place))
        at += count
    # Back by another shape, and in halves.
    o.append("    tcgen05.wait::ld.sync.aligned;")
    o.append(f"    tcgen05.st.sync.aligned.16x32bx2.x4.b32 [%r2+32], 4, {several(28, 4)};")
    o.append(f"    tcgen05.st.sync.aligned.32x32b.x1.unpack::16b.b32 [%r2+40], {several(32, 1)};")
    o.append("    tcgen05.wait::st.sync.aligned;")
    o.append(f"    tcgen05.ld.sync.aligned.16x64b.x4.b32 {several(33, 4)}, [%r2+32];")
    o.append(f"    tcgen05.ld.sync.aligned.32x32b.x2.b32 {several(37, 2)}, [%r2+40];")
    o.append(f"    tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {several(39, 2)}, [%r2+14];")
    o.append("    tcgen05.wait::ld.sync.aligned;")
    # Columns 16 and 17 have nothing yet, so only the first half pair counts.
    o += stored(16, 24, 24)
    o.append(TAIL.format(name=name, columns=64))
    kernels.append("\n".join(o))
    expect = []
    for t in range(128):
        warp, l = t // 32, t % 32
        for lane, column, count, place in results:
            for r in range(count):
                down, right = place(r, l)
                expect.append(cell(32 * warp + lane + down, column + right))
        # What 16x32bx2 had, by its places: lane l of the lower half at +32, of the upper at +36.
        back = {}
        for l2 in range(32):
            for r in range(4):
                down, right = l2 % 16, r + (7 if l2 >= 16 else 0)
                back[(l2 % 16, r + (4 if l2 >= 16 else 0))] = cell(32 * warp + 16 + down, 1 + right)
        for r in range(4):
            expect.append(back[(l // 4 + 8 * (l % 2), 2 * r + l // 2 % 2)])
        last = cell(32 * warp + l, 15)
        expect += [last & 0xFFFF, last >> 16]
        expect.append(cell(t, 14) & 0xFFFF | (cell(t, 15) & 0xFFFF) << 16)
    launches.append(launch(name, 1, 128, [IN("u32", data), OUT("u32", expect, True), scalar("u32", 0)], targets=()))


def number(kind, bits):
    if kind == "s8":
        return bits - 256 if bits > 127 else bits
    if kind == "u8":
        return bits
    width = BITS[kind]
    return (2 if bits >> (width - 2) & 1 else 0) * (-1 if bits >> (width - 1) else 1)


def half(value):
    import struct
    return struct.unpack("<H", struct.pack("<e", value))[0]


def product(name, ta, tb, total, m, n, spans, turned=(0, 0), negative=(0, 0), added=1, lanes=None, scale=None, in_tensor=False,
            steps=1, clamp=0, flag=True):
    """Sums of lane minus twice the column, to which products of what the input has there are added."""
    bits, depth, kind = BITS[ta], 256 // BITS[ta], KIND[ta]
    mask = 0x0F0F0F0F if kind == "i8" else sum(3 << (at + bits - 2) for at in range(0, 32, bits))
    data = lcg("u32", WORDS, 1000 + len(launches), mask)
    image = lambda bit: data[bit // 32] >> (bit % 32) & ((1 << bits) - 1)

    def geometry(lines, span, turn):
        if not turn:
            return (128 * (lines // 8), 128) if span == 0 else (16, 8 * span)
        return (128, 128 * (depth // 8)) if span == 0 else (8 * span * (depth // 8), 8 * span)

    def descriptor(start, lines, span, turn):
        leading, stride = geometry(lines, span, turn)
        return start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | LAYOUT[span] << 62

    def factor(start, lines, span, turn, t, step):
        leading, stride = geometry(lines, span, turn)
        at = lambda line, k: addr(start + 32 * step, leading, stride, span, bits, turn, line, k)
        return [[number(t, image(at(line, k))) for k in range(depth)] for line in range(lines)]

    of = SUM[total] << 4 | clamp << 3 | CODE[ta] << 7 | CODE[tb] << 10 | negative[0] << 13 | negative[1] << 14
    of |= turned[0] << 15 | turned[1] << 16 | n // 8 << 17 | m // 16 << 24
    columns, words = 64, 16 + n
    o = [HEAD.format(name=name, words=words, columns=columns, more="    .shared .align 1024 .b8 area[32768];")]
    # The factors, as they lie.
    o.append(f"""    mov.u32 %r3, area;
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
    @%p3 bra {name}_copy;""")
    for i in range(n):
        o.append(f"    sub.u32 %w{i}, %r0, {2 * i};")
        if total == "f32":
            o.append(f"    cvt.rn.f32.s32 %w{i}, %w{i};")
        if total == "f16":
            o.append(f"    {{ .reg .b16 %h; cvt.rn.f16.s32 %h, %w{i}; cvt.u32.u16 %w{i}, %h; }}")
    o.append(f"    tcgen05.st.sync.aligned.32x32b.x{n}.b32 [%r2], {several(0, n)};")
    if in_tensor:
        o.append("    mad.wide.u32 %rd3, %r0, 32, %rd1;")
        o += [f"    ld.global.b32 %w{n + i}, [%rd3+{4 * i}];" for i in range(8)]
        o.append(f"    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r2+32], {several(n, 8)};")
    o.append(f"""    tcgen05.wait::st.sync.aligned;
    fence.proxy.async.shared::cta;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.param.u32 %r7, [added];
    setp.ne.u32 %p4, %r7, 0;
    @%p1 bra {name}_issued;
    elect.sync _|%p3, 0xffffffff;
    @!%p3 bra {name}_issued;
    mov.u32 %r8, area;
    shr.u32 %r8, %r8, 4;
    cvt.u64.u32 %rd4, %r8;""")
    first, second = descriptor(0, m, spans[0], turned[0]), descriptor(FACTORS, n, spans[1], turned[1])
    for reg, value in (("%rd5", first), ("%rd6", second)):
        value = value - 2**64 if value >= 2**63 else value
        o.append(f"    add.u64 {reg}, %rd4, {value};")
    o.append("    add.u32 %r9, %r1, 32;")
    extra = ""
    if lanes:
        o += [f"    mov.b32 %r{10 + i}, {lane};" for i, lane in enumerate(lanes)]
        extra = " {%r10, %r11, %r12, %r13},"
    rest = f", {scale}" if scale is not None else ""
    for step in range(steps):
        enabled = ("%p4" if flag else str(added)) if step == 0 else "1"
        what = "[%r9]" if in_tensor else "%rd5"
        o.append(f"    tcgen05.mma.cta_group::1.kind::{kind} [%r1], {what}, %rd6, {of},{extra} {enabled}{rest};")
        o.append("    add.u64 %rd5, %rd5, 2;\n    add.u64 %rd6, %rd6, 2;")
    where = ".shared::cluster" if steps == 1 else ""
    bar = "[done]" if steps == 1 else "[%rd7]"
    if steps != 1:
        o.append("    mov.u64 %rd7, done;\n    cvta.shared.u64 %rd7, %rd7;")
    o.append(f"""    tcgen05.commit.cta_group::1.mbarrier::arrive::one{where}.b64 {bar};
{name}_issued:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra {name}_issued;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x{n}.b32 {several(0, n)}, [%r2];
    tcgen05.wait::ld.sync.aligned;""")
    o += stored(0, n, n)
    o.append(TAIL.format(name=name, columns=columns))
    kernels.append("\n".join(o))
    result = [[lane - 2 * column for column in range(n)] for lane in range(128)]
    sign = -1 if negative[0] != negative[1] else 1
    for step in range(steps):
        if in_tensor:
            word = lambda row, k: data[8 * row + k * bits // 32] >> (k * bits % 32) & ((1 << bits) - 1)
            a = [[number(ta, word(row, k)) for k in range(depth)] for row in range(m)]
        else:
            a = factor(0, m, spans[0], turned[0], ta, step)
        b = factor(FACTORS, n, spans[1], turned[1], tb, step)
        for row in range(m):
            lane = 32 * (row // 16) + row % 16 if m == 64 else row
            if lanes and lanes[lane // 32] >> (lane % 32) & 1:
                continue
            for column in range(n):
                old = result[lane][column] if added or step else 0
                old = old / 2**scale if scale else old
                result[lane][column] = old + sign * sum(x * y for x, y in zip(a[row], b[column]))
    flat = [value for row in result for value in row]
    args = [IN("u32", data)]
    if total == "f32":
        args.append(OUT("f32", [f32(float(v)) for v in flat]))
    elif total == "f16":
        args.append(OUT("u32", [half(v) for v in flat], True))
    else:
        args.append(OUT("s32", flat))
    launches.append(launch(name, 1, 128, args + [scalar("u32", added)]))


pieces()
product("f16_swizzled", "f16", "f16", "f32", 128, 16, (128, 128), steps=2)
product("f16_turned", "f16", "f16", "f32", 128, 16, (32, 64), turned=(1, 1), negative=(1, 0))
product("f16_in_tensor", "f16", "f16", "f32", 128, 16, (0, 64), in_tensor=True, turned=(0, 1))
product("bf16_rows", "bf16", "bf16", "f32", 64, 8, (0, 0), added=0)
product("f16_lanes", "f16", "f16", "f16", 128, 16, (64, 0), lanes=(0xF0F0F0F0, 1, 0, 0xFFFF0000))
product("tf32_scaled", "tf32", "tf32", "f32", 128, 16, (32, 128), scale=3, flag=False)
product("fp8_mixed", "e4m3", "e5m2", "f32", 128, 32, (128, 32))
product("integers", "s8", "u8", "s32", 128, 16, (0, 128), added=0, flag=False)

PTX = """// Tensor memory: its allocation, loads and stores in each shape, and products by type, layout and place of
// the factors. Each product copies its input to shared memory as it is.
.version 8.8
.target sm_100a
.address_size 64

""" + "\n".join(kernels)
RON = render("tensor_memory.ptx", launches)
FILES = {"tensor_memory.ptx": PTX, "tensor_memory.ron": RON}
