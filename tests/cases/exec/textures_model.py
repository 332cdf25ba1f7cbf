"""The meaning of textures and surfaces: the reference of textures.ptx and surfaces.ptx.

A texture lies in a buffer behind a header of 16 words (src/sim/ops/texture.rs); weights have 8 bits behind the point.
"""

import math
import struct
from fractions import Fraction

from exact import f32, signed
from launchfile import IN, INOUT, MEMORY, OUT, launch, lcg, listed, scalar

OPCODES = [f"sm_{n}" for n in (75, 80, 86, 89, 90, 100, 103, 110, 120, 121)]
# sm_107 reads by calls, which nothing is known to tell the number of a sample nor what to compare with.
TARGETS = OPCODES + ["sm_107"]
M32 = 0xFFFFFFFF
KINDS = {"u8": (0, "B"), "s8": (1, "b"), "u16": (2, "H"), "s16": (3, "h"), "u32": (4, "I"), "s32": (5, "i"), "f16": (6, "e"), "f32": (7, "f")}
MODES = {"wrap": 0, "mirror": 1, "clamp": 2, "border": 3}


def bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


class Image:
    """`texels` has numbers, level after level and in each slice after slice, the components of one texel side by side."""

    def __init__(self, kind, channels, size, texels, cube=False, layers=0, levels=1, linear=False, normalized=False, as_float=False, modes=("clamp",) * 3,
                 samples=1, used=0, name=""):
        self.kind, self.channels, self.size, self.texels, self.cube, self.layers = kind, channels, size, texels, cube, layers
        self.levels, self.linear, self.normalized, self.as_float, self.modes = levels, linear, normalized, as_float, modes
        self.samples, self.used, self.name = samples, used, name

    def words(self):
        number, code = KINDS[self.kind]
        size = list(self.size) + [1] * (3 - len(self.size))
        dimensions = 3 if self.cube else len(self.size)
        shape = dimensions | self.cube << 2 | (self.layers > 0) << 3
        flags = self.linear | self.normalized << 1 | self.as_float << 2
        for i, mode in enumerate(self.modes):
            flags |= MODES[mode] << 8 + 2 * i
        header = [0x58455453, number | self.channels << 8 | shape << 16, *size, self.layers, self.levels, flags | self.used << 16, self.samples if self.samples > 1 else 0]
        header += struct.unpack("<7I", self.name.encode().ljust(28, b"\0"))
        packed = struct.pack(f"<{len(self.texels)}{code}", *self.texels)
        packed += bytes(-len(packed) % 4)
        return listed(header + list(struct.unpack(f"<{len(packed) // 4}I", packed)))

    def at(self, level):
        return [max(n >> level, 1) for n in self.size]

    def texel(self, level, part, at):
        """The components of a texel: those that it lacks are 0, 0 and 1."""
        parts = max(self.layers, 1) * (6 if self.cube else 1)
        start = sum(parts * math.prod(self.at(k)) for k in range(level)) + part * math.prod(self.at(level))
        for i, x in enumerate(at):
            start += x * math.prod(self.at(level)[:i])
        got = list(self.texels[self.channels * start:self.channels * (start + 1)])
        if self.as_float:
            got = [f32(v / 255.0) for v in got]
        return got + [0, 0, 0, 1][len(got):]

    def inside(self, level, part, at):
        to = []
        for x, n, mode in zip(at, self.at(level), self.modes):
            if mode in ("wrap", "mirror") and self.normalized:
                x %= n if mode == "wrap" else 2 * n
                x = min(x, 2 * n - 1 - x) if mode == "mirror" else x
            elif mode == "border" and not 0 <= x < n:
                return [0] * 4
            to.append(min(max(x, 0), n - 1))
        return self.texel(level, part, to)

    def corners(self, level, part, at):
        """Texels around a place with their weights, the first coordinate fastest."""
        out = []
        for corner in range(1 << len(at)):
            to, share = [], Fraction(1)
            for i, x in enumerate(at):
                x -= Fraction(1, 2)
                alpha = Fraction(math.floor((x - math.floor(x)) * 256 + Fraction(1, 2)), 256)
                far = corner >> i & 1
                to.append(math.floor(x) + far)
                share *= alpha if far else 1 - alpha
            out.append((self.inside(level, part, to), share))
        return out

    def read(self, at, part=0, level=0, offsets=(0, 0, 0)):
        """A read by floats."""
        n = self.at(level)
        at = [Fraction(x) * (n[i] if self.normalized else 1) + offsets[i] for i, x in enumerate(at)]
        if not self.linear:
            return self.inside(level, part, [math.floor(x) for x in at])
        all = self.corners(level, part, at)
        return [f32(float(sum(Fraction(c[i]) * share for c, share in all))) for i in range(4)]

    def gather(self, at, component, offsets=(0, 0)):
        all = self.corners(0, 0, [Fraction(x) + o for x, o in zip(at, offsets)])
        return [all[k][0][component] for k in (2, 3, 1, 0)]


