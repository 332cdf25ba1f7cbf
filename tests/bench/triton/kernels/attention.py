"""Attention: flash forward and backward, with pointers and descriptors; paged; decoding."""
import triton
import triton.language as tl

from .registry import kernel

LOG2E = tl.constexpr(1.44269504)
FORWARD = "q:*{0} k:*{0} v:*{0} out:*{0} lse:*fp32 scale:fp32 heads:i32 kv_heads:i32 length:i32/16"


@kernel("flash_fwd_64", FORWARD.format("fp16"), BM=128, BN=64, D=64, CAUSAL=False, WINDOW=0, since=75)
@kernel("flash_fwd_64_causal", FORWARD.format("bf16"), BM=128, BN=64, D=64, CAUSAL=True, WINDOW=0, since=80, stages=4)
@kernel("flash_fwd_128", FORWARD.format("bf16"), BM=128, BN=128, D=128, CAUSAL=False, WINDOW=0, since=80, warps=8)
@kernel("flash_fwd_128_causal", FORWARD.format("fp16"), BM=128, BN=64, D=128, CAUSAL=True, WINDOW=0, since=80, warps=8)
@kernel("flash_fwd_256", FORWARD.format("bf16"), BM=64, BN=64, D=256, CAUSAL=True, WINDOW=0, since=80, warps=8, stages=2)
@kernel("flash_fwd_32_window", FORWARD.format("fp16"), BM=64, BN=64, D=32, CAUSAL=True, WINDOW=256, since=75)
@triton.jit
def flash_forward(
    q, k, v, out, lse, scale, heads, kv_heads, length,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):
    start = tl.program_id(0) * BM
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    rows = start + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    d = tl.arange(0, D)
    q += (batch * heads + head).to(tl.int64) * length * D
    kv = (batch * kv_heads + head // (heads // kv_heads)).to(tl.int64) * length * D
    queries = tl.load(q + rows[:, None] * D + d[None, :], mask=(rows < length)[:, None], other=0.0)
    best = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    result = tl.zeros([BM, D], tl.float32)
    factor = scale * LOG2E
    first = 0
    last = length
    if CAUSAL:
        last = min(start + BM, length)
    if WINDOW > 0:
        first = max(start - WINDOW, 0) // BN * BN
    for at in range(first, last, BN):
        inside = (at + columns < length)
        keys = tl.load(k + kv + (at + columns)[None, :] * D + d[:, None], mask=inside[None, :], other=0.0)
        scores = tl.dot(queries, keys) * factor
        allowed = inside[None, :]
        if CAUSAL:
            allowed = allowed & (rows[:, None] >= (at + columns)[None, :])
        if WINDOW > 0:
            allowed = allowed & (rows[:, None] - (at + columns)[None, :] < WINDOW)
        scores = tl.where(allowed, scores, -1.0e6)
        new = tl.maximum(best, tl.max(scores, 1))
        power = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(best - new)
        total = total * shrink + tl.sum(power, 1)
        values = tl.load(v + kv + (at + columns)[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        result = tl.dot(power.to(values.dtype), values, result * shrink[:, None])
        best = new
    tl.store(lse + tl.program_id(1) * length + rows, best + tl.log2(total), mask=rows < length)
    target = out + (batch * heads + head).to(tl.int64) * length * D + rows[:, None] * D + d[None, :]
    tl.store(target, (result / total[:, None]).to(out.dtype.element_ty), mask=(rows < length)[:, None])


DESCRIPTORS = "q:tensordesc<{0}[{1},{3}]> k:tensordesc<{0}[{2},{3}]> v:tensordesc<{0}[{2},{3}]> out:tensordesc<{4}[{1},{3}]> lse:*fp32 scale:fp32 length:i32"


@triton.jit
def flash_steps(
    queries, k, v, result, total, best, factor, base, rows, first, last,
    BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr, SPECIAL: tl.constexpr, FP8: tl.constexpr,
):
    columns = tl.arange(0, BN)
    for at in tl.range(first, last, BN, warp_specialize=SPECIAL):
        at = tl.multiple_of(at, BN)
        keys = k.load([base + at, 0]).T
        scores = tl.dot(queries, keys)
        if MASKED:
            scores = scores * factor + tl.where(rows[:, None] >= (at + columns)[None, :], 0.0, -1.0e6)
            new = tl.maximum(best, tl.max(scores, 1))
            scores -= new[:, None]
        else:
            new = tl.maximum(best, tl.max(scores, 1) * factor)
            scores = scores * factor - new[:, None]
        power = tl.exp2(scores)
        shrink = tl.exp2(best - new)
        part = tl.sum(power, 1)
        result = result * shrink[:, None]
        values = v.load([base + at, 0])
        if FP8:
            result = tl.dot(power.to(tl.float8e5), values, result)
        else:
            result = tl.dot(power.to(values.dtype), values, result)
        total = total * shrink + part
        best = new
    return result, total, best


@kernel("flash_tma_64", DESCRIPTORS.format("fp16", 128, 64, 64, "fp16"), BM=128, BN=64, D=64, CAUSAL=False, SPECIAL=False, FP8=False, since=90)
@kernel("flash_tma_128_causal", DESCRIPTORS.format("bf16", 128, 128, 128, "bf16"), BM=128, BN=128, D=128, CAUSAL=True, SPECIAL=False, FP8=False, since=90, warps=8, stages=2)
@kernel("flash_special_64", DESCRIPTORS.format("fp16", 128, 128, 64, "fp16"), BM=128, BN=128, D=64, CAUSAL=False, SPECIAL=True, FP8=False, since=90)
@kernel("flash_special_128_causal", DESCRIPTORS.format("fp16", 128, 128, 128, "fp16"), BM=128, BN=128, D=128, CAUSAL=True, SPECIAL=True, FP8=False, since=90, stages=2)
@kernel("flash_tma_fp8", DESCRIPTORS.format("fp8e5", 128, 64, 128, "fp16"), BM=128, BN=64, D=128, CAUSAL=False, SPECIAL=False, FP8=True, since=90)
@triton.jit
def flash_descriptor(
    q, k, v, out, lse, scale, length,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
    CAUSAL: tl.constexpr, SPECIAL: tl.constexpr, FP8: tl.constexpr,
):
    start = tl.program_id(0) * BM
    base = tl.program_id(1) * length
    rows = start + tl.arange(0, BM)
    best = tl.full([BM], -float("inf"), tl.float32)
    total = tl.full([BM], 1.0, tl.float32)
    result = tl.zeros([BM, D], tl.float32)
    queries = q.load([base + start, 0])
    factor = scale * LOG2E
    if CAUSAL:
        result, total, best = flash_steps(
            queries, k, v, result, total, best, factor, base, rows, 0, start, BM, BN, False, SPECIAL, FP8
        )
        result, total, best = flash_steps(
            queries, k, v, result, total, best, factor, base, rows, start, start + BM, BM, BN, True, SPECIAL, FP8
        )
    else:
        result, total, best = flash_steps(
            queries, k, v, result, total, best, factor, base, rows, 0, length, BM, BN, False, SPECIAL, FP8
        )
    tl.store(lse + base + rows, best + tl.log2(total))
    out.store([base + start, 0], (result / total[:, None]).to(out.dtype))


@kernel("flash_bwd_delta", "out:*fp16 dout:*fp16 delta:*fp32 length:i32/16", BM=128, D=64, since=75)
@triton.jit
def flash_delta(out, dout, delta, length, BM: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(1) * length + tl.program_id(0) * BM + tl.arange(0, BM)
    where = rows[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(delta + rows, tl.sum(tl.load(out + where).to(tl.float32) * tl.load(dout + where).to(tl.float32), 1))


BACKWARD = "q:*{0} k:*{0} v:*{0} dout:*{0} dq:*{0} dk:*{0} dv:*{0} lse:*fp32 delta:*fp32 scale:fp32 length:i32/16"


@kernel("flash_bwd_kv_64", BACKWARD.format("fp16"), BM=32, BN=128, D=64, CAUSAL=True, since=75)
@kernel("flash_bwd_kv_128", BACKWARD.format("bf16"), BM=64, BN=128, D=128, CAUSAL=False, since=80, warps=8, stages=2)
@triton.jit
def flash_backward_kv(
    q, k, v, dout, dq, dk, dv, lse, delta, scale, length,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * length
    d = tl.arange(0, D)
    first = tl.program_id(0) * BN
    columns = first + tl.arange(0, BN)
    block = base * D + columns[:, None] * D + d[None, :]
    keys, values = tl.load(k + block), tl.load(v + block)
    grad_k = tl.zeros([BN, D], tl.float32)
    grad_v = tl.zeros([BN, D], tl.float32)
    start = 0
    if CAUSAL:
        start = first
    for at in range(start, length, BM):
        rows = at + tl.arange(0, BM)
        qt = tl.load(q + base * D + rows[None, :] * D + d[:, None])
        m = tl.load(lse + base + rows)
        scores = tl.dot(keys, qt)
        power = tl.exp2(scores * (scale * LOG2E) - m[None, :])
        if CAUSAL:
            power = tl.where(rows[None, :] >= columns[:, None], power, 0.0)
        do = tl.load(dout + base * D + rows[:, None] * D + d[None, :])
        grad_v = tl.dot(power.to(do.dtype), do, grad_v)
        part = tl.dot(values, tl.trans(do))
        ds = power * (part - tl.load(delta + base + rows)[None, :])
        grad_k = tl.dot(ds.to(qt.dtype), tl.trans(qt), grad_k)
    tl.store(dv + block, grad_v.to(dv.dtype.element_ty))
    tl.store(dk + block, (grad_k * scale).to(dk.dtype.element_ty))


@kernel("flash_bwd_q_64", BACKWARD.format("fp16"), BM=128, BN=32, D=64, CAUSAL=True, since=75)
@kernel("flash_bwd_q_128", BACKWARD.format("bf16"), BM=128, BN=64, D=128, CAUSAL=False, since=80, warps=8, stages=2)
@triton.jit
def flash_backward_q(
    q, k, v, dout, dq, dk, dv, lse, delta, scale, length,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * length
    d = tl.arange(0, D)
    first = tl.program_id(0) * BM
    rows = first + tl.arange(0, BM)
    block = base * D + rows[:, None] * D + d[None, :]
    queries, do = tl.load(q + block), tl.load(dout + block)
    m = tl.load(lse + base + rows)[:, None]
    di = tl.load(delta + base + rows)[:, None]
    grad = tl.zeros([BM, D], tl.float32)
    last = length
    if CAUSAL:
        last = first + BM
    for at in range(0, last, BN):
        columns = at + tl.arange(0, BN)
        kt = tl.load(k + base * D + columns[None, :] * D + d[:, None])
        vt = tl.load(v + base * D + columns[None, :] * D + d[:, None])
        power = tl.exp2(tl.dot(queries, kt) * (scale * LOG2E) - m)
        if CAUSAL:
            power = tl.where(rows[:, None] >= columns[None, :], power, 0.0)
        ds = (power * (tl.dot(do, vt) - di)).to(kt.dtype)
        grad = tl.dot(ds, tl.trans(kt), grad)
    tl.store(dq + block, (grad * scale).to(dq.dtype.element_ty))


@kernel(
    "paged_decode",
    "q:*bf16 k_cache:*bf16 v_cache:*bf16 pages:*i32 lengths:*i32 out:*fp32 lse:*fp32 scale:fp32 kv_heads:i32 "
    "most_pages:i32 splits:i32",
    PAGE=16, BN=64, GROUP=8, D=128, since=80, stages=2,
)
@kernel(
    "paged_decode_f16_large",
    "q:*fp16 k_cache:*fp16 v_cache:*fp16 pages:*i32 lengths:*i32 out:*fp32 lse:*fp32 scale:fp32 kv_heads:i32 "
    "most_pages:i32 splits:i32",
    PAGE=64, BN=64, GROUP=16, D=64, since=75, stages=3,
)
@triton.jit
def paged_decode(
    q, k_cache, v_cache, pages, lengths, out, lse, scale, kv_heads, most_pages, splits,
    PAGE: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr,
):
    # One program for a sequence, a head of the cache and a share of the sequence.
    sequence, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + sequence)
    share = tl.cdiv(tl.cdiv(length, splits), BN) * BN
    first = split * share
    last = min(first + share, length)
    if first >= last:
        return
    d = tl.arange(0, D)
    head = kv_head * GROUP + tl.arange(0, GROUP)
    queries = tl.load(q + (sequence * kv_heads * GROUP + head)[:, None] * D + d[None, :])
    best = tl.full([GROUP], -float("inf"), tl.float32)
    total = tl.zeros([GROUP], tl.float32)
    result = tl.zeros([GROUP, D], tl.float32)
    for at in range(first, last, BN):
        position = at + tl.arange(0, BN)
        inside = position < last
        page = tl.load(pages + sequence * most_pages + position // PAGE, mask=inside, other=0).to(tl.int64)
        slot = (page * PAGE + position % PAGE) * kv_heads + kv_head
        keys = tl.load(k_cache + slot[None, :] * D + d[:, None], mask=inside[None, :], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(queries, keys) * scale, -float("inf"))
        new = tl.maximum(best, tl.max(scores, 1))
        shrink = tl.exp(best - new)
        power = tl.exp(scores - new[:, None])
        values = tl.load(v_cache + slot[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        result = tl.dot(power.to(values.dtype), values, result * shrink[:, None])
        total = total * shrink + tl.sum(power, 1)
        best = new
    place = (sequence * kv_heads * GROUP + head) * splits + split
    tl.store(out + place[:, None] * D + d[None, :], result / total[:, None])
    tl.store(lse + place, best + tl.log(total))


@kernel("paged_merge", "parts:*fp32 lse:*fp32 lengths:*i32 out:*bf16 splits:i32 share:i32", D=128, since=75)
@triton.jit
def paged_merge(parts, lse, lengths, out, splits, share, D: tl.constexpr):
    sequence, head = tl.program_id(0), tl.program_id(1)
    place = sequence * tl.num_programs(1) + head
    d = tl.arange(0, D)
    length = tl.load(lengths + sequence)
    best = -float("inf")
    total = 0.0
    result = tl.zeros([D], tl.float32)
    for split in range(0, splits):
        if split * share < length:
            weight = tl.load(lse + place * splits + split)
            part = tl.load(parts + (place * splits + split) * D + d)
            new = tl.maximum(best, weight)
            shrink, grow = tl.exp(best - new), tl.exp(weight - new)
            result = result * shrink + part * grow
            total = total * shrink + grow
            best = new
    tl.store(out + place * D + d, (result / total).to(tl.bfloat16))


@kernel(
    "paged_decode_vector",
    "q:*fp16 k_cache:*fp16 v_cache:*fp16 pages:*i32 lengths:*i32 out:*fp16 scale:fp32 slopes:*fp32 heads:i32 "
    "most_pages:i32",
    PAGE=16, D=128, since=75,
)
@triton.jit
def paged_vector(
    q, k_cache, v_cache, pages, lengths, out, scale, slopes, heads, most_pages,
    PAGE: tl.constexpr, D: tl.constexpr,
):
    # Without tensor cores, with a bias that grows with the distance.
    head, sequence = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    slot = tl.arange(0, PAGE)
    query = tl.load(q + (sequence * heads + head) * D + d).to(tl.float32) * scale
    slope = tl.load(slopes + head)
    length = tl.load(lengths + sequence)
    best = -float("inf")
    total = 0.0
    result = tl.zeros([D], tl.float32)
    for number in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(pages + sequence * most_pages + number).to(tl.int64)
        where = ((page * heads + head) * PAGE + slot)[:, None] * D + d[None, :]
        inside = number * PAGE + slot < length
        keys = tl.load(k_cache + where, mask=inside[:, None], other=0.0).to(tl.float32)
        scores = tl.sum(keys * query[None, :], 1) + slope * (number * PAGE + slot - length + 1)
        scores = tl.where(inside, scores, -float("inf"))
        new = tl.maximum(best, tl.max(scores, 0))
        power = tl.exp(scores - new)
        shrink = tl.exp(best - new)
        values = tl.load(v_cache + where, mask=inside[:, None], other=0.0).to(tl.float32)
        result = result * shrink + tl.sum(power[:, None] * values, 0)
        total = total * shrink + tl.sum(power, 0)
        best = new
    tl.store(out + (sequence * heads + head) * D + d, (result / total).to(tl.float16))


@kernel(
    "prefill_ragged",
    "q:*bf16 k:*bf16 v:*bf16 out:*bf16 starts:*i32 scale:fp32 soft_cap:fp32 heads:i32/16 kv_heads:i32",
    BM=64, BN=64, D=128, since=80, warps=4, stages=2,
)
@triton.jit
def prefill_ragged(
    q, k, v, out, starts, scale, soft_cap, heads, kv_heads, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
):
    sequence, head, block = tl.program_id(2), tl.program_id(1), tl.program_id(0)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    if block * BM >= length:
        return
    kv_head = head // (heads // kv_heads)
    rows = block * BM + tl.arange(0, BM)
    columns, d = tl.arange(0, BN), tl.arange(0, D)
    place = ((begin + rows) * heads + head)[:, None] * D + d[None, :]
    queries = tl.load(q + place, mask=(rows < length)[:, None], other=0.0)
    best = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    result = tl.zeros([BM, D], tl.float32)
    for at in range(0, min((block + 1) * BM, length), BN):
        inside = at + columns < length
        slot = (begin + at + columns) * kv_heads + kv_head
        keys = tl.load(k + slot[None, :] * D + d[:, None], mask=inside[None, :], other=0.0)
        scores = tl.dot(queries, keys) * scale
        # tanh by way of exp, as a cap that is soft.
        power = tl.exp(2.0 * scores / soft_cap)
        scores = soft_cap * (power - 1.0) / (power + 1.0)
        scores = tl.where(rows[:, None] >= (at + columns)[None, :], scores, -1.0e8)
        new = tl.maximum(best, tl.max(scores, 1))
        power = tl.exp(scores - new[:, None])
        shrink = tl.exp(best - new)
        values = tl.load(v + slot[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        result = tl.dot(power.to(values.dtype), values, result * shrink[:, None])
        total = total * shrink + tl.sum(power, 1)
        best = new
    tl.store(out + place, (result / total[:, None]).to(tl.bfloat16), mask=(rows < length)[:, None])
