"""Products of matrices: where their elements lie in the registers of 32 lanes (PTX ISA 9.0, 9.7.14.5), and launches of one warp.

A kernel reads the fragments of a, b, c (and the metadata of a sparse a) of its lane, one record for each lane, and writes that of d. The values
are small whole numbers, so that every sum is exact in every type.
"""

import random
import struct

from launchfile import IN, INOUT, OUT, fill, launch, listed

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8}
# Of floats in a byte each: bits of the mantissa, bias, place of the sign, bits below the number.
TINY = {"e4m3": (3, 7, 7, 0), "e5m2": (2, 15, 7, 0), "e3m2": (2, 3, 5, 0), "e2m3": (3, 1, 5, 0), "e2m1": (1, 1, 3, 2)}
PACKS = {"f16": "<e", "tf32": "<f", "f32": "<f", "f64": "<d"}


def encoded(ty, value):
    """The bits of a whole number in a type."""
    if ty in PACKS:
        return int.from_bytes(struct.pack(PACKS[ty], value), "little")
    if ty == "bf16":
        return encoded("f32", value) >> 16
    if ty not in TINY:
        return value % 2 ** BITS[ty]
    if value == 0:
        return 0
    mantissa, bias, sign, below = TINY[ty]
    size = abs(value)
    exponent = size.bit_length() - 1
    fraction = (size << mantissa >> exponent) - (1 << mantissa)
    return ((value < 0) << sign | exponent + bias << mantissa | fraction) << below


def any_of(ty, source):
    """A number of a type."""
    if ty == "b1":
        return source.randint(0, 1)
    if ty == "f16" or ty in TINY:
        return source.randint(-4, 4)
    if ty in PACKS or ty == "bf16":
        return source.randint(-20, 20)
    low = 0 if ty[0] == "u" else -(2 ** (BITS[ty] - 1))
    return source.randint(low, low + 2 ** BITS[ty] - 1)


