"""Writes tensor_pairs.ptx and .ron: products of two blocks of a cluster, and commits to barriers of several blocks.

Each block has half of the rows of the first factor and half of the columns of the second one.
"""
from exact import f32
from group_products import addr
from launchfile import IN, OUT, launch, lcg, render
from tensor_memory import number

SECOND = 4096  # Bytes of shared memory before the second factor.
WORDS = 2048
DEPTH = 16
kernels, launches = [], []


def descriptor(start, lines):
    return start >> 4 | 128 * (lines // 8) >> 4 << 16 | 128 >> 4 << 32 | 1 << 46


def product(name, m, n):
    rows, columns = m // 2, n // 2
    width = n if m == 256 else columns
    data = lcg("u32", 2 * WORDS, 600 + len(launches), 0xC000C000)
    of = 1 << 4 | n // 8 << 17 | m // 16 << 24
    o = [f""".visible .entry {name}(.param .u64 in, .param .u64 out) .reqnctapercluster 2, 1, 1
{{
    .shared .align 4 .b32 place;
    .shared .align 8 .b64 done;
    .shared .align 1024 .b8 area[{4 * WORDS}];
    .reg .b16 %h<2>;
    .reg .b32 %r<16>;
    .reg .b32 %w<{width}>;
    .reg .b64 %rd<8>;
    .reg .pred %p<5>;

    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r4, %cluster_ctarank;
    setp.ge.u32 %p1, %r0, 32;
    @%p1 bra {name}_allocated;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], 32;
    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
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
    fence.proxy.async.shared::cta;
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %r1, [place];
    and.b32 %r2, %r0, 96;
    shl.b32 %r2, %r2, 16;
    add.u32 %r2, %r2, %r1;
    @%p1 bra {name}_issued;
    setp.ne.u32 %p3, %r4, 0;
    @%p3 bra {name}_issued;
    elect.sync _|%p3, 0xffffffff;
    @!%p3 bra {name}_issued;
    shr.u32 %r8, %r3, 4;
    cvt.u64.u32 %rd4, %r8;
    add.u64 %rd5, %rd4, {descriptor(0, rows)};
    add.u64 %rd6, %rd4, {descriptor(SECOND, columns)};
    mov.b16 %h1, 3;"""]
    o.append(f"""    tcgen05.mma.cta_group::2.kind::f16 [%r1], %rd5, %rd6, {of}, 0;
    tcgen05.mma.cta_group::2.kind::f16 [%r1], %rd5, %rd6, {of}, 1;
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %h1;
{name}_issued:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra {name}_issued;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x{width}.b32 {{{", ".join(f"%w{i}" for i in range(width))}}}, [%r2];
    tcgen05.wait::ld.sync.aligned;
    shl.b32 %r5, %r4, 7;
    add.u32 %r5, %r5, %r0;
    mad.wide.u32 %rd3, %r5, {4 * width}, %rd2;""")
    o += [f"    st.global.b32 [%rd3+{4 * i}], %w{i};" for i in range(width)]
    o.append(f"""    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p1 bra {name}_end;
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 32;
{name}_end:
    ret;
}}
""")
    kernels.append("\n".join(o))

    def line(block, start, lines, at):
        places = [addr(start, 128 * (lines // 8), 128, 0, 16, 0, at, k) for k in range(DEPTH)]
        return [number("f16", data[WORDS * block + bit // 32] >> bit % 32 & 0xFFFF) for bit in places]

    a = [line(row // rows, 0, rows, row % rows) for row in range(m)]
    b = [line(column // columns, SECOND, columns, column % columns) for column in range(n)]
    result = [[0.0] * width for _ in range(256)]
    for row in range(m):
        for column in range(n):
            lane, right = (row % rows, column) if m == 256 else (row % rows + 64 * (column // columns), column % columns)
            result[128 * (row // rows) + lane][right] = 2 * sum(x * y for x, y in zip(a[row], b[column]))
    flat = [f32(float(v)) for row in result for v in row]
    launches.append(launch(name, 2, 128, [IN("u32", data), OUT("f32", flat)]))


def commits():
    """Each of four blocks commits to the barriers of two; one that gets two commits, and its own block's, goes on."""
    kernels.append(""".visible .entry commits(.param .u64 out) .reqnctapercluster 4, 1, 1
{
    .shared .align 8 .b64 done;
    .reg .b16 %h<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .reg .pred %p<4>;

    ld.param.u64 %rd1, [out];
    mov.u32 %r0, %tid.x;
    mov.u32 %r4, %cluster_ctarank;
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra commits_made;
    mbarrier.init.shared::cta.b64 [done], 3;
commits_made:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    // The blocks after and two after this one.
    add.u32 %r5, %r4, 1;
    mov.u32 %r6, 3;
    shl.b32 %r6, %r6, %r5;
    shr.u32 %r7, %r6, 4;
    or.b32 %r6, %r6, %r7;
    and.b32 %r6, %r6, 15;
    cvt.u16.u32 %h1, %r6;
    elect.sync _|%p2, 0xffffffff;
    @!%p2 bra commits_issued;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %h1;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
commits_issued:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra commits_issued;
    shl.b32 %r5, %r4, 5;
    add.u32 %r5, %r5, %r0;
    mad.wide.u32 %rd2, %r5, 4, %rd1;
    add.u32 %r5, %r5, 7;
    st.global.b32 [%rd2], %r5;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;
}
""")
    launches.append(launch("commits", 4, 32, [OUT("u32", [i + 7 for i in range(128)])]))


product("pair_of_128", 256, 32)
product("pair_of_64", 128, 32)
commits()

PTX = """// Products of the two blocks of a pair, whose sums lie in both, and commits to barriers of several blocks.
.version 8.8
.target sm_100a
.address_size 64

""" + "\n".join(kernels)
FILES = {"tensor_pairs.ptx": PTX, "tensor_pairs.ron": render("tensor_pairs.ptx", launches)}
