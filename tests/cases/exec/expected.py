#!/usr/bin/env python3
"""The expected numbers of every kernel here, computed from its mathematical meaning (not from its instructions).

Each function is the reference of one NAME.ptx; its docstring is not repeated from there. `expected.py` writes NAME.ron for all,
`expected.py --check` only says which files differ. Arithmetic is exact and rounded where the kernel rounds (exact.py).
"""

import math
import struct
import sys
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ beside the cases

import group_products
import matrix_products_scaled
import tensor_chosen
import tensor_chosen_scaled
import tensor_extremes
import tensor_memory
import tensor_pairs
import tensor_unit
import wide_constants
from exact import (F32, F64, add, bits32, bits64, f32, fma, greater, lesser, mul, round_float, signed, sub, to_int, unsigned)
from launchfile import IN, INOUT, OUT, STRUCT, TENSOR, fill, iota, launch, lcg, listed, render, scalar
from matrices import matrix_words, moved, product, quarters, tile
from meetings import MEETINGS
from small import SMALL
from textures_model import Image, queries, references, textures_addressed, textures_apart, textures_gradients, textures_compared, samplers, surfaces, textures

HERE = Path(__file__).parent
M32 = 0xFFFFFFFF


def saxpy():
    n, a = 100, 2.5
    x, y = iota("f32", 128, 0.0, 0.5), iota("f32", 128, 100.0, -0.25)
    expect = [fma(a, x[i], y[i]) if i < n else y[i] for i in range(128)]
    return [launch("saxpy", 2, 64, [scalar("u32", n), scalar("f32", a), IN("f32", x), INOUT("f32", y, expect)])]


def vecadd():
    n = 150
    x, y = iota("s32", 192, -1000, 17), lcg("s32", 192, 1, 0xFFFFFFFF)
    z = fill("s32", 192, -7)
    expect = [signed(x[i] + y[i]) if i < n else -7 for i in range(192)]
    return [launch("vecadd", 2, 96, [IN("s32", x), IN("s32", y), INOUT("s32", z, expect), scalar("u32", n)])]


def reduce_shared():
    x = lcg("u32", 384, 2, 0xFFFF)
    return [launch("reduce_shared", 3, 64, [IN("u32", x), OUT("u32", [sum(x[128 * b:128 * b + 128]) for b in range(3)])])]


def reduce_shuffle():
    x = lcg("u32", 256, 3, 0xFFFFF)
    return [launch("reduce_shuffle", 2, 128, [IN("u32", x), OUT("u32", [sum(x[128 * b:128 * b + 128]) for b in range(2)])])]


def redux_groups():
    x = lcg("u32", 64, 5, 0xFFFFFFFF)
    # Groups of one, two, three and so on: lanes i with the same i*i mod 7.
    group = [sum(1 << j for j in range(32) if j * j % 7 == i * i % 7) for i in range(32)]
    out = []
    for t in range(64):
        warp = x[t & 32:(t & 32) + 32]
        lane = t & 31
        half = warp[lane & 16:(lane & 16) + 16]
        parity = 0
        for v in warp[lane & 1::2]:
            parity ^= v
        first = unsigned(min(signed(v) for v in warp[:12])) if lane < 12 else 0
        out += [sum(warp) & M32, first, sum(half) & M32, parity, max(warp[j] for j in range(32) if group[lane] >> j & 1)]
    return [launch("redux_groups", 1, 64, [IN("u32", x), IN("u32", group * 2), OUT("u32", out)])]


