"""Writes tensor_chosen.ptx and .ron: products whose first factor is sparse, and those that keep the second factor.

The lanes and columns of their sums, and of the numbers of the elements, are those of CUTLASS (mma_traits_sm100_frag.hpp);
expected.py imports FILES."""
from exact import f32
from group_products import addr
from launchfile import IN, OUT, launch, lcg, listed, render
from tensor_memory import BITS, CODE, KIND, SUM, number, several

SECOND = 4096  # Bytes of shared memory before the second factor.
WORDS = 2048
CHOSEN = 64  # Column of the numbers of the elements; that of a first factor in tensor memory.
PAIRS = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)
kernels, launches = [], []


def descriptor(start, lines):
    return start >> 4 | 128 * (lines // 8) >> 4 << 16 | 128 >> 4 << 32 | 1 << 46


def product(name, ta, tb, total, m, n, sparse=False, keeps=False, in_tensor=False, blocks=1, collector=""):
    """Twice a product of what the input has there: it is computed, and added once."""
    bits, kind = BITS[ta], KIND[ta]
    rows, columns, depth = m // blocks, n // blocks, 256 // bits
    whole = 2 * depth if sparse else depth
    # The columns of each lane, and those of them that are stored.
    width = n * rows // 128 if keeps else n
    shown = range(width) if width <= 32 else [4 * i + i % 4 for i in range(16)]
    mask = 0x0F0F0F0F if kind == "i8" else sum(3 << (at + bits - 2) for at in range(0, 32, bits))
    data = lcg("u32", blocks * WORDS, 3000 + len(launches), mask)
    # The places of the stored elements in each row, and four bits for each group.
    codes = lcg("u32", 8192 * blocks, 5000 + len(launches), 0xFFFFFFFF)
    groups = whole // (2 if bits == 32 else 4)
    per = (0b0100, 0b1110) if bits == 32 else PAIRS
    chosen = [[per[(codes[groups * row + g] >> 16) % len(per)] for g in range(groups)] for row in range(m)]
    words = [0] * (256 * blocks)
    for row in range(m):
        r = row % rows
        for g in range(groups):
            lane, column, four = (r, g // 8, g % 8) if bits == 8 else (r % 8 + 8 * (g // 4) + 16 * (r // 16), 0, g % 4 + 4 * (r // 8 % 2))
            words[256 * (row // rows) + 2 * lane + column] |= chosen[row][g] << (4 * four)
    if in_tensor:
        words = list(lcg("u32", 1024, 4000 + len(launches), mask))
    extra = 8 if in_tensor else 2
    of = SUM[total] << 4 | CODE[ta] << 7 | CODE[tb] << 10 | n // 8 << 17 | m // 16 << 24 | int(sparse) << 2
    cluster = " .reqnctapercluster 2, 1, 1" if blocks == 2 else ""
    meet = "barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;" if blocks == 2 else "bar.sync 0;"
    where = ".multicast::cluster" if blocks == 2 else ""
    o = [f""".visible .entry {name}(.param .u64 in, .param .u64 chosen, .param .u64 out){cluster}
{{
    .shared .align 4 .b32 place;
    .shared .align 8 .b64 done;
    .shared .align 1024 .b8 area[{4 * WORDS}];
    .reg .b16 %h<2>;
    .reg .b32 %r<16>;
    .reg .b32 %w<{max(width, extra)}>;
    .reg .b64 %rd<8>;
    .reg .pred %p<5>;

    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    ld.param.u64 %rd7, [chosen];
    mov.u32 %r0, %tid.x;
    mov.u32 %r4, %cluster_ctarank;
    setp.ge.u32 %p1, %r0, 32;
    @%p1 bra {name}_allocated;
    tcgen05.alloc.cta_group::{blocks}.sync.aligned.shared::cta.b32 [place], 128;
    tcgen05.relinquish_alloc_permit.cta_group::{blocks}.sync.aligned;
{name}_allocated:
    setp.ne.u32 %p2, %r0, 0;
    @%p2 bra {name}_made;
    mbarrier.init.shared::cta.b64 [done], 1;
{name}_made:
    mul.lo.u32 %r5, %r4, {WORDS};
    add.u32 %r5, %r5, %r0;
    mad.wide.u32 %rd3, %r5, 4, %rd1;
    mov.u32 %r3, area;
    shl.b32 %r6, %r0, 2;
    add.u32 %r6, %r3, %r6;
    mov.u32 %r5, 0;
{name}_copy:
    ld.global.b32 %r7, [%rd3];
    st.shared.b32 [%r6], %r7;
    add.u32 %r6, %r6, 512;
    add.u64 %rd3, %rd3, 512;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, {WORDS // 128};
    @%p3 bra {name}_copy;
    tcgen05.fence::before_thread_sync;
    {meet}
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %r1, [place];
    and.b32 %r2, %r0, 96;
    shl.b32 %r2, %r2, 16;
    add.u32 %r2, %r2, %r1;
    shl.b32 %r5, %r4, 7;
    add.u32 %r5, %r5, %r0;
    mad.wide.u32 %rd3, %r5, {4 * extra}, %rd7;"""]
    o += [f"    ld.global.b32 %w{i}, [%rd3+{4 * i}];" for i in range(extra)]
    o.append(f"""    tcgen05.st.sync.aligned.32x32b.x{extra}.b32 [%r2+{CHOSEN}], {several(0, extra)};
    tcgen05.wait::st.sync.aligned;
    fence.proxy.async.shared::cta;
    tcgen05.fence::before_thread_sync;
    {meet}
    tcgen05.fence::after_thread_sync;
    @%p1 bra {name}_issued;
    setp.ne.u32 %p3, %r4, 0;
    @%p3 bra {name}_issued;
    elect.sync _|%p3, 0xffffffff;
    @!%p3 bra {name}_issued;
    shr.u32 %r8, %r3, 4;
    cvt.u64.u32 %rd4, %r8;
    add.u64 %rd5, %rd4, {descriptor(0, rows)};
    add.u64 %rd6, %rd4, {descriptor(SECOND, columns)};
    add.u32 %r9, %r1, {CHOSEN};
    mov.b16 %h1, 3;""")
    form = ("ws." if keeps else "") + ("sp." if sparse else "")
    first, place = "[%r9]" if in_tensor else "%rd5", " [%r9]," if sparse else ""
    for added in (0, 1):
        o.append(f"    tcgen05.mma.{form}cta_group::{blocks}.kind::{kind}{collector} [%r1], {first}, %rd6,{place} {of}, {added};")
    o.append(f"""    tcgen05.commit.cta_group::{blocks}.mbarrier::arrive::one.shared::cluster{where}.b64 [done]{", %h1" if where else ""};
{name}_issued:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra {name}_issued;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x{width}.b32 {several(0, width)}, [%r2];
    tcgen05.wait::ld.sync.aligned;
    mad.wide.u32 %rd3, %r5, {4 * len(shown)}, %rd2;""")
    o += [f"    st.global.b32 [%rd3+{4 * i}], %w{column};" for i, column in enumerate(shown)]
    o.append(f"""    tcgen05.fence::before_thread_sync;
    {meet}
    @%p1 bra {name}_end;
    tcgen05.dealloc.cta_group::{blocks}.sync.aligned.b32 %r1, 128;
{name}_end:
    ret;
}}
""")
    kernels.append("\n".join(o))

    def line(t, block, start, lines, at, count):
        places = [addr(start, 128 * (lines // 8), 128, 0, bits, 0, at, k) for k in range(count)]
        return [number(t, data[WORDS * block + bit // 32] >> bit % 32 & ((1 << bits) - 1)) for bit in places]

    def spread(row, stored):
        if not sparse:
            return stored
        out = [0] * whole
        for s, value in enumerate(stored):
            if bits == 32:
                out[2 * s + (chosen[row][s] == 0b1110)] = value
            else:
                out[4 * (s // 2) + (chosen[row][s // 2] >> 2 * (s % 2) & 3)] = value
        return out

    def first_line(row):
        if in_tensor:
            word = lambda k: words[8 * row + k * bits // 32] >> (k * bits % 32) & ((1 << bits) - 1)
            return [number(ta, word(k)) for k in range(depth)]
        return spread(row, line(ta, row // rows, 0, rows, row % rows, depth))

    a = [first_line(row) for row in range(m)]
    b = [line(tb, column // columns, SECOND, columns, column % columns, whole) for column in range(n)]
    result = [[0] * width for _ in range(128 * blocks)]
    for row in range(m):
        for column in range(n):
            lane, right = (row + rows * (column // width), column % width) if keeps else (row, column)
            result[lane][right] = 2 * sum(x * y for x, y in zip(a[row], b[column]))
    flat = [row[column] for row in result for column in shown]
    sums = OUT("s32", flat) if total == "s32" else OUT("f32", [f32(float(v)) for v in flat])
    launches.append(launch(name, blocks, 128, [IN("u32", data), IN("u32", listed(words)), sums]))


for ta, tb, total in (("f16", "f16", "f32"), ("tf32", "tf32", "f32"), ("e4m3", "e5m2", "f32"), ("s8", "u8", "s32")):
    product(f"sparse_{ta}", ta, tb, total, 128, 16, sparse=True)
    product(f"sparse_{ta}_pair", ta, tb, total, 256, 16, sparse=True, blocks=2)
    product(f"kept_{ta}", ta, tb, total, 32, 64, keeps=True)
product("kept_half", "bf16", "bf16", "f32", 64, 64, keeps=True, collector=".collector::b1::fill")
product("kept_in_tensor", "f16", "f16", "f32", 128, 64, keeps=True, in_tensor=True)
product("kept_sparse", "f16", "f16", "f32", 128, 64, keeps=True, sparse=True)

PTX = """// Products whose first factor is sparse, and those that keep the second factor, whose sums lie in other lanes. Each
// kernel copies its input to shared memory as it is, and the numbers of the elements to tensor memory.
.version 8.8
.target sm_100a
.address_size 64

""" + "\n".join(kernels)
FILES = {"tensor_chosen.ptx": PTX, "tensor_chosen.ron": render("tensor_chosen.ptx", launches)}