def factor_place(ty, lines, line, k):
    """Lane, element of the fragment and bit in it of row `line` of a (column of b), place k: blocks of four lanes along k."""
    per = max(1, 32 // BITS[ty])
    block, inside = divmod(k, 4 * per)
    lane, element = divmod(inside, per)
    return line % 8 * 4 + lane, block * (lines // 8) + line // 8, element * BITS[ty]


def sum_place(ty, row, column):
    if ty == "f16":
        return row % 8 * 4 + column // 2, row // 8, column % 2 * 16
    return row % 8 * 4 + column // 2, row // 8 * 2 + column % 2, 0


def fragments(ty, count, elements):
    """The words of each lane: `count` registers of `elements`, which are (place, value)."""
    lanes = [[0] * count for _ in range(32)]
    for (lane, register, bit), value in elements:
        lanes[lane][register] |= encoded(ty, value) << bit
    if BITS[ty] < 64:
        return lanes
    return [[word for value in lane for word in (value % 2**32, value >> 32)] for lane in lanes]


def sparse(ty, m, k, dense, source, in_order=True):
    """Zeroes in half of a; what is kept, and the metadata of selector 0 in 32 lanes, the indices of a pair in order or not."""
    kept, metadata = [[0] * (k // 2) for _ in range(m)], [0] * 32
    # The metadata counts elements, pairs of 4 bits, halves of 32 bits.
    units = {"tf32": 2 * k, "s4": k // 2, "u4": k // 2}.get(ty, k)
    for row in range(m):
        for chunk in range(units // 4):
            if ty == "tf32":
                which = source.randint(0, 1)
                pair = (2 * which, 2 * which + 1)
                kept[row][chunk] = dense[row][2 * chunk + which]
                dense[row][2 * chunk + 1 - which] = 0
            else:
                pair = source.sample(range(4), 2)
                if in_order:
                    pair.sort()
                size = 2 if BITS[ty] == 4 else 1
                for unit in range(4):
                    for i in range(size):
                        at = (4 * chunk + unit) * size + i
                        if unit in pair:
                            kept[row][(2 * chunk + pair.index(unit)) * size + i] = dense[row][at]
                        else:
                            dense[row][at] = 0
            # 16 bits of a row beside 16 of the row 8 further down; with narrow elements a lane has 32 bits of one of them.
            lane, at = (chunk // 8 * 2 + row // 8, chunk % 8 * 4) if BITS[ty] < 16 else (chunk // 4, chunk % 4 * 4 + row // 8 * 16)
            metadata[row % 8 * 4 + lane] |= (pair[0] | pair[1] << 2) << at
    return kept, metadata


def clamped(value, saturate):
    if saturate:
        return max(-(2**31), min(2**31 - 1, value))
    return (value + 2**31) % 2**32 - 2**31


def product(name, shape, types, registers, seed, targets=(), bit=None, saturate=False, is_sparse=False):
    """A launch of `name`: d = a * b + c. `registers` of d, a, b, c."""
    source = random.Random(seed)
    m, n, k = shape
    td, ta, tb, tc = types
    a = [[any_of(ta, source) for _ in range(k)] for _ in range(m)]
    b = [[any_of(tb, source) for _ in range(n)] for _ in range(k)]

    def summand():
        # Near both ends, so that some sums are clamped and some are not.
        return source.choice((-1, 1)) * (2**31 - 1 - source.randint(0, 400)) if saturate else source.randint(-100, 100)

    c = [[summand() for _ in range(n)] for _ in range(m)]
    stored, metadata = sparse(ta, m, k, a, source, is_sparse != "any") if is_sparse else (a, None)

    def dot(row, column):
        pairs = [(a[row][i], b[i][column]) for i in range(k)]
        return sum(x & y if bit == "and" else x ^ y if bit == "xor" else x * y for x, y in pairs) + c[row][column]

    d = [[clamped(dot(i, j), saturate) if td == "s32" else dot(i, j) for j in range(n)] for i in range(m)]

    def sums(ty, values):
        return [(sum_place(ty, i, j), values[i][j]) for i in range(m) for j in range(n)]

    lanes = [
        fragments(ta, registers[1], [(factor_place(ta, m, i, j), x) for i, row in enumerate(stored) for j, x in enumerate(row)]),
        fragments(tb, registers[2], [(factor_place(tb, 8, j, i), x) for i, row in enumerate(b) for j, x in enumerate(row)]),
        fragments(tc, registers[3], sums(tc, c)),
        [[word] for word in metadata] if is_sparse else [[]] * 32,
    ]
    records = [sum((part[lane] for part in lanes), []) for lane in range(32)]
    records = [record + [0] * (len(record) % 2) for record in records]
    expect = sum(fragments(td, registers[0], sums(td, d)), [])
    return launch(name, 1, 32, [IN("u32", listed(sum(records, []))), OUT("u32", expect, True)], targets=targets)


def stored(ty, matrix, by_rows, stride):
    """The words of a matrix in memory."""
    lines = matrix if by_rows else [list(column) for column in zip(*matrix)]
    bits = 0
    for i, line in enumerate(lines):
        for j, value in enumerate(line):
            bits |= encoded(ty, value) << (i * stride + j) * BITS[ty]
    words = (len(lines) * stride * BITS[ty] + 31) // 32
    return [bits >> 32 * i & 0xFFFFFFFF for i in range(words)]


def tile(name, shape, types, layouts, strides, seed, bit=None, targets=()):
    """A launch of `name`: d = a * b + c, all four in memory; layouts and strides of a, b, c and d."""
    source = random.Random(seed)
    m, n, k = shape
    td, ta, tb, tc = types
    a = [[any_of(ta, source) for _ in range(k)] for _ in range(m)]
    b = [[any_of(tb, source) for _ in range(n)] for _ in range(k)]
    c = [[source.randint(-100, 100) for _ in range(n)] for _ in range(m)]

    def dot(row, column):
        pairs = [(a[row][i], b[i][column]) for i in range(k)]
        return sum(x & y if bit == "and" else x ^ y if bit == "xor" else x * y for x, y in pairs) + c[row][column]

    d = [[dot(i, j) for j in range(n)] for i in range(m)]
    words = [stored(ty, x, layout == "row", stride) for ty, x, layout, stride in zip((ta, tb, tc, td), (a, b, c, d), layouts, strides)]
    # Between the lines of d nothing is written.
    d = INOUT("u32", fill("u32", len(words[3]), 0), words[3], True)
    return launch(name, 1, 32, [IN("u32", listed(w)) for w in words[:3]] + [d], targets=targets)


def matrix_words(seed):
    """64 rows of 8 half words, as 256 words."""
    source = random.Random(seed)
    return [source.getrandbits(32) for _ in range(256)]


def half_words(words):
    return [half for word in words for half in (word & 0xFFFF, word >> 16)]


def moved(words, count, transposed, row_halves=8):
    """What ldmatrix gives each lane of matrices that stand one behind the other."""
    halves, out = half_words(words), []
    for lane in range(32):
        for i in range(count):
            parts = []
            for e in range(2):
                line, place = lane // 4, 2 * (lane % 4) + e
                line, place = (place, line) if transposed else (line, place)
                parts.append(halves[(8 * i + line) * row_halves + place])
            out.append(parts[0] | parts[1] << 16)
    return out


def quarters(name, types, rows, seed):
    """A launch of `name`: four products of 8 by 8 by 4 at once; `rows` says whether a and b lie by rows."""
    source = random.Random(seed)
    (td, tc), (a_rows, b_rows) = types, rows
    square = lambda lines, length, most: [[source.randint(-most, most) for _ in range(length)] for _ in range(lines)]
    products = [(square(8, 4, 20), square(4, 8, 20), square(8, 8, 100)) for _ in range(4)]

    def words(ty, values):
        bits = sum(encoded(ty, value) << i * BITS[ty] for i, value in enumerate(values))
        return [bits >> 32 * i & 0xFFFFFFFF for i in range(len(values) * BITS[ty] // 32)]

    def sums(ty, lane, matrix):
        upper = lane // 16 * 4
        if ty == "f16":
            return words(ty, matrix[lane % 4 + upper])
        return words(ty, [matrix[lane % 2 + e // 2 % 2 * 2 + upper][e // 4 * 4 + lane % 4 // 2 * 2 + e % 2] for e in range(8)])

    records, expect = [], []
    for lane in range(32):
        a, b, c = products[lane % 16 // 4]
        line, upper = lane % 4, lane // 16 * 4
        d = [[sum(a[i][k] * b[k][j] for k in range(4)) + c[i][j] for j in range(8)] for i in range(8)]
        records += words("f16", a[line + upper] if a_rows else [a[upper + e][line] for e in range(4)])
        records += words("f16", b[line][upper:upper + 4] if b_rows else [b[k][line + upper] for k in range(4)])
        records += sums(tc, lane, c)
        expect += sums(td, lane, d)
    return launch(name, 1, 32, [IN("u32", listed(records)), OUT("u32", expect, True)])
