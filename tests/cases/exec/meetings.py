"""Kernels in which lanes part and then exchange something: meetings_*.ptx, and what they compute.

Each has several steps. In a step every lane goes round a loop as often as three bits of its input say, so that the lanes of a warp come
out of it one after another; then all of them exchange a value. Whoever does not wait for the others there has another number in the end.
`python3 meetings.py`, run in this folder, writes the kernels; expected.py the launches.
"""

from launchfile import IN, OUT, launch, lcg

FULL, STEPS = 0xFFFFFFFF, 14
MASK = 0xFFFFFFFF


def loop(i, label="L"):
    """r = 5 r + k for k below three bits of x, which differ from lane to lane."""
    return f"""
    shr.u32 %n, %x, {2 * i};
    and.b32 %n, %n, 7;
    mov.u32 %k, 0;
{label}{i}:
    setp.ge.u32 %p, %k, %n;
    @%p bra {label}{i}_END;
    mad.lo.u32 %r, %r, 5, %k;
    add.u32 %k, %k, 1;
    bra {label}{i};
{label}{i}_END:"""


def looped(r, x, i):
    for k in range(x >> 2 * i & 7):
        r = (5 * r + k) & MASK
    return r


def shuffle(i, mask=FULL):
    kind = ("bfly", "idx", "up", "down")[i % 4]
    operand = {"bfly": str(1 << i % 4), "idx": "%s", "up": "3", "down": "2"}[kind]
    clamp = "0x0" if kind == "up" else "0x1f"
    source = "\n    mad.lo.u32 %s, %t, 7, 3;\n    and.b32 %s, %s, 31;" if kind == "idx" else ""
    return source + f"\n    shfl.sync.{kind}.b32 %y, %r, {operand}, {clamp}, {mask:#x};\n    add.u32 %r, %r, %y;"


def shuffled(r, i):
    def source(t):
        at = (t ^ 1 << i % 4, (7 * t + 3) & 31, t - 3, t + 2)[i % 4]
        return at if 0 <= at < 32 else t
    return [(r[t] + r[source(t)]) & MASK for t in range(32)]


def vote(i):
    kind = i % 4
    if kind == 0:
        return "\n    and.b32 %y, %r, 1;\n    setp.eq.u32 %q, %y, 1;\n    vote.sync.ballot.b32 %y, %q, 0xffffffff;\n    add.u32 %r, %r, %y;"
    if kind == 1:
        return "\n    and.b32 %y, %r, 3;\n    match.any.sync.b32 %y, %y, 0xffffffff;\n    add.u32 %r, %r, %y;"
    what, least = ("any", 30) if kind == 2 else ("all", 1)
    # Of all lanes one alone is told apart.
    return (f"\n    setp.ge.u32 %q, %t, {least};\n    vote.sync.{what}.pred %q, %q, 0xffffffff;"
            "\n    selp.u32 %y, 77, 5, %q;\n    add.u32 %r, %r, %y;")


def voted(r, i):
    kind = i % 4
    if kind == 0:
        ballot = sum((r[t] & 1) << t for t in range(32))
        return [(v + ballot) & MASK for v in r]
    if kind == 1:
        return [(v + sum((r[u] & 3 == v & 3) << u for u in range(32))) & MASK for v in r]
    return [(v + (77 if kind == 2 else 5)) & MASK for v in r]


def through_shared(i, sync):
    return f"""
    st.shared.u32 [%mine], %r;
    {sync};
    add.u32 %s, %t, {3 * i + 1};
    and.b32 %s, %s, LAST;
    shl.b32 %s, %s, 2;
    add.u32 %s, %base, %s;
    ld.shared.u32 %y, [%s];
    {sync};
    mad.lo.u32 %r, %r, 3, %y;"""


def through(r, i):
    return [(3 * r[t] + r[(t + 3 * i + 1) % len(r)]) & MASK for t in range(len(r))]


