"""Mixtures of experts: gating, sorting of tokens, and the product over chosen experts."""
import triton
import triton.language as tl

from .registry import kernel


@kernel("moe_gate_topk", "logits:*fp32 weights:*fp32 experts_out:*i32 tokens:i32", EXPERTS=64, K=8, ROWS=4)
@triton.jit
def moe_gate(logits, weights, experts_out, tokens, EXPERTS: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr):
    token = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    expert = tl.arange(0, EXPERTS)
    inside = (token < tokens)[:, None]
    value = tl.load(logits + token[:, None] * EXPERTS + expert[None, :], mask=inside, other=0.0)
    power = tl.exp(value - tl.max(value, 1)[:, None])
    share = power / tl.sum(power, 1)[:, None]
    total = tl.zeros([ROWS], tl.float32)
    for rank in tl.static_range(K):
        best, where = tl.max(share, 1, return_indices=True)
        tl.store(weights + token * K + rank, best, mask=token < tokens)
        tl.store(experts_out + token * K + rank, where, mask=token < tokens)
        total += best
        share = tl.where(expert[None, :] == where[:, None], -1.0, share)
    for rank in tl.static_range(K):
        place = weights + token * K + rank
        tl.store(place, tl.load(place, mask=token < tokens) / total, mask=token < tokens)


@kernel("moe_count", "ids:*i32 counts:*i32 total:i32 per:i32", EXPERTS=128)
@triton.jit
def moe_count(ids, counts, total, per, EXPERTS: tl.constexpr):
    first = tl.program_id(0) * per
    expert = tl.arange(0, EXPERTS)
    mine = tl.zeros([EXPERTS], tl.int32)
    for at in range(first, min(first + per, total)):
        mine += (expert == tl.load(ids + at)).to(tl.int32)
    tl.store(counts + tl.program_id(0) * EXPERTS + expert, mine)


MOE = (
    "x:*{0} w:*{0} out:*{1} weights:*fp32 tokens_of:*i32 experts_of:*i32 padded:*i32 x_scale:*fp32 w_scale:*fp32 "
    "n:i32/16 k:i32/16 valid:i32 stride_expert:i64/16"
)


@kernel("fused_moe_bf16", MOE.format("bf16", "bf16"), BM=64, BN=128, BK=64, TOP=8, SCALED=False, since=80, stages=4)
@kernel("fused_moe_f16_wide", MOE.format("fp16", "fp16"), BM=128, BN=128, BK=64, TOP=2, SCALED=False, since=80, warps=8)
@kernel("fused_moe_fp8", MOE.format("fp8e4nv", "bf16"), BM=64, BN=128, BK=128, TOP=8, SCALED=True, since=89)
@triton.jit
def fused_moe(
    x, w, out, weights, tokens_of, experts_of, padded, x_scale, w_scale, n, k, valid, stride_expert,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TOP: tl.constexpr, SCALED: tl.constexpr,
):
    tiles_n = tl.cdiv(n, BN)
    tile_m = tl.program_id(0) // tiles_n
    tile_n = tl.program_id(0) % tiles_n
    if tile_m * BM >= tl.load(padded):
        return
    entry = tl.load(tokens_of + tile_m * BM + tl.arange(0, BM)).to(tl.int64)
    inside = entry < valid
    expert = tl.load(experts_of + tile_m).to(tl.int64)
    columns = tile_n * BN + tl.arange(0, BN)
    target = out + entry[:, None] * n + columns[None, :]
    if expert == -1:
        tl.store(target, tl.zeros((BM, BN), out.dtype.element_ty), mask=inside[:, None] & (columns < n)[None, :])
        return
    inner = tl.arange(0, BK)
    left = x + (entry // TOP)[:, None] * k + inner[None, :]
    right = w + expert * stride_expert + (columns % n)[None, :] * k + inner[:, None]
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(k, BK)):
        a = tl.load(left, mask=inside[:, None] & (inner < k - step * BK)[None, :], other=0.0)
        b = tl.load(right, mask=(inner < k - step * BK)[:, None], other=0.0)
        if SCALED:
            scale = tl.load(x_scale + (entry // TOP) * tl.cdiv(k, BK) + step, mask=inside, other=0.0)
            total += tl.dot(a, b) * scale[:, None] * tl.load(w_scale + expert * tl.cdiv(k, BK) + step)
        else:
            total = tl.dot(a, b, total)
        left += BK
        right += BK
    total *= tl.load(weights + entry, mask=inside, other=0.0)[:, None]
    tl.store(target, total.to(out.dtype.element_ty), mask=inside[:, None] & (columns < n)[None, :])


@kernel("moe_combine", "x:*bf16 out:*bf16 width:i32/16", TOP=8, BLOCK=1024)
@triton.jit
def moe_combine(x, out, width, TOP: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for rank in tl.static_range(TOP):
        total += tl.load(x + (token * TOP + rank) * width + column, mask=column < width, other=0.0)
    tl.store(out + token * width + column, total.to(tl.bfloat16), mask=column < width)
