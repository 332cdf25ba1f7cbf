"""Exact binary floating point for the references: every operation is done on fractions and rounded once.

Numbers are Python floats that hold an f32 or an f64 value exactly. `p` is the precision (24 or 53), `mode` the rounding of PTX:
rn (nearest, ties to even), rz (towards zero), rm (down), rp (up). Infinities and NaNs follow Python's own arithmetic, which is IEEE's.
"""

import math
import struct
from fractions import Fraction

F32, F64 = 24, 53
EMIN = {F32: -149, F64: -1074}
LIMIT = {F32: Fraction(2) ** 128, F64: Fraction(2) ** 1024}


def round_to_integer(q, mode):
    """A fraction to an integer: rn, rz, rm or rp."""
    low = math.floor(q)
    if mode == "rm" or q == low:
        return low
    if mode == "rp":
        return low + 1
    if mode == "rz":
        return low if q > 0 else low + 1
    twice = 2 * (q - low)
    return low + (twice > 1 or (twice == 1 and low % 2 == 1))


def round_float(q, p, mode="rn"):
    """A non-zero fraction to the nearest float of precision p, with subnormals."""
    size, sign = abs(q), 1.0 if q > 0 else -1.0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - p + 1, EMIN[p])
    value = round_to_integer(q / unit, mode) * unit
    if abs(value) >= LIMIT[p]:
        toward = mode == "rz" or (mode == "rm" and q > 0) or (mode == "rp" and q < 0)
        largest = LIMIT[p] - LIMIT[p] / 2**p
        return sign * (float(largest) if toward else math.inf)
    return sign * abs(float(value))


def fma(a, b, c, p=F32, mode="rn"):
    """a * b + c with one rounding."""
    if not all(map(math.isfinite, (a, b, c))):
        if math.isnan(a) or math.isnan(b) or math.isnan(c):
            return math.nan
        if math.isinf(a) or math.isinf(b):
            sign = math.copysign(1, a) * math.copysign(1, b)
            return math.nan if a == 0 or b == 0 else sign * math.inf + c
        return c
    q = Fraction(a) * Fraction(b) + Fraction(c)
    if q != 0:
        return round_float(q, p, mode)
    product_negative = math.copysign(1, a) * math.copysign(1, b) < 0
    if Fraction(a) * Fraction(b) == 0 and product_negative == (math.copysign(1, c) < 0):
        return -0.0 if product_negative else 0.0
    return -0.0 if mode == "rm" else 0.0


def add(a, b, p=F32, mode="rn"):
    return fma(a, 1.0, b, p, mode)


def sub(a, b, p=F32, mode="rn"):
    return add(a, -b, p, mode)


def mul(a, b, p=F32, mode="rn"):
    return fma(a, b, math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b)), p, mode)


def lesser(a, b):
    """The smaller one; a number wins over NaN, and -0 is below +0."""
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return min((a, b), key=lambda v: (v, math.copysign(1, v)))


def greater(a, b):
    return -lesser(-a, -b)


def f32(value):
    """A decimal or an integer as the nearest f32."""
    return round_float(Fraction(value), F32) if value != 0 and math.isfinite(value) else float(value)


def bits32(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def bits64(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def signed(value, width=32):
    """The low bits of an integer as a signed number."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def unsigned(value, width=32):
    return value & ((1 << width) - 1)


def to_int(value, width, is_signed, mode):
    """A float to an integer, clamped to the integer's range."""
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, round_to_integer(Fraction(value), mode)))
