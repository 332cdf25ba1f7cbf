"""wide_constants.ptx and its launches: 64-bit integers beside constants at the ends of what 32 bits hold."""

from exact import signed, unsigned
from launchfile import IN, OUT, launch, listed, render, scalar

MASK = 2**64 - 1
CONSTANTS = [0, 1, MASK, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 2**32, 2**32 + 1, MASK - 0x7fffffff, MASK - 0x80000000,
             MASK - 0xffffffff, 2**63, 2**63 - 1]
X = [0, 1, MASK, 0x7fffffff, 0x80000000, 0xffffffff, 2**32, 2**63, 2**63 - 1, 0xffffffff80000000, 0x0123456789abcdef,
     0xfedcba9876543210, 0xfffffffe, 0x17fffffff, 0xffffffff7fffffff, 0xffffffff00000000]
Y = [MASK, 0x80000000, 0, 0xffffffff, 0x7fffffff, 2**32, 0xffffffff, 2**63 - 1, 2**63, 0xffffffff7fffffff, 0x0123456789abcdef,
     0x0123456776543210, 0x1fffffffe, 0x80000000, 0x100000001, 0xffffffff00000001]
P = 0xfffffffe80000001
WIDTH = 3 * len(CONSTANTS) + 6

HEAD = """\
// wide_constants: sums, comparisons and selections of 64-bit integers, of a = x[t], b = y[t] and the parameter p; out[{width} t + k]:
//   for each constant C   0 a + C where a < C signed, else b - C   1 the greater of b and C, unsigned, minus the lesser
//     2 bits: a < C signed, a < C unsigned, a >= C signed, b > C unsigned, a = C, b != C, C - a < b signed
//   then   0 a + p   1 p - b   2 a < p unsigned ? p : b   3 (a << 3) + b   4 (b << 31) + p
//     5 steps of 7 from a & 255 until it is b & 1023 or more: the sum of what they reach, and 2^32 for each
.version 6.4
.target sm_75
.address_size 64

.visible .entry wide_constants(.param .u64 x, .param .u64 y, .param .u64 p, .param .u64 out)
{{
    .reg .pred %q;
    .reg .u32 %t, %bit, %bits;
    .reg .u64 %x, %y, %p, %out, %a, %b, %r, %s, %u, %v, %c;

    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u64 %p, [p];
    ld.param.u64 %out, [out];
    cvta.to.global.u64 %x, %x;
    cvta.to.global.u64 %y, %y;
    cvta.to.global.u64 %out, %out;
    mov.u32 %t, %tid.x;
    mad.wide.u32 %x, %t, 8, %x;
    mad.wide.u32 %y, %t, 8, %y;
    mad.wide.u32 %out, %t, {bytes}, %out;
    ld.global.u64 %a, [%x];
    ld.global.u64 %b, [%y];
"""

EACH = """
    // C = {c}
    add.s64 %r, %a, {c};
    sub.s64 %s, %b, {c};
    setp.lt.s64 %q, %a, {c};
    selp.b64 %r, %r, %s, %q;
    st.global.u64 [%out+{at0}], %r;
    mov.u64 %c, {c};
    setp.gt.u64 %q, %b, %c;
    selp.b64 %r, %b, {c}, %q;
    selp.b64 %s, {c}, %b, %q;
    sub.s64 %r, %r, %s;
    st.global.u64 [%out+{at1}], %r;
    mov.u32 %bits, 0;
{bits}
    sub.s64 %s, %c, %a;
    setp.lt.s64 %q, %s, %b;
    selp.u32 %bit, 64, 0, %q;
    or.b32 %bits, %bits, %bit;
    cvt.u64.u32 %r, %bits;
    st.global.u64 [%out+{at2}], %r;
"""

BIT = """\
    setp.{cmp} %q, {value}, {c};
    selp.u32 %bit, {bit}, 0, %q;
    or.b32 %bits, %bits, %bit;"""

TAIL = """
    add.s64 %r, %a, %p;
    st.global.u64 [%out+{at0}], %r;
    sub.s64 %r, %p, %b;
    st.global.u64 [%out+{at1}], %r;
    setp.lt.u64 %q, %a, %p;
    selp.b64 %r, %p, %b, %q;
    st.global.u64 [%out+{at2}], %r;
    shl.b64 %s, %a, 3;
    add.s64 %r, %s, %b;
    st.global.u64 [%out+{at3}], %r;
    shl.b64 %s, %b, 31;
    add.s64 %r, %p, %s;
    st.global.u64 [%out+{at4}], %r;
    and.b64 %u, %a, 255;
    and.b64 %v, %b, 1023;
    mov.u64 %r, 0;
    setp.ge.u64 %q, %u, %v;
    @%q bra DONE;
NEXT:
    add.s64 %u, %u, 7;
    add.s64 %r, %r, %u;
    add.s64 %r, %r, 0x100000000;
    setp.lt.u64 %q, %u, %v;
    @%q bra NEXT;
DONE:
    st.global.u64 [%out+{at5}], %r;
    ret;
}}
"""

BITS = [("lt.s64", "%a"), ("lt.u64", "%a"), ("ge.s64", "%a"), ("gt.u64", "%b"), ("eq.s64", "%a"), ("ne.s64", "%b")]


def places(first, count):
    return {f"at{i}": 8 * (first + i) for i in range(count)}


def module():
    text = HEAD.format(width=WIDTH, bytes=8 * WIDTH)
    for i, c in enumerate(CONSTANTS):
        c = f"0x{c:x}"
        bits = "\n".join(BIT.format(cmp=cmp, value=value, c=c, bit=1 << n) for n, (cmp, value) in enumerate(BITS))
        text += EACH.format(c=c, bits=bits, **places(3 * i, 3))
    return text + TAIL.format(**places(3 * len(CONSTANTS), 6))


def steps(u, v):
    total = 0
    while u < v:
        u += 7
        total += u + 2**32
    return total


def numbers(a, b):
    out = []
    for c in CONSTANTS:
        sa, sc = signed(a, 64), signed(c, 64)
        flags = [sa < sc, a < c, sa >= sc, b > c, a == c, b != c, signed(c - a, 64) < signed(b, 64)]
        out += [a + c if sa < sc else b - c, abs(b - c), sum(flag << n for n, flag in enumerate(flags))]
    return out + [a + P, P - b, P if a < P else b, (a << 3) + b, (b << 31) + P, steps(a & 255, b & 1023)]


def launches():
    expect = [unsigned(v, 64) for a, b in zip(X, Y) for v in numbers(a, b)]
    args = [IN("u64", listed(X)), IN("u64", listed(Y)), scalar("u64", P), OUT("u64", expect, True)]
    return [launch("wide_constants", 1, len(X), args)]


FILES = {"wide_constants.ptx": module(), "wide_constants.ron": render("wide_constants.ptx", launches())}