def matmul_tiled():
    m, n, k = 16, 32, 32
    a, b = iota("f32", m * k, -1.5, 0.37), iota("f32", k * n, 2.0, -0.013)
    c = []
    for row in range(m):
        for col in range(n):
            total = 0.0
            for i in range(k):
                total = fma(a[row * k + i], b[i * n + col], total)
            c.append(total)
    args = [IN("f32", a), IN("f32", b), OUT("f32", c), scalar("u32", n), scalar("u32", k)]
    return [launch("matmul_tiled", (n // 16, m // 16), (16, 16), args)]


def transpose():
    rows, cols = 16, 24
    x = iota("u32", rows * cols, 5, 3)
    expect = [x[r * cols + c] for c in range(cols) for r in range(rows)]
    return [launch("transpose", (cols // 8, rows // 8), (8, 8), [IN("u32", x), OUT("u32", expect)])]


def scan_shared():
    launches = []
    for n in (128, 33, 1):
        x = lcg("u32", n, 4, 0xFFF)
        launches.append(launch("scan_shared", 1, n, [IN("u32", x), OUT("u32", list(accumulate(x)))]))
    return launches


def scan_warp():
    x = lcg("s32", 96, 5, 0xFFFFFFFF)
    expect = [signed(sum(x[i - i % 32:i + 1])) for i in range(96)]
    return [launch("scan_warp", 1, 96, [IN("s32", x), OUT("s32", expect)])]


def warp_neighbours():
    x = lcg("u32", 64, 5, 0xFFFFFFFF)
    right = [x[i + 1] if i % 32 != 31 else 7 for i in range(64)]
    expect = [unsigned(r * 3 + v) for r, v in zip(right, x)]
    return [launch("warp_neighbours", 1, 64, [IN("u32", x), OUT("u32", expect), OUT("u32", expect)])]


def elections():
    # Nothing is left where lane and choice agree; one lane of each warp was chosen.
    return [launch("elections", 1, 64, [OUT("u32", [0] * 64), OUT("u32", [1000] * 64)])]


def elections_told():
    # Each copy comes once: the barrier knows of no more bytes. A thread adds its number to the first of its four words.
    x = lcg("u32", 256, 15, 0xFFFF)
    return [launch("elections_told", 1, 64, [IN("u32", x), OUT("u32", [v + (0 if i % 4 else i // 4) for i, v in enumerate(x)])])]


def elections_later():
    # The lane that is chosen is the first one, so its number adds nothing.
    x = lcg("u32", 256, 19, 0xFFFF)
    out = [v + (0 if i % 4 else i // 4) for i, v in enumerate(x)]
    return [launch("elections_later", 1, 64, [IN("u32", x), OUT("u32", out)])]


def long_ways():
    rows = lcg("s32", 64, 1507, 0xFFFFFF)
    pairs = [(rows[2 * i], rows[2 * i + 1]) for i in range(32)]
    out = []
    for x, y in pairs:
        v = x
        for c in range(max(y & 7, 1)):
            v = signed(3 * v + c)
        out.append(y if x < y else v)
    least = min(x for x, y in pairs if x < y)
    return [launch("long_ways", 1, 32, [IN("s32", rows), INOUT("s32", listed([99999999]), [least]), OUT("s32", out)])]


def histogram():
    n = 300
    x, start = lcg("u32", n, 6, 0xFF), iota("u32", 16, 100, 1)
    expect = [start[b] + sum(v & 15 == b for v in x) for b in range(16)]
    return [launch("histogram", 2, 64, [IN("u32", x), INOUT("u32", start, expect), scalar("u32", n)])]


def bitonic():
    x = lcg("u32", 64, 7, 0xFFFFFFFF)
    return [launch("bitonic", 1, 64, [INOUT("u32", x, sorted(x))])]


def stencil1d():
    n = 80
    x = iota("f32", n, 0.1, 0.7)
    expect = []
    for i in range(n):
        t = mul(0.25, x[max(i - 1, 0)])
        t = fma(0.5, x[i], t)
        expect.append(fma(0.25, x[min(i + 1, n - 1)], t))
    return [launch("stencil1d", 3, 32, [IN("f32", x), OUT("f32", expect), scalar("s32", n)])]


def stencil2d():
    width, height = 14, 10
    x = lcg("s32", width * height, 8, 0x3FF)
    at = lambda r, c: x[r * width + c]
    expect = []
    for r in range(height):
        for c in range(width):
            inner = 0 < r < height - 1 and 0 < c < width - 1
            around = at(r, c - 1) + at(r, c + 1) + at(r - 1, c) + at(r + 1, c) if inner else 0
            expect.append(4 * at(r, c) - around if inner else at(r, c))
    args = [IN("s32", x), OUT("s32", expect), scalar("u32", width), scalar("u32", height)]
    return [launch("stencil2d", (2, 3), (8, 4), args)]


def mandelbrot():
    x0, y0, dx, dy, limit = -2.0, -1.1, 0.19, 0.27, 24
    x0, y0, dx, dy = map(f32, (x0, y0, dx, dy))
    expect = []
    for py in range(8):
        for px in range(16):
            cx, cy = add(x0, mul(px, dx)), add(y0, mul(py, dy))
            x = y = 0.0
            n = 0
            while n < limit:
                xx, yy = mul(x, x), mul(y, y)
                if add(xx, yy) > 4:
                    break
                xy = mul(x, y)
                x, y = add(sub(xx, yy), cx), add(add(xy, xy), cy)
                n += 1
            expect.append(n)
    args = [OUT("u32", expect)] + [scalar("f32", v) for v in (x0, y0, dx, dy)] + [scalar("u32", limit)]
    return [launch("mandelbrot", (2, 2), (8, 4), args)]


def nested_loops():
    def value(t, n):
        acc = 0
        for i in range(n):
            for j in range(8):
                if (i ^ j ^ t) & 3 == 0:
                    continue
                if j > (t & 7):
                    break
                acc += i * j + t
                if acc > 400:
                    return acc
            acc += 1
        return acc

    return [launch("nested_loops", 1, 64, [OUT("u32", [value(t, n) for t in range(64)]), scalar("u32", n)]) for n in (7, 0)]


def irreducible():
    def value(t):
        acc, k, enter_middle = t, 0, t % 2 == 1
        while True:
            if not enter_middle:
                acc = acc * 3 + 1
            enter_middle = False
            acc ^= 7 * k
            k += 1
            if k >= (t & 7) + 2:
                return unsigned(acc)

    return [launch("irreducible", 1, 64, [OUT("u32", [value(t) for t in range(64)])])]


def early_return():
    n = 90
    x = lcg("u32", 96, 9, 0x1F)
    before = iota("u32", 96, 500, 1)

    def value(i):
        v = x[i]
        if i >= n:
            return before[i]
        if v % 2 == 0:
            for k in range(10):
                if v == 16:
                    return 1000 + k
                if v > 60:
                    return before[i]
                v += v // 2
        elif v < 8:
            return 7
        return v + 1

    return [launch("early_return", 2, 48, [IN("u32", x), INOUT("u32", before, [value(i) for i in range(96)]), scalar("u32", n)])]


def shuffle_modes():
    x = iota("u32", 32, 100, 3)
    out = []
    for t in range(32):
        sources = [
            (t - 3, t >= 3), (t + 5, t + 5 < 32), (t ^ 6, True), (7 * t % 32, True),
            (t - 1, t % 8 >= 1), (t + 2, t % 16 + 2 < 16), (t - t % 8 + 3, True),
        ]
        out += [x[s] if inside else x[t] for s, inside in sources]
        out.append(sum(inside << k for k, (_, inside) in enumerate(sources)))
    return [launch("shuffle_modes", 1, 32, [IN("u32", x), OUT("u32", out)])]


def warp_without_sync():
    x = listed([(7 * i) % 50 for i in range(32)] + [2 * i + 41 for i in range(32)])
    out = []
    for warp in (x[:32], x[32:]):
        odd = [v & 1 for v in warp]
        ballot = sum(bit << lane for lane, bit in enumerate(odd))
        said = any(odd) + 2 * all(odd) + 4 * (len(set(odd)) == 1)
        for lane in range(32):
            out += [sum(warp), warp[lane - 1] if lane % 8 else 77, ballot, said]
    return [launch("warp_without_sync", 1, 64, [IN("u32", x), OUT("u32", out)])]


def votes():
    first = [(7 * i) % 50 for i in range(32)]
    second = [2 * i + 41 for i in range(32)]
    x = listed(first + second)
    out = []
    for warp in (first, second):
        ballot = sum((v > 10) << i for i, v in enumerate(warp))
        uni = lambda test: int(len({test(v) for v in warp}) == 1)
        for lane in range(32):
            out += [ballot, int(any(v > 90 for v in warp)), int(all(v < 100 for v in warp)), uni(lambda v: v > 1000),
                    uni(lambda v: v % 2 == 1), 0xFFFFFFFF, ballot ^ 0xFFFFFFFF, sum(v > 10 for v in warp[:lane])]
    return [launch("votes", 1, 64, [IN("u32", x), OUT("u32", out)])]


def match_all():
    same = [(5, 9)] * 32
    low = [(5 + (lane == 6), 9) for lane in range(32)]
    high = [(5, 9 + (lane == 31)) for lane in range(32)]
    every = 0xFFFFFFFF
    out = []
    for warp in (same, low, high):
        alike = lambda of, mask=every: mask if len({of(warp[i]) for i in range(32) if mask >> i & 1}) == 1 else 0
        first, second, both = alike(lambda v: v[0]), alike(lambda v: v[1]), alike(lambda v: v)
        even = alike(lambda v: v, 0x55555555)
        for lane in range(32):
            told = (first != 0) + 2 * (both != 0) + 4 * (lane % 2 == 0 and even != 0)
            out += [first, second, both, both, told, even if lane % 2 == 0 else 7]
    x = listed([word for warp in (same, low, high) for value in warp for word in value])
    return [launch("match_all", 1, 96, [IN("u32", x), OUT("u32", out)])]


def spin_lock_warp():
    total = sum(t + 1 for t in range(32))
    zero = lambda: fill("u32", 1, 0)
    return [
        launch("spin_lock_warp", 1, 32, [INOUT("u32", zero(), [0]), INOUT("u32", fill("u32", 1, 1000), [1000 + total])]),
        launch("spin_lock_flag", 2, 64, [INOUT("u32", zero(), [0]), INOUT("u32", zero(), [2 * sum(range(1, 65))])]),
    ]


def spin_lock_blocks():
    blocks, threads = 4, 40
    return [launch("spin_lock_blocks", blocks, threads,
                   [INOUT("u32", fill("u32", 1, 0), [0]), INOUT("u32", fill("u32", 2, 0), [sum(range(blocks * threads)), blocks])])]


def dynamic_shared():
    launches = []
    for n in (64, 48):
        x = lcg("u32", n, 10, 0xFFFF)
        expect = [x[n - 1 - i] + 100 * (i % 4 + 1) for i in range(n)]
        launches.append(launch("dynamic_shared", 1, n, [IN("u32", x), OUT("u32", expect)], smem=4 * n))
    return launches


def predicated():
    x = lcg("u32", 65, 11, 0x1F)
    before = fill("u32", 128, 9999)
    out, masks = [], []
    for t in range(64):
        v = x[t]
        small, even = v < 10, v % 2 == 0
        r = v * 3 if small else v - 10
        if small and even:
            r += 1000
        if small != even:
            r += 2000
        if not (small or even):
            r = x[t + 1]
        out.append(9999 if r == 5 else r)
        both = small and even
        flags = [both, small or even, small != even, not (small or even), v > 4 and even, v < 20 or both, not v < 20 or both]
        masks.append(sum(f << k for k, f in enumerate(flags)))
    return [launch("predicated", 1, 64, [IN("u32", x), INOUT("u32", before, out + masks)])]


EDGES64 = [0, 1, 2, -1 % 2**64, 2**63, 2**63 - 1, 2**32, 2**32 - 1, 0x0123456789ABCDEF, 0xFEDCBA9876543210]


def int64():
    x = listed(EDGES64 + lcg("u64", 6, 12, 2**64 - 1))
    y = listed([3, 2**63, 2**63 - 1, 1, -1 % 2**64, 33, 2**32 + 1, 63, 0xF0E1D2C3B4A59687, 0xFEDCBA9876543210] + lcg("u64", 6, 13, 2**64 - 1))
    out = []
    for a, b in zip(x, y):
        sa, sb, n = signed(a, 64), signed(b, 64), b & 63
        flags = (sa < sb) | (a < b) << 1 | (a == b) << 2 | (sa >= sb) << 3
        out += [a + b, a - b, a * b, (a * b) >> 64, (sa * sb) >> 64, a << n, a >> n, sa >> n, min(sa, sb), max(sa, sb), min(a, b),
                max(a, b), abs(sa), -a, (a & b) ^ ~(a | b), flags]
    expect = [unsigned(v, 64) for v in out]
    return [launch("int64", 1, 16, [IN("u64", x), IN("u64", y), OUT("u64", expect, True)])]


def words_of(value, count):
    return [unsigned(value >> (32 * i)) for i in range(count)]


def carry_chain():
    big = [0, 1, 2**128 - 1, 2**127, 2**64 - 1, 0x0123456789ABCDEF_FEDCBA9876543210, 2**96, 0xFFFFFFFF_00000000_FFFFFFFF_00000001]
    other = [1, 2**128 - 1, 2**128 - 1, 2**127, 1, 0xFEDCBA9876543210_0123456789ABCDEF, 2**96 - 1, 0x00000001_FFFFFFFF_00000000_FFFFFFFF]
    out = []
    for a, b in zip(big, other):
        low_a, low_b = a % 2**64, b % 2**64
        out += words_of(a + b, 4) + words_of(a - b, 4) + words_of(low_a * low_b, 4)
        out += [(a + b) >> 128, unsigned(-(a < b))] + words_of(low_a + 1, 2)
    x, y = (listed([w for v in values for w in words_of(v, 4)]) for values in (big, other))
    return [launch("carry_chain", 1, 8, [IN("u32", x), IN("u32", y), OUT("u32", out, True)])]


EDGES32 = [0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x80000001, 12345, 0xFFFF0000, 2, 0xDEADBEEF, 0x00008000, 0x0000FFFF]


def compare_minmax():
    x = listed(EDGES32 + [5, 5, 0x80000000, 0x80000000])
    y = listed(EDGES32[::-1] + [5, 6, 0x80000000, 0])
    out = []
    for a, b in zip(x, y):
        sa, sb = signed(a), signed(b)
        tests = [a == b, a != b, sa < sb, sa <= sb, sa > sb, sa >= sb, a < b, a <= b, a > b, a >= b]
        out += [sum(v << k for k, v in enumerate(tests)), min(sa, sb), max(sa, sb), min(a, b), max(a, b), abs(sa), -sb,
                sa if sa < sb else sb - sa]
    return [launch("compare_minmax", 1, 16, [IN("u32", x), IN("u32", y), OUT("u32", [unsigned(v) for v in out], True)])]


def bits():
    x = listed(EDGES32 + list(lcg("u32", 4, 14, 0xFFFFFFFF)))
    y = listed([0, 31, 32, 33, 63, 5, 1, 0x80000010, 0xFFFFFFE0, 7, 20, 28] + list(lcg("u32", 4, 15, 0xFFFFFFFF)))
    out = []
    for a, b in zip(x, y):
        n, low, clamped, wide = b & 63, b & 31, min(b & 63, 32), b << 32 | a
        top = a.bit_length() - 1
        differs = (a if signed(a) >= 0 else ~a & 0xFFFFFFFF).bit_length() - 1
        insert = lambda pos, length: a & ~(((1 << length) - 1) << pos) | (b & ((1 << length) - 1)) << pos
        byte = lambda k: wide >> (8 * k) & 255
        sign = 255 if a & 128 else 0
        out += [
            a.bit_count(), 32 - a.bit_length(), int(f"{a:032b}"[::-1], 2), top, differs, 31 - top if a else -1,
            a >> 5 & 511, signed(a >> 5, 9), a >> n & 4095, insert(7, 10), insert(n, 6),
            a << n if n < 32 else 0, a >> n, signed(a) >> n, (wide << low) >> 32, wide >> low, (wide << clamped) >> 32, wide >> clamped,
            (a & b) | (~a & 0x55AA00FF), a ^ b ^ n, byte(3) << 24 | byte(0) << 16 | byte(5) << 8 | byte(6),
            byte(0) << 24 | sign << 16 | sign << 8 | byte(7), wide.bit_count(), 64 - a.bit_length(),
        ]
    return [launch("bits", 1, 16, [IN("u32", x), IN("u32", y), OUT("u32", [unsigned(v) for v in out], True)])]


def muls():
    x = listed(EDGES32 + list(lcg("u32", 4, 16, 0xFFFFFFFF)))
    y = listed(EDGES32[::-1] + list(lcg("u32", 4, 17, 0xFFFFFFFF)))
    c, out = 1000000007, []
    for a, b in zip(x, y):
        sa, sb = signed(a), signed(b)
        out += [unsigned(v) for v in (a * b, sa * sb >> 32, a * b >> 32)] + [sa * sb, a * b]
        out += [unsigned(v) for v in (a * b + c, (sa * sb >> 32) + c, (a * b >> 32) + c)] + [sa * sb + c, a * b + c]
        out += [unsigned(signed(a, 16) * signed(b, 16) + c), (a & 0xFFFF) * (b & 0xFFFF)]
    return [launch("muls", 1, 16, [IN("u32", x), IN("u32", y), OUT("u64", [unsigned(v, 64) for v in out], True)])]


def narrow():
    n = 40
    ub, sb = iota("u8", n, 3, 37), iota("s8", n, -128, 29)
    uh, sh = iota("u16", n, 60000, 311), iota("s16", n, -200, 13)
    words, bytes_, halves = [], [], []
    clamp = lambda v, low, high: max(low, min(high, v))
    for a, b, c, d in zip(ub, sb, uh, sh):
        words += [a + b, c - d, signed(d, 8), clamp(d + 100, 0, 255) | (clamp(d, -128, 127) & 255) << 8]
        bytes_.append(unsigned(3 * a + b, 8))
        halves.append(unsigned(c + 5 * d, 16))
    args = [IN("u8", ub), IN("s8", sb), IN("u16", uh), IN("s16", sh), OUT("s32", words), OUT("u8", bytes_), OUT("u16", halves)]
    return [launch("narrow", 1, n, args)]


def convert():
    floats = [0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.4, -0.6, 3e9, -3e9, 5e9, math.inf, -math.inf, 16777217.0, 2147483520.0]
    ints = [0, 1, -1, 16777217, -16777217, 2**31 - 1, -2**31, 33554433, 33554435, 100, -7, 123456789, 2**30 + 33, 77777777, -99999999, 2**24 + 3]
    doubles = [0.0, 0.1, -0.1, 1e10, -1e10, 2147483647.5, -2147483649.0, 1e300, 1e-320, 1e-42, 3.4028235677973366e38, 16777217.0,
               1 + 2**-24 + 2**-50, 9.3e18, -9.3e18, 2.5]
    floats = listed([f32(v) for v in floats])
    single = lambda q: bits32(round_float(Fraction(q), F32)) if q else 0
    double = lambda q: bits64(round_float(Fraction(q), F64)) if q else 0
    whole = lambda f, mode: f if math.isinf(f) else math.copysign(to_int(f, 200, True, mode), f)
    out = []
    for f, i, d in zip(floats, ints, doubles):
        far = i * 2**20 + i
        out += [unsigned(to_int(f, 32, True, mode)) for mode in ("rz", "rn", "rm", "rp")] + [to_int(f, 32, False, "rz")]
        out += [single(i), single(unsigned(i)), double(i), bits64(f), single(d)]
        out += [unsigned(to_int(d, 32, True, "rz")), unsigned(to_int(d, 64, True, "rz"), 64), single(far), double(far)]
        out += [bits32(whole(f, "rn")), bits32(whole(f, "rp"))]
    args = [IN("f32", floats), IN("s32", listed(ints)), IN("f64", listed(doubles)), OUT("u64", out, True)]
    return [launch("convert", 1, 16, args)]


def float32():
    tiny, inf, nan = 2.0**-149, math.inf, math.nan
    x = [1.0, 0.1, 1e8, -3.7, 0.0, -0.0, tiny, 3e-39, 3e38, inf, inf, nan, 1.0, 2.0**-126, 0.3, 16777216.0]
    y = [2.0, 0.2, -1.0, 0.7, -0.0, -0.0, tiny, -1e-39, 3e38, -inf, 0.0, 1.0, nan, 0.5, 0.7, 1.0]
    x, y = listed([f32(v) for v in x]), listed([f32(v) for v in y])
    c, out = f32(0.1), []
    for a, b in zip(x, y):
        total = add(a, b)
        high = add(a, c)
        sat = 0.0 if math.isnan(high) else greater(0.0, lesser(1.0, high))
        out += [total, sub(a, b), mul(a, b), fma(a, b, c), lesser(a, b), greater(a, b), -a, abs(a), add(a, b, F32, "rz"),
                mul(a, b, F32, "rp"), fma(a, b, c, F32, "rm"), sat, fma(-a, b, c), fma(a, b, -c), sub(abs(a), abs(b)), add(a, 1.5)]
    return [launch("float32", 1, 16, [IN("f32", x), IN("f32", y), OUT("f32", out)])]


def float_compare():
    values = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-45]
    pairs = [(a, b) for a in values for b in values]
    x, y = (listed([f32(p[i]) for p in pairs]) for i in (0, 1))
    masks, picks = [], []
    for a, b in zip(x, y):
        nan = math.isnan(a) or math.isnan(b)
        number = [a == b, a < b or a > b, a < b, a <= b, a > b, a >= b]
        tests = [v and not nan for v in number] + [v or nan for v in number] + [not nan, nan]
        masks.append(sum(v << k for k, v in enumerate(tests)))
        masks.append(7 if a < b or (math.isnan(b) and not math.isnan(a)) else 9)
        picks += [lesser(a, b), greater(a, b), a if a < b else b, 1.0 if b > 0 else -1.0]
    return [launch("float_compare", 1, 64, [IN("f32", x), IN("f32", y), OUT("u32", masks, True), OUT("f32", picks)])]


def float64():
    inf, nan = math.inf, math.nan
    x = listed([1.0, 0.1, 1e16, -3.7, 0.0, -0.0, 5e-324, 1e-310, 1e308, inf, inf, nan, 1.0, 0.3, 9007199254740992.0, 1e-200])
    y = listed([2.0, 0.2, -1.0, 0.7, -0.0, -0.0, 5e-324, -3e-310, 1e308, -inf, 0.0, 1.0, nan, 0.3, 1.0, 1e-200])
    out = []
    for a, b in zip(x, y):
        order = 8.0 if math.isnan(a) or math.isnan(b) else 1.0 if a < b else 2.0 if a == b else 4.0
        out += [add(a, b, F64), sub(a, b, F64), mul(a, b, F64), fma(a, b, 0.1, F64), lesser(a, b), greater(a, b), -abs(a), order]
    return [launch("float64", 1, 16, [IN("f64", x), IN("f64", y), OUT("f64", out)])]


def bank_constants():
    a, b, c, d, e = (struct.unpack(">d", bytes.fromhex(text))[0] for text in (
        "3FC7654321098765", "BFA7654321098765", "3FB1234567890ABC", "40B7654321098765", "4010000000000001"))
    x = listed([0.0, 1.5, 1.7, -2.25, 0.1, -0.3, 0.9, 1e9, 3e-5, 7.125, -11.0, 5e-324, 1e200, -1e-200, 2.0, 0.7])
    scaled = lambda value: fma(value, c, value, F64)
    out = []
    for i, v in enumerate(x):
        value = fma(fma(v, v, a, F64), v, b, F64)
        step = i % 4
        if step == 0:
            value = fma(value, v, a, F64)
        elif step == 1:
            value = mul(value, d, F64)
        elif step == 2 and value > e:
            value = sub(c, value, F64)
        out.append(scaled(value))
    second = [scaled(v) for v in x]
    return [launch("bank_constants", 1, 16, [IN("f64", x), OUT("f64", out)]),
            launch("alone", 1, 16, [IN("f64", x), OUT("f64", second)])]


def shader_constants():
    def run(words, blocks, threads, a, b):
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1
        first = (a * b + 12) * 4 & M32
        second = first ^ threads * blocks
        out = list(words)
        for i in range(blocks * threads):
            total = 0
            for _ in range(i % threads + 1):
                total = ((out[i] * first + total & M32 ^ second) + quotient) & M32
                out[i] = total if total != 77 else out[i]
        return out
    words = listed([7 * i * i + 3 for i in range(24)])
    return [launch("shader_constants", blocks, threads, [INOUT("u32", words, run(words, blocks, threads, a, b)), scalar("s32", a), scalar("s32", b)])
            for blocks, threads, a, b in ((3, 8, -7, 3), (2, 12, 1000003, 0), (1, 24, -2147483648, 77))]


def private_calls():
    def twice(a, b):
        product = a * b & M32
        total = product * (a ^ b) + a & M32
        return total + (total * product >> 32) & M32

    def mixed(a):
        second, third = a + 77 & M32, a ^ 0x55AA55AA
        return second + third + twice(twice(a, second), third) & M32

    def pointed(a):
        value = mixed(a) * (a + 1) + a * 3
        value = value * (a ^ 5) + (a << 7)
        return value * (9 - a) + a & M32

    def recursive(a, depth):
        third, fourth = a * 13 & M32, a ^ depth
        value = twice(third, fourth)
        return value if depth == 0 else recursive(value, depth - 1) * third + fourth & M32

    x = lcg("u32", 64, 91, M32)
    out = []
    for v in x:
        first, second = v + 1 & M32, v * 3 & M32
        value = mixed(v) * (v ^ 0x1234) + (v << 3)
        value = pointed(first) * value + 100 - v
        value = recursive(second, 3) * value + first * second
        out.append(value + first + second & M32)
    return [launch("private_calls", 1, 64, [IN("u32", x), OUT("u32", out)])]


def bitwise(v, start):
    both, either, odd = start
    for w in v:
        both, either, odd = both & w, either | w, odd ^ w
    return both, either, odd


def counted(start, steps, step):
    for _ in range(steps):
        start = step(start)
    return start


def atomics32():
    n = 64
    v = lcg("u32", n, 18, 0xFFFFFFFF)
    s = [signed(w) for w in v]
    start = listed([7, 100, -100 % 2**32, 0xF0000000, 5, 0xFFFFFFFF, 0, 0x12345678, 0, 3, bits32(0.5), 1000])
    both, either, odd = bitwise(v, start[5:8])
    everyone = [start[0] + sum(v), min(s + [100]), max(s + [-100]), min(v + [0xF0000000]), max(v + [5]), both, either, odd,
                counted(0, n, lambda k: 0 if k >= 40 else k + 1), counted(3, n, lambda k: 25 if k == 0 or k > 25 else k - 1),
                bits32(0.5 + sum(range(n))), 1000 + n]
    own = [w for t in range(n) for w in (11 * t, t if t % 3 else 5000 + t, 1000 + t, 0x40000000)]
    after = [w for t in range(n) for w in (v[t], v[t] if t % 3 else 5000 + t, unsigned(1000 + t + v[t]), unsigned(max(s[t], 0x40000000)))]
    args = [IN("u32", v), INOUT("u32", start, [unsigned(w) for w in everyone]), INOUT("u32", listed(own), after), OUT("u32", own)]
    return [launch("atomics32", 1, n, args)]


def atomics64():
    n = 32
    v = lcg("u64", n, 19, 2**64 - 1)
    s = [signed(w, 64) for w in v]
    start = listed([7, 5, 9, 2**64 - 1, 0, 0x0123456789ABCDEF, bits64(0.25)])
    both, either, odd = bitwise(v, start[3:6])
    everyone = [7 + sum(v), min(s + [5]), max(v), both, either, odd, bits64(0.25 + sum(range(n)))]
    own = [w for t in range(n) for w in (2**40 + t, t if t % 2 else 2**33 + t)]
    after = [w for t in range(n) for w in (v[t], v[t] if t % 2 else 2**33 + t)]
    args = [IN("u64", v), INOUT("u64", start, [unsigned(w, 64) for w in everyone], True), INOUT("u64", listed(own), after), OUT("u64", own),
            OUT("u64", [unsigned(sum(v), 64)])]
    return [launch("atomics64", 1, n, args)]


def reductions():
    n = 96
    v = lcg("u32", n, 20, 0xFFFFFFFF)
    s = [signed(w) for w in v]
    start = listed([1, 0, 0, 0xFFFFFFFF, 0, 0, 990, bits32(0.0), 0, 0])
    both, either, odd = bitwise(v, start[3:6])
    everyone = [1 + sum(v), min(s + [0]), max(v), both, either, odd, counted(990, n, lambda k: 0 if k >= 1000 else k + 1),
                bits32(float(sum(range(n)))), sum(v), max(s)]
    args = [IN("u32", v), INOUT("u32", start, [unsigned(w) for w in everyone]), INOUT("u64", fill("u64", 1, 0), [sum(v)])]
    return [launch("reductions", 1, n, args)]


def local_array():
    def value(t):
        a = [t + 3 * k for k in range(16)]
        a[t & 15] = 1000
        for k in range(16):
            a[5 * k & 15] ^= k
        return sum(w * (k + 1) for k, w in enumerate(a))

    return [launch("local_array", 1, 64, [OUT("u32", [value(t) for t in range(64)])])]


def const_array():
    primes, small = [2, 3, 5, 7, 11, 13, 17, 19], [1, 20, 255, 128]
    return [launch("const_array", 1, 32, [OUT("u32", [100 * primes[t % 8] + small[t % 4] + 10000 for t in range(32)])])]


def const_upper_half():
    numbers = [5, 7, 11, 13]
    return [launch("const_upper_half", 1, 32, [OUT("u32", [100 * numbers[t % 4] + 5 * 7 for t in range(32)])])]


def wide_variable():
    words = [0x123456789ABCDEF0, 0, unsigned(-2, 64), 0, 0, 0, 95, 0]
    return [launch("wide_variable", 1, 1, [OUT("u64", words)])]


def wide_registers():
    x = listed(EDGES64 + lcg("u64", 6, 31, 2**64 - 1))
    out = []
    for a in x:
        low = signed(a & 0xFFFFFFFF, 32)
        sign = unsigned(low >> 31, 64)
        single = bits32(f32(low))
        out += [unsigned(low, 64), sign, a, 0, bits64(float(low)), 0, a, single | (a & 0xFFFFFFFF) << 32, unsigned(low, 64), sign]
    return [launch("wide_registers", 1, len(x), [OUT("u64", out, True), IN("u64", x)])]


def vector_access():
    n = 32
    iw, il, keys = lcg("u32", 4 * n, 21, 0xFFFFFFFF), lcg("u64", 2 * n, 22, 2**64 - 1), lcg("u8", 4 * n, 23, 0xFF)
    fl = iota("f32", 2 * n, -3.3, 1.1)
    words, floats, longs = [], [], []
    for t in range(n):
        words += iw[4 * (t ^ 1):4 * (t ^ 1) + 4][::-1]
        f, g = fl[2 * t:2 * t + 2]
        floats += [g, f, add(f, g), sub(f, g)]
        p, q = il[2 * t:2 * t + 2]
        longs += [unsigned(p + q, 64), unsigned(p - q, 64)]
    bytes_ = [unsigned(w + k, 8) for w, k in zip(iw, keys)]
    args = [IN("u32", iw), IN("f32", fl), IN("u64", il), IN("u8", keys), OUT("u32", words), OUT("f32", floats), OUT("u64", longs), OUT("u8", bytes_)]
    return [launch("vector_access", 1, n, args)]


def generic_address():
    n = 64
    x = iota("u32", n, 5, 7)
    copy = [10 * x[t ^ 1] + t % 2 for t in range(n)]
    after = [x[t] + (1 - t % 2) for t in range(n)]
    return [launch("generic_address", 1, n, [INOUT("u32", x, after), OUT("u32", copy + [3 * t for t in range(n)])])]


def many_kernels():
    x, data = lcg("s64", 32, 24, 2**64 - 1), iota("u32", 96, 0, 11)
    factor = -1234567890123
    scaled = [signed(v * factor + i, 64) for i, v in enumerate(x)]
    turned = [v for b in range(3) for v in data[32 * b:32 * b + 32][::-1]]
    return [
        launch("fill_value", 2, 40, [OUT("u32", [4242] * 80), scalar("u32", 4242)]),
        launch("scale_add", 1, 32, [IN("s64", x), OUT("s64", scaled), scalar("s64", factor)]),
        launch("reverse_block", 3, 32, [INOUT("u32", data, turned)]),
    ]


def grid3d():
    (gx, gy, gz), (nx, ny, nz) = (2, 3, 2), (3, 2, 4)
    out = [tx | ty << 4 | tz << 8 | bx << 12 | by << 16 | bz << 20
           for bz in range(gz) for by in range(gy) for bx in range(gx) for tz in range(nz) for ty in range(ny) for tx in range(nx)]
    return [launch("grid3d", (gx, gy, gz), (nx, ny, nz), [OUT("u32", out, True), OUT("u32", [nx, ny, nz, gx, gy, gz])])]


def uniform_loads():
    def value(i, scale, offset, parts):
        v = i * scale + 3
        r = v + offset + (i + offset) // parts if i % 2 == 0 else ((v & M32) ^ offset) + i * 5 % parts - scale
        return (r + (parts == 7)) & M32

    return [launch("uniform_loads", 2, 64, [OUT("u32", [value(i, *given) for i in range(128)]), *(scalar("u32", n) for n in given)])
            for given in ((9, 100, 7), (0xFFFFFFF1, 0x1234, 13))]


def uniform_divergent():
    def value(b, t, mode):
        lane = t % 32
        r = 1000 if b % 2 == 0 else 2000
        if mode == 1:
            r += 10 if lane < 5 else 20
        if mode == 2:
            r += (30 if lane < 16 else 40) if lane % 2 else 50
        return r + (7 if t // 32 == 1 else 3) + 100000 * b

    return [launch("uniform_divergent", 2, 64, [OUT("u32", [value(b, t, mode) for b in range(2) for t in range(64)]), scalar("u32", mode)])
            for mode in (0, 1, 2)]


def switch_chain():
    n = 64
    code, a, b = listed([v - 2 for v in lcg("u32", n - 3, 25, 7)] + [6, 7, 100]), iota("u32", n, 1000, 37), lcg("u32", n, 26, 0xFFFF)

    def value(op, p, q):
        cases = {0: p + q, 1: p - q, 2: p * q, 3: (p & q) ^ 255, 4: p ^ 255, 5: p << (q & 7)}
        return cases.get(op, -1)

    expect = [unsigned(value(*v)) for v in zip(code, a, b)]
    return [launch("switch_chain", 1, n, [IN("s32", code), IN("u32", a), IN("u32", b), OUT("u32", expect)])]


def stack_memory():
    def thread(i):
        count = (i & 7) + 1
        return [i if i > 20 else 0, 24 if i > 20 else 0, (count - 1) * i, 0, 8, i, 0, 0]

    return [launch("stack_memory", 1, 40, [INOUT("u32", fill("u32", 320, 0), [v for i in range(40) for v in thread(i)])])]


def large_parameters():
    numbers = [7 * i for i in range(1250)]
    expect = [n for t in range(4) for n in (numbers[1], numbers[1249], 42, numbers[3 + 311 * t])]
    items = "array(type: u32, data: iota(1250, 0, 7))"
    return [launch("large", 1, 4, [OUT("u32", expect), STRUCT(items), scalar("u32", 42)])]


def stack_calls():
    expect = [n for t in range(5) for n in (17 + t, t + 6, t + 5, 17 + t, t + 1000, t + 7, 995, 16 * t + 48)]
    return [launch("stack_calls", 1, 5, [OUT("u32", expect)])]


def stack_calls_any():
    expect = []
    for t in range(5):
        called = unsigned(t + 70 + (1 if t % 2 == 0 else -1) * (t + 500))
        expect += [called, t + 70, t + 500, t + 70, 0]
    return [launch("stack_calls_any", 1, 5, [OUT("u32", expect)])]


def calls():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def ackermann(m, n):
        if m == 0:
            return n + 1
        return ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))

    structures = []
    for i in range(40):
        b = i * 1001 % 65536
        total = bits64(i * 0.25 + b % 256)
        structures += [unsigned(i - 16 + 1000), b | b % 256 << 16 | 7 << 24, total % 2**32, total >> 32, i, i + 3, i + 7, 0]

    def many(i):
        d = i + 2**32
        a = [i, d, i + 2, 103, 104, i, 106, 107, i + 2, i, 110, (i + 2) % 256, d, i + 2]
        return unsigned(sum(x * y for x, y in zip(a, [3, 1, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43])), 64)

    def reverse(x):
        return int(f"{x:o}"[::-1], 8)

    def apart(i):
        return {0: 5, 1: reverse(i * 12347)}.get(i & 3, reverse(reverse(i * 12347)))

    return [
        launch("fibs", 1, 12, [OUT("u32", [fib(i) for i in range(12)])]),
        launch("ackermanns", 1, 16, [OUT("u32", [ackermann(i & 1, i >> 1) | ackermann(2, i >> 1) << 16 for i in range(16)])]),
        launch("structures", 1, 40, [INOUT("u32", fill("u32", 320, 0), structures)]),
        launch("arguments", 1, 33, [OUT("u64", [many(i) for i in range(33)])]),
        launch("apart", 1, 64, [OUT("u32", [apart(i) + apart(i ^ 1) for i in range(64)])]),
    ]


def param_space():
    """Three addresses in the parameters and two that are not, by an instruction and by a function."""
    inside = [1, 1, 1, 0, 0]
    return [launch("param_space", 1, 1, [OUT("u32", inside + inside), scalar("u64", 7)])]


def param_address_narrow():
    words = [1000 + 37 * i for i in range(16)]
    return [launch("param_address_narrow", 1, 16, [STRUCT("array(type: u32, data: iota(16, 1000, 37))"), scalar("u32", 5), OUT("u32", [w + 5 for w in words])])]


def shifted_difference():
    out = []
    for limit in (70, 0, -3):
        words = []
        for t in range(8):
            left = limit - (t >> 1 << 5)
            words += [left & M32, left >> 32 & M32, int(left > 0), t]
        out.append(launch("shifted_difference", 1, 8, [OUT("u32", words), scalar("s32", limit)]))
    return out


def narrow_addresses():
    words = [100 + (t ^ 1) + 1000 * (38 + 3 * t) for t in range(32)] + [7 * t for t in range(32)] + [105 + (t ^ 3) for t in range(32)]
    return [launch("narrow_addresses", 1, 32, [OUT("u32", words)])]


def load_over_product():
    words = iota("u32", 256, 11, 1003)
    return [launch("load_over_product", 1, 32, [IN("u32", words), OUT("u32", [words[8 * i + 7] for i in range(32)])])]


def calls_indirect():
    def through(i):
        x = [i * 2, i * i, i * 2 + 1][min(i & 3, 2)]
        return unsigned(x * x) if x > 20 else x * 2

    def exchange(i):
        total = 0
        for by in range(5):
            x = (i + by & 63) * 17
            total = total + x if i < 40 else total ^ x
            total += 1000 if i == 5 else 0
        return total + 5 * 17

    def ends(i):
        called = i != 7
        gone = called and i % 2 == 1 and i > 20
        return [i if called and i % 2 == 1 else 0, 0 if gone else i + 100]

    def branches(i):
        x = 0
        for turn in range(6):
            way = i + turn & 3
            x = x + 1 if way == 0 else x ^ 0x55 if way == 2 else x * 3 + 1
        return {0: x + 10, 1: (x + 20) * 2, 2: x * 2}.get(x & 7, x)

    return [
        launch("pointers", 1, 50, [OUT("u32", [through(i) for i in range(50)])]),
        launch("exchange", 1, 64, [OUT("u32", [exchange(i) for i in range(64)])]),
        launch("ends", 1, 48, [INOUT("u32", fill("u32", 96, 0), [v for i in range(48) for v in ends(i)])]),
        launch("branches", 1, 64, [OUT("u32", [branches(i) for i in range(64)])]),
    ]


def collatz():
    def steps(n):
        count = 0
        while n != 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    return [launch("collatz", 2, 64, [OUT("u32", [steps(i + 1) for i in range(128)])])]


def counters_held():
    limits, table, step = lcg("u32", 64, 41, 0x1F), lcg("u32", 32, 43, 0xFF), 2

    def result(lane):
        i, total = 0, table[lane % 32]
        while i < limits[lane]:
            total += 9 * i * i + 5 ^ lane
            i += step
            if total % 32 == 13:
                break
            if total % 32 == 22:
                return 70000 * i
        return 256 * total + i

    args = [OUT("u32", [result(lane) for lane in range(64)]), IN("u32", limits), IN("u32", table), scalar("u32", step)]
    return [launch("counters_held", 1, 64, args)]


def subwarp_shuffle():
    launches = []
    for x in (lcg("u32", 32, 27, 0xFF), iota("u32", 32, 3, 3)):
        low, high = x[:16], x[16:]
        ballot = sum((v & 1) << i for i, v in enumerate(low))
        out = [sum(low) + x[31 - t] for t in range(16)] + [2 * high[(t + 1) % 16] + x[15 - t] for t in range(16)]
        said = [ballot] * 16 + [int(all(v < 100 for v in high))] * 16
        launches.append(launch("subwarp_shuffle", 1, 32, [IN("u32", x), OUT("u32", out), OUT("u32", said)]))
    return launches


def grid_stride():
    n, threads = 300, 128
    x = lcg("u32", n, 28, 0xFFFF)
    done = [len(range(i, n, threads)) for i in range(threads)]
    return [launch("grid_stride", 2, 64, [INOUT("u32", x, [3 * v + i for i, v in enumerate(x)]), OUT("u32", done), scalar("u32", n)])]


def many_predicates():
    def one(x):
        p, a = [x >> i & 1 for i in range(20)], 0
        for i in range(20):
            a = 3 * a + (i + 1 if p[i] else 7) & M32
        if p[0]:
            p[5] = a & 1
        for i in reversed(range(20)):
            if p[i]:
                a = a + i & M32
                if p[(i + 7) % 20]:
                    a = (a ^ 17 << i) & M32
        return a

    x = lcg("u32", 64, 31, M32)
    return [launch("many_predicates", 1, 64, [IN("u32", x), OUT("u32", [one(v) for v in x])])]


def deep_regions():
    def level(x, k, a):
        if k < 24 and x >> k & 1:
            a = level(x, k + 1, 5 * a + k + 1 & M32) ^ 257 * k
        return (a + k if k < 24 else a) & M32

    x = [(1 << i) - 1 for i in range(25)] + lcg("u32", 39, 32, M32)
    return [launch("deep_regions", 1, 64, [IN("u32", x), OUT("u32", [level(v, 0, 0) for v in x])])]


def many_values():
    def one(x):
        v = [x + 7 * i & M32 for i in range(60)]
        for _ in range(3):
            for i in range(60):
                v[i] = 3 * v[i] + v[(i + 1) % 60] & M32
        w = sum((v[i] << 32) + v[i + 1] for i in range(0, 60, 2))
        return (w & M32) + (w >> 32 & M32) & M32

    x = lcg("u32", 32, 33, M32)
    return [launch("many_values", 1, 32, [IN("u32", x), OUT("u32", [one(v) for v in x])])]


# The simulator does not execute what ptxas makes of single bits elsewhere.
BITS_TARGETS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90")


def moving(name, count, transposed):
    words = matrix_words(count)[:128]
    return launch(name, 1, 32, [IN("u32", listed(words)), OUT("u32", moved(words, count, transposed), True)])


def storing(name, count, transposed):
    """What stmatrix writes is what ldmatrix would read back; rows that no matrix has stay zero."""
    rows = matrix_words(count)[: 32 * count]
    return launch(name, 1, 32, [IN("u32", listed(moved(rows, count, transposed))), OUT("u32", rows + [0] * (128 - 32 * count), True)])


def matrix_products():
    return [
        product("mma_m16n8k8_f16_f16", (16, 8, 8), ("f16", "f16", "f16", "f16"), (2, 2, 1, 2), 1500),
        product("mma_m16n8k8_f32_f16", (16, 8, 8), ("f32", "f16", "f16", "f32"), (4, 2, 1, 4), 1501),
        product("mma_m8n8k16_s32_s8_sat", (8, 8, 16), ("s32", "s8", "s8", "s32"), (2, 1, 1, 2), 1502, saturate=True),
        product("mma_m8n8k16_s32_u8s8", (8, 8, 16), ("s32", "u8", "s8", "s32"), (2, 1, 1, 2), 1503),
        product("mma_m8n8k32_s32_s4", (8, 8, 32), ("s32", "s4", "s4", "s32"), (2, 1, 1, 2), 1504),
        product("mma_m8n8k32_s32_u4s4", (8, 8, 32), ("s32", "u4", "s4", "s32"), (2, 1, 1, 2), 1505),
        product("mma_m8n8k128_s32_b1_xor", (8, 8, 128), ("s32", "b1", "b1", "s32"), (2, 1, 1, 2), 1506, targets=BITS_TARGETS, bit="xor"),
    ]


def matrix_products_wide():
    return [
        product("mma_m16n8k16_f16_f16", (16, 8, 16), ("f16", "f16", "f16", "f16"), (2, 4, 2, 2), 2000),
        product("mma_m16n8k16_f32_f16", (16, 8, 16), ("f32", "f16", "f16", "f32"), (4, 4, 2, 4), 2001),
        product("mma_m16n8k8_f32_bf16", (16, 8, 8), ("f32", "bf16", "bf16", "f32"), (4, 2, 1, 4), 2002),
        product("mma_m16n8k16_f32_bf16", (16, 8, 16), ("f32", "bf16", "bf16", "f32"), (4, 4, 2, 4), 2003),
        product("mma_m16n8k4_f32_tf32", (16, 8, 4), ("f32", "tf32", "tf32", "f32"), (4, 2, 1, 4), 2004),
        product("mma_m16n8k8_f32_tf32", (16, 8, 8), ("f32", "tf32", "tf32", "f32"), (4, 4, 2, 4), 2005),
        product("mma_m8n8k4_f64_f64", (8, 8, 4), ("f64", "f64", "f64", "f64"), (2, 1, 1, 2), 2006),
        product("mma_m16n8k16_s32_u8s8_sat", (16, 8, 16), ("s32", "u8", "s8", "s32"), (4, 2, 1, 4), 2007, saturate=True),
        product("mma_m16n8k32_s32_s8u8", (16, 8, 32), ("s32", "s8", "u8", "s32"), (4, 4, 2, 4), 2008),
        product("mma_m16n8k32_s32_s4u4", (16, 8, 32), ("s32", "s4", "u4", "s32"), (4, 2, 1, 4), 2009),
        product("mma_m16n8k64_s32_s4", (16, 8, 64), ("s32", "s4", "s4", "s32"), (4, 4, 2, 4), 2010),
        product("mma_m16n8k128_s32_b1_and", (16, 8, 128), ("s32", "b1", "b1", "s32"), (4, 2, 1, 4), 2011, targets=BITS_TARGETS, bit="and"),
        product("mma_m16n8k256_s32_b1_xor", (16, 8, 256), ("s32", "b1", "b1", "s32"), (4, 4, 2, 4), 2012, targets=BITS_TARGETS, bit="xor"),
        product("sp_m16n8k16_f32_f16", (16, 8, 16), ("f32", "f16", "f16", "f32"), (4, 2, 2, 4), 2013, is_sparse=True),
        product("sp_m16n8k32_f16_f16", (16, 8, 32), ("f16", "f16", "f16", "f16"), (2, 4, 4, 2), 2014, is_sparse=True),
        product("sp_m16n8k32_f32_bf16", (16, 8, 32), ("f32", "bf16", "bf16", "f32"), (4, 4, 4, 4), 2015, is_sparse=True),
        product("sp_m16n8k8_f32_tf32", (16, 8, 8), ("f32", "tf32", "tf32", "f32"), (4, 2, 2, 4), 2016, is_sparse=True),
        product("sp_m16n8k16_f32_tf32", (16, 8, 16), ("f32", "tf32", "tf32", "f32"), (4, 4, 4, 4), 2017, is_sparse=True),
        product("sp_m16n8k32_s32_s8", (16, 8, 32), ("s32", "s8", "s8", "s32"), (4, 2, 2, 4), 2018, is_sparse=True),
        product("sp_m16n8k64_s32_u8s8_sat", (16, 8, 64), ("s32", "u8", "s8", "s32"), (4, 4, 4, 4), 2019, saturate=True, is_sparse=True),
    ]


def matrix_products_double():
    return [
        product("mma_m16n8k4_f64_f64", (16, 8, 4), ("f64", "f64", "f64", "f64"), (4, 2, 1, 4), 2200),
        product("mma_m16n8k8_f64_f64", (16, 8, 8), ("f64", "f64", "f64", "f64"), (4, 4, 2, 4), 2201),
        product("mma_m16n8k16_f64_f64", (16, 8, 16), ("f64", "f64", "f64", "f64"), (4, 8, 4, 4), 2202),
    ]


def matrix_products_narrow():
    return [
        product("mma_m16n8k32_f32_e4m3", (16, 8, 32), ("f32", "e4m3", "e4m3", "f32"), (4, 4, 2, 4), 2200),
        product("mma_m16n8k32_f16_e4m3e5m2", (16, 8, 32), ("f16", "e4m3", "e5m2", "f16"), (2, 4, 2, 2), 2201),
        product("mma_m16n8k16_f32_e5m2e4m3", (16, 8, 16), ("f32", "e5m2", "e4m3", "f32"), (4, 2, 1, 4), 2202),
        product("mma_m16n8k16_f16_e5m2", (16, 8, 16), ("f16", "e5m2", "e5m2", "f16"), (2, 2, 1, 2), 2203),
    ]


def matrix_products_sparse():
    return [
        product("sp_m16n8k64_s32_s4", (16, 8, 64), ("s32", "s4", "s4", "s32"), (4, 2, 2, 4), 2300, is_sparse=True),
        product("sp_m16n8k64_s32_u4s4_sat", (16, 8, 64), ("s32", "u4", "s4", "s32"), (4, 2, 2, 4), 2301, saturate=True, is_sparse=True),
        product("sp_m16n8k64_s32_s4u4_sat", (16, 8, 64), ("s32", "s4", "u4", "s32"), (4, 2, 2, 4), 2302, saturate=True, is_sparse=True),
        product("sp_m16n8k64_s32_u4", (16, 8, 64), ("s32", "u4", "u4", "s32"), (4, 2, 2, 4), 2303, is_sparse=True),
        product("sp_m16n8k128_s32_s4_sat", (16, 8, 128), ("s32", "s4", "s4", "s32"), (4, 4, 4, 4), 2304, saturate=True, is_sparse=True),
        product("sp_m16n8k128_s32_u4s4", (16, 8, 128), ("s32", "u4", "s4", "s32"), (4, 4, 4, 4), 2305, is_sparse=True),
        product("sp_m16n8k128_s32_s4u4", (16, 8, 128), ("s32", "s4", "u4", "s32"), (4, 4, 4, 4), 2306, is_sparse=True),
        product("sp_m16n8k128_s32_u4_sat", (16, 8, 128), ("s32", "u4", "u4", "s32"), (4, 4, 4, 4), 2307, saturate=True, is_sparse=True),
        product("any_m16n8k64_s32_s4u4", (16, 8, 64), ("s32", "s4", "u4", "s32"), (4, 2, 2, 4), 2308, is_sparse="any"),
        product("any_m16n8k64_s32_u4_sat", (16, 8, 64), ("s32", "u4", "u4", "s32"), (4, 2, 2, 4), 2309, saturate=True, is_sparse="any"),
        product("any_m16n8k128_s32_s4_sat", (16, 8, 128), ("s32", "s4", "s4", "s32"), (4, 4, 4, 4), 2310, saturate=True, is_sparse="any"),
        product("any_m16n8k128_s32_u4s4", (16, 8, 128), ("s32", "u4", "s4", "s32"), (4, 4, 4, 4), 2311, is_sparse="any"),
        product("any_m16n8k32_s32_s8u8", (16, 8, 32), ("s32", "s8", "u8", "s32"), (4, 2, 2, 4), 2312, is_sparse="any"),
        product("any_m16n8k64_s32_u8s8_sat", (16, 8, 64), ("s32", "u8", "s8", "s32"), (4, 4, 4, 4), 2313, saturate=True, is_sparse="any"),
    ]


def matrix_products_sparse_narrow():
    return [
        product("sp_m16n8k64_f32_e4m3", (16, 8, 64), ("f32", "e4m3", "e4m3", "f32"), (4, 4, 4, 4), 2350, is_sparse=True),
        product("sp_m16n8k64_f32_e4m3e5m2", (16, 8, 64), ("f32", "e4m3", "e5m2", "f32"), (4, 4, 4, 4), 2351, is_sparse=True),
        product("sp_m16n8k64_f32_e5m2e4m3", (16, 8, 64), ("f32", "e5m2", "e4m3", "f32"), (4, 4, 4, 4), 2352, is_sparse=True),
        product("sp_m16n8k64_f32_e5m2", (16, 8, 64), ("f32", "e5m2", "e5m2", "f32"), (4, 4, 4, 4), 2353, is_sparse=True),
        product("any_m16n8k64_f32_e4m3e5m2", (16, 8, 64), ("f32", "e4m3", "e5m2", "f32"), (4, 4, 4, 4), 2354, is_sparse="any"),
        product("any_m16n8k64_f32_e5m2", (16, 8, 64), ("f32", "e5m2", "e5m2", "f32"), (4, 4, 4, 4), 2355, is_sparse="any"),
    ]


def matrix_products_kind():
    return [
        product("kind_m16n8k32_f32_e4m3e5m2", (16, 8, 32), ("f32", "e4m3", "e5m2", "f32"), (4, 4, 2, 4), 2400),
        product("kind_m16n8k32_f16_e5m2e4m3", (16, 8, 32), ("f16", "e5m2", "e4m3", "f16"), (2, 4, 2, 2), 2401),
        product("sp_m16n8k64_f32_e4m3e5m2", (16, 8, 64), ("f32", "e4m3", "e5m2", "f32"), (4, 4, 4, 4), 2402, is_sparse=True),
    ]


def matrix_products_tiny():
    return [
        product("kind_m16n8k32_f32_e2m1e3m2", (16, 8, 32), ("f32", "e2m1", "e3m2", "f32"), (4, 4, 2, 4), 2420),
        product("kind_m16n8k32_f16_e4m3e2m3", (16, 8, 32), ("f16", "e4m3", "e2m3", "f16"), (2, 4, 2, 2), 2421),
        product("kind_m16n8k32_f32_e2m3e2m1", (16, 8, 32), ("f32", "e2m3", "e2m1", "f32"), (4, 4, 2, 4), 2422),
        product("kind_m16n8k32_f16_e3m2e5m2", (16, 8, 32), ("f16", "e3m2", "e5m2", "f16"), (2, 4, 2, 2), 2423),
        product("kind_m16n8k32_f32_e5m2e2m1", (16, 8, 32), ("f32", "e5m2", "e2m1", "f32"), (4, 4, 2, 4), 2424),
        product("kind_m16n8k32_f32_e4m3e5m2", (16, 8, 32), ("f32", "e4m3", "e5m2", "f32"), (4, 4, 2, 4), 2425),
        product("kind_m16n8k32_f16_e5m2e4m3", (16, 8, 32), ("f16", "e5m2", "e4m3", "f16"), (2, 4, 2, 2), 2426),
        product("sp_m16n8k64_f32_e2m1e3m2", (16, 8, 64), ("f32", "e2m1", "e3m2", "f32"), (4, 4, 4, 4), 2427, is_sparse=True),
        product("sp_m16n8k64_f16_e4m3e2m3", (16, 8, 64), ("f16", "e4m3", "e2m3", "f16"), (2, 4, 4, 2), 2428, is_sparse=True),
        product("sp_m16n8k64_f32_e2m3e2m1", (16, 8, 64), ("f32", "e2m3", "e2m1", "f32"), (4, 4, 4, 4), 2429, is_sparse=True),
        product("sp_m16n8k64_f16_e3m2e5m2", (16, 8, 64), ("f16", "e3m2", "e5m2", "f16"), (2, 4, 4, 2), 2430, is_sparse=True),
        product("sp_m16n8k64_f32_e5m2e2m1", (16, 8, 64), ("f32", "e5m2", "e2m1", "f32"), (4, 4, 4, 4), 2431, is_sparse=True),
        product("sp_m16n8k64_f32_e4m3e5m2", (16, 8, 64), ("f32", "e4m3", "e5m2", "f32"), (4, 4, 4, 4), 2432, is_sparse=True),
        product("sp_m16n8k64_f16_e5m2e4m3", (16, 8, 64), ("f16", "e5m2", "e4m3", "f16"), (2, 4, 4, 2), 2433, is_sparse=True),
    ]


def matrix_moves():
    return [
        moving("ldmatrix_x1", 1, False),
        moving("ldmatrix_x1_trans", 1, True),
        moving("ldmatrix_x2", 2, False),
        moving("ldmatrix_x2_trans", 2, True),
        moving("ldmatrix_x4", 4, False),
        moving("ldmatrix_x4_trans", 4, True),
    ]


def matrix_stores():
    return [
        storing("stmatrix_x1", 1, False),
        storing("stmatrix_x1_trans", 1, True),
        storing("stmatrix_x2", 2, False),
        storing("stmatrix_x2_trans", 2, True),
        storing("stmatrix_x4", 4, False),
        storing("stmatrix_x4_trans", 4, True),
    ]


def matrix_tiles():
    return [
        tile("wmma_m16n16k16_f16_f16_crr", (16, 16, 16), ("f16", "f16", "f16", "f16"), ("col", "row", "row", "row"), (32, 32, 32, 32), 700),
        tile("wmma_m16n16k16_f16_f16_rcc", (16, 16, 16), ("f16", "f16", "f16", "f16"), ("row", "col", "col", "col"), (32, 32, 32, 32), 700),
        tile("wmma_m16n16k16_f16_f32_rrc", (16, 16, 16), ("f32", "f16", "f16", "f32"), ("row", "row", "col", "col"), (32, 32, 32, 32), 701),
        tile("wmma_m16n16k16_f16_f32_ccr", (16, 16, 16), ("f32", "f16", "f16", "f32"), ("col", "col", "row", "row"), (32, 32, 32, 32), 701),
        tile("wmma_m16n16k16_s8_s32_crr", (16, 16, 16), ("s32", "s8", "s8", "s32"), ("col", "row", "row", "row"), (32, 32, 32, 32), 702),
        tile("wmma_m16n16k16_s8_s32_rcc", (16, 16, 16), ("s32", "s8", "s8", "s32"), ("row", "col", "col", "col"), (32, 32, 32, 32), 702),
        tile("wmma_m8n32k16_f16_f16_rrc", (8, 32, 16), ("f16", "f16", "f16", "f16"), ("row", "row", "col", "col"), (32, 32, 32, 32), 707),
        tile("wmma_m8n32k16_f16_f16_ccr", (8, 32, 16), ("f16", "f16", "f16", "f16"), ("col", "col", "row", "row"), (32, 32, 32, 32), 707),
        tile("wmma_m8n32k16_f16_f32_crr", (8, 32, 16), ("f32", "f16", "f16", "f32"), ("col", "row", "row", "row"), (32, 32, 32, 32), 708),
        tile("wmma_m8n32k16_f16_f32_rcc", (8, 32, 16), ("f32", "f16", "f16", "f32"), ("row", "col", "col", "col"), (32, 32, 32, 32), 708),
        tile("wmma_m8n32k16_s8_s32_rrc", (8, 32, 16), ("s32", "s8", "s8", "s32"), ("row", "row", "col", "col"), (32, 32, 32, 32), 709),
        tile("wmma_m8n32k16_s8_s32_ccr", (8, 32, 16), ("s32", "s8", "s8", "s32"), ("col", "col", "row", "row"), (32, 32, 32, 32), 709),
        tile("wmma_m32n8k16_f16_f16_crr", (32, 8, 16), ("f16", "f16", "f16", "f16"), ("col", "row", "row", "row"), (32, 32, 32, 32), 714),
        tile("wmma_m32n8k16_f16_f16_rcc", (32, 8, 16), ("f16", "f16", "f16", "f16"), ("row", "col", "col", "col"), (32, 32, 32, 32), 714),
        tile("wmma_m32n8k16_f16_f32_rrc", (32, 8, 16), ("f32", "f16", "f16", "f32"), ("row", "row", "col", "col"), (32, 32, 32, 32), 715),
        tile("wmma_m32n8k16_f16_f32_ccr", (32, 8, 16), ("f32", "f16", "f16", "f32"), ("col", "col", "row", "row"), (32, 32, 32, 32), 715),
        tile("wmma_m32n8k16_s8_s32_crr", (32, 8, 16), ("s32", "s8", "s8", "s32"), ("col", "row", "row", "row"), (32, 32, 32, 32), 716),
        tile("wmma_m32n8k16_s8_s32_rcc", (32, 8, 16), ("s32", "s8", "s8", "s32"), ("row", "col", "col", "col"), (32, 32, 32, 32), 716),
        tile("wmma_m8n8k32_s4_s32_rcr", (8, 8, 32), ("s32", "s4", "s4", "s32"), ("row", "col", "row", "row"), (64, 64, 64, 64), 723),
        tile("wmma_m8n8k128_b1_s32_xor_rcr", (8, 8, 128), ("s32", "b1", "b1", "s32"), ("row", "col", "row", "row"), (128, 128, 128, 128), 725, bit="xor", targets=BITS_TARGETS),
    ]


def matrix_tiles_wide():
    return [
        tile("wmma_m16n16k16_bf16_f32_crr", (16, 16, 16), ("f32", "bf16", "bf16", "f32"), ("col", "row", "row", "row"), (32, 32, 32, 32), 706),
        tile("wmma_m16n16k16_bf16_f32_rcc", (16, 16, 16), ("f32", "bf16", "bf16", "f32"), ("row", "col", "col", "col"), (32, 32, 32, 32), 706),
        tile("wmma_m8n32k16_bf16_f32_rrc", (8, 32, 16), ("f32", "bf16", "bf16", "f32"), ("row", "row", "col", "col"), (32, 32, 32, 32), 713),
        tile("wmma_m8n32k16_bf16_f32_ccr", (8, 32, 16), ("f32", "bf16", "bf16", "f32"), ("col", "col", "row", "row"), (32, 32, 32, 32), 713),
        tile("wmma_m32n8k16_bf16_f32_crr", (32, 8, 16), ("f32", "bf16", "bf16", "f32"), ("col", "row", "row", "row"), (32, 32, 32, 32), 720),
        tile("wmma_m32n8k16_bf16_f32_rcc", (32, 8, 16), ("f32", "bf16", "bf16", "f32"), ("row", "col", "col", "col"), (32, 32, 32, 32), 720),
        tile("wmma_m16n16k8_tf32_f32_rrc", (16, 16, 8), ("f32", "tf32", "tf32", "f32"), ("row", "row", "col", "col"), (32, 32, 32, 32), 721),
        tile("wmma_m16n16k8_tf32_f32_ccr", (16, 16, 8), ("f32", "tf32", "tf32", "f32"), ("col", "col", "row", "row"), (32, 32, 32, 32), 721),
        tile("wmma_m8n8k4_f64_f64_crr", (8, 8, 4), ("f64", "f64", "f64", "f64"), ("col", "row", "row", "row"), (32, 32, 32, 32), 722),
        tile("wmma_m8n8k4_f64_f64_rcc", (8, 8, 4), ("f64", "f64", "f64", "f64"), ("row", "col", "col", "col"), (32, 32, 32, 32), 722),
        tile("wmma_m8n8k128_b1_s32_and_rcr", (8, 8, 128), ("s32", "b1", "b1", "s32"), ("row", "col", "row", "row"), (128, 128, 128, 128), 726, bit="and", targets=BITS_TARGETS),
    ]


def within(value, low, high):
    return min(max(value, low), high)


def sized(value, kind):
    """Within the numbers of a kind such as u8 or s16."""
    bits = int(kind[1:])
    return within(value, 0, 2**bits - 1) if kind[0] == "u" else within(value, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def away(total):
    """Half of an integer, rounded away from zero."""
    return (total + 1) // 2 if total >= 0 else -((-total + 1) // 2)


def video():
    numbers = EDGES32 + [0xFFFF8001, 0x7FFF0020, 0x80FF7F01, 0x0102FE80]
    more = list(lcg("u32", 24, 81, 0xFFFFFFFF))
    rows = [(a, numbers[(i * 7 + 3) % 16], numbers[(i * 5 + 11) % 16]) for i, a in enumerate(numbers)] + [more[i:i + 3] for i in range(0, 24, 3)]
    out = []
    for a, b, c in rows:
        sa, sb, sc, both = signed(a), signed(b), signed(c), b << 32 | a
        byte = lambda k: both >> (8 * k) & 255
        half = lambda k: both >> (16 * k) & 0xFFFF
        into = lambda value, bits, at: c & ~(((1 << bits) - 1) << at) | (value & ((1 << bits) - 1)) << at
        s8, s16, s34 = (lambda v: signed(v, 8)), (lambda v: signed(v, 16)), (lambda v: signed(v & (2**34 - 1), 34))
        turned = signed(~c & M32) + 1
        lanes = into(sized(away(byte(1) + s8(byte(6))), "u8"), 8, 0)
        lanes = lanes & ~0xFF00 | sized(away(byte(5) + s8(byte(4))), "u8") << 8
        lanes = lanes & ~0xFF000000 | sized(away(byte(7) + s8(byte(0))), "u8") << 24
        out += [unsigned(v) for v in [
            into(s16(half(0)) + s8(byte(7)), 16, 16), into(sa >= byte(5), 16, 16),
            into(sized(a - s8(byte(4)), "u16"), 16, 16), into(sized(half(1) - half(3), "u16"), 16, 0),
            into(sized(sa + sb, "s8"), 8, 16), into(sized(abs(a - sb), "s8"), 8, 24),
            sized(a + sb, "u32"), sized(a - b, "s32"),
            min(unsigned(sa + sb), c), max(signed(unsigned(a - b)), sc),
            sized(s34(sa << min(byte(4), 32)), "s32"), into(sized(s34(half(0) << (b & 31)), "u8"), 8, 8),
            into(sized(sa >> min(byte(4), 32), "s16"), 16, 0), min(unsigned(sa >> (b & 31)), c),
            sized(a * b + c, "u32"), (a * b + c + 1) >> 15, sized((a * b + c + 1) >> 7, "u32"),
            sized(sc - a * b, "s32"), sized((a * sb + turned) >> 7, "s32"), (sc - s8(byte(3)) * half(3)) >> 15,
            lanes, c + abs(s16(half(1)) - half(2)) + abs(s16(half(3)) - half(0)),
            c + sum(byte(k) < s8(byte(4 + k)) for k in range(4)), into(sized(half(1) - half(2), "u16"), 16, 16),
        ]]
    x = listed([v for row in rows for v in row])
    return [launch("video", 1, len(rows), [IN("u32", x), OUT("u32", out, True)])]


def integers_wide():
    edges = [0, 1, 2**64 - 1, 2**63, 0x7FF0000000000000, 0xFFF0000000000001, 0x000FFFFFFFFFFFFF, 0x8010000000000000, 0x7FEFFFFFFFFFFFFF, 0xFF7FFFFF]
    more = list(lcg("u64", 18, 82, 2**64 - 1))
    rows = [(p, edges[(3 * i + 2) % 10], edges[(7 * i + 5) % 10]) for i, p in enumerate(edges)] + [more[i:i + 3] for i in range(0, 18, 3)]
    rows += [(0x7FFFFF, 0x7FFFFF, 0x7FFFFFFF), (0x800000, 0x7FFFFF, 0x80000000)]
    out = []
    for p, q, s in rows:
        low, carry = unsigned(p * q + s, 64), ((p * q) % 2**64 + s) >> 64
        high = ((signed(p, 64) * signed(q, 64)) >> 64) % 2**64 + s
        exponent, fraction = p >> 52 & 2047, p & (2**52 - 1)
        tests = [exponent < 2047, exponent == 2047 and fraction == 0, exponent < 2047 or fraction == 0, exponent == 2047 and fraction != 0,
                 0 < exponent < 2047 or p % 2**63 == 0, exponent == 0 and fraction != 0]
        short = (signed(p & 0xFFFFFF, 24) * signed(q & 0xFFFFFF, 24)) >> 16
        out += [low, unsigned((p * q >> 64) + s + carry, 64), unsigned(high, 64), unsigned(p * q + 3 + (high >> 64), 64),
                unsigned(s + abs(p - q), 64), unsigned(s + abs(signed(p, 64) - signed(q, 64)), 64),
                unsigned(sized(short + signed(s & M32), "s32")), sum(t << k for k, t in enumerate(tests))]
    x = listed([v for row in rows for v in row])
    return [launch("integers_wide", 1, len(rows), [IN("u64", x), OUT("u64", out, True)])]


def vector_registers():
    x = lcg("u32", 32, 83, 0xFFFF)
    out = []
    for t in range(8):
        a, b, c, d = x[4 * t:4 * t + 4]
        out += [d, a, b, c, b, a, c + d, 7, t, 0, 0, 0]
    return [launch("vector_registers", 1, 8, [IN("u32", x), OUT("u32", out)])]


CLUSTER_TARGETS = ["sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"]


def cluster_of_one():
    x = lcg("u32", 96, 84, 0xFFFFF)
    out = []
    for i in range(96):
        block = x[i // 32 * 32:i // 32 * 32 + 32]
        packed = [0xABC << 8 | (-5 & 15) << 4 | 7, 0xABC << 8 | 0 << 4 | 9, 0xABC << 4 | 1 << 2 | (-2 & 3), 0xABC << 4 | 3 << 2 | 0]
        out += [x[i ^ 1], x[i ^ 1], 0, 0, sum(block), i // 32, 3, 0, 1, 0, 1, 8 + 64] + packed
    return [launch("cluster_of_one", 3, 32, [IN("u32", x), OUT("u32", out)], targets=CLUSTER_TARGETS)]


def mbarriers():
    x, y = lcg("u32", 256, 601, 0xFFFF), lcg("u32", 128, 602, 0xFFFFFF)
    rows = [sum(3 ** (7 - i) * x[32 * i + 31 - t] for i in range(8)) & M32 for t in range(32)]
    pairs = [y[4 * (t ^ 1)] + y[4 * (t ^ 2) + 1] for t in range(32)]
    targets = ["sm_80", "sm_86", "sm_89", *CLUSTER_TARGETS]
    return [
        launch("pipeline", 1, 64, [IN("u32", x), OUT("u32", rows)], targets=targets),
        launch("states", 1, 32, [INOUT("u32", fill("u32", 5, 0), [33 + 1, 2, 2, 2, 3])], targets=targets),
        launch("copies", 1, 32, [IN("u32", y), OUT("u32", pairs)], targets=targets),
    ]


def assertions():
    x = lcg("u32", 128, 604, 0xFFFFFF)
    out = [(sum((i + 1) * x[32 * i + t] for i in range(4)) + t % 2 * 7 * x[96 + t]) & M32 for t in range(32)]
    return [launch("assertions", 1, 32, [IN("u32", x), scalar("u32", 0x1000000), OUT("u32", out)])]


def printed():
    """Odd lanes print a text without arguments; sixty words live across the call."""
    x, out = lcg("u32", 96, 605, 0xFF), []
    for t in range(32):
        h = 0
        for i in range(60):
            h = (h * 31 + x[t + i]) & M32
        out.append((h + (x[t + 5] > 100)) & M32)
    return [launch("printed", 1, 32, [IN("u32", x), OUT("u32", out)])]


def printed_apart():
    """Odd lanes print a text, then those from 24 on; the others go on with what all have in common."""
    n, m = 1234567, 891
    base = ((n * m + 77) & M32) ^ n
    out = [base] * 32 + [0] * 160
    for t in range(32):
        if t % 2 == 0:
            low = (t << 2) ^ base
            out[32 + t], out[64 + t] = (base + t) & M32, low
            if t & 2:
                out[96 + t], out[128 + t] = (t + n) * base & M32, (low + n) * base & M32
        if t < 24:
            out[160 + t] = (t * (n + m) + (n + m) * m) & M32
    return [launch("printed_apart", 1, 32, [INOUT("u32", [0] * 192, out), scalar("u32", n), scalar("u32", m)])]


def unusual_quotients():
    """Quotients and remainders, and quotients and roots of numbers that are not normal."""
    x = lcg("u64", 32, 611, 2**64 - 1)
    cut = lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    rest = lambda a, b: a - cut(a, b) * b
    wide = lambda v: signed(v % 2**64, 64)
    # Roots of numbers below one, to more digits than a float has.
    root = lambda q: Fraction(math.isqrt(int(q * 2**2400)), 2**1200)
    sums, floats = [], []
    for t, v in enumerate(x):
        w, acc, odd = v >> 7, 1, t % 2
        for i in range(1, 6):
            acc = acc * 31 + v * i % 2**64 // w
            acc += rest(wide(-v), wide(w)) if odd else -v
            acc += cut(wide(v), -3) if odd else -(v % i)
            w = (w >> 9) + 1
        sums.append((acc + (v // w ^ rest(wide(v), wide(w)) % 2**64)) % 2**64)
        word = bits32(2.0 ** (t - 40)) ^ bits32(round_float(root(Fraction(2) ** (-143 if odd else -127)), F32))
        small = struct.unpack("<d", struct.pack("<Q", 1 << t + 30))[0]
        m = round_float(Fraction(small) / 3, F64)
        n = round_float(1 / Fraction(m), F64, "rz")
        r = round_float(root(Fraction(m)), F64, "rp")
        floats.append(((bits64(m) ^ bits64(n)) + bits64(r) + word + t) % 2**64)
    return [launch("unusual_quotients", 1, 32, [IN("u64", x), OUT("u64", sums + floats)])]


def variables_kept():
    out = [3 * t + 7 for t in range(32)]
    return [launch("variables_kept", 1, 32, [INOUT("u64", listed([0] * 32), listed([0] * 32)), OUT("u32", out * 2)])]


def unaligned_parameters():
    x, out = lcg("u32", 32, 617, 2**32 - 1), []
    for v in x:
        low, high = v % 2**16, v >> 16
        out += [high | low << 16, high % 256 + 1 | low % 256 << 16, (low + 5) % 2**16 | high << 16, v]
    return [launch("unaligned_parameters", 1, 32, [IN("u32", x), OUT("u32", listed(out))])]


def unaligned_words():
    x, out = lcg("u32", 128, 617, 2**32 - 1), []
    for t in range(32):
        a, b, c, d = x[4 * t : 4 * t + 4]
        low, high = a % 2**16, a >> 16
        nine = high % 256 + 1
        out += [(b + signed(low, 16)) % 2**32, low | high << 16, nine % 256 | nine << 16]
        wide = (c | d << 32) * 3 % 2**64
        out += [(b + 5) % 2**32, low, 0, wide % 2**32, wide >> 32]
    return [launch("unaligned_words", 1, 32, [IN("u32", x), INOUT("u32", listed([0] * 256), listed(out))])]


def walking_pointers():
    x, out, stride, rounds = lcg("u32", 256, 619, 2**32 - 1), [], 9, 6
    for t in range(32):
        low = t & 7
        first = [t, t + low, t + (low ^ 5), t + t + 4, t + 2 * low + stride]
        second, acc = [low ^ 5, t + 3, 2 * low], 1
        for n in range(rounds):
            for at in [at + n * stride for at in first] + [at + 16 * n for at in second]:
                acc = (acc * 31 + x[at]) % 2**32
        acc = (acc * 31 + x[first[2] + rounds * stride]) % 2**32 ^ x[second[2] + 16 * rounds]
        out.append(acc)
    args = [IN("u32", x), OUT("u32", listed(out)), scalar("u32", stride), scalar("u32", rounds)]
    return [launch("walking_pointers", 1, 32, args)]


def mbarriers_bytes():
    x = lcg("u32", 64, 603, 0xFFFFFF)
    return [
        launch("bytes", 1, 96, [IN("u32", x), OUT("u32", [x[63 - t] for t in range(32)] + x[:32])], targets=CLUSTER_TARGETS),
        launch("counts", 1, 32, [OUT("u32", [0, 1, 2, 2])], targets=CLUSTER_TARGETS),
    ]


def half(value):
    return struct.unpack("<H", struct.pack("<e", value))[0]


def words(values, size):
    """Numbers of so many bytes as 32-bit words."""
    data = b"".join((v & (1 << 8 * size) - 1).to_bytes(size, "little") for v in values)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def bulk_rows():
    """For each reduction of bulk_copies: the size of an element, its old values, the new ones, and what becomes of them."""
    a, b = lcg("u32", 104, 604, M32), lcg("u32", 104, 605, M32)
    long = lambda w, i: w[i] << 32 | w[i + 1]
    unsigned32 = {"add": lambda o, n: o + n, "min": min, "max": max, "inc": lambda o, n: 0 if o >= n else o + 1,
                  "dec": lambda o, n: n if o == 0 or o > n else o - 1, "and": int.__and__, "or": int.__or__, "xor": int.__xor__}
    order = ["add", "add s", "add 8", "min", "min s", "max", "max s", "min 8", "min s8", "max 8", "max s8", "inc", "dec", "and", "or",
             "xor", "and 8", "or 8", "xor 8"]
    for row, name in enumerate(order):
        size = 8 if "8" in name else 4
        old = [long(a, 4 * row + 2 * i) if size == 8 else a[4 * row + i] for i in range(16 // size)]
        new = [long(b, 4 * row + 2 * i) if size == 8 else b[4 * row + i] for i in range(16 // size)]
        if name in ("inc", "dec"):
            old, new = [0, 7, 8, 9], [7, 7, 8, 3]
        number = (lambda v: signed(v, 8 * size)) if "s" in name else (lambda v: v)
        yield size, old, new, [unsigned32[name.split()[0]](number(o), number(n)) for o, n in zip(old, new)]
    floats = [(1.5, 2.25), (-7.0, 0.125), (1e10, 1.0), (0.0, -3.5)]
    yield 4, [bits32(f32(o)) for o, _ in floats], [bits32(f32(n)) for _, n in floats], [bits32(add(f32(o), f32(n))) for o, n in floats]
    floats = [(1.5, 2.25), (1e16, 1.0)]
    yield 8, [bits64(o) for o, _ in floats], [bits64(n) for _, n in floats], [bits64(add(o, n, F64)) for o, n in floats]
    # Halves of eight integers: exact in both formats. The sum of the least number above zero and itself is not flushed.
    pairs = [(3, 4), (-5, 2), (100, 27), (0, -1), (-8, -8), (63, 64), (1, 0), (-2, 9)]
    brain = lambda v: bits32(f32(v)) >> 16
    for bits, op in [(half, "add"), (brain, "add"), (half, "min"), (brain, "max"), (half, "max")]:
        to = {"add": lambda o, n: o + n, "min": min, "max": max}[op]
        old, new, all = [bits(o) for o, _ in pairs], [bits(n) for _, n in pairs], [bits(to(o, n)) for o, n in pairs]
        if op == "add":
            old[3], new[3], all[3] = 1, 1, 2
        yield 2, old, new, all


def bulk_copies():
    x, z = lcg("u32", 256, 606, 0xFFFFFF), lcg("u32", 32, 608, M32)
    turned = [x[8 * (31 - i // 8) + i % 8] + i // 4 for i in range(256)]
    swapped = [turned[8 * (i // 8 ^ 1) + i % 8] for i in range(256)]
    rounds = [1000 * k + t for k in range(3) for t in range(32)]
    rows = list(bulk_rows())
    old, new, after = [[w for row in rows for w in words(row[i], row[0])] for i in (1, 2, 3)]
    inside = [z[i] + z[16 + i] if i < 16 else min(signed(z[i]), signed(z[i - 16])) & M32 if i < 24 else z[i] for i in range(32)]
    return [
        launch("pieces", 1, 64, [IN("u32", x), OUT("u32", swapped)], targets=CLUSTER_TARGETS),
        launch("groups", 1, 32, [OUT("u32", rounds + [rounds[93]])], targets=CLUSTER_TARGETS),
        launch("reduced", 1, 32, [IN("u32", listed(new)), INOUT("u32", listed(old), after)], targets=CLUSTER_TARGETS),
        launch("within", 1, 32, [IN("u32", z), OUT("u32", [v & M32 for v in inside])], targets=CLUSTER_TARGETS),
    ]


def bulk_copies_cluster():
    y = lcg("u32", 64, 607, 0xFFFFFF)
    return [
        launch("elected", 1, 64, [IN("u32", y), OUT("u32", [y[t] + y[63 - t] for t in range(64)])], targets=CLUSTER_TARGETS),
        launch("turns", 1, 64, [IN("u32", y), OUT("u32", y)], targets=CLUSTER_TARGETS),
    ]


def quotients_of_atomics():
    """Sums of quotients by what atomic additions of 2 returned, and the least of what fell by one each turn."""
    own = [float(4 + t % 5) for t in range(32)]
    now, sums, least = list(own), [0.0] * 32, 7
    for t in range(32):
        b = 4.0
        for i in range((t & 7) + 1):
            sums[t] = f32(sums[t] + f32(Fraction(1024) / Fraction(b)))
            b, now[t] = now[t], now[t] + 2.0
            least = min(least, t * 5 - 40 - i)
    return [launch("quotients_of_atomics", 1, 32, [INOUT("f32", own, now), INOUT("s32", [7], [least]), OUT("f32", sums)])]


def groups_apart():
    """What two functions, of which each lane calls one, have left in lanes; the textures and the words that these choose."""
    called = [t * 3 + 1 if t * 7 % 16 < 6 else t ^ 5 for t in range(32)]
    images = [Image("s32", 1, (16,), [signed(v) for v in lcg("u32", 16, seed, M32)]) for seed in (811, 812)]
    read = [v for t in range(32) for v in (called[t], images[t & 3 != 0].texels[t & 15] & M32)]
    x = lcg("u32", 128, 813, M32)
    copied = [v + called[t] * (i == 0) & M32 for t in range(32) for i, v in enumerate(x[4 * (t ^ 9):][:4])]
    return [
        launch("reads", 1, 32, [IN("u32", image.words()) for image in images] + [OUT("u32", read)], targets=CLUSTER_TARGETS),
        launch("copies", 1, 32, [IN("u32", x), OUT("u32", copied)], targets=CLUSTER_TARGETS),
    ]


def bulk_copies_masked():
    x, y = lcg("u32", 64, 609, M32), lcg("u32", 64, 610, M32)
    old, new = [struct.unpack("<256B", struct.pack("<64I", *v)) for v in (y, x)]
    masks = [0x4321] * 4 + [(0x4321 + 0x7BCD) & 0xFFFF] * 4 + [0xFFF7] * 8
    mixed = [new[i] if masks[i // 16] >> i % 16 & 1 else old[i] for i in range(256)]
    zeros = {16 * i + 2 + j for i in range(4) for j in range(2 + 2 * i)} | set(range(80, 104))
    return [
        launch("masked", 1, 32, [IN("u32", x), INOUT("u32", y, list(struct.unpack("<64I", bytes(mixed))))], targets=CLUSTER_TARGETS[1:]),
        launch("cleared", 1, 128, [OUT("u32", [0 if i in zeros else i + 1 for i in range(128)])], targets=CLUSTER_TARGETS[1:]),
    ]


def box_of(tensor, sizes, corner, box, steps=(), outside=0):
    """The elements of a box in their order; `tensor` has its elements in order, rows one behind the other."""
    steps = list(steps) or [1] * len(sizes)
    out = []
    for row in range(math.prod((b + s - 1) // s for b, s in zip(box[1:], steps[1:]))):
        at, unit, there = 0, sizes[0], True
        for size, first, count, step in zip(sizes[1:], corner[1:], box[1:], steps[1:]):
            count = (count + step - 1) // step
            place = first + row % count * step
            row //= count
            there &= 0 <= place < size
            at += place * unit
            unit *= size
        for i in range(corner[0], corner[0] + box[0]):
            out.append(tensor[at + i] if there and 0 <= i < sizes[0] else outside)
    return out


def swizzle(elements, size, span):
    """Units of 16 bytes of a box at an address that is a multiple of 1024, where a swizzle of a span puts them."""
    per, out = 16 // size, [None] * len(elements)
    for unit in range(len(elements) // per):
        to = unit ^ unit >> 3 & span // 16 - 1
        out[per * to:per * to + per] = elements[per * unit:per * unit + per]
    return out


def tensors():
    x, y = lcg("u32", 72, 620, M32), lcg("u32", 4096, 621, M32)
    plane = [x[12 * (i // 10) + i % 10] for i in range(60)]
    planes = [box_of(plane, (10, 6), corner, (8, 4)) for corner in [(0, 0), (4, -1), (-2, 3), (6, 5)]]
    bytes_of = lambda kind: list(struct.unpack(f"<{16384 // struct.calcsize(kind)}{kind}", struct.pack("<4096I", *y)))
    whole = lambda parts: [w for elements, size in parts for w in words(elements, size)]
    rows = [((300,), (5,), (64,), (), "u16", "H"), ((8, 4, 6), (2, 1, 0), (4, 4, 6), (1, 1, 1), "f32", "I"),
            ((16, 4, 4, 4), (0, 1, 1, -1), (16, 4, 4, 2), (1, 2, 2, 1), "u16", "H"), ((8, 3, 3, 2, 3), (4, 0, 1, 0, 1), (2, 2, 2, 2, 2), (), "u64", "Q")]
    got = [(box_of(bytes_of(code), sizes, corner, box, steps), struct.calcsize(code)) for sizes, corner, box, steps, _, code in rows]
    maps = []
    for sizes, _, box, steps, kind, code in rows:
        size = struct.calcsize(code)
        maps.append(TENSOR(0, kind, sizes, [size * math.prod(sizes[:i]) for i in range(1, len(sizes))], box, steps))
    swizzled = [
        swizzle(box_of(bytes_of("H"), (64, 9), (0, 1), (64, 8)), 2, 128),
        swizzle(box_of(y, (64, 8), (16, 0), (16, 8)), 4, 64),
        swizzle(box_of(bytes_of("B"), (48, 16), (8, 0), (32, 16)), 1, 32),
    ]
    views = [TENSOR(0, "bf16", (64, 9), [128], (64, 8), swizzle=3), TENSOR(0, "u32", (64, 8), [256], (16, 8), swizzle=2),
             TENSOR(0, "u8", (48, 16), [48], (32, 16), swizzle=1)]
    new, old, sums, least = lcg("u32", 256, 622, M32), lcg("u32", 60, 623, M32), lcg("u32", 60, 624, M32), lcg("u32", 10, 625, M32)
    stored, added, lowest = list(old), list(sums), [signed(v) for v in least]
    box = swizzle(new, 4, 128)
    for row in range(8):
        for i in range(32):
            if 0 <= i - 3 < 10 and 2 + row < 5:
                stored[12 * (2 + row) + i - 3] = box[32 * row + i]
            if 8 + i < 12 and 1 + row < 5:
                added[12 * (1 + row) + 8 + i] = (added[12 * (1 + row) + 8 + i] + new[32 * row + i]) & M32
    for i in range(16):
        if 6 + i < 10:
            lowest[6 + i] = min(lowest[6 + i], signed(new[64 + i]))
    for i in range(16):
        if 0 <= i - 2 < 10:
            lowest[i - 2] = signed(unsigned(lowest[i - 2], 32) ^ new[128 + i])
    return [
        launch("planes", 1, 128, [IN("u32", x), OUT("u32", [v for box in planes for v in box]), TENSOR(0, "u32", (10, 6), [48], (8, 4))], targets=CLUSTER_TARGETS),
        launch("rows", 1, 256, [IN("u32", y), OUT("u32", whole(got)), *maps], targets=CLUSTER_TARGETS),
        launch("swizzled", 1, 512, [IN("u32", y), OUT("u32", whole(zip(swizzled, (2, 4, 1)))), *views], targets=CLUSTER_TARGETS),
        launch("stored", 1, 256, [
            IN("u32", new), INOUT("u32", old, stored), INOUT("u32", sums, added), INOUT("u32", least, [unsigned(v, 32) for v in lowest]),
            TENSOR(1, "u32", (10, 5), [48], (32, 8), swizzle=3), TENSOR(2, "u32", (12, 5), [48], (32, 8)), TENSOR(3, "s32", (10,), [], (16,)),
        ], targets=CLUSTER_TARGETS),
    ]


def tensors_cluster():
    x = lcg("u32", 400, 626, 0xFFFFFF)
    box = box_of(x, (20, 20), (3, 5), (16, 4))
    return [launch("elected", 1, 64, [IN("u32", x), OUT("u32", [v + t for t, v in enumerate(box)]), TENSOR(0, "u32", (20, 20), [80], (16, 4))], targets=CLUSTER_TARGETS)]


def tensors_rows():
    x = lcg("u32", 240, 643, M32)
    at = lambda row, column: x[24 * row + column] if 0 <= row < 10 and 0 <= column < 20 else 0
    first = swizzle([at(row, 4 + i) for row in (3, 0, 5, 12) for i in range(32)], 4, 128)
    second = [at(row, i - 2) for row in (2, 7, 1, -1) for i in range(16)]
    views = [TENSOR(0, "u32", (20, 10), [96], (32, 1), swizzle=3), TENSOR(0, "u32", (20, 10), [96], (16, 1))]
    new, old = lcg("u32", 64, 644, M32), lcg("u32", 192, 645, M32)
    stored = list(old)
    for i, row in enumerate((5, 9, 0, 3)):
        for c in range(16):
            if row < 8 and 8 + c < 20:
                stored[24 * row + 8 + c] = new[16 * i + c]
    return [
        launch("gathered", 1, 192, [IN("u32", x), OUT("u32", first + second), *views], targets=["sm_100a"]),
        launch("scattered", 1, 64, [IN("u32", new), INOUT("u32", old, stored), TENSOR(1, "u32", (20, 8), [96], (16, 1))], targets=["sm_100a"]),
    ]


def pixels_of(sizes, start, steps, lower, upper, count, offsets):
    """The places of pixels in order: along the first dimension of the box of pixels, then in its next row, at last in the next image."""
    place, spatial = list(start), len(sizes) - 1
    for _ in range(count):
        yield [p + o for p, o in zip(place, list(offsets) + [0])]
        for i in range(spatial):
            place[i] += steps[i]
            if place[i] <= sizes[i] - 1 + upper[i]:
                break
            place[i] = lower[i]
        else:
            place[spatial] += 1


def tensors_images():
    x = lcg("u32", 4096, 646, M32)
    whole, args = [], []
    # Sizes without channels, channels of a pixel, of them those that are copied, and from which one on.
    for sizes, channels, box, first, start, steps, lower, upper, count, offsets in [
        ((7, 3), 4, 4, 0, (1, 0), (2,), (-1,), (-2,), 16, (2,)),
        ((4, 5, 2), 8, 8, 4, (-1, 0, 0), (1, 1), (-1, -1), (-1, -2), 8, (1, 2)),
        ((3, 2, 3, 2), 4, 4, 0, (1, 0, 0, 1), (1, 1, 1), (-1, 0, -1), (0, -1, -1), 16, (0, 1, 1)),
    ]:
        strides = [channels * math.prod(sizes[:i]) for i in range(len(sizes))]
        for place in pixels_of(sizes, start, steps, lower, upper, count, offsets):
            there = all(0 <= p < size for p, size in zip(place, sizes))
            at = sum(p * stride for p, stride in zip(place, strides))
            whole += [x[at + first + c] if there and first + c < channels else 0 for c in range(box)]
        args.append(TENSOR(0, "u32", (channels, *sizes), [4 * s for s in strides], (box,), (1, *steps, 1), image=(lower, upper, count)))
    new, old, sums = lcg("u32", 64, 647, M32), lcg("u32", 256, 648, M32), lcg("u32", 256, 649, M32)
    stored, added = list(old), list(sums)
    sizes, strides, lower, upper = (4, 3, 2), (4, 16, 48), (0, -1), (1, 0)
    for start, into, adds in [((2, 1, 0), stored, False), ((0, 0, 1), added, True)]:
        for n, place in enumerate(pixels_of(sizes, start, (1, 1), lower, upper, 16, (0, 0))):
            if all(0 <= p < size for p, size in zip(place, sizes)):
                at = sum(p * stride for p, stride in zip(place, strides))
                for c in range(4):
                    into[at + c] = (into[at + c] + new[4 * n + c] & M32) if adds else new[4 * n + c]
    maps = [TENSOR(a, "u32", (4, *sizes), [4 * s for s in strides], (4,), image=(lower, upper, 16)) for a in (1, 2)]
    return [
        launch("pixels", 1, 192, [IN("u32", x), OUT("u32", whole), *args], targets=CLUSTER_TARGETS),
        launch("put", 1, 64, [IN("u32", new), INOUT("u32", old, stored), INOUT("u32", sums, added), *maps], targets=CLUSTER_TARGETS),
    ]


def tensor_maps():
    x, y = lcg("u32", 480, 627, M32), lcg("u32", 192, 628, M32)
    made = swizzle(box_of(x, (20, 12), (8, 1), (8, 8)), 4, 32)
    halves = list(struct.unpack("<384H", struct.pack("<192I", *y)))[32:]
    # Planes of 256 bytes, with rows of 32.
    tensor = [halves[128 * plane + 16 * row + i] for plane in range(2) for row in range(8) for i in range(12)]
    changed = box_of(tensor, (12, 8, 2), (-4, 0, 1), (16, 8, 2), (1, 2, 1), 0xFFFF)
    return [
        launch("made", 1, 64, [IN("u32", x), OUT("u32", made), scalar("u32", 20), scalar("u32", 12)], targets=["sm_90a"]),
        launch("changed", 1, 64, [IN("u32", y), OUT("u32", words(changed, 2)), TENSOR(0, "f64", (12, 8), [32], (16, 8), swizzle=3)], targets=["sm_90a"]),
    ]


def clusters_async():
    x = lcg("u32", 64, 629, M32)
    slots = [x[(i - 5) % 64] for i in range(64)]
    wide = [v for t in range(16) for v in (x[t], t)] + [v for t in range(16) for v in (x[t], t, x[t], 7)]
    sums = [sum(x[k::4]) & M32 for k in range(4)]
    least = [min(0, *(signed(v) for v in x[k::4])) & M32 for k in range(4)]
    most = [max(x[k::4]) for k in range(4)]
    long = sum(v | t << 32 for t, v in enumerate(x)) & (1 << 64) - 1
    joined = sums + least + most + [long & M32, long >> 32, 64 % 41, 0]
    return [launch("exchanged", 1, 64, [IN("u32", x), OUT("u32", slots + wide + joined)], targets=CLUSTER_TARGETS)]


def max_registers():
    x = lcg("u32", 4 * 384 + 180, 630, M32)
    out = []
    for t in range(384):
        count, value = 60 if t < 128 else 180, t
        for k in range(count):
            value = value * 3 + x[4 * t + 7 * k % count] & M32
        out.append(value)
    return [launch("handed", 1, 384, [IN("u32", x), OUT("u32", out)], targets=["sm_90a"])]


def max_registers_all():
    x = lcg("u32", 256, 633, M32)
    out = [x[t] + 3 * x[t - 128] & M32 if t >= 128 else x[t] for t in range(256)]
    return [launch("max_registers_all", 1, 256, [IN("u32", x), OUT("u32", out)], targets=["sm_90a"])]


def multimem():
    x, y = lcg("u32", 128, 631, M32), list(lcg("u32", 256, 632, M32))
    out, joined = [], []
    for t in range(32):
        a, b, c, d = x[4 * t : 4 * t + 4]
        halves = [v >> shift & 0xFFFF for v in (b, a) for shift in (16, 0)]
        out += [a, b, c, d, a, b, c, d, d, c, b, a, c, d] + [halves[i] | halves[i + 1] << 16 for i in (0, 2)]
        out += [v >> 16 | (v & 0xFFFF) << 16 for v in (a, b, c, d)] + [d, c, c, d]
        y[8 * t + 4 : 8 * t + 6] = [0, 0]
        old = y[8 * t : 8 * t + 8]
        long = (old[2] | old[3] << 32) + (c | d << 32)
        most = max(signed(old[1]), signed(d)) & M32
        joined += [old[0] + c & M32, most, long & M32, long >> 32 & M32, t, t, old[6] & c, old[7] & d]
    args = [IN("u32", x), OUT("u32", out), INOUT("u32", y, joined)]
    return [launch("shared_copies", 1, 32, args, targets=CLUSTER_TARGETS)]


def clusters_several():
    places = []
    for y in range(4):
        for x in range(6):
            places += [x // 2, y // 2, 3, 2, x % 2, y % 2, 2, 2, x % 2 + 2 * (y % 2), 4, 1, 1]
    x = lcg("u32", 512, 633, M32)
    blocks = [x[64 * b : 64 * b + 64] for b in range(8)]
    sums = [sum(block) & M32 for block in blocks]
    summed = [(((sums[c] * 5 + sums[c + 1]) * 5 + sums[c + 2]) * 5 + sums[c + 3]) & M32 for c in (0, 4)]
    ring = []
    for b in range(8):
        ring.append(x[b] if b % 4 == 0 else ring[-1] * 3 + x[b] & M32)
    sent = [v for b in range(8) for t in range(64) for v in (blocks[b - 1 if b % 4 else b + 3][t], 4 * sum(range(64)))]
    counted = [257 * sum(v & 63 == bin for b in range(c, c + 4) for v in blocks[b]) for c in (0, 4) for bin in range(64)]
    return [
        launch("places", (6, 4), 32, [OUT("u32", places)], targets=CLUSTER_TARGETS),
        launch("summed", 8, 64, [IN("u32", x), OUT("u32", summed)], targets=CLUSTER_TARGETS),
        launch("ring", 8, 64, [IN("u32", x[:8]), OUT("u32", ring)], targets=CLUSTER_TARGETS),
        launch("sent", 8, 64, [IN("u32", x), OUT("u32", sent)], targets=CLUSTER_TARGETS),
        launch("histogram", 8, 64, [IN("u32", x), OUT("u32", counted)], targets=CLUSTER_TARGETS),
    ]


def constants_behind_calls():
    constant = struct.unpack("<d", bytes.fromhex("3FF71547652B82FE")[::-1])[0]
    x = [(t - 12) / 8 for t in range(32)]
    out = [v for t in range(32) for v in (2.0 * t, x[t] + constant, x[t] * constant, 2.0 if x[t] > constant else 1.0)]
    return [launch("behind", 1, 32, [IN("f64", x), OUT("f64", out)])]


def clusters_wide():
    x, out = lcg("u64", 64, 637, 2**64 - 1), []
    for rank in range(2):
        mine = [[(x[32 * b + t], t) for b in range(2) for t in range(32) if t >> 2 & 1 == rank and t & 3 == w] for w in range(4)]
        signed = lambda v: v - 2**64 if v >> 63 else v
        out += [sum(v for v, _ in word) & (2**64 - 1) for word in mine]
        out += [max([0] + [signed(v) for v, _ in word]) for word in mine]
        out += [struct.unpack("<I", struct.pack("<f", sum(t for _, t in word)))[0] for word in mine]
        out += [struct.unpack("<Q", struct.pack("<d", sum(t for _, t in word)))[0] for word in mine]
    told = [3 if t & 1 == b else 2 for b in range(2) for t in range(32)]
    return [
        launch("joined", 2, 32, [IN("u64", x), OUT("u64", out)], targets=CLUSTER_TARGETS),
        launch("told", 2, 32, [OUT("u32", told)], targets=CLUSTER_TARGETS),
    ]


def clusters_cancelled():
    worked = [1000 * n + 3 * t for n in range(40) for t in range(64)]
    pairs = [500 * n + t for n in range(24) for t in range(32)]
    targets = CLUSTER_TARGETS[1:]
    return [
        launch("persistent", (4, 5, 2), 64, [OUT("u32", worked), INOUT("u32", [0] * 40, [1] * 40)], targets=targets),
        launch("in_pairs", (4, 3, 2), 32, [OUT("u32", pairs)], targets=targets),
    ]


def clusters_cancelled_all():
    worked = [100 * n + t for n in range(36) for t in range(32)]
    return [launch("to_all", (6, 6), 32, [OUT("u32", worked)], targets=["sm_100a"])]


def stores_released():
    x = lcg("u32", 32, 641, M32)
    halves = [v & 0xFFFF for v in x]
    out = x + halves + [v + 1 & M32 for v in x] * 2
    wide = [part for t, v in enumerate(x) for part in (v, t)] * 2
    long = sum(v | t << 32 for t, v in enumerate(x))
    words = [sum(x) & M32, sum(range(32)), long & M32, long >> 32 & M32, long & M32, long >> 32 & M32]
    args = [IN("u32", x), INOUT("u32", [0] * 128, out), OUT("u32", wide), INOUT("u32", [0] * 6, words)]
    return [launch("released", 1, 32, args)]


def copies_alone():
    x = lcg("u32", 128, 642, M32)
    plane = [x[12 * (i // 10) + i % 10] for i in range(60)]
    boxes = [box_of(plane, (10, 6), corner, (8, 4)) for corner in [(0, 0), (3, 1)]]
    out = [v for b in range(2) for t in range(64) for v in (x[64 * b + t], boxes[b][t % 32])]
    return [launch("alone", 2, 64, [IN("u32", x), OUT("u32", out), scalar("u32", 1), TENSOR(0, "u32", (10, 6), [48], (8, 4))], targets=CLUSTER_TARGETS)]


def copies_beside():
    x = [v & 0xFFFF for v in lcg("u32", 125, 643, M32)]
    return [launch("copies_beside", 1, 128, [IN("u16", x), OUT("u32", [x[t] if 3 <= t < 125 else 77 for t in range(128)])])]


def clusters_multicast():
    x, y = lcg("u32", 128, 634, M32), lcg("u32", 512, 635, M32)
    three = [t if b % 4 == 2 else x[64 * (b // 4) + t] for b in range(8) for t in range(64)]
    handed = [y[64 * (b - 1 if b % 4 else b + 3) + t] for b in range(8) for t in range(64)]
    targets = CLUSTER_TARGETS[:4]
    return [
        launch("to_three", 8, 64, [IN("u32", x), OUT("u32", three)], targets=targets),
        launch("handed_on", 8, 64, [IN("u32", y), OUT("u32", handed)], targets=targets),
    ]


def clusters_multicast_16():
    x = lcg("u32", 128, 636, M32)
    three = [t if b % 4 == 2 else x[64 * (b // 4) + t] for b in range(8) for t in range(64)]
    return [launch("to_three_16", 8, 64, [IN("u32", x), OUT("u32", three)], targets=CLUSTER_TARGETS[:4])]


def clusters_multicast_107():
    x = lcg("u32", 128, 636, M32)
    three = [t if b % 4 == 2 else x[64 * (b // 4) + t] for b in range(8) for t in range(64)]
    return [launch("to_three_107", 8, 64, [IN("u32", x), OUT("u32", three)])]


def arrivals_multicast_107():
    return [launch("arrivals_multicast_107", 8, 32, [OUT("u32", [80 if b % 4 == 2 else 65 for b in range(8)])])]


def packed_types_107():
    def single(bits):
        return struct.unpack("<f", struct.pack("<I", bits))[0]

    def rounded(exact, mode, signed_zero):
        return bits32(round_float(exact, F32, mode)) if exact else signed_zero

    def cut(exact):
        return rounded(exact, "rz", 0) >> 16

    words, expect = [], []
    for t in range(16):
        x, y = ([v & 0x87FFFFFF | 0x38000000 | (v >> 3 & 0x03000000) for v in lcg("u32", 2, 900 + 2 * t + n, M32)] for n in (0, 1))
        h = lcg("u32", 1, 960 + t, M32)[0] & 0xB7FFB7FF | 0x30003000
        words += [*x, *y, h, 0]
        a, b = ([Fraction(single(v)) for v in pair] for pair in (x, y))
        f16 = [Fraction(struct.unpack("<e", struct.pack("<H", h >> by & 0xFFFF))[0]) for by in (0, 16)]
        bf16 = [Fraction(single((h >> by & 0xFFFF) << 16)) for by in (0, 16)]
        pairs = [[(f + v, "rn") for f, v in zip(f16, a)], [(f - v, "rz") for f, v in zip(f16, a)], [(f + v, "rm") for f, v in zip(bf16, a)],
                 [(f - v, "rp") for f, v in zip(bf16, b)], [(f * v + w, "rn") for f, v, w in zip(f16, a, b)],
                 [(f * v + w, "rz") for f, v, w in zip(bf16, a, b)]]
        expect += [rounded(exact, mode, 0x80000000 if mode == "rm" else 0) for pair in pairs for exact, mode in pair]
        for both in ([v + w for v, w in zip(a, b)], [v - w for v, w in zip(a, b)], [v * w for v, w in zip(a, b)]):
            expect.append(cut(both[0]) | cut(both[1]) << 16)
        expect.append(h)
    return [launch("packed_types_107", 1, 16, [IN("u32", listed(words)), OUT("u32", expect)])]


def copies_with_orders():
    data, old = lcg("u32", 64, 637, M32), lcg("u32", 96, 638, M32)
    mixed = [((data[t] ^ data[32 + t]) + data[t] + 2 * t + 1000) & M32 for t in range(32)]
    new = mixed + [(o + m) & M32 for o, m in zip(old[32:48], mixed)]
    new += [max(o, m) for o, m in zip(old[48:64], mixed[16:])] + data[32:64]
    return [launch("copies_with_orders", 1, 32, [IN("u32", data), INOUT("u32", old, new)], targets=CLUSTER_TARGETS)]


def priorities_107():
    data = lcg("u32", 32, 639, M32)
    words = [(3 * v + t) & M32 for t, v in enumerate(data)]
    return [launch("priorities_107", 1, 32, [IN("u32", data), OUT("u32", words), TENSOR(0, "u32", (8, 4), [32], (8, 4))])]


def matrix_quarters():
    return [
        quarters("mma_m8n8k4_rr_f32_f32", ("f32", "f32"), (True, True), 740),
        quarters("mma_m8n8k4_rr_f16_f16", ("f16", "f16"), (True, True), 741),
        quarters("mma_m8n8k4_rc_f32_f32", ("f32", "f32"), (True, False), 742),
        quarters("mma_m8n8k4_rc_f16_f16", ("f16", "f16"), (True, False), 743),
        quarters("mma_m8n8k4_cr_f32_f32", ("f32", "f32"), (False, True), 744),
        quarters("mma_m8n8k4_cr_f16_f16", ("f16", "f16"), (False, True), 745),
        quarters("mma_m8n8k4_cc_f32_f32", ("f32", "f32"), (False, False), 746),
        quarters("mma_m8n8k4_cc_f16_f16", ("f16", "f16"), (False, False), 747),
        quarters("mma_m8n8k4_rc_f16_f32", ("f32", "f16"), (True, False), 748),
        tile("wmma_m16n16k16_f16_f32", (16, 16, 16), ("f32", "f16", "f16", "f16"), ("row", "col", "row", "row"), (32, 32, 32, 32), 760),
        tile("wmma_m16n16k16_f32_f16", (16, 16, 16), ("f16", "f16", "f16", "f32"), ("col", "row", "col", "row"), (32, 32, 32, 32), 761),
        tile("wmma_m8n32k16_f32_f16", (8, 32, 16), ("f16", "f16", "f16", "f32"), ("row", "row", "row", "col"), (32, 32, 32, 32), 762),
        tile("wmma_m32n8k16_f16_f32", (32, 8, 16), ("f32", "f16", "f16", "f16"), ("col", "col", "row", "col"), (32, 32, 32, 32), 763),
    ]


def modifier_orders():
    x = [(7 * t + t * t // 3) % 61 for t in range(32)]
    odd = sum(1 << t for t in range(32) if x[t] & 1)
    out = []
    for v in x:
        same = sum(1 << t for t in range(32) if x[t] % 4 == v % 4)
        out += [odd, x[3], int(max(x) > 40), 3 * v + 1, bits32(f32(v // 8 * 8)), v * 0x10000 >> 32, 5, same]
    return [launch("modifier_orders", 1, 32, [IN("u32", x), OUT("u32", out)])]


def funnel_sums():
    p, q = 0x12345678, 99

    def shifted(upper, lower, by):
        return (upper << 32 | lower) << by >> 32 & M32

    x, out = lcg("u32", 64, 61, M32), []
    for t in range(32):
        a, b = x[2 * t:2 * t + 2]
        of_p = q + shifted(0x1D5, p, 23) & M32
        long = (b << 32 | a) - ((a << 32 | b) << 13) & 2**64 - 1
        out += [b + shifted(0x10, -a & M32, 13) & M32, b + shifted(0x1D5, a, 23) & M32, q + shifted(0x1D5, -p & M32, 23) & M32,
                q + shifted(0x1D5, of_p, 23) & M32, long & M32, long >> 32, b - (a >> 19) & M32, b - (signed(a) >> 19) & M32]
    return [launch("funnel_sums", 1, 32, [IN("u32", x), OUT("u32", out), scalar("u32", p), scalar("u32", q)])]


def packed_integers():
    x = lcg("u32", 96, 71, M32)
    kinds = [(16, False), (16, True), (8, False), (8, True), (4, False), (4, True), (2, False), (2, True)]

    def clamped(value, bits, sign):
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if sign else (0, (1 << bits) - 1)
        return max(low, min(high, value)) & (1 << bits) - 1

    out = []
    for t in range(32):
        # From far outside of all types to within the narrowest.
        a, b, c = [signed(v) >> (t if at < 2 else 0) for at, v in enumerate(x[3 * t:3 * t + 3])]
        for bits, sign in kinds:
            third = (c & M32) << 2 * bits & M32 if bits < 16 else 0
            out.append(third | clamped(a, bits, sign) << bits | clamped(b, bits, sign))
    return [launch("packed_integers", 1, 32, [IN("u32", x), OUT("u32", out)])]


def return_if():
    # The numbers that the subroutine wants are zeros; the lane ends in it where one is another.
    inputs = [[0.0, 0.0, 0.0, 7.0], [1.5, 0.0, 0.0, 7.0], [0.0, 2.0, 0.0, 7.0], [0.0, 0.0, 3.0, 7.0]]
    outputs = [1, 57005, 57005, 57005]
    words = lambda data, first: [first] + [bits32(v) for v in data[1:]]
    return [launch("kern", 1, 1, [INOUT("u32", listed(words(data, bits32(data[0]))), words(data, out))]) for data, out in zip(inputs, outputs)]


def packed_singles():
    x, out = iota("f32", 128, -7.3, 0.117), []
    for t in range(32):
        pair, n = x[4 * t:4 * t + 2], -x[4 * t + 2]
        steps = [lambda v, _: add(v, 1.5), lambda v, _: add(v, -n), lambda v, _: add(v, n), lambda v, _: mul(v, n), lambda v, a: fma(v, n, a),
                 lambda v, a: fma(v, a, n), lambda v, _: fma(v, -n, 3.0), lambda v, _: add(n, v),
                 lambda v, a: fma(a, 0.25, v)]
        now = pair
        for step in steps:
            now = [step(v, a) for v, a in zip(now, pair)]
            out += now
    return [launch("packed_singles", 1, 32, [IN("f32", x), OUT("f32", out)])]


def redux_floats():
    x, out = [f32((7 * t * t % 61 - 30) / 3) for t in range(32)], []
    for t in range(32):
        half = x[t & 16:(t & 16) + 16]
        most = max(x[:4] + x[5:])
        out += [*map(bits32, (max(x), min(x), max(map(abs, x)), min(map(abs, half)), most)), 0x7FFFFFFF]
    return [launch("redux_floats", 1, 32, [IN("f32", listed(x)), OUT("u32", out)])]


def parameterised_names():
    x = [(5 * t) % 37 + 3 for t in range(32)]
    out = []
    for t, v in enumerate(x):
        out += [v + 7, v - 3, 5 * t, 2, v + 100 if v + 1 > 20 else 9, v + 11, 2 * v + 1, 1]
    return [launch("parameterised_names", 1, 32, [IN("u32", x), OUT("u32", out)])]


def flags_of_loops():
    def mixed(x, key=0):
        x ^= key
        return (x << 7 | x >> 25) * -1640531535 % 2**32

    out = []
    for x in range(32):
        for _ in range(3):
            x = mixed(mixed(x))
            x = mixed(mixed(x, 33045153), -47602081 % 2**32)
        out.append(x)
    return [launch("flags_of_loops", 1, 32, [OUT("u32", out)])]


def vectorize():
    def outcome(threads, addend):
        def row(t):
            return [(t * factor + addend) % 2**32 for factor in (3, 5, 7, 11)]

        total = 0
        for t in range(threads):
            total = (total * 3 + row(t)[0] + row(t)[1]) % 2**32
        out = []
        for t in range(threads):
            w = row((t + 1) % threads)
            mixed = w[0] + 3 * w[1] + 5 * w[2] + 7 * w[3]
            long = w[0] * 0x10003 + 3 * w[1] * 0x20005
            half = (w[1] % 2**16 ^ 0x8000) - 0x8000
            low = [word % 256 for word in w]
            byte = low[0] + 3 * ((low[1] ^ 0x80) - 0x80) + 5 * low[2] + 7 * ((low[3] ^ 0x80) - 0x80)
            words = [mixed, long, long >> 32, half, w[3] % 2**16, byte, 5 * (w[1] + 1) + 7 * w[2]]
            own = row(t)
            words.append((own[0] ^ mixed % 2**32) + own[2])
            words.append(words[t % 8] + words[2] - words[3])
            out += [word % 2**32 for word in words + [total]]
        return [unsigned(word) for word in out]

    return [
        launch("vectorize", 1, threads, [OUT("u32", outcome(threads, addend)), scalar("u32", addend)])
        for threads, addend in [(64, 0x12345678), (33, 250), (1, 2**32 - 1)]
    ]


def uniform_atomics():
    def outcome(blocks, threads, addend, some):
        out = [0] * (19 + threads)
        out[6] = 2**32 - 1
        lanes = range(threads)
        words = [(t * 77 + addend) % 2**32 for t in lanes]
        all_words, odd = words * blocks, [t for t in lanes if t % 2 == 1]
        out[0] = (3 + 1) * threads * blocks
        out[1] = addend * threads * blocks
        out[2] = sum(all_words)
        out[3] = -5
        out[4] = max(words)
        out[5] = max(signed(addend), 0)
        for t in lanes:
            out[6] &= t | 0xff00ff00
            out[7] |= words[t]
        for word in all_words:
            out[8] ^= word
            out[9] ^= addend
        out[10] = len(odd) * blocks
        out[11] = sum(words[t] for t in odd) * blocks
        taken = min(some, threads)
        out[12] = addend * taken * blocks
        out[13] = 5 * sum(addend * n for n in range(taken * blocks)) + blocks * sum(2 * n for n in range(taken))
        out[14] = 7 * blocks * sum(t % 4 + 1 for t in lanes)
        out[15] = 2 * taken * blocks
        out[16] = sum(lanes) * blocks
        out[17] = threads * blocks
        out[18] = int.from_bytes(struct.pack("<f", sum(lanes) * blocks), "little")
        for t in lanes:
            out[19 + t] = addend * blocks
        return [unsigned(word % 2**32) for word in out]

    cases = [(1, 64, 9, 20), (2, 50, 1, 64), (3, 33, 2**31 + 5, 0), (1, 1, 4, 1), (2, 96, 2**32 - 3, 41)]
    before = lambda threads: [2**32 - 1 if at == 6 else 0 for at in range(19 + threads)]
    return [
        launch(
            "uniform_atomics", blocks, threads,
            [INOUT("u32", before(threads), outcome(blocks, threads, addend, some)), scalar("u32", addend), scalar("u32", some)],
        )
        for blocks, threads, addend, some in cases
    ]


def uniform_branches():
    def outcome(first, last, low, high, half):
        words = list(range(64))

        def swapped(factor, more=0):
            return [(w * factor + words[t ^ 1] + more) % 2**32 for t, w in enumerate(words)]

        while True:
            words = swapped(31, first)
            first += 3
            if first >= last:
                break
        if low <= high:
            words = swapped(37)
            words = swapped(41)
        out = []
        for t, w in enumerate(words):
            wide, turn = w << 8, first
            signed = low - 2**64 if low >= 2**63 else low
            w = w * 43 + (1 if signed < wide else 2) + (4 if high == 0 else 8) + (16 if wide >= high else 32)
            if t < half:
                while True:
                    w, turn = w * 47 + turn, turn + 1
                    if turn > last:
                        break
                if high == 0:
                    w = (w * 53 % 2**32 ^ 21845) * 59
                    w = (w % 2**32 ^ 13107) * 61
                    w = (w % 2**32 ^ 3855) * 67
            out.append(w % 2**32)
        return out

    cases = [
        (0, 10, 5, 7, 64), (4, 4, 2**40, 2**39, 20), (-7, 9, 2**64 - 3, 0, 33), (1, 2, 0, 0, 0), (0, 30, 2**37, 2**38, 63),
        (2, 1, 2**63, 2**64 - 1, 1),
    ]
    return [
        launch(
            "uniform_branches", 1, 64,
            [OUT("u32", outcome(*case)), *map(scalar, ["s32", "s32", "u64", "u64", "u32"], case)],
        )
        for case in cases
    ]


def declared_twice():
    return [launch("declared_twice", 1, 1, [OUT("u32", [5, 7])])]


def small_programs():
    return [
        # What lies between the results is not written.
        launch(name, 1, block, [IN("u32", listed(words)), INOUT("u32", fill("u32", len(out), 0), out, True)], smem=smem)
        for name, (block, smem, words, out) in SMALL.items()
    ]


def initializers():
    behind = [0, 5, 1, 5, 6, 8, 7, 0, 0, 9, 8, 1, 6, 82, 6, 7, 4, 5, 33, 55, 44, 2 * (20 + 1) + 2 * 42 + 1]
    return [launch("initializers", 1, 1, [OUT("u64", behind)])]


def calls_vectors():
    out = []
    for t in range(6):
        x = 10 * t + 1
        swapped = (5, t) if t <= 1 else (t * (t + 1) // 2, [0, 1, 2, 6, 24, 120][t])
        out += [x + 1, x, x + 101, x + 2 + t, 2 * x + 3, 0x10 | x << 16, 0, 1, x, 1]
        out += [0xfedc | 3 << 16, 2 | x << 16, t * t + 29, swapped[0] * 1000 + swapped[1]]
    return [launch("calls_vectors", 1, 6, [OUT("u32", out)])]


def calls_without_abi():
    def outer(x):
        return (1000 if x < 11 else 2000) + (x + 11 if x else x - 11), 12 * x

    out = []
    for t in range(8):
        x = 7 * t + 3
        wide = 5 * x + (10 << 32)
        out += [unsigned(x - 10) + 5000 - 2**32 if x < 10 else x - 10, 10 * x, *map(unsigned, outer(x)), outer(9)[1]]
        out += map(unsigned, outer(t) if t > 1 else (77, 78))
        out += [x + 100, t + 4 * x + 14, unsigned(wide + (wide >> 32)), 506 + 2 * x + (10000 if x > 20 else 0)]
        out += [(x + 7) * 100 + x + 8]
    return [launch("calls_without_abi", 1, 8, [OUT("u32", out)])]


def call_numbers():
    out = [0x3fc00000, 0x40490fdb, 0, 0x3ff80000, 0x54442d18, 0x400921fb, 0x40200000, 0xfffd, unsigned(-3), unsigned(-1)]
    out += [0x80000000, 0xffffffff, unsigned(-7), 0, 0, 0x3ff80000, 13, 0, 0x40490fdb]
    return [launch("call_numbers", 1, 1, [OUT("u32", out, True)])]


def spellings():
    out = [unsigned((3 * t + 1005) + 1 if t < 7 else -(3 * t + 1005)) for t in range(32)]
    return [launch("spellings", 1, 32, [OUT("u32", out)])]


def several_results():
    return [launch("several_results", 1, 1, [IN("u32", listed([9])), OUT("u32", [14, 4, 18, unsigned(-10), 42, 0], True)])]


def run_time_barriers():
    out = []
    for t in range(64):
        other = t ^ 32
        votes = 23 << 8 | (64 - 23) << 16 | 1 << 24
        out += [other + 3 * other, votes, 7 if t < 32 else 5 * other, 3 * other]
    return [launch("run_time_barriers", 1, 64, [OUT("u32", out), scalar("u32", 4), scalar("u32", 64)])]


def zeros_side_by_side():
    out = []
    for t in range(32):
        low, high = (int.from_bytes(struct.pack("<e", float(number)), "little") for number in (t, t + 1))
        half = low ^ high
        out += [0] * 12 + [t, 1000 + 2 * t, half << 16 | half, 0x40080000 ^ t]
    args = [INOUT("u32", fill("u32", 512, M32), out), INOUT("u32", iota("u32", 64, 1000, 1), [0] * 64)]
    return [launch("zeros_side_by_side", 1, 32, args)]


def random_programs():
    def deep(n, v, place):
        turns = 3 if v & 4 else 1
        place[0] = min(place[0], signed(v))
        return turns if n == 0 else unsigned(deep(n - 1, unsigned(v * 5 + 3), place) * 4 + turns)

    sums, places = [], []
    for t in range(32):
        v, total, place = t * 77, 0, [0]
        for _ in range(3 if t & 2 else 1):
            total, v = unsigned(total * 64 + deep(t & 1, v, place)), unsigned(v * 9 + 1)
        sums.append(total)
        places.append(place[0])
    apart = launch("back_at_different_times", 1, 32, [OUT("u32", sums), INOUT("s64", fill("s64", 32, 0), places)])
    return [apart, launch("two_ways_out", 1, 32, [INOUT("u32", iota("u32", 32, 0, 1), [4] * 10 + [3] * 22)])]


ELSEWHERE = {"saxpy": "../../corpus/saxpy.ptx", "unrolled_round": "unrolled.ptx", "return_if": "../words/return_if.sm_80.ptx"}
def comparisons(name, number, one):
    """Halves of words less, and at least where the word is less; then words as floats and as integers, the answer 1.0 or 0."""
    a, b = listed([0x3C004000, 0x40003C00, 0x7E007E00, 0x80000000, 0xC2F74049, 1, 0x7F810000]), listed([0x40003C00, 0x40003C00, 0x3C007E00, 0, 0x42F74048, 2, 0x7F810000])
    expect = []
    for x, y in zip(a, b):
        pairs = [(number(x >> at & 0xFFFF), number(y >> at & 0xFFFF)) for at in (0, 16)]
        expect.append(sum((p < q) * 0xFFFF << 16 * i for i, (p, q) in enumerate(pairs)))
        expect.append(sum((p >= q and x < y) * 0xFFFF << 16 * i for i, (p, q) in enumerate(pairs)))
        f, g = (struct.unpack("<f", struct.pack("<I", v))[0] for v in (x, y))
        expect.append((f != g or math.isnan(f)) * one)
        expect.append((x > y) * one)
        expect.append((signed(y << 32 | x, 64) < signed(x << 32 | y, 64) or x >= y) * one)
    return [launch(name, 1, len(a), [IN("u32", a), IN("u32", b), OUT("u32", expect)])]


def set_halves():
    return comparisons("set_halves", lambda bits: struct.unpack("<e", struct.pack("<H", bits))[0], 0x3C00)


def set_bfloats():
    return comparisons("set_bfloats", lambda bits: struct.unpack("<f", struct.pack("<I", bits << 16))[0], 0x3F80)


def clamped(value, bits, with_sign):
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if with_sign else (0, (1 << bits) - 1)
    return max(least, min(most, value)) & (1 << bits) - 1


def side_by_side(bits, with_sign, f, *words):
    """A function of the numbers of so many bits that stand side by side in words."""
    number = lambda word, at: signed(word >> at & (1 << bits) - 1, bits) if with_sign else word >> at & (1 << bits) - 1
    return sum((f(*(number(w, at) for w in words)) & (1 << bits) - 1) << at for at in range(0, 32, bits))


# Packed numbers near the ends of their ranges.
LANES = (
    [0x01020304, 0xFF80007F, 0x7FFF8000, 0x80808080, 0xFFFFFFFF, 0x12FE34DC, 0, 0x7F7F0180],
    [0x10FF7F80, 0x01807F01, 0x00017FFF, 0x80017F80, 0x01010101, 0xF00D7744, 0xFFFF0001, 0x017F80FF],
)


def lanes(name):
    a, b = (listed(numbers) for numbers in LANES)
    add, sub = (lambda x, y: x + y), (lambda x, y: x - y)
    expect = []
    for x, y in zip(a, b):
        expect += [side_by_side(8, False, add, x, y), side_by_side(8, False, sub, x, y), side_by_side(8, True, sub, x, y)]
        expect += [side_by_side(8, with_sign, f, x, y) for f in (min, max) for with_sign in (False, True)]
        expect.append(side_by_side(8, True, lambda n: -n, x))
        expect += [side_by_side(bits, s, lambda m, n: clamped(m + n, bits, s), x, y) for bits in (8, 16) for s in (False, True)]
        expect.append(clamped(x + y, 32, False))
    return [launch(name, 1, len(a), [IN("u32", a), IN("u32", b), OUT("u32", expect)])]


def lanes_of_8():
    return lanes("lanes_of_8")


def lanes_of_8_107():
    return lanes("lanes_of_8_107")


def least_of_sums():
    mixed = lambda n: (n * 0x9E3779B97F4A7C15 >> 13 ^ n << 27 ^ n * n) & 0xFFFFFFFF
    triples = [(0, 0, 0), (0x7FFFFFFF, 1, 5), (0x80008000, 0x7FFF7FFF, 0xFFFF0001), (0x00050005, 0, 0x00050004)]
    triples += [(mixed(5 * n + 1), mixed(5 * n + 2), mixed(5 * n + 3)) for n in range(28)]
    signed = lambda bits: lambda x: (x & (1 << bits) - 1) - ((x >> bits - 1 & 1) << bits)
    halves = lambda x: (x & 0xFFFF, x >> 16)
    packed = lambda of, *words: sum((of(*h) & 0xFFFF) << 16 * at for at, h in enumerate(zip(*map(halves, words))))
    word, half = signed(32), signed(16)
    out = []
    for a, b, c in triples:
        out += [
            max(word(a + b), word(c)) & 0xFFFFFFFF,
            max(word(b + c), word(a), 0),
            max(min(word(a + c), word(b)), 0),
            min(a - b & 0xFFFFFFFF, c),
            packed(lambda x, y, z: max(half(x + y), half(z), 0), a, b, c),
            packed(lambda x, y, z: min(half(y + z), half(x)), a, b, c),
            packed(lambda x, y, z: max(x + z & 0xFFFF, y), a, b, c),
            packed(min, a, c),
        ]
    return [launch("least_of_sums", 1, 32, [IN("u32", [n for t in triples for n in t]), OUT("u32", out)])]


def least_of_three():
    mixed = lambda n: (n * 0x9E3779B97F4A7C15 >> 11 ^ n << 25 ^ n * n) & 0xFFFFFFFF
    nan, inf, tiny, zeros = 0x7FFFFFFF, 0x7F800000, 0x00000005, (0x80000000, 0, 0x80000000)
    triples = [zeros, (nan, 0x3F800000, 0x40000000), (0xC0000000, nan, nan), (nan, nan, nan), (inf, 0xFF800000, tiny)]
    triples += [(tiny, 0x80000003, 0x00000002), (0x80000003, tiny, 0x3F800000), (1, 2, 3), (0x7FFFFFFF, 1, 0x80000000)]
    triples += [(mixed(7 * n + 1), mixed(7 * n + 2), mixed(7 * n + 3)) for n in range(23)]
    magnitude = lambda x: (x & 0x7FFFFFFF) * (-1 if x >> 31 else 1)
    is_nan = lambda x: x & 0x7FFFFFFF > inf
    flushed = lambda x: x & 0x80000000 if x & 0x7F800000 == 0 else x

    def one_of(pick, words, keeps=False, flush=False):
        # The sign of a zero counts.
        numbers = [flushed(x) if flush else x for x in words if not is_nan(x)]
        lost = not numbers or keeps and len(numbers) < len(words)
        return nan if lost else pick(numbers, key=lambda x: (magnitude(x), -(x >> 31)))

    out = []
    for a, b, c in triples:
        word = signed
        out += [
            max(word(a), word(b), word(c)), min(a, b, c), max(word(a), word(c), 100), min(word(b), 7, word(c)),
            min(max(word(b), word(c)), word(a)), min(map(word, (a, b, c))) - min(word(b), word(c)),
            max(word(a + b), word(c)), min(b - a & M32, c), max(word(c + 5), word(b)), min(word(b + c), 1000),
            one_of(max, (a, b, c)), one_of(min, (a & 0x7FFFFFFF, b ^ 0x80000000, c)), one_of(max, (a, b, c), keeps=True),
            one_of(min, (a, b, c), flush=True), one_of(min, (one_of(min, (a, b), flush=True), c)),
            one_of(max, (a, c, 0x3F800000)),
        ]
    out = [n & M32 for n in out]
    return [launch("least_of_three", 1, 32, [IN("u32", [n for t in triples for n in t]), OUT("u32", out)])]


def carryless():
    triples = [(1, 1, 0), (3, 3, 0), ((1 << 64) - 1, (1 << 64) - 1, 1), (1 << 63, 1 << 63, 7)]
    mixed = lambda n: (n * 0x9E3779B97F4A7C15 ^ n << 41 ^ n * n << 17) & ((1 << 64) - 1)
    triples += [(mixed(3 * n + 1), mixed(3 * n + 2), mixed(3 * n + 3)) for n in range(28)]

    def product(a, b):
        total = 0
        for bit in range(64):
            total ^= (a << bit) if b >> bit & 1 else 0
        return total & ((1 << 64) - 1), total >> 64

    words = []
    for a, b, c in triples:
        low, high = product(a, b)
        low, high = low ^ c, high ^ c
        words += [low, high, product(a, 0x1B)[0] ^ low, product(low, high)[1]]
    return [launch("carryless", 1, 32, [IN("u64", [n for t in triples for n in t]), OUT("u64", words)])]


def set_lanes_107():
    a, b = LANES

    def compared(bits, signed, holds):
        def value(word, at):
            n = word >> at & ((1 << bits) - 1)
            return n - (1 << bits) if signed and n >> (bits - 1) else n

        ones = (1 << bits) - 1
        return lambda x, y: sum(ones << at for at in range(0, 32, bits) if holds(value(x, at), value(y, at)))

    tests = [
        compared(8, False, lambda x, y: x < y), compared(8, True, lambda x, y: x >= y),
        compared(16, False, lambda x, y: x > y), compared(16, True, lambda x, y: x <= y),
        compared(8, False, lambda x, y: x == y), compared(16, True, lambda x, y: x != y),
        compared(8, False, lambda x, y: x <= y), compared(16, False, lambda x, y: x >= y),
    ]
    words = [test(x, y) for x, y in zip(a, b) for test in tests]
    return [launch("set_lanes_107", 1, len(a), [IN("u32", a), IN("u32", b), OUT("u32", words)])]


def read_only():
    data = [(i * 0x9E3779B9 + 12345) & 0xFFFFFFFF for i in range(128)]
    words = []
    for t in range(32):
        a, b, c, d = data[4 * t : 4 * t + 4]
        words += [((a + b) & 0xFFFFFFFF) ^ ((c + d) & 0xFFFFFFFF), ((data[4 * t] >> 8 & 255) + b) & 0xFFFFFFFF]
    return [launch("read_only", 1, 32, [IN("u32", data), OUT("u32", words)])]


def sums_of_subnormals():
    # Codes of subnormal numbers add up as numbers; without .noftz they are zeros.
    cells = [1, 1, 2, 0, 7, 8, 9, 10]
    after = [7, 0, 5, 0, 10, 11, 12, 13]
    olds = [4, 1, 5, 2, 11, 7, 8]
    return [launch("sums_of_subnormals", 1, 32, [INOUT("u32", cells, after), OUT("u32", olds)])]


def barrier_phases():
    return [launch("barrier_phases", 1, 64, [OUT("u32", [3 * (i ^ 33) + 1 for i in range(64)])])]


def fences_restricted():
    cells = [(i * 2654435761) % 2**32 for i in range(64)]
    sums = [(cells[i] + cells[63 - i]) % 2**32 for i in range(64)]
    return [launch("fences_restricted", 1, 64, [IN("u32", cells), OUT("u32", sums)])]


def locality_domains():
    return [launch("locality_domains", 1, 32, [OUT("u32", list(range(32)))])]


def volatile_local():
    return [launch("volatile_local", 1, 32, [OUT("u32", [n for i in range(32) for n in (i + 7, 3 * i, i)])])]


def meetings_before_exit():
    arms = [t + 100 if t % 2 else 3 * t for t in range(64)]
    rounds = [t + 10 * (t % 8) if t % 8 < 5 else 7 for t in range(64)]
    both = [8 if t % 2 else 9 for t in range(64)]
    return [launch(name, 1, 64, [OUT("u32", words)]) for name, words in (("arms", arms), ("rounds", rounds), ("both", both))]


def open_parameters():
    words = []
    for t in range(64):
        n = t % 4
        element = [t, 7, 8, n][n]
        words += [element, 1000 * (n + 40) + element, 8, t + 500, 7, n + 40]
    return [launch("open_parameters", 1, 64, [OUT("u32", words)])]


# Bits of the exponent and of the fraction, and the code of the largest number.
NARROW = {"e4m3": (4, 3, 0x7E), "e5m2": (5, 2, 0x7B), "e3m2": (3, 2, 0x1F), "e2m3": (2, 3, 0x1F), "e2m1": (2, 1, 7)}


def narrow_value(name, code):
    """The number of a code without its sign bit; NaN and infinity of the 8-bit formats are not among them."""
    exponent_bits, bits, _ = NARROW[name]
    field, fraction = code >> bits, code & ((1 << bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    size = fraction + (1 << bits if field else 0)
    return Fraction(size) * Fraction(2) ** (max(field, 1) - bias - bits)


def half_value(bits, exponent_bits, fraction_bits):
    """Sign and magnitude of a 16-bit float; the magnitude is None for NaN, and infinite for infinity."""
    field, fraction = bits >> fraction_bits & ((1 << exponent_bits) - 1), bits & ((1 << fraction_bits) - 1)
    if field == (1 << exponent_bits) - 1:
        return bits >> 15, None if fraction else math.inf
    size = fraction + (1 << fraction_bits if field else 0)
    return bits >> 15, Fraction(size) * Fraction(2) ** (max(field, 1) - (1 << (exponent_bits - 1)) + 1 - fraction_bits)


def to_narrow(name, half, relu):
    """The nearest code, ties to even; beyond the largest number that one, and NaN is positive (the largest code of its format)."""
    exponent_bits, bits, largest = NARROW[name]
    sign, size = half
    if size is None:
        return 0x7F if exponent_bits + bits == 7 else largest
    if sign and relu:
        return 0
    code = min(range(largest + 1), key=lambda c: (abs(narrow_value(name, c) - size), c % 2)) if size != math.inf else largest
    return sign << (exponent_bits + bits) | code


def narrow_from_halves():
    words = [0x3F800000, 0xBF808000, 0x7F80FF80, 0x7FC0FFFF, 0x7F7FFF7F, 0x00018001, 0x43E043E1, 0xC3F04780, 0x3C003880, 0x3B003F60,
             0x40484049, 0x40B0C0D0, 0x3E203E60, 0x3DA0BDE0, 0x41F04204, 0xBC80BB90]
    words += [word & 0xC7FFC7FF | 0x38003800 for word in lcg("u32", 48, 77, M32)]
    expect = []
    for word in words:
        bf16, f16 = ([half_value(word >> by & 0xFFFF, *form) for by in (0, 16)] for form in ((8, 7), (5, 10)))

        def packed(name, halves, relu):
            low, high = (to_narrow(name, half, relu) for half in halves)
            return low | high << (4 if name == "e2m1" else 8)
        both = [packed(name, bf16, relu) for name in NARROW for relu in (False, True)]
        expect += both[:8] + [both[8] | both[9] << 8, packed("e3m2", f16, False) | packed("e2m3", f16, True) << 16]
    return [launch("narrow_from_halves", 1, len(words), [IN("u32", listed(words)), OUT("u32", expect)])]


def cut_narrow(name, half, relu):
    """The greatest code not above a magnitude; NaN is as in to_narrow."""
    exponent_bits, bits, largest = NARROW[name]
    sign, size = half
    if size is None or sign and relu:
        return to_narrow(name, half, relu)
    return sign << (exponent_bits + bits) | max(c for c in range(largest + 1) if narrow_value(name, c) <= size)


def narrow_truncated_107():
    words = [0x3F800000, 0xBF808000, 0x7F80FF80, 0x7FC0FFFF, 0x7F7FFF7F, 0x00018001, 0x43E043E1, 0xC3F04780, 0x3C003880, 0x3B003F60,
             0x43DFFFFF, 0x438FFFFF, 0x475FFFFF, 0x477FE000, 0x40BFFFFF, 0x40C00000, 0x3E7FFFFF, 0xC0EFFFFF, 0x41DFFFFF, 0x80000000]
    words += [word & 0xC7FFC7FF | 0x38003800 for word in lcg("u32", 44, 78, M32)]
    expect = []
    for a, b in zip(words[::2], words[1::2]):
        single = [(word >> 31, half_value(word & 0x7FFFFFFF, 8, 23)[1]) for word in (a, b)]
        f16, bf16 = ([half_value(a >> by & 0xFFFF, *form) for by in (0, 16)] for form in ((5, 10), (8, 7)))

        def packed(name, pair, relu=False):
            low, high = (cut_narrow(name, number, relu) for number in pair)
            return low | high << (4 if name == "e2m1" else 8)

        codes = [packed("e4m3", single), packed("e4m3", f16, True), packed("e4m3", bf16), packed("e5m2", single), packed("e5m2", f16),
                 packed("e5m2", bf16, True), packed("e3m2", single, True), packed("e3m2", f16), packed("e3m2", bf16),
                 packed("e2m3", single), packed("e2m3", f16, True), packed("e2m3", bf16)]
        expect += [low | high << 16 for low, high in zip(codes[::2], codes[1::2])]
        tiny = [packed("e2m1", single), packed("e2m1", single, True), packed("e2m1", f16), packed("e2m1", bf16)]
        expect += [sum(code << 8 * i for i, code in enumerate(tiny)), 0]
    count = len(words) // 2
    return [launch("narrow_truncated_107", 1, count, [IN("u32", listed(words)), OUT("u32", expect)])]


def bfloats_from_narrow():
    def one(name, code, last):
        exponent_bits, bits, largest = NARROW[name]
        sign, code = code >> (exponent_bits + bits) & 1, code & ((1 << (exponent_bits + bits)) - 1)
        if code > largest and (name == "e4m3" or code != 0x7C):
            return 0x7FFF
        if sign and last:
            return 0
        value = float(narrow_value(name, code))
        return sign << 15 | (bits32(value) >> 16 if code <= largest else 0x7F7F if last else 0x7F80)

    codes = list(range(256))
    expect = []
    for n in codes:
        word = n | (n * 7 + 128 & 0xFF) << 8
        for name in NARROW:
            low, high = (n & 15, n >> 4) if name == "e2m1" else (n, word >> 8)
            expect += [one(name, low, last) | one(name, high, last) << 16 for last in (False, True)]
    return [launch("bfloats_from_narrow", 1, 256, [IN("u32", listed([n | (n * 7 + 128 & 0xFF) << 8 for n in codes])), OUT("u32", expect)])]


def constants():
    words = lambda number: list(struct.unpack("<2I", struct.pack("<d", number)))
    # The product of -2 and the double nearest to 0.1 is exact, and so is the sum.
    out = [unsigned(-2), unsigned(-3)] + words(-2 * 0.1 + 1) + words(2.0**31 + 1)
    out += [struct.unpack("<I", struct.pack("<f", 2.0**24 + 3))[0], 100, 10, 5]
    out += words(struct.unpack("<f", struct.pack("<I", 0x3DCCCCCD))[0]) + [3]
    return [launch("constants", 1, 1, [OUT("u32", out, True), scalar("u32", 77)])]


def frame_words():
    words, sums = [], []
    for t in range(11):
        words += [t + sum(range(t)), 7 if t & 1 else 9] + words_of(3 * t + 2**33, 2)
        a = [i * i + t for i in range(8)]
        first = a[t & 7] + a[t + 3 & 7]
        a[2] += 1
        sums += [first, a[t & 7]]
    return [launch("frame_words", 1, 11, [OUT("u32", words, True)]), launch("frame_index", 1, 11, [OUT("u32", sums, True)])]


def copies_chosen():
    data = lcg("u32", 128, 11, 0xFFFFFFFF)
    out = []
    for t in range(32):
        row = list(data[4 * t : 4 * t + 4])
        out += row if t < 13 else [0] * 4
        out += ([0, 0] if t < 13 else row[:2]) + [t, t]
        out += row if t < 13 and t % 2 else [0] * 4
        out += ([row[0], 0] if t % 2 == 0 else [0, 0] if t < 13 else row[:2]) + [t, t]
    return [launch("copies_chosen", 1, 32, [OUT("u32", out, True), IN("u32", data), scalar("u32", 13)])]


def tensor_memory_wait():
    return [launch("tensor_memory_wait", 1, 64, [OUT("u32", [t + 1000 for t in range(64)])], targets=["sm_100a"])]


def tensor_memory_exclusive_107():
    words = [t + 1000 for t in range(32)] + [t + 2000 for t in range(32)] + [0]
    return [launch("tensor_memory_exclusive_107", 1, 32, [OUT("u32", words), scalar("u32", count)]) for count in (32, 544)] \
        + [launch("exclusive_pair_107", 2, 32, [OUT("u32", [t + 3000 for t in range(64)])])]


def unrolled_loops(pairs):
    """Thirteen loops of 64 lanes, each with a start and a bound: those of these pairs whose loops all end soon."""
    word = lambda value: value & M32
    def run(start, step, more, body=lambda s, i: s * 3 + i, s=0, before=False):
        i, turns = start, 0
        while True:
            s = word(body(s, i))
            goes = before and more(i)
            i = word(i + step)
            if not (goes if before else more(i)):
                return s, i
            turns += 1
            if turns > 60:
                raise OverflowError

    sign = lambda value: signed(value, 32)

    def arm(a, n):
        def body(s, i):
            if i & 1:
                s = word((word(s * 3 + i) ^ a) + n)
                s = word(s ^ s << 3)
                s ^= s >> 5
                s = word(s ^ s << 7)
            return s
        return body

    def row(t, a, n):
        k = word(a + t % 32 + 1)
        up = run(a, 1, lambda i: sign(i) < sign(n))
        return [
            up[0],
            run(a, 1, lambda i: sign(i) <= sign(n))[0],
            run(a, 3, lambda i: i < n)[0],
            run(n, -1, lambda i: sign(i) > sign(a))[0],
            run(n, -2, lambda i: sign(i) >= sign(a))[0],
            run(a, 1, lambda i: i != k)[0],
            run(k, -1, lambda i: i != a)[0],
            run(a, 1, lambda i: sign(i) < sign(n), before=True)[0],
            run(a, 1, lambda i: sign(i) < sign(n), body=arm(a, n))[0],
            run(0, 1, lambda i: i < 10, s=t)[0],
            run(50, -1, lambda i: i != 0, s=t, body=lambda s, i: (s * 3 + i) ^ a)[0],
            run(word(-3), 1, lambda i: sign(i) < 50, s=t, body=lambda s, i: (s * 3 + i) ^ n)[0],
            word(sum(up)),
        ]

    rows, ends = [], []
    for a, n in pairs:
        try:
            if len(rows) < 64 and (word(a), word(n)) not in ends:
                rows.append(row(len(rows), word(a), word(n)))
                ends.append((word(a), word(n)))
        except OverflowError:
            pass
    out = [row[loop] for loop in range(13) for row in rows]
    return [launch("unrolled", 1, 64, [OUT("u32", out), IN("u32", [a for a, _ in ends]), IN("u32", [n for _, n in ends])])]


# Both ends of the signed and of the unsigned words.
NEAR_ENDS = [0, 1, 3, -1, -2, -4, 2**31 - 1, 2**31 - 3, 2**31 - 8, 2**31, 2**31 + 1, 2**31 + 5]


def unrolled():
    pairs = [(0, t) for t in range(24)] + [(-t, 5 - t // 2) for t in range(1, 12)] + [(9, 9 + d) for d in range(1, 12)] \
        + [(a, a + d) for d in (-6, 2, 4, 7, 9) for a in NEAR_ENDS if a + d not in range(2**31, 2**31 + 3)]
    return unrolled_loops([(a, n) for a, n in pairs if -2**31 <= signed(n) - signed(a) < 2**31])


def unrolled_round():
    # The bound less the start passes the largest word.
    return unrolled_loops([(a, b) for a in NEAR_ENDS for b in NEAR_ENDS] + [(a, a + d) for d in range(-9, 24) for a in NEAR_ENDS])


KERNELS = [
    unrolled, unrolled_round, vectorize, long_ways,
    saxpy, vecadd, reduce_shared, reduce_shuffle, redux_groups, matmul_tiled, transpose, scan_shared, scan_warp, histogram, bitonic, stencil1d, stencil2d,
    mandelbrot, nested_loops, irreducible, early_return, shuffle_modes, votes, match_all, spin_lock_warp, spin_lock_blocks, dynamic_shared, predicated,
    int64, carry_chain, compare_minmax, bits, muls, narrow, convert, float32, float_compare, float64, bank_constants, shader_constants, private_calls, atomics32, atomics64, reductions,
    local_array, const_array, const_upper_half, vector_access, generic_address, many_kernels, grid3d, uniform_loads, uniform_divergent, switch_chain, collatz, counters_held,
    subwarp_shuffle, grid_stride, warp_without_sync, calls, calls_indirect, many_predicates, deep_regions, many_values,
    matrix_products, matrix_products_wide, matrix_products_double, matrix_products_narrow, matrix_products_sparse, matrix_products_sparse_narrow,
    matrix_products_kind, matrix_products_tiny,
    matrix_moves, matrix_stores, matrix_tiles, matrix_tiles_wide,
    stack_memory, wide_variable, wide_registers, video, integers_wide, vector_registers,
    cluster_of_one, matrix_quarters, large_parameters, stack_calls, stack_calls_any, param_space, param_address_narrow, shifted_difference, narrow_addresses, load_over_product,
    funnel_sums, packed_integers, packed_singles, redux_floats, return_if,
    initializers, calls_vectors, calls_without_abi, call_numbers, small_programs, modifier_orders,
    parameterised_names, flags_of_loops, uniform_atomics, uniform_branches, declared_twice, several_results, warp_neighbours, elections, elections_told, elections_later, random_programs, run_time_barriers,
    spellings, zeros_side_by_side, set_halves, set_bfloats, lanes_of_8, lanes_of_8_107, least_of_sums, least_of_three,
    volatile_local,
    carryless, set_lanes_107, read_only, sums_of_subnormals, locality_domains, barrier_phases, fences_restricted, *MEETINGS, assertions, printed, printed_apart, mbarriers, mbarriers_bytes,
    bulk_copies, bulk_copies_cluster, bulk_copies_masked, groups_apart, quotients_of_atomics,
    tensors, tensors_rows, tensors_images, tensors_cluster, tensor_maps, clusters_async, max_registers, max_registers_all, multimem, clusters_several,
    constants_behind_calls, clusters_wide, clusters_cancelled, clusters_cancelled_all, stores_released, copies_alone, copies_beside, clusters_multicast, clusters_multicast_16, packed_types_107, clusters_multicast_107, arrivals_multicast_107, copies_with_orders, priorities_107, textures, surfaces, queries, samplers, references, textures_addressed, textures_gradients, textures_apart, textures_compared,
    meetings_before_exit, open_parameters, narrow_from_halves, narrow_truncated_107, bfloats_from_narrow, constants, frame_words, copies_chosen, tensor_memory_wait, tensor_memory_exclusive_107, unaligned_parameters, unaligned_words, unusual_quotients, variables_kept, walking_pointers,
]


# Scripts that write a module and its launches.
WRITTEN = [group_products, matrix_products_scaled, tensor_chosen, tensor_chosen_scaled, tensor_extremes, tensor_memory, tensor_pairs, tensor_unit, wide_constants]


def main():
    differ = 0
    for kernel in KERNELS:
        name = kernel.__name__
        path = HERE / f"{name}.ron"
        text = render(ELSEWHERE.get(name, f"{name}.ptx"), kernel())
        if "--check" in sys.argv:
            if not path.exists() or path.read_text() != text:
                print(f"{path.name} differs")
                differ += 1
        else:
            path.write_text(text)
    for name, text in [(name, text) for module in WRITTEN for name, text in module.FILES.items()]:
        path = HERE / name
        if "--check" not in sys.argv:
            path.write_text(text)
        elif path.read_text() != text:
            print(f"{path.name} differs")
            differ += 1
    modules = {p.stem for p in HERE.glob("*.ptx")} | set(ELSEWHERE)
    for name in modules ^ ({k.__name__ for k in KERNELS} | {Path(name).stem for module in WRITTEN for name in module.FILES}):
        print(f"{name}: a module without a reference, or a reference without a module")
        differ += 1
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
