"""Quantisation, and products whose operands are quantised."""
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .matmul import tile_of
from .registry import kernel


@kernel("quantize_rows_int8", "x:*bf16 out:*i8 scales:*fp32 columns:i32/16", BLOCK=4096, warps=8)
@triton.jit
def quantize_rows(x, out, scales, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(value), 0), 1e-10) / 127.0
    tl.store(scales + row, scale)
    tl.store(out + row * columns + column, libdevice.rint(value / scale).to(tl.int8), mask=inside)


@kernel("quantize_groups_fp8", "x:*bf16 out:*fp8e4nv scales:*fp32 groups:i32 eps:fp32", GROUP=128, COUNT=8, since=89)
@triton.jit
def quantize_groups(x, out, scales, groups, eps, GROUP: tl.constexpr, COUNT: tl.constexpr):
    group = tl.program_id(0) * COUNT + tl.arange(0, COUNT)
    inside = (group < groups)[:, None]
    where = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    value = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(value), 1), eps) / 448.0
    scaled = tl.clamp(value / scale[:, None], -448.0, 448.0)
    tl.store(out + where, scaled.to(tl.float8e4nv), mask=inside)
    tl.store(scales + group, scale, mask=group < groups)


@kernel("quantize_mxfp8", "x:*bf16 out:*fp8e4nv scales:*u8 count:i32/16", BLOCK=4096, since=89)
@triton.jit
def quantize_mx(x, out, scales, count, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + where, mask=where < count, other=0.0).to(tl.float32)
    blocks = tl.reshape(value, (BLOCK // 32, 32))
    top = tl.max(tl.abs(blocks), 1)
    # The exponent of the scale, rounded up, so that nothing exceeds the largest number.
    bits = (top / 448.0).to(tl.uint32, bitcast=True)
    exponent = ((bits + 0x7FFFFF) >> 23) & 0xFF
    scale = (exponent << 23).to(tl.float32, bitcast=True)
    scaled = tl.where(scale[:, None] == 0, 0.0, blocks / scale[:, None])
    tl.store(out + where, tl.reshape(scaled, (BLOCK,)).to(tl.float8e4nv), mask=where < count)
    part = tl.program_id(0) * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    tl.store(scales + part, exponent.to(tl.uint8), mask=part * 32 < count)


@kernel("dequantize_int4", "packed:*i32 scales:*fp16 zeros:*i32 out:*fp16 columns:i32/16 group:i32", ROWS=16, BLOCK=32)
@triton.jit
def dequantize_int4(packed, scales, zeros, out, columns, group, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    word = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    words = columns // 8
    inside = (word < words)[None, :]
    bits = tl.load(packed + row[:, None] * words + word[None, :], mask=inside, other=0)
    nibble = tl.arange(0, 8)
    value = (bits[:, :, None] >> (nibble * 4)[None, None, :]) & 0xF
    which = row // group
    zero_bits = tl.load(zeros + which[:, None] * words + word[None, :], mask=inside, other=0)
    zero = (zero_bits[:, :, None] >> (nibble * 4)[None, None, :]) & 0xF
    column = word[:, None] * 8 + nibble[None, :]
    scale = tl.load(scales + which[:, None, None] * columns + column[None, :, :], mask=(column < columns)[None, :, :])
    target = out + row[:, None, None] * columns + column[None, :, :]
    tl.store(target, (value - zero).to(tl.float16) * scale, mask=(column < columns)[None, :, :])


@kernel(
    "gemm_awq_int4", "x:*fp16 packed:*i32 zeros:*i32 scales:*fp16 out:*fp16 m:i32 n:i32/16 k:i32/16 group:i32/16",
    BM=32, BN=64, BK=32, SPLIT=8, since=75,
)
@triton.jit
def gemm_awq(
    x, packed, zeros, scales, out, m, n, k, group,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
):
    # Eight columns share a word, in the order 0 4 1 5 2 6 3 7 of their nibbles.
    program = tl.program_id(0)
    rows = program // tl.cdiv(n, BN) * BM + tl.arange(0, BM)
    tile_n = program % tl.cdiv(n, BN)
    columns = tile_n * BN + tl.arange(0, BN)
    words = tile_n * (BN // 8) + tl.arange(0, BN // 8)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shift = tl.broadcast_to((order * 4)[None, :], (BK * (BN // 8), 8)).reshape(BK, BN)
    inner = tl.program_id(1) * BK + tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(k, BK * SPLIT)):
        at = step * BK * SPLIT + inner
        a = tl.load(x + rows[:, None] * k + at[None, :], mask=(rows < m)[:, None] & (at < k)[None, :], other=0.0)
        inside = (at < k)[:, None] & (words < n // 8)[None, :]
        bits = tl.load(packed + at[:, None] * (n // 8) + words[None, :], mask=inside, other=0)
        bits = tl.interleave(bits, bits)
        bits = tl.interleave(bits, bits)
        bits = tl.interleave(bits, bits)
        which = (tl.program_id(1) * BK + step * BK * SPLIT) // group
        zero = tl.load(zeros + which * (n // 8) + words, mask=words < n // 8, other=0)[None, :]
        zero = tl.interleave(zero, zero)
        zero = tl.interleave(zero, zero)
        zero = tl.interleave(zero, zero)
        zero = tl.broadcast_to(zero, (BK, BN))
        scale = tl.load(scales + which * n + columns, mask=columns < n, other=0.0)[None, :]
        b = ((((bits >> shift) & 0xF) - ((zero >> shift) & 0xF)) * scale).to(tl.float16)
        total = tl.dot(a, b, total)
    target = out + tl.program_id(1) * m * n + rows[:, None] * n + columns[None, :]
    tl.store(target, total.to(tl.float16), mask=(rows < m)[:, None] & (columns < n)[None, :])


@kernel("gemm_w4_bf16", "x:*bf16 packed:*u8 scales:*bf16 out:*bf16 m:i32 n:i32/16 k:i32/16", BM=64, BN=128, BK=64, GROUP=128, since=80, stages=4)
@triton.jit
def gemm_w4(
    x, packed, scales, out, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):
    tile_m, tile_n = tile_of(tl.program_id(0), m, n, BM, BN, 8)
    rows = (tile_m * BM + tl.arange(0, BM)) % m
    columns = (tile_n * BN + tl.arange(0, BN)) % n
    half = tl.arange(0, BK // 2)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        a = tl.load(x + rows[:, None] * k + (start + inner)[None, :])
        bits = tl.load(packed + columns[:, None] * (k // 2) + (start // 2 + half)[None, :])
        low = ((bits & 0xF).to(tl.int8) - 8).to(tl.bfloat16)
        high = ((bits >> 4).to(tl.int8) - 8).to(tl.bfloat16)
        scale = tl.load(scales + columns * (k // GROUP) + start // GROUP)
        b = tl.interleave(low, high) * scale[:, None]
        total = tl.dot(a, b.T, total)
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(out + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16), mask=inside)


@kernel("gemm_w8a16", "x:*fp16 w:*i8 scales:*fp16 out:*fp16 m:i32 n:i32/16 k:i32/16", BM=64, BN=64, BK=128, since=80)
@triton.jit
def gemm_w8(x, w, scales, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile_m, tile_n = tile_of(tl.program_id(0), m, n, BM, BN, 8)
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        a = tl.load(x + rows[:, None] * k + (start + inner)[None, :], mask=(rows < m)[:, None], other=0.0)
        b = tl.load(w + (start + inner)[:, None] * n + columns[None, :], mask=(columns < n)[None, :], other=0)
        total = tl.dot(a, b.to(tl.float16), total)
    total *= tl.load(scales + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(out + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=inside)


@kernel("gemm_int8_scaled", "x:*i8 w:*i8 row_scales:*fp32 column_scales:*fp32 bias:*bf16 out:*bf16 m:i32 n:i32/16 k:i32/16", BM=128, BN=128, BK=128, since=80, warps=8)
@triton.jit
def gemm_int8_scaled(
    x, w, row_scales, column_scales, bias, out, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    tile_m, tile_n = tile_of(tl.program_id(0), m, n, BM, BN, 8)
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.int32)
    for start in range(0, k, BK):
        a = tl.load(x + rows[:, None] * k + (start + inner)[None, :], mask=(rows < m)[:, None], other=0)
        b = tl.load(w + columns[None, :] * k + (start + inner)[:, None], mask=(columns < n)[None, :], other=0)
        total = tl.dot(a, b, total, out_dtype=tl.int32)
    scale = tl.load(row_scales + rows, mask=rows < m, other=0.0)[:, None]
    scale = scale * tl.load(column_scales + columns, mask=columns < n, other=0.0)[None, :]
    result = total.to(tl.float32) * scale + tl.load(bias + columns, mask=columns < n, other=0.0)[None, :]
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(out + rows[:, None] * n + columns[None, :], result.to(tl.bfloat16), mask=inside)


@kernel(
    "gemm_fp8_blocks", "x:*fp8e4nv w:*fp8e4nv x_scales:*fp32 w_scales:*fp32 out:*bf16 m:i32 n:i32/16 k:i32/16",
    BM=64, BN=128, BK=128, since=89, stages=4,
)
@triton.jit
def gemm_fp8_blocks(
    x, w, x_scales, w_scales, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    # A scale for each 128 numbers of a row of x and for each 128 × 128 block of w.
    tile_m, tile_n = tile_of(tl.program_id(0), m, n, BM, BN, 16)
    rows = (tile_m * BM + tl.arange(0, BM)) % m
    columns = (tile_n * BN + tl.arange(0, BN)) % n
    inner = tl.arange(0, BK)
    blocks = tl.cdiv(k, BK)
    left = x + rows[:, None] * k + inner[None, :]
    right = w + columns[None, :] * k + inner[:, None]
    total = tl.zeros((BM, BN), tl.float32)
    for block in range(0, blocks):
        a = tl.load(left, mask=inner[None, :] < k - block * BK, other=0.0)
        b = tl.load(right, mask=inner[:, None] < k - block * BK, other=0.0)
        a_scale = tl.load(x_scales + rows * blocks + block)
        b_scale = tl.load(w_scales + (columns // 128) * blocks + block)
        total += tl.dot(a, b) * a_scale[:, None] * b_scale[None, :]
        left += BK
        right += BK
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(out + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16), mask=inside)