def arms(i):
    """Two halves of a warp on two sides of a branch, each with a loop and a shuffle of its own."""
    half = lambda name, mask: (loop(i, name) + f"\n    shfl.sync.bfly.b32 %y, %r, {1 << i % 4}, 0x1f, {mask:#x};"
                               "\n    mad.lo.u32 %r, %y, 3, %r;")
    return (f"\n    @%high bra HIGH{i};" + half("A", 0xFFFF) + f"\n    xor.b32 %r, %r, 0x55;\n    bra MEET{i};"
            f"\nHIGH{i}:" + half("B", 0xFFFF0000) + f"\nMEET{i}:" + shuffle(i))


def after_arms(r, x, i):
    r = [looped(r[t], x[t], i) for t in range(32)]
    r = [(3 * r[t ^ 1 << i % 4] + r[t]) & MASK for t in range(32)]
    return shuffled([r[t] ^ 0x55 if t < 16 else r[t] for t in range(32)], i)


def each(exchange):
    return lambda r, x, i: exchange([looped(r[t], x[t], i) for t in range(len(r))], i)


# Name: what it is, threads, a step in PTX, a step here.
KERNELS = {
    "meetings_shuffle": ("a shuffle of all lanes", 32, lambda i: loop(i) + shuffle(i), each(shuffled)),
    "meetings_vote": ("a vote or a match of all lanes", 32, lambda i: loop(i) + vote(i), each(voted)),
    "meetings_warp": ("words in shared memory, behind bar.warp.sync", 32,
                      lambda i: loop(i) + through_shared(i, "bar.warp.sync 0xffffffff"), each(through)),
    "meetings_block": ("words in shared memory, behind bar.sync", 64,
                       lambda i: loop(i) + through_shared(i, "bar.sync 0"), each(through)),
    "meetings_mixed": ("a shuffle or a vote of all lanes by turns", 32,
                       lambda i: loop(i) + (shuffle(i) if i % 2 else vote(i)),
                       each(lambda r, i: shuffled(r, i) if i % 2 else voted(r, i))),
    "meetings_arms": ("a shuffle in each half, then one of all lanes", 32, arms, after_arms),
}


def text(name, about, threads, step):
    body = "".join(step(i) for i in range(STEPS)).replace("LAST", str(threads - 1))
    return f"""// {name}: {STEPS} times a loop of as many rounds as three bits of in[t] say, and {about}; out[t] = what is left of it.
// Written by meetings.py.
.version 6.4
.target sm_75
.address_size 64

.visible .entry {name}(.param .u64 in, .param .u64 out)
{{
    .reg .pred %p, %q, %high;
    .reg .b32 %t, %x, %r, %n, %k, %y, %s, %mine, %base;
    .reg .b64 %in, %out;
    .shared .align 4 .b8 words[256];

    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    cvta.to.global.u64 %in, %in;
    cvta.to.global.u64 %out, %out;
    mov.u32 %t, %tid.x;
    mad.wide.u32 %in, %t, 4, %in;
    mad.wide.u32 %out, %t, 4, %out;
    mov.u32 %base, words;
    shl.b32 %mine, %t, 2;
    add.u32 %mine, %mine, %base;
    ld.global.u32 %x, [%in];
    setp.gt.u32 %high, %t, 15;
    mov.u32 %r, %t;
{body}
    st.global.u32 [%out], %r;
    ret;
}}
"""


def reference(name, threads, step):
    """A function of that name that gives the launches, as expected.py wants it."""

    def of(seed):
        x, r = lcg("u32", threads, seed, MASK), list(range(threads))
        for i in range(STEPS):
            r = step(r, x, i)
        return launch(name, 1, threads, [IN("u32", x), OUT("u32", r)])

    def launches():
        return [of(41), of(42)]

    launches.__name__ = name
    return launches


MEETINGS = [reference(name, threads, step) for name, (_, threads, _, step) in KERNELS.items()]

if __name__ == "__main__":
    for name, (about, threads, ptx, _) in KERNELS.items():
        open(f"{name}.ptx", "w").write(text(name, about, threads, ptx))
