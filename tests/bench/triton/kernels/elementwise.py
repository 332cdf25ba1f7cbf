"""Kernels that treat each element, or each small group of elements, on its own."""
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .registry import kernel


@kernel("add_f32", "x:*fp32 y:*fp32 out:*fp32 count:i32", BLOCK=1024)
@kernel("add_bf16_wide", "x:*bf16 y:*bf16 out:*bf16 count:i32/16", BLOCK=4096, warps=8)
@triton.jit
def add(x, y, out, count, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = where < count
    total = tl.load(x + where, mask=inside) + tl.load(y + where, mask=inside)
    tl.store(out + where, total, mask=inside)


@kernel("gelu_tanh_bf16", "x:*bf16 out:*bf16 count:i32", BLOCK=1024, TANH=True)
@kernel("gelu_erf_f16", "x:*fp16 out:*fp16 count:i32", BLOCK=2048, TANH=False, warps=8)
@triton.jit
def gelu(x, out, count, BLOCK: tl.constexpr, TANH: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = where < count
    value = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
    if TANH:
        inner = 0.7978845608 * (value + 0.044715 * value * value * value)
        result = 0.5 * value * (1.0 + libdevice.tanh(inner))
    else:
        result = 0.5 * value * (1.0 + tl.erf(value * 0.70710678))
    tl.store(out + where, result.to(out.dtype.element_ty), mask=inside)


@kernel("swiglu_fwd", "gate_up:*bf16 out:*bf16 width:i32/16", BLOCK=1024, warps=8)
@triton.jit
def swiglu_forward(gate_up, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    gate = tl.load(gate_up + row * 2 * width + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * width + width + column, mask=inside, other=0.0)
    tl.store(out + row * width + column, (gate * tl.sigmoid(gate)).to(tl.bfloat16) * up, mask=inside)


@kernel("swiglu_bwd", "grad:*fp16 gate:*fp16 up:*fp16 dgate:*fp16 dup:*fp16 width:i32", BLOCK=2048, warps=8)
@triton.jit
def swiglu_backward(grad, gate, up, dgate, dup, width, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, BLOCK)
    inside = column < width
    g = tl.load(grad + base + column, mask=inside, other=0.0).to(tl.float32)
    a = tl.load(gate + base + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(up + base + column, mask=inside, other=0.0).to(tl.float32)
    s = tl.sigmoid(a)
    silu = a * s
    tl.store(dup + base + column, (g * silu).to(tl.float16), mask=inside)
    tl.store(dgate + base + column, (g * b * (s + silu * (1 - s))).to(tl.float16), mask=inside)


@kernel("dropout_seeded", "x:*fp16 out:*fp16 count:i32 rate:fp32 seed:i32", BLOCK=1024)
@triton.jit
def dropout(x, out, count, rate, seed, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = where < count
    value = tl.load(x + where, mask=inside)
    keep = tl.rand(seed, where) > rate
    tl.store(out + where, tl.where(keep, value / (1 - rate), 0.0), mask=inside)


@kernel(
    "bias_dropout_residual",
    "x:*bf16 bias:*bf16 residual:*bf16 out:*bf16 columns:i32/16 rate:fp32 seed:i32",
    ROWS=4, BLOCK=512,
)
@triton.jit
def bias_dropout_residual(
    x, bias, residual, out, columns, rate, seed, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    where = row[:, None] * columns + column[None, :]
    inside = column[None, :] < columns
    value = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(bias + column, mask=column < columns, other=0.0).to(tl.float32)[None, :]
    value = tl.where(tl.rand(seed, where) > rate, value / (1 - rate), 0.0)
    value += tl.load(residual + where, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + where, value.to(tl.bfloat16), mask=inside)


@kernel(
    "rope_halves",
    "q:*bf16 k:*bf16 cos:*bf16 sin:*bf16 q_stride:i32/16 k_stride:i32/16",
    Q_HEADS=32, K_HEADS=8, HALF=64,
)
@triton.jit
def rope_halves(
    q, k, cos, sin, q_stride, k_stride,
    Q_HEADS: tl.constexpr, K_HEADS: tl.constexpr, HALF: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, HALF)
    c = tl.load(cos + token * HALF + lane).to(tl.float32)[None, :]
    s = tl.load(sin + token * HALF + lane).to(tl.float32)[None, :]
    heads = tl.arange(0, Q_HEADS)
    left = q + token * q_stride + heads[:, None] * (2 * HALF) + lane[None, :]
    a, b = tl.load(left).to(tl.float32), tl.load(left + HALF).to(tl.float32)
    tl.store(left, (a * c - b * s).to(tl.bfloat16))
    tl.store(left + HALF, (b * c + a * s).to(tl.bfloat16))
    heads = tl.arange(0, K_HEADS)
    left = k + token * k_stride + heads[:, None] * (2 * HALF) + lane[None, :]
    a, b = tl.load(left).to(tl.float32), tl.load(left + HALF).to(tl.float32)
    tl.store(left, (a * c - b * s).to(tl.bfloat16))
    tl.store(left + HALF, (b * c + a * s).to(tl.bfloat16))


@kernel("rope_pairs", "x:*fp16 out:*fp16 positions:*i32 heads:i32 base:fp32", HALF=64, HEADS=16)
@triton.jit
def rope_pairs(x, out, positions, heads, base, HALF: tl.constexpr, HEADS: tl.constexpr):
    token = tl.program_id(0)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    pair = tl.arange(0, HALF)
    angle = tl.load(positions + token) * tl.exp2(-tl.log2(base) * pair / HALF)
    c, s = tl.cos(angle)[None, :], tl.sin(angle)[None, :]
    where = (token * heads + head[:, None]) * (2 * HALF) + 2 * pair[None, :]
    inside = (head < heads)[:, None]
    a = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x + where + 1, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + where, (a * c - b * s).to(tl.float16), mask=inside)
    tl.store(out + where + 1, (a * s + b * c).to(tl.float16), mask=inside)


@kernel(
    "adamw_bf16",
    "weight:*bf16 master:*fp32 grad:*bf16 m:*fp32 v:*fp32 count:i64 lr:fp32 beta1:fp32 beta2:fp32 "
    "eps:fp32 decay:fp32 step:fp32",
    BLOCK=1024,
)
@triton.jit
def adamw(
    weight, master, grad, m, v, count, lr, beta1, beta2, eps, decay, step, BLOCK: tl.constexpr
):
    where = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = where < count
    g = tl.load(grad + where, mask=inside, other=0.0).to(tl.float32)
    first = beta1 * tl.load(m + where, mask=inside, other=0.0) + (1 - beta1) * g
    second = beta2 * tl.load(v + where, mask=inside, other=0.0) + (1 - beta2) * g * g
    w = tl.load(master + where, mask=inside, other=0.0)
    first_hat = first / (1 - libdevice.pow(beta1, step))
    second_hat = second / (1 - libdevice.pow(beta2, step))
    w -= lr * (first_hat / (tl.sqrt(second_hat) + eps) + decay * w)
    tl.store(m + where, first, mask=inside)
    tl.store(v + where, second, mask=inside)
    tl.store(master + where, w, mask=inside)
    tl.store(weight + where, w.to(tl.bfloat16), mask=inside)


@kernel("lion_i64", "weight:*fp32 grad:*fp32 m:*fp32 count:i64 lr:fp32 beta1:fp32 beta2:fp32", BLOCK=2048)
@triton.jit
def lion(weight, grad, m, count, lr, beta1, beta2, BLOCK: tl.constexpr):
    where = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = where < count
    g, old = tl.load(grad + where, mask=inside), tl.load(m + where, mask=inside)
    update = beta1 * old + (1 - beta1) * g
    sign = tl.where(update > 0, 1.0, tl.where(update < 0, -1.0, 0.0))
    tl.store(weight + where, tl.load(weight + where, mask=inside) - lr * sign, mask=inside)
    tl.store(m + where, beta2 * old + (1 - beta2) * g, mask=inside)


@kernel("transpose_f16", "x:*fp16 out:*fp16 rows:i32/16 columns:i32/16", BLOCK=64)
@kernel("transpose_f32", "x:*fp32 out:*fp32 rows:i32 columns:i32", BLOCK=32)
@triton.jit
def transpose(x, out, rows, columns, BLOCK: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64) * rows * columns
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    tile = tl.load(x + batch + row[:, None] * columns + column[None, :], mask=inside)
    target = out + batch + column[:, None] * rows + row[None, :]
    tl.store(target, tl.trans(tile), mask=(column < columns)[:, None] & (row < rows)[None, :])


@kernel("embedding_fwd", "table:*bf16 ids:*i64 out:*bf16 width:i32/16", BLOCK=1024)
@triton.jit
def embedding_forward(table, ids, out, width, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids + token)
    value = tl.load(table + row * width + column, mask=column < width)
    tl.store(out + token.to(tl.int64) * width + column, value, mask=column < width)


@kernel("embedding_bwd", "grad:*fp32 ids:*i32 table_grad:*fp32 tokens:i32 width:i32/16", ROWS=16, BLOCK=128)
@triton.jit
def embedding_backward(
    grad, ids, table_grad, tokens, width, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    token = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids + token, mask=token < tokens, other=0)
    inside = (token < tokens)[:, None] & (column < width)[None, :]
    value = tl.load(grad + token[:, None] * width + column[None, :], mask=inside)
    tl.atomic_add(table_grad + row[:, None] * width + column[None, :], value, mask=inside, sem="relaxed")


@kernel("special_functions", "x:*fp32 y:*fp64 out:*fp32 wide:*fp64 count:i32", BLOCK=256)
@triton.jit
def special_functions(x, y, out, wide, count, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = where < count
    a, b = tl.load(x + where, mask=inside), tl.load(y + where, mask=inside)
    r = tl.sqrt_rn(tl.abs(a)) + libdevice.log1p(a) + libdevice.expm1(a) + libdevice.atan2(a, 2.0)
    r += libdevice.tanh(a) * libdevice.lgamma(a) + libdevice.cbrt(a) + tl.fma(a, a, r)
    w = libdevice.exp(b) * libdevice.rsqrt(b) + libdevice.erf(b) + tl.floor(b) + tl.ceil(b)
    tl.store(out + where, r, mask=inside)
    tl.store(wide + where, w, mask=inside)


@kernel("hash_mix", "keys:*u32 out:*u64 count:i32 modulus:u32", BLOCK=512)
@triton.jit
def hash_mix(keys, out, count, modulus, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = where < count
    key = tl.load(keys + where, mask=inside, other=0)
    key = (key ^ (key >> 16)) * 0x7FEB352D
    key = (key ^ (key >> 15)) * 0x846CA68B
    high = tl.umulhi(key, key ^ 0x9E3779B9)
    bucket = (key ^ (key >> 16)) % modulus
    tl.store(out + where, (high.to(tl.uint64) << 32) | bucket.to(tl.uint64), mask=inside)
