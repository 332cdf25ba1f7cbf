"""Writes tensor_extremes.ptx and .ron: loads of tensor memory that also find the least or greatest number of each thread."""
from launchfile import IN, OUT, lcg, launch, render

COUNT = 16
FINDS = [
    ("32x32b.x16.max.f32", 0), ("32x32b.x16.min.f32", 0), ("32x32b.x8.max.abs.f32", 8), ("32x32b.x4.min.abs.f32", 3),
    ("32x32b.x16.max.NaN.f32", 0), ("32x32b.x8.min.abs.NaN.f32", 4), ("32x32b.x16.max.u32", 0), ("32x32b.x2.min.u32", 5),
    ("32x32b.x16.max.s32", 0), ("32x32b.x16.min.s32", 0), ("16x32bx2.x8.max.s32", 1), ("16x32bx2.x4.min.f32", 2),
]
APART = 4
data = lcg("u32", 128 * COUNT, 4321, 0xFFFFFFFF)


def nan(bits):
    return bits & 0x7FFFFFFF > 0x7F800000


def extreme(how, words):
    """The manual's minimum or maximum of words as their type says."""
    kind = how.rsplit(".", 1)[1]
    least = ".min" in how
    pick = min if least else max
    if kind == "u32":
        return pick(words)
    if kind == "s32":
        return pick(words, key=lambda w: w - 2**32 if w >> 31 else w)
    if ".abs" in how:
        words = [w & 0x7FFFFFFF for w in words]
    numbers = [w for w in words if not nan(w)]
    if not numbers or ".NaN" in how and len(numbers) < len(words):
        return 0x7FFFFFFF
    return pick(numbers, key=lambda w: -1 - (w & 0x7FFFFFFF) if w >> 31 else w)


def several(first, count):
    return "{" + ", ".join(f"%w{i}" for i in range(first, first + count)) + "}"


o = ["""// Loads of tensor memory that also find the least or greatest number of each thread, NaNs among them.
.version 8.8
.target sm_103a
.address_size 64

.visible .entry extremes(.param .u64 in, .param .u64 out)
{
    .shared .align 4 .b32 place;
    .reg .b32 %r<8>;
    .reg .b32 %w<48>;
    .reg .b64 %rd<4>;
    .reg .pred %p<2>;

    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    mov.u32 %r0, %tid.x;
    setp.ge.u32 %p1, %r0, 32;
    @%p1 bra allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 32;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
allocated:
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %r1, [place];
    and.b32 %r2, %r0, 96;
    shl.b32 %r2, %r2, 16;
    add.u32 %r2, %r2, %r1;
    mad.wide.u32 %rd3, %r0, 64, %rd1;"""]
o += [f"    ld.global.b32 %w{i}, [%rd3+{4 * i}];" for i in range(COUNT)]
o.append(f"    tcgen05.st.sync.aligned.32x32b.x16.b32 [%r2], {several(0, COUNT)};")
o.append("    tcgen05.wait::st.sync.aligned;")
o.append(f"    mad.wide.u32 %rd3, %r0, {8 * len(FINDS)}, %rd2;")
expect = [[] for _ in range(128)]
for i, (how, column) in enumerate(FINDS):
    shape, number, rest = how.split(".", 2)
    count = int(number[1:])
    apart = f", {APART}" if "bx2" in shape else ""
    best = "{%w40}" if i % 2 else "%w40"
    o.append(f"    tcgen05.ld.red.sync.aligned.{how} {several(16, count)}, {best}, [%r2+{column}]{apart};")
    o.append("    tcgen05.wait::ld.sync.aligned;")
    o.append(f"    st.global.b32 [%rd3+{8 * i}], %w40;\n    st.global.b32 [%rd3+{8 * i + 4}], %w{15 + count};")
    for t in range(128):
        lane, first = t, column
        if "bx2" in shape:
            lane, first = t // 32 * 32 + t % 16, column + (APART if t % 32 >= 16 else 0)
        words = [data[lane * COUNT + first + k] for k in range(count)]
        expect[t] += [extreme(how, words), words[-1]]
o.append("""    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    @%p1 bra end;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
end:
    ret;
}
""")
PTX = "\n".join(o)
LAUNCHES = [launch("extremes", 1, 128, [IN("u32", data), OUT("u32", [w for row in expect for w in row], True)], targets=["sm_103a", "sm_110a"])]
FILES = {"tensor_extremes.ptx": PTX, "tensor_extremes.ron": render("tensor_extremes.ptx", LAUNCHES)}
