"""Writes tensor_chosen_scaled.ptx and .ron: products with scales whose first factor is sparse.

The depth is twice that of a dense product, and so are the elements under a scale; of 4 bits, pairs of elements are stored.
Lanes and columns are those of CUTLASS (mma_traits_sm100_frag.hpp); expected.py imports FILES."""
from exact import f32
from group_products import addr
from launchfile import IN, OUT, launch, lcg, listed, render
from tensor_chosen import PAIRS, descriptor
from tensor_memory import several
from tensor_unit import CODE, FORM, number

SECOND = 4096  # Bytes of shared memory before the second factor.
NUMBERS, FACTOR, SCALES = 160, 168, (176, 184)  # Columns beside the sums.
CHOICES = PAIRS + (0b0110,)  # The last one has the later element first.
# Bits that vary of an element of each type, and what is added: no number is tiny, so all sums
# are exact.
VARY = {"e4m3": (0x87878787, 0x38383838), "e5m2": (0x83838383, 0x3C3C3C3C)}
ALL = (0xFFFFFFFF, 0)
kernels, launches = [], []


def product(name, kind, form, ta, tb, count, ids, base, n=16, power=True, in_tensor=False, blocks=1):
    """Twice a product of what the input has there: it is computed, and added once. Each line has so many scales."""
    nibbles = kind != "mxf8f6f4"
    bits, m = (4 if nibbles else 8), 128 * blocks
    depth = 256 // bits
    whole, each, columns = 2 * depth, 2 * depth // count, n // blocks
    # In tensor memory, an element of 4 bits lies in the middle of its byte.
    inner = 2 if in_tensor and ta == "e2m1" and not nibbles else 0
    size = (SECOND + columns * whole * bits // 8) // 512 * 128 + 128
    # Half of the columns, or few of many.
    shown = [i + i // 2 % 2 for i in range(0, 16, 2)] if n <= 32 else [*range(4), *range(n - 4, n)]
    seed = 7000 + 10 * len(launches)
    raw, draw = lcg("u32", blocks * size, seed, 0xFFFFFFFF), lcg("u32", 16 * m, seed + 1, 0xFFFFFFFF)
    vary = [VARY.get(t, ALL) for t in (ta, tb)]
    data = [word & vary[i % size >= SECOND // 4][0] | vary[i % size >= SECOND // 4][1] for i, word in enumerate(raw)]
    # Four bits for each group of a row; a first factor in tensor memory, and a byte for each scale.
    chosen = [[CHOICES[(draw[16 * row + g] >> 16) % len(CHOICES)] for g in range(16)] for row in range(m)]
    numbers = [sum(chosen[row][8 * half + g] << 4 * g for g in range(8)) for row in range(m) for half in (0, 1)]
    first = lcg("u32", 8 * m, seed + 2, 0xFFFFFFFF)
    drawn = [lcg("u32", 4 * 32 * blocks, seed + 3, 0x03030303), lcg("u32", 8 * 32, seed + 4, 0x03030303)]

    def code(which, line, i):
        block, line = (line // 128, line % 128) if which == 0 else (0, line)
        word = drawn[which][(4, 8)[which] * (32 * block + line % 32) + line // 32]
        return base + (word >> 8 * (ids[which] + i) & 0xFF)

    of = ids[1] << 4 | (1 if nibbles else CODE[ta]) << 7 | (1 if nibbles else CODE[tb]) << 10 | n // 8 << 17
    of |= 1 << 2 | int(power) << 23 | blocks << 27 | ids[0] << 29
    cluster = " .reqnctapercluster 2, 1, 1" if blocks == 2 else ""
    meet = "barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;" if blocks == 2 else "bar.sync 0;"
    where = ".multicast::cluster" if blocks == 2 else ""
    o = [f""".visible .entry {name}(.param .u64 in, .param .u64 numbers, .param .u64 first, .param .u64 scales,
    .param .u64 others, .param .u64 out){cluster}
{{
    .shared .align 4 .b32 place;
    .shared .align 8 .b64 done;
    .shared .align 1024 .b8 area[{4 * size}];
    .reg .b16 %h<2>;
    .reg .b32 %r<16>;
    .reg .b32 %w<22>;
    .reg .b64 %rd<8>;
    .reg .pred %p<5>;

    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r4, %cluster_ctarank;
    setp.ge.u32 %p1, %r0, 32;
    @%p1 bra {name}_allocated;
    tcgen05.alloc.cta_group::{blocks}.sync.aligned.shared::cta.b32 [place], 256;
    tcgen05.relinquish_alloc_permit.cta_group::{blocks}.sync.aligned;
{name}_allocated:
    setp.ne.u32 %p2, %r0, 0;
    @%p2 bra {name}_made;
    mbarrier.init.shared::cta.b64 [done], 1;
{name}_made:
    mul.lo.u32 %r5, %r4, {size};
    add.u32 %r5, %r5, %r0;
    mad.wide.u32 %rd3, %r5, 4, %rd1;
    mov.u32 %r3, area;
    shl.b32 %r6, %r0, 2;
    add.u32 %r6, %r3, %r6;
    mov.u32 %r5, 0;
{name}_copy:
    ld.global.b32 %r7, [%rd3];
    setp.lt.u32 %p3, %r5, {SECOND // 512};
    selp.b32 %r10, {vary[0][0]}, {vary[1][0]}, %p3;
    selp.b32 %r11, {vary[0][1]}, {vary[1][1]}, %p3;
    and.b32 %r7, %r7, %r10;
    or.b32 %r7, %r7, %r11;
    st.shared.b32 [%r6], %r7;
    add.u32 %r6, %r6, 512;
    add.u64 %rd3, %rd3, 512;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, {size // 128};
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
    ld.param.u64 %rd3, [numbers];
    mad.wide.u32 %rd3, %r5, 8, %rd3;
    ld.param.u64 %rd4, [first];
    mad.wide.u32 %rd4, %r5, 32, %rd4;
    and.b32 %r6, %r0, 31;
    ld.param.u64 %rd6, [others];
    mad.wide.u32 %rd6, %r6, 32, %rd6;
    mad.lo.u32 %r6, %r4, 32, %r6;
    ld.param.u64 %rd5, [scales];
    mad.wide.u32 %rd5, %r6, 16, %rd5;"""]
    for register, at, words in ((3, 0, 2), (4, 2, 8), (5, 10, 4), (6, 14, 8)):
        o += [f"    ld.global.b32 %w{at + i}, [%rd{register}+{4 * i}];" for i in range(words)]
    o += [f"    add.u32 %w{i}, %w{i}, {base * 0x01010101};" for i in range(10, 22)]
    for column, at, words in ((NUMBERS, 0, 2), (FACTOR, 2, 8), (SCALES[0], 10, 4), (SCALES[1], 14, 8)):
        o.append(f"    tcgen05.st.sync.aligned.32x32b.x{words}.b32 [%r2+{column}], {several(at, words)};")
    o.append(f"""    tcgen05.wait::st.sync.aligned;
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
    add.u64 %rd5, %rd4, {descriptor(0, 128)};
    add.u64 %rd6, %rd4, {descriptor(SECOND, columns)};
    add.u32 %r9, %r1, {FACTOR};
    mov.b16 %h1, 3;""")
    what = "[%r9]" if in_tensor else "%rd5"
    scales = f"[%r1+{SCALES[0]}], [%r1+{SCALES[1]}]"
    for added in (0, 1):
        o.append(f"    tcgen05.mma.sp.cta_group::{blocks}.kind::{kind}.block_scale{form}")
        o.append(f"        [%r1], {what}, %rd6, [%r1+{NUMBERS}], {of}, {scales}, {added};")
    o.append(f"""    tcgen05.commit.cta_group::{blocks}.mbarrier::arrive::one.shared::cluster{where}.b64 [done]{", %h1" if where else ""};
{name}_issued:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra {name}_issued;
    tcgen05.fence::after_thread_sync;
    mad.wide.u32 %rd3, %r5, {4 * len(shown)}, %rd2;""")
    for at in (0, n - 8):
        o.append(f"    tcgen05.ld.sync.aligned.32x32b.x8.b32 {several(0, 8)}, [%r2+{at}];")
        o.append("    tcgen05.wait::ld.sync.aligned;")
        own = [(i, column - at) for i, column in enumerate(shown) if 0 <= column - at < 8]
        o += [f"    st.global.b32 [%rd3+{4 * i}], %w{word};" for i, word in own]
    o.append(f"""    tcgen05.fence::before_thread_sync;
    {meet}
    @%p1 bra {name}_end;
    tcgen05.dealloc.cta_group::{blocks}.sync.aligned.b32 %r1, 256;
{name}_end:
    ret;
}}
""")
    kernels.append("\n".join(o))

    def image(block, bit, width):
        return data[size * block + bit // 32] >> (bit % 32) & ((1 << width) - 1)

    def element(t, block, start, lines, at, k):
        place = lambda width, k: addr(start, 128 * (lines // 8), 128, 0, width, 0, at, k)
        if nibbles:
            return number(t, image(block, place(4, k), 4))
        width = 1 + sum(FORM[t])
        byte = lambda i: image(block, place(8, k // 16 * 16 + i), 8)
        bit = k % 16 * width
        return number(t, (byte(bit // 8) | byte(min(bit // 8 + 1, 15)) << 8) >> (bit % 8) & ((1 << width) - 1))

    def factor(row):
        if not in_tensor:
            return [element(ta, row // 128, 0, 128, row % 128, k) for k in range(depth)]
        wide = 1 + sum(FORM[ta])
        return [number(ta, first[8 * row + k * bits // 32] >> (k * bits % 32 + inner) & ((1 << wide) - 1)) for k in range(depth)]

    def spread(row, values):
        pair, out = (2 if nibbles else 1), [0.0] * whole
        for s, value in enumerate(values):
            unit, within = divmod(s, pair)
            out[pair * (4 * (unit // 2) + (chosen[row][unit // 2] >> 2 * (unit % 2) & 3)) + within] = value
        return out

    def scaled(which, line, values):
        scale = lambda i: 2.0 ** (code(which, line, i) - 127) if power else number("e4m3", code(which, line, i))
        return [value * scale(k // each) for k, value in enumerate(values)]

    a = [scaled(0, row, spread(row, factor(row))) for row in range(m)]
    b = [(column // columns, column % columns) for column in range(n)]
    b = [scaled(1, i, [element(tb, block, SECOND, columns, at, k) for k in range(whole)]) for i, (block, at) in enumerate(b)]
    flat = [f32(2.0 * sum(x * y for x, y in zip(row, b[column]) if x)) for row in a for column in shown]
    beside = [IN("u32", data) for data in (raw, listed(numbers), first, *drawn)]
    launches.append(launch(name, blocks, 128, [*beside, OUT("f32", flat)]))


BYTES = "mxf8f6f4"
product("bytes", BYTES, "", "e4m3", "e5m2", 1, (1, 3), 126)
product("bytes_wide", BYTES, ".block32", "e5m2", "e4m3", 1, (0, 1), 126, n=136)
product("six_bits", BYTES, ".scale_vec::1X", "e2m3", "e3m2", 1, (2, 0), 126)
product("four_bits_in_tensor", BYTES, "", "e2m1", "e2m3", 1, (3, 2), 125, in_tensor=True)
product("bytes_pair", BYTES, ".scale_vec::1X", "e4m3", "e3m2", 1, (0, 2), 126, blocks=2)
product("nibbles", "mxf4", "", "e2m1", "e2m1", 2, (2, 0), 126)
product("nibbles_pair", "mxf4", ".scale_vec::2X", "e2m1", "e2m1", 2, (0, 2), 126, blocks=2)
product("nibbles_in_tensor", "mxf4", ".block32", "e2m1", "e2m1", 2, (0, 0), 126, in_tensor=True)
product("nibbles_of_two", "mxf4nvf4", ".scale_vec::2X", "e2m1", "e2m1", 2, (2, 2), 126)
product("nibbles_of_64", "mxf4nvf4", ".block32", "e2m1", "e2m1", 2, (0, 2), 125, in_tensor=True)
product("nibbles_of_four", "mxf4nvf4", ".scale_vec::4X", "e2m1", "e2m1", 4, (0, 0), 0x38, power=False)
product("nibbles_of_32", "mxf4nvf4", ".block16", "e2m1", "e2m1", 4, (0, 0), 126, in_tensor=True)
product("nibbles_of_32_pair", "mxf4nvf4", ".block16", "e2m1", "e2m1", 4, (0, 0), 0x39, power=False, blocks=2)

PTX = """// Products with scales whose first factor is sparse. Each kernel copies its input to shared memory as it is, and the
// numbers of the elements, scales and a first factor to tensor memory.
.version 8.8
.target sm_100a
.address_size 64

""" + "\n".join(kernels)
FILES = {"tensor_chosen_scaled.ptx": PTX, "tensor_chosen_scaled.ron": render("tensor_chosen_scaled.ptx", launches)}
