"""Convolutions and pooling."""
import triton
import triton.language as tl

from .registry import kernel

CONV = "x:*{0} w:*{0} y:*{0} batch:i32 height:i32 width:i32 channels:i32/16 filters:i32/16 out_height:i32 out_width:i32"


@kernel("conv2d_3x3_f16", CONV.format("fp16"), SIDE=3, STRIDE=1, PAD=1, BM=128, BN=64, BK=32, since=80, stages=4)
@kernel("conv2d_1x1_bf16", CONV.format("bf16"), SIDE=1, STRIDE=2, PAD=0, BM=64, BN=128, BK=64, since=80)
@triton.jit
def conv2d(
    x, w, y, batch, height, width, channels, filters, out_height, out_width,
    SIDE: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    # Implicit product: a row for each place of the output, channels last.
    place = tl.program_id(0) * BM + tl.arange(0, BM)
    column = place % out_width
    row = place // out_width % out_height
    image = place // (out_width * out_height)
    filter_ = tl.program_id(1) * BN + tl.arange(0, BN)
    channel = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    steps = tl.cdiv(channels, BK)
    for step in range(SIDE * SIDE * steps):
        tap = step // steps
        start = step % steps * BK
        r = row * STRIDE - PAD + tap // SIDE
        c = column * STRIDE - PAD + tap % SIDE
        inside = (image < batch) & (r >= 0) & (r < height) & (c >= 0) & (c < width)
        base = ((image * height + r) * width + c) * channels
        a = tl.load(
            x + base[:, None] + (start + channel)[None, :],
            mask=inside[:, None] & (start + channel < channels)[None, :], other=0.0,
        )
        b = tl.load(
            w + (filter_ * SIDE * SIDE + tap)[None, :] * channels + (start + channel)[:, None],
            mask=(filter_ < filters)[None, :] & (start + channel < channels)[:, None], other=0.0,
        )
        total = tl.dot(a, b, total)
    inside = (image < batch)[:, None] & (filter_ < filters)[None, :]
    tl.store(y + place[:, None] * filters + filter_[None, :], total.to(y.dtype.element_ty), mask=inside)


@kernel("conv2d_depthwise", "x:*fp32 w:*fp32 y:*fp32 height:i32 width:i32 channels:i32/16", SIDE=5, BW=8, BC=64)
@triton.jit
def conv2d_depthwise(x, w, y, height, width, channels, SIDE: tl.constexpr, BW: tl.constexpr, BC: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BW + tl.arange(0, BW)
    channel = tl.program_id(2) * BC + tl.arange(0, BC)
    total = tl.zeros([BW, BC], tl.float32)
    for i in tl.static_range(SIDE):
        for j in tl.static_range(SIDE):
            r, c = row + i - SIDE // 2, column + j - SIDE // 2
            inside = (r >= 0) & (r < height) & (c >= 0)[:, None] & (c < width)[:, None] & (channel < channels)[None, :]
            value = tl.load(x + (r * width + c)[:, None] * channels + channel[None, :], mask=inside, other=0.0)
            weight = tl.load(w + (i * SIDE + j) * channels + channel, mask=channel < channels, other=0.0)
            total += value * weight[None, :]
    inside = (column < width)[:, None] & (channel < channels)[None, :]
    tl.store(y + (row * width + column)[:, None] * channels + channel[None, :], total, mask=inside)


@kernel("conv1d_causal_silu", "x:*bf16 w:*bf16 bias:*bf16 y:*bf16 length:i32 channels:i32/16", TAPS=4, BT=32, BC=64)
@triton.jit
def conv1d_causal(x, w, bias, y, length, channels, TAPS: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr):
    time = tl.program_id(0) * BT + tl.arange(0, BT)
    channel = tl.program_id(1) * BC + tl.arange(0, BC)
    base = tl.program_id(2).to(tl.int64) * length * channels
    total = tl.zeros([BT, BC], tl.float32) + tl.load(bias + channel, mask=channel < channels).to(tl.float32)[None, :]
    for tap in tl.static_range(TAPS):
        t = time - (TAPS - 1) + tap
        inside = ((t >= 0) & (t < length))[:, None] & (channel < channels)[None, :]
        value = tl.load(x + base + t[:, None] * channels + channel[None, :], mask=inside, other=0.0).to(tl.float32)
        total += value * tl.load(w + channel * TAPS + tap, mask=channel < channels).to(tl.float32)[None, :]
    total = total * tl.sigmoid(total)
    inside = (time < length)[:, None] & (channel < channels)[None, :]
    tl.store(y + base + time[:, None] * channels + channel[None, :], total.to(tl.bfloat16), mask=inside)


@kernel("max_pool_3x3", "x:*fp16 y:*fp16 where:*i32 height:i32 width:i32 channels:i32/16", BC=128)
@triton.jit
def max_pool(x, y, where, height, width, channels, BC: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1)
    channel = tl.program_id(2) * BC + tl.arange(0, BC)
    best = tl.full([BC], -float("inf"), tl.float32)
    place = tl.zeros([BC], tl.int32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            r, c = row * 2 + i - 1, column * 2 + j - 1
            inside = (r >= 0) & (r < height) & (c >= 0) & (c < width) & (channel < channels)
            at = (r * width + c) * channels + channel
            value = tl.load(x + at, mask=inside, other=-float("inf")).to(tl.float32)
            better = value > best
            best = tl.where(better, value, best)
            place = tl.where(better, r * width + c, place)
    out = (row * tl.num_programs(1) + column) * channels + channel
    tl.store(y + out, best.to(tl.float16), mask=channel < channels)
    tl.store(where + out, place, mask=channel < channels)
