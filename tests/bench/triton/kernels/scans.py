"""Prefix sums and recurrences."""
import triton
import triton.language as tl

from .registry import kernel


@kernel("cumsum_rows", "x:*fp32 out:*fp32 columns:i32", BLOCK=1024, REVERSE=False)
@kernel("cumsum_reverse_i32", "x:*i32 out:*i32 columns:i32", BLOCK=2048, REVERSE=True, warps=8)
@triton.jit
def cumsum_rows(x, out, columns, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + column, mask=column < columns, other=0)
    tl.store(out + row * columns + column, tl.cumsum(value, 0, reverse=REVERSE), mask=column < columns)


@kernel("cumsum_2d", "x:*fp16 out:*fp32 rows:i32 columns:i32/16", ROWS=64, BLOCK=64)
@triton.jit
def cumsum_2d(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    carry = tl.zeros([BLOCK], tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < columns)[None, :]
        where = row[:, None] * columns + column[None, :]
        value = tl.load(x + where, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + where, tl.cumsum(value, 0) + carry[None, :], mask=inside)
        carry += tl.sum(value, 0)


@triton.jit
def affine(a0, b0, a1, b1):
    return a1 * a0, a1 * b0 + b1


@kernel("linear_recurrence", "decay:*fp32 x:*fp32 out:*fp32 length:i32 channels:i32/16", LENGTH=128, CHANNELS=16)
@triton.jit
def linear_recurrence(decay, x, out, length, channels, LENGTH: tl.constexpr, CHANNELS: tl.constexpr):
    time = tl.arange(0, LENGTH)
    channel = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    where = (tl.program_id(1) * length + time[:, None]) * channels + channel[None, :]
    inside = (time < length)[:, None] & (channel < channels)[None, :]
    a = tl.load(decay + where, mask=inside, other=1.0)
    b = tl.load(x + where, mask=inside, other=0.0)
    tl.store(out + where, tl.associative_scan((a, b), 0, affine)[1], mask=inside)


@kernel(
    "selective_scan",
    "u:*fp16 delta:*fp16 a:*fp32 b:*fp16 c:*fp16 out:*fp16 length:i32 channels:i32/16", CHANNELS=64, STATE=16,
)
@triton.jit
def selective_scan(u, delta, a, b, c, out, length, channels, CHANNELS: tl.constexpr, STATE: tl.constexpr):
    batch = tl.program_id(1)
    channel = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    n = tl.arange(0, STATE)
    rate = tl.load(a + channel[:, None] * STATE + n[None, :])
    state = tl.zeros([CHANNELS, STATE], tl.float32)
    for t in range(0, length):
        row = batch * length + t
        x = tl.load(u + row * channels + channel).to(tl.float32)
        d = tl.load(delta + row * channels + channel).to(tl.float32)
        d = tl.where(d > 20.0, d, tl.log(1.0 + tl.exp(d)))
        bt = tl.load(b + row * STATE + n).to(tl.float32)
        ct = tl.load(c + row * STATE + n).to(tl.float32)
        state = state * tl.exp(d[:, None] * rate) + (d * x)[:, None] * bt[None, :]
        tl.store(out + row * channels + channel, tl.sum(state * ct[None, :], 1).to(tl.float16))


@kernel(
    "state_update",
    "state:*fp32 x:*bf16 dt:*bf16 bias:*fp32 a:*fp32 b:*bf16 c:*bf16 skip:*fp32 z:*bf16 out:*bf16 heads:i32",
    WIDTH=64, STATE=128, ROWS=8,
)
@triton.jit
def state_update(
    state, x, dt, bias, a, b, c, skip, z, out, heads,
    WIDTH: tl.constexpr, STATE: tl.constexpr, ROWS: tl.constexpr,
):
    batch, head = tl.program_id(1), tl.program_id(2)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    n = tl.arange(0, STATE)
    place = state + ((batch * heads + head) * WIDTH + row[:, None]) * STATE + n[None, :]
    step = tl.load(dt + batch * heads + head).to(tl.float32) + tl.load(bias + head)
    step = tl.where(step <= 20.0, tl.log(1 + tl.exp(step)), step)
    decay = tl.exp(tl.load(a + head) * step)
    value = tl.load(x + (batch * heads + head) * WIDTH + row).to(tl.float32)
    bn = tl.load(b + batch * STATE + n).to(tl.float32)
    cn = tl.load(c + batch * STATE + n).to(tl.float32)
    new = tl.load(place) * decay + bn[None, :] * step * value[:, None]
    tl.store(place, new)
    result = tl.sum(new * cn[None, :], 1) + value * tl.load(skip + head)
    gate = tl.load(z + (batch * heads + head) * WIDTH + row).to(tl.float32)
    tl.store(out + (batch * heads + head) * WIDTH + row, (result * gate * tl.sigmoid(gate)).to(tl.bfloat16))


@kernel(
    "linear_attention_chunk",
    "q:*bf16 k:*bf16 v:*bf16 g:*fp32 out:*bf16 length:i32 heads:i32", CHUNK=64, DK=64, DV=64, since=80, stages=2,
)
@triton.jit
def linear_attention(q, k, v, g, out, length, heads, CHUNK: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr):
    head = tl.program_id(0)
    batch = tl.program_id(1)
    t = tl.arange(0, CHUNK)
    dk, dv = tl.arange(0, DK), tl.arange(0, DV)
    state = tl.zeros([DK, DV], tl.float32)
    for start in range(0, length, CHUNK):
        row = (batch * length + start + t) * heads + head
        inside = (start + t < length)[:, None]
        qs = tl.load(q + row[:, None] * DK + dk[None, :], mask=inside, other=0.0)
        ks = tl.load(k + row[:, None] * DK + dk[None, :], mask=inside, other=0.0)
        vs = tl.load(v + row[:, None] * DV + dv[None, :], mask=inside, other=0.0)
        gate = tl.cumsum(tl.load(g + row, mask=start + t < length, other=0.0), 0)
        last = tl.sum(tl.where(t == CHUNK - 1, gate, 0.0), 0)
        scores = tl.dot(qs, tl.trans(ks)) * tl.exp(gate[:, None] - gate[None, :])
        scores = tl.where(t[:, None] >= t[None, :], scores, 0.0)
        result = tl.dot(scores.to(tl.bfloat16), vs)
        result += tl.dot((qs * tl.exp(gate)[:, None]).to(tl.bfloat16), state.to(tl.bfloat16))
        tl.store(out + row[:, None] * DV + dv[None, :], result.to(tl.bfloat16), mask=inside)
        scaled = (ks * tl.exp(last - gate)[:, None]).to(tl.bfloat16)
        state = state * tl.exp(last) + tl.dot(tl.trans(scaled), vs)