def small(n, seed, most=63):
    return [float(v) for v in lcg("u32", n, seed, most)]


def textures():
    numbers = Image("s32", 1, (9,), lcg("s32", 9, 700, M32))
    ring = Image("f32", 4, (8,), small(32, 701), linear=True, normalized=True, modes=("wrap",) * 3)
    lines = []
    for t in range(32):
        lines += [v & M32 for v in numbers.texel(0, 0, [t - 4])] if 0 <= t - 4 < 9 else [0] * 4
        lines += [bits(v) for v in ring.read([(t - 4) / 16])]
    plane = Image("f32", 1, (6, 5), small(30, 702), linear=True)
    body = Image("f32", 2, (4, 4, 3), small(96, 703), linear=True, normalized=True, modes=("mirror", "wrap", "clamp"))
    layers = Image("u32", 1, (7, 4), lcg("u32", 84, 704, M32), layers=3, modes=("border", "clamp", "clamp"))
    colours = Image("u8", 4, (8, 4), lcg("u8", 128, 705, 255), as_float=True)
    planes = []
    for t in range(32):
        x, y, z, k = t * 0.375 - 1, t * 0.25 - 0.5, t / 32, t & 3
        one, solid = plane.read([x, y]), body.read([x / 8, y / 8, z])
        planes += [bits(v) for v in (one[0], 1.0, solid[0], solid[1])] + [bits(v) for v in colours.read([x, y])]
        planes += [bits(v) for v in plane.gather([x, y], 0)] + [layers.read([x, y], min(t % 5, 2))[0]]
        green = colours.gather([x, y], 1, (k, 1 - k))
        planes += [bits(v) for v in (plane.read([x, y], offsets=(1 - k, -1))[0], green[0], green[3])]
    deep = Image("f32", 1, (8, 8), small(85, 706), levels=4, normalized=True, modes=("wrap", "clamp", "clamp"))
    levels = []
    for t in range(32):
        x, y, k = t / 32 + 1 / 64, 0.5 - t / 32, t & 3
        n = deep.at(k)
        exact = deep.texel(k, 0, [k, 1])[0] if k < n[0] and 1 < n[1] else 0
        levels += [bits(v) for v in (deep.read([x, y], level=min(math.floor(t / 8 + 0.5), 3))[0], deep.read([x, y], level=k)[0],
                                     deep.read([x, y], level=k, offsets=(k, 1))[0], exact, deep.read([x, y])[0], 1.0)] + [0xA5A5A5A5] * 2
    cube = Image("u32", 1, (4, 4), lcg("u32", 96, 707, M32), cube=True)
    pair = Image("u32", 1, (2, 2), lcg("u32", 48, 708, M32), cube=True, layers=2)
    directions, cubes = [], []
    for t in range(32):
        face, m, s, v = t % 6, [1.0, 2.0, 0.5][t % 3], (t // 2 % 4 * 2 - 3) / 4, (t // 4 % 4 * 2 - 3) / 4
        a, b = s * m, v * m
        directions += [(m, -b, -a), (-m, -b, a), (a, m, b), (a, -m, -b), (a, -b, m), (-a, -b, -m)][face]
        place = [(s + 1) / 2, (v + 1) / 2]
        cubes += [image.texel(0, 6 * layer + face, [int(p * image.size[0]) for p in place])[0] for image, layer in ((cube, 0), (pair, t & 1))]
    first, second = (Image("u32", 1, (n, 4), lcg("u32", 4 * n, 709 + n, M32), modes=("border",) * 3) for n in (20, 5))
    chosen = []
    for t in range(32):
        image, x, y = (second if t & 1 else first), float(t), t / 4
        other = image.read([y, x])[0] + image.gather([y, x], 0)[3]
        chosen += [image.read([x, y])[0] if t < 24 else 7, other & M32 if t >= 6 else 9]
    start, other = numbers.texels[0] & M32, Image("s32", 1, (3,), [signed(v) for v in lcg("u32", 3, 715, M32)])
    second_start = other.texels[0] & M32
    origins = [v for t in range(32) for v in (start, second_start if t & 1 else start)]
    given = lambda *images: [IN("u32", image.words()) for image in images]
    one = lambda name, args, out: launch(name, 1, 32, args + [OUT("u32", out)], targets=TARGETS)
    return [
        one("lines", given(numbers, ring), lines),
        one("planes", given(plane, body, layers, colours), planes),
        one("levels", given(deep), levels),
        one("cubes", given(cube, pair) + [IN("f32", listed([x for d in directions for x in ([d] if isinstance(d, float) else d)]))], cubes),
        one("chosen", given(first, second), chosen),
        one("origins", given(numbers, other), origins),
    ]


def textures_gradients():
    modes = ("mirror", "wrap", "clamp")
    first, second = (Image("f32", 4, (4, 4, 4), small(292, 740 + n), levels=3, normalized=True, modes=modes) for n in (0, 1))
    bodies = []
    for t in range(32):
        k, x, y = t % 3, t / 32 + 1 / 64, 1 - t / 32
        z, chosen = x / 2, (first, second)[t & 1]
        all = first.read([x, y, z], level=k)
        some = chosen.read([y, z, x], level=k, offsets=(1 - k, 0, -1)) if t < 20 else [0, 7.0, 0, 9.0]
        halves = [half(v) for v in chosen.read([z, x, y], level=k)]
        bodies += [bits(v) for v in all] + [bits(some[1]), bits(some[3])]
        bodies += [halves[0] | halves[1] << 16, halves[2] | halves[3] << 16, 1, k]
    cube = Image("u32", 1, (4, 4), lcg("u32", 6 * 21, 742, M32), cube=True, levels=3)
    pair = Image("s32", 1, (4, 4), [signed(v) for v in lcg("u32", 12 * 21, 743, M32)], cube=True, layers=2, levels=3)
    given, cubes = [], []
    for t in range(32):
        face, m, s, v, k = t % 6, [1.0, 2.0, 0.5][t % 3], (t // 2 % 4 * 2 - 3) / 4, (t // 4 % 4 * 2 - 3) / 4, t // 6 % 3
        turned = lambda m, a, b: [(m, -b, -a), (-m, -b, a), (a, m, b), (a, -m, -b), (a, -b, m), (-a, -b, -m)][face]
        direction = turned(m, s * m, v * m)
        # So many texels along the first side of the face, and a little of the direction, which is none.
        along = turned(0.0, 2 * m * 2**k / 4, 0.0)
        given += direction + tuple(a + d / 16 for a, d in zip(along, direction))
        place = [(s + 1) / 2, (v + 1) / 2]
        for image, layer in ((cube, 0), (pair, t & 1)):
            cubes.append(image.texel(k, 6 * layer + face, [int(p * image.at(k)[0]) for p in place])[0] & M32)
    one = lambda name, images, more, out: launch(name, 1, 32, [IN("u32", image.words()) for image in images] + more + [OUT("u32", out)], targets=TARGETS)
    return [one("bodies", [first, second], [], bodies), one("cubes", [cube, pair], [IN("f32", listed(given))], cubes)]


def textures_apart():
    modes = ("mirror", "wrap", "clamp")
    first, apart = Image("f32", 4, (4, 4, 4), small(292, 740), levels=3, normalized=True, modes=modes), []
    for t in range(30):
        k, x, y, n = t % 3, t / 32 + 1 / 64, 1 - t / 32, 5 * t % 7
        if n < 3:
            apart += [bits(v) for v in first.read([x, y, x / 2], level=k)] if t != 13 else [0] * 4
            continue
        r = [t + i for i in range(24)]
        for _ in range(n):
            for i in range(24):
                r[i] = r[i] * 3 + r[(i + 1) % 24] & M32
        words = [0] * 4
        for i, word in enumerate(r):
            words[i % 4] ^= word
        apart += words if t != 13 else [0] * 4
    return [launch("apart", 1, 30, [IN("u32", first.words()), OUT("u32", apart)], targets=TARGETS)]


def surfaces():
    source = Image("u8", 4, (6, 4), lcg("u8", 96, 720, 255))
    made = Image("u32", 4, (7, 4), lcg("u32", 112, 721, M32))
    line = Image("u16", 1, (61,), lcg("u16", 61, 722, 0xFFFF))
    rows, after, short, out = [source.texels[24 * y:24 * y + 24] for y in range(4)], list(made.texels), list(line.texels), []
    for t in range(32):
        x, y = t & 7, t >> 3
        near = min(max(4 * x - 4, 0), 20)
        word = sum(v << 8 * i for i, v in enumerate(rows[y][4 * x - 4:4 * x])) if 0 < x < 7 else 0
        pair = rows[y][near] + 256 * rows[y][near + 3]
        if x < 7:
            after[4 * (7 * y + x):4 * (7 * y + x) + 4] = [word, pair, t, x]
        short[min(max(4 * t - 2, 0), 120) // 2] = t
        out.append((word, pair, y))
    back = []
    for word, pair, y in out:
        back += [word, pair, after[28 * y + 2], y]
    layers = Image("s32", 1, (16, 2), [signed(v) for v in lcg("u32", 64, 723, 0xFFFFF)], layers=2)
    body = Image("s32", 1, (16, 2, 3), [signed(v) for v in lcg("u32", 96, 724, 0xFFFFF)])
    halves = Image("f16", 4, (30,), [0.0] * 120)
    sums = Image("s32", 1, (24,), [signed(v) for v in lcg("u32", 24, 725, 0x7FFFF)])
    stored, packed, added, told = list(layers.texels), [], list(sums.texels), []
    for t in range(32):
        k, x = t & 1, t >> 1
        a, b = layers.texels[32 * k + 16 + x], body.texels[64 + 16 * k + x]
        told += [a & M32, b & M32]
        stored[32 * k + x] = a + b
        if t < 30:
            packed += [float(t), t / 4, -float(t), 1.0]
        word = 2 * (t & 3)
        long = (added[word] & M32 | (added[word + 1] & M32) << 32) + t
        added[word:word + 2] = [signed(long & M32), signed(long >> 32 & M32)]
        least = (16 * (t & 3) + 32) // 4
        if least < 24:
            added[least] = min(added[least], a + b)
    wide = Image("u32", 4, (32,), lcg("u32", 128, 726, M32))
    change = lambda image, texels: INOUT("u32", image.words(), Image(image.kind, image.channels, image.size, texels, layers=image.layers).words())
    return [
        launch("moved", 1, 32, [IN("u32", source.words()), change(made, after), change(line, short), OUT("u32", back)], targets=TARGETS),
        launch("parts", 1, 32, [IN("u32", wide.words()), OUT("u32", [wide.texels[4 * t + i] for t in range(32) for i in (2, 0)])], targets=TARGETS),
        launch("joined", 1, 32, [change(layers, stored), IN("u32", body.words()), change(halves, packed), change(sums, added), OUT("u32", told)], targets=TARGETS),
    ]


def half(value):
    return struct.unpack("<H", struct.pack("<e", value))[0]


def queries():
    seen = Image("u8", 2, (12, 6), lcg("u8", 2 * (72 + 18 + 3), 730, 255), levels=3, linear=True, normalized=True, as_float=True, modes=("mirror", "border", "clamp"))
    drawn = Image("s16", 4, (5, 3), [0] * 120, layers=2, used=1)
    asked = []
    for t in range(32):
        k = min(t, 2)
        asked += [12, 6, 12 >> k, 3, 0x10D2, 0x10B2, 1, 1, 1, 4, 0, 3, 1, 5, 1, 0x10D8, 0x10B5, 2, [12, 5][t & 1], [1, 2][t & 1]]
    smooth = smooth_plane()
    halves = []
    for t in range(32):
        x, y = t * 0.25, float(t & 3)
        s, w, four = [half(v) for v in smooth.read([x, y])], [half(v) for v in smooth.read([y, x])], smooth.gather([x, x], 3)
        halves += [s[0] | s[2] << 16, s[3] | s[1] << 16, w[0] | w[1] << 16, w[2] | w[3] << 16]
        halves += [bits(smooth.read([y, y])[0]), bits(four[1]), bits(four[2]), 7]
    plain = Image("u32", 1, (4,), lcg("u32", 4, 734, 0xFFFFF), used=1)
    signs = Image("s32", 1, (4, 3), [signed(v) for v in lcg("u32", 12, 735, M32)], used=1)
    sums, extremes = list(plain.texels), list(signs.texels)
    for t in range(32):
        k = t & 3
        sums[k] += t
        extremes[8 + k], extremes[k] = min(extremes[8 + k], t - 20), max(extremes[k], t - 20)
    change = lambda image, texels: INOUT("u32", image.words(), Image(image.kind, image.channels, image.size, texels, used=image.used).words())
    one = lambda name, args: launch(name, 1, 32, args, targets=TARGETS)
    return [
        one("asked", [IN("u32", seen.words()), IN("u32", drawn.words()), OUT("u32", asked)]),
        one("halves", [IN("u32", smooth.words()), OUT("u32", halves)]),
        one("reduced", [change(plain, sums), change(signs, extremes)]),
        one("plain", plain_forms()),
        one("drawn", drawn_forms()),
    ]


def smooth_plane():
    return Image("f16", 4, (5, 4), [v / 8 for v in small(80, 733)], linear=True)


def textures_compared():
    depths = Image("f32", 1, (6, 4), small(24, 731), linear=True)
    several = Image("u32", 2, (4, 4), lcg("u32", 2 * 16 * 4, 732, M32), samples=4)
    smooth = smooth_plane()

    def against(x, y, value, at=None):
        passes = Image("f32", 1, (6, 4), [float(value <= v) for v in depths.texels], linear=True)
        return passes.read([x, y])[0] if at is None else passes.gather([x, y], 0, at)

    def sample(number, x, y):
        if not (0 <= x < 4 and 0 <= y < 4):
            return [0, 0]
        start = 2 * (4 * (4 * y + x) + min(number, 3))
        return several.texels[start:start + 2]

    compared = []
    for t in range(32):
        k, n, x, y = t & 3, t >> 3, t * 0.25, float(t & 3)
        four = against(x, y, x, (k, 1))
        one, other = sample(k, n, k), sample(1, n + 1, k - 1)
        s, w = [half(v) for v in smooth.read([x, y])], [half(v) for v in smooth.read([y, x])]
        compared += [bits(v) for v in (against(x, y, 30.0), against(x, y, y), four[0], four[3])]
        compared += [one[0], other[0], s[0] | s[2] << 16, s[3] | s[1] << 16, w[0] | w[1] << 16, w[2] | w[3] << 16]
        compared += [bits(smooth.read([y, y])[0]), 3]
    args = [IN("u32", image.words()) for image in (depths, several, smooth)] + [OUT("u32", compared)]
    return [launch("compared", 1, 32, args, targets=OPCODES)]


def plain_forms():
    line, plane = Image("f32", 1, (20,), small(20, 750)), Image("s32", 1, (4, 4), [signed(v) for v in lcg("u32", 16, 751, M32)])
    layers = Image("f32", 1, (4, 4), small(40, 752), layers=2, levels=2)
    cube, out = Image("f32", 1, (4, 4), small(96, 753), cube=True), []
    for t in range(32):
        x, y, z = t & 3, t >> 2 & 3, t >> 4
        out += [bits(line.texels[t]) if t < 20 else 0]
        out += [bits(layers.read([x, y], z)[0]), bits(layers.read([x, y], z, level=1)[0]), bits(cube.texel(0, 0, [x, y])[0])]
        out += [plane.read([x, y])[0] & M32]
    return [IN("u32", image.words()) for image in (line, plane, layers, cube)] + [OUT("u32", out)]


def drawn_forms():
    row = Image("u32", 1, (32,), lcg("u32", 32, 754, 0xFFFFF), used=1)
    body = Image("u32", 2, (4, 4, 2), lcg("u32", 64, 755, M32), used=1)
    shorts = Image("u16", 1, (4, 4), lcg("u16", 32, 756, 0x7FFF), layers=2, used=1)
    out, swapped = [], list(body.texels)
    for t in range(32):
        pair = body.texels[2 * t:2 * t + 2]
        swapped[2 * t:2 * t + 2] = pair[::-1]
        out += [row.texels[t], *pair, shorts.texels[t]]
    change = lambda image, texels: INOUT("u32", image.words(), Image(image.kind, image.channels, image.size, texels, layers=image.layers, used=1).words())
    args = [change(row, [v + t for t, v in enumerate(row.texels)]), change(body, swapped), change(shorts, [v + 1 for v in shorts.texels])]
    return args + [OUT("u32", out)]


def samplers():
    """A sampler is a texture without texels; only its filter and address modes count."""
    numbers = [small(8, 740), small(16, 741)]
    kinds = [dict(linear=True, normalized=True, modes=("wrap",) * 3), dict(normalized=True, modes=("mirror",) * 3)]
    line, plane = Image("f32", 1, (8,), numbers[0]), Image("f32", 1, (4, 4), numbers[1])
    first, second = (Image("u8", 1, (1, 1), [], used=2, **kind) for kind in kinds)
    smooth, sharp = (Image("f32", 1, (8,), numbers[0], **kind) for kind in kinds)
    around, out = Image("f32", 1, (4, 4), numbers[1], **kinds[0]), []
    for t in range(32):
        x = t / 32
        out += [smooth.read([x])[0], sharp.read([x])[0], (smooth if t & 1 else sharp).read([x])[0], around.gather([4 * x, 4 * x], 0)[0]]
    args = [IN("u32", image.words()) for image in (line, first, second, plane)]
    seen = Image("f32", 1, (4, 4), small(48, 742), layers=3, name="seen")
    taken = Image("u8", 1, (1, 1), [], used=2, linear=True, normalized=True, modes=("border", "clamp", "mirror"), name="taken")
    # Linear and three times wrap, f32, one component, not normalized, one level; linear, mirror; layers, and width.
    answers = [1, 0, 0, 0, 0x10DE, 0x10B0, 0, 1, 1, 1, 3, 4]
    named = [MEMORY(IN("u32", image.words())) for image in (seen, taken)]
    return [
        launch("sampled", 1, 32, args + [OUT("u32", [bits(v) for v in out])], targets=TARGETS),
        launch("asked", 1, 1, args[:2] + [OUT("u32", answers)] + named, targets=TARGETS),
    ]


def references():
    """What a reference names is a buffer beside the parameters, with the name behind the header."""
    line, plane = Image("u32", 1, (40,), lcg("u32", 40, 760, M32), name="lines"), Image("f32", 1, (6, 5), small(30, 761), linear=True, name="plane")
    drawing, out, after = Image("u32", 1, (32,), lcg("u32", 32, 762, 0xFFFF), used=1, name="drawing"), [], []
    for t in range(32):
        out += [bits(plane.read([t / 4, t / 4])[0]), line.texels[t], 40, 1]
        after.append(drawing.texels[t] * 40 + line.texels[t] & M32)
    written = Image("u32", 1, (32,), after, used=1, name="drawing")
    named = [OUT("u32", out), MEMORY(IN("u32", line.words())), MEMORY(IN("u32", plane.words())), MEMORY(INOUT("u32", drawing.words(), written.words()))]
    other = [OUT("u32", [v + 7 & M32 for v in line.texels[:32]]), scalar("u64", 0), scalar("u32", 7), MEMORY(IN("u32", line.words()))]
    return [
        launch("named", 1, 32, named, targets=TARGETS),
        launch("other", 1, 32, other, targets=TARGETS),
    ]


def textures_addressed():
    line, plane = Image("u32", 1, (40,), lcg("u32", 40, 760, M32), name="lines"), Image("f32", 1, (6, 5), small(30, 761), linear=True, name="plane")
    drawing = Image("u32", 1, (32,), lcg("u32", 32, 762, 0xFFFF), used=1, name="drawing")
    sums = [v for t in range(32) for v in (bits(plane.read([t / 4, t / 4])[0]), 2 * (drawing.texels[t] + line.texels[t]) + 40 & M32, 0xA0000001)]
    addressed = [OUT("u32", sums), *(MEMORY(IN("u32", image.words())) for image in (line, plane, drawing))]
    return [launch("addressed", 1, 32, addressed, targets=[target for target in TARGETS if target not in ("sm_75", "sm_80", "sm_86", "sm_89")])]
