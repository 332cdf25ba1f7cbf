"""Softmax, normalisations and losses, forward and backward."""
import triton
import triton.language as tl

from .registry import kernel


@kernel("softmax_rows", "out:*fp32 x:*fp32 stride:i32/16 rows:i32 columns:i32", BLOCK=1024, STAGES=4, warps=8)
@kernel("softmax_rows_bf16", "out:*bf16 x:*bf16 stride:i32/16 rows:i32 columns:i32", BLOCK=4096, STAGES=2, warps=8)
@triton.jit
def softmax_rows(out, x, stride, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    column = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        value = tl.load(x + row * stride + column, mask=column < columns, other=-float("inf"))
        value = value.to(tl.float32)
        power = tl.exp(value - tl.max(value, axis=0))
        result = power / tl.sum(power, axis=0)
        tl.store(out + row * stride + column, result.to(out.dtype.element_ty), mask=column < columns)


@kernel("softmax_online", "out:*fp16 x:*fp16 columns:i32", BLOCK=2048, warps=8)
@triton.jit
def softmax_online(out, x, columns, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * columns
    best = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(x + base + column, mask=column < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(best, value)
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(best - safe) + tl.exp(value - safe)
        best = new
    top = tl.max(best, 0)
    total = tl.sum(total * tl.exp(best - top), 0)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(x + base + column, mask=column < columns, other=0.0).to(tl.float32)
        tl.store(out + base + column, (tl.exp(value - top) / total).to(tl.float16), mask=column < columns)


@kernel("softmax_bwd", "dx:*bf16 dy:*bf16 y:*bf16 columns:i32/16", BLOCK=2048, ROWS=2, warps=8)
@triton.jit
def softmax_backward(dx, dy, y, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    where = row[:, None] * columns + column[None, :]
    inside = (column < columns)[None, :]
    g = tl.load(dy + where, mask=inside, other=0.0).to(tl.float32)
    p = tl.load(y + where, mask=inside, other=0.0).to(tl.float32)
    tl.store(dx + where, (p * (g - tl.sum(p * g, 1)[:, None])).to(tl.bfloat16), mask=inside)


@kernel(
    "layer_norm_fwd_f16",
    "x:*fp16 y:*fp16 w:*fp16 b:*fp16 mean:*fp32 rstd:*fp32 stride:i32/16 columns:i32 eps:fp32",
    BLOCK=2048, warps=8,
)
@triton.jit
def layer_norm_forward(x, y, w, b, mean, rstd, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * stride
    y += row * stride
    total = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(x + column, mask=column < columns, other=0.0).to(tl.float32)
        total += value
        squares += value * value
    middle = tl.sum(total, 0) / columns
    variance = tl.sum(squares, 0) / columns - middle * middle
    scale = 1 / tl.sqrt(variance + eps)
    tl.store(mean + row, middle)
    tl.store(rstd + row, scale)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < columns
        value = tl.load(x + column, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(w + column, mask=inside).to(tl.float32)
        bias = tl.load(b + column, mask=inside).to(tl.float32)
        tl.store(y + column, ((value - middle) * scale * weight + bias).to(tl.float16), mask=inside)


@kernel(
    "layer_norm_bwd_dx",
    "dx:*fp16 dy:*fp16 x:*fp16 w:*fp16 dw:*fp32 db:*fp32 mean:*fp32 rstd:*fp32 locks:*i32 stride:i32/16 columns:i32",
    GROUPS=64, BLOCK=1024, warps=4,
)
@triton.jit
def layer_norm_backward(
    dx, dy, x, w, dw, db, mean, rstd, locks, stride, columns, GROUPS: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(x + row * stride + column, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(dy + row * stride + column, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(w + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.load(rstd + row)
    hat = tl.where(inside, (value - tl.load(mean + row)) * scale, 0.0)
    weighted = tl.where(inside, weight * g, 0.0)
    c1 = tl.sum(hat * weighted, 0) / columns
    c2 = tl.sum(weighted, 0) / columns
    tl.store(dx + row * stride + column, ((weighted - hat * c1 - c2) * scale).to(tl.float16), mask=inside)
    # One of GROUPS partial sums takes this row; a lock guards it, a flag says that it holds something.
    group = row % GROUPS
    lock = locks + group
    flag = locks + GROUPS + group
    dws = dw + group * columns + column
    dbs = db + group * columns + column
    part_w, part_b = g * hat, g
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(flag) == 0:
        tl.atomic_xchg(flag, 1)
    else:
        part_w += tl.load(dws, mask=inside)
        part_b += tl.load(dbs, mask=inside)
    tl.store(dws, part_w, mask=inside)
    tl.store(dbs, part_b, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@kernel("layer_norm_bwd_dwdb", "dw:*fp32 db:*fp32 w_out:*fp32 b_out:*fp32 rows:i32 columns:i32", ROWS=32, COLUMNS=128)
@triton.jit
def layer_norm_weights(dw, db, w_out, b_out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sum_w = tl.zeros((ROWS, COLUMNS), tl.float32)
    sum_b = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < columns)[None, :]
        where = row[:, None] * columns + column[None, :]
        sum_w += tl.load(dw + where, mask=inside, other=0.0)
        sum_b += tl.load(db + where, mask=inside, other=0.0)
    tl.store(w_out + column, tl.sum(sum_w, 0), mask=column < columns)
    tl.store(b_out + column, tl.sum(sum_b, 0), mask=column < columns)


@kernel("rms_norm_fwd", "x:*bf16 w:*bf16 out:*bf16 rstd:*fp32 columns:i32/16 eps:fp32", BLOCK=4096, warps=8)
@triton.jit
def rms_norm_forward(x, w, out, rstd, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + eps)
    tl.store(rstd + row, scale)
    weight = tl.load(w + column, mask=inside, other=0.0)
    tl.store(out + row * columns + column, (value * scale).to(tl.bfloat16) * weight, mask=inside)


@kernel(
    "rms_norm_add_fwd",
    "x:*fp16 residual:*fp16 w:*fp16 out:*fp16 columns:i32/16 eps:fp32 offset:fp32", BLOCK=8192, warps=16,
)
@triton.jit
def rms_norm_add(x, residual, w, out, columns, eps, offset, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(residual + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual + row * columns + column, value.to(tl.float16), mask=inside)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + eps)
    weight = tl.load(w + column, mask=inside, other=0.0).to(tl.float32) + offset
    tl.store(out + row * columns + column, (value * scale * weight).to(tl.float16), mask=inside)


@kernel(
    "rms_norm_bwd",
    "dx:*bf16 dy:*bf16 x:*bf16 w:*bf16 rstd:*fp32 dw:*fp32 rows:i32 columns:i32/16 per:i32", BLOCK=2048, warps=8,
)
@triton.jit
def rms_norm_backward(dx, dy, x, w, rstd, dw, rows, columns, per, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    weight = tl.load(w + column, mask=inside, other=0.0).to(tl.float32)
    part = tl.zeros([BLOCK], tl.float32)
    for row in range(program * per, min((program + 1) * per, rows)):
        g = tl.load(dy + row * columns + column, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        m = g * weight
        inner = tl.sum(m * value, 0) * scale * scale * scale / columns
        tl.store(dx + row * columns + column, (scale * m - inner * value).to(tl.bfloat16), mask=inside)
        part += g * value * scale
    tl.store(dw + program * columns + column, part, mask=inside)


@kernel(
    "group_norm", "x:*fp16 y:*fp16 w:*fp16 b:*fp16 group:i32 area:i32/16 groups:i32 eps:fp32",
    BLOCK=1024, SILU=True,
)
@triton.jit
def group_norm(x, y, w, b, group, area, groups, eps, BLOCK: tl.constexpr, SILU: tl.constexpr):
    image = tl.program_id(0)
    which = tl.program_id(1)
    size = group * area
    base = (image * groups + which).to(tl.int64) * size
    total = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, size, BLOCK):
        where = start + tl.arange(0, BLOCK)
        value = tl.load(x + base + where, mask=where < size, other=0.0).to(tl.float32)
        total += value
        squares += value * value
    mean = tl.sum(total, 0) / size
    scale = tl.rsqrt(tl.sum(squares, 0) / size - mean * mean + eps)
    for start in range(0, size, BLOCK):
        where = start + tl.arange(0, BLOCK)
        inside = where < size
        channel = which * group + where // area
        value = tl.load(x + base + where, mask=inside, other=0.0).to(tl.float32)
        result = (value - mean) * scale * tl.load(w + channel, mask=inside) + tl.load(b + channel, mask=inside)
        if SILU:
            result = result * tl.sigmoid(result)
        tl.store(y + base + where, result.to(tl.float16), mask=inside)


@kernel(
    "cross_entropy_bf16",
    "logits:*bf16 targets:*i64 losses:*fp32 stride:i64 vocabulary:i32 ignored:i32 smoothing:fp32 count:fp32",
    BLOCK=4096, warps=16,
)
@triton.jit
def cross_entropy(logits, targets, losses, stride, vocabulary, ignored, smoothing, count, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * stride
    target = tl.load(targets + row)
    if target == ignored:
        for start in range(0, vocabulary, BLOCK):
            column = start + tl.arange(0, BLOCK)
            tl.store(logits + column, 0.0, mask=column < vocabulary)
        return
    best = -float("inf")
    total = 0.0
    smooth = 0.0
    right = tl.load(logits + target).to(tl.float32)
    weight = smoothing / vocabulary
    for start in range(0, vocabulary, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(logits + column, mask=column < vocabulary, other=-float("inf")).to(tl.float32)
        smooth += tl.sum(tl.where(column < vocabulary, -weight * value, 0.0))
        new = tl.maximum(best, tl.max(value))
        total = total * tl.exp(best - new) + tl.sum(tl.exp(value - new))
        best = new
    whole = best + tl.log(total)
    for start in range(0, vocabulary, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = tl.load(logits + column, mask=column < vocabulary, other=-float("inf")).to(tl.float32)
        gradient = tl.exp(value - best) / total - weight
        gradient = tl.where(column == target, gradient - (1 - smoothing), gradient) / count
        tl.store(logits + column, gradient.to(tl.bfloat16), mask=column < vocabulary)
    tl.store(losses + row, ((whole - right) * (1 - smoothing) + smooth + smoothing * whole) / count)


@kernel("kl_divergence", "p:*fp32 q:*fp32 out:*fp32 rows:i32 columns:i32", BLOCK=512, ROWS=4)
@triton.jit
def kl_divergence(p, q, out, rows, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS], tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = (row < rows)[:, None] & (column < columns)[None, :]
        where = row[:, None] * columns + column[None, :]
        left = tl.load(p + where, mask=inside, other=0.0)
        right = tl.load(q + where, mask=inside, other=1.0)
        term = tl.where(left > 0, left * (tl.log(left) - tl.log(right)), 0.0)
        total += tl.sum(tl.where(inside, term, 0.0), 1)
    tl.store(out + row, total, mask=row < rows)
