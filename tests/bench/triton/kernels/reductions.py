"""Reductions, selections, sorting, histograms and atomics."""
import triton
import triton.language as tl

from .registry import kernel


@kernel("argmax_rows", "x:*fp32 best:*fp32 index:*i32 columns:i32", BLOCK=1024)
@triton.jit
def argmax_rows(x, best, index, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
    top, where = tl.max(value, 0, return_indices=True)
    tl.store(best + row, top)
    tl.store(index + row, where)


@triton.jit
def merge_welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@kernel("variance_welford", "x:*fp32 mean:*fp32 variance:*fp32 columns:i32", BLOCK=2048, ROWS=2)
@triton.jit
def variance(x, mean, variance, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (column < columns)[None, :] & (row >= 0)[:, None]
    value = tl.load(x + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
    m, s, n = tl.reduce((value, tl.zeros_like(value), inside.to(tl.float32)), 1, merge_welford)
    tl.store(mean + row, m)
    tl.store(variance + row, s / n)


@kernel("sum_columns", "x:*bf16 out:*fp32 rows:i32 columns:i32/16", ROWS=64, COLUMNS=64)
@triton.jit
def sum_columns(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(tl.program_id(1) * ROWS, rows, ROWS * tl.num_programs(1)):
        row = start + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < columns)[None, :]
        total += tl.load(x + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
    tl.atomic_add(out + column, tl.sum(total, 0), mask=column < columns)


@kernel("min_max_all", "x:*i32 low:*i32 high:*i32 count:i32", BLOCK=2048)
@triton.jit
def min_max_all(x, low, high, count, BLOCK: tl.constexpr):
    smallest = tl.full([BLOCK], 2147483647, tl.int32)
    largest = tl.full([BLOCK], -2147483648, tl.int32)
    for start in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        where = start + tl.arange(0, BLOCK)
        value = tl.load(x + where, mask=where < count, other=0)
        smallest = tl.minimum(smallest, tl.where(where < count, value, smallest))
        largest = tl.maximum(largest, tl.where(where < count, value, largest))
    tl.atomic_min(low, tl.min(smallest, 0))
    tl.atomic_max(high, tl.max(largest, 0))


@kernel("amax_f16", "x:*fp16 out:*fp32 count:i32/16", BLOCK=4096, warps=8)
@triton.jit
def amax(x, out, count, BLOCK: tl.constexpr):
    top = tl.zeros([BLOCK], tl.float32)
    for start in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        where = start + tl.arange(0, BLOCK)
        value = tl.load(x + where, mask=where < count, other=0.0).to(tl.float32)
        top = tl.maximum(top, tl.abs(value), propagate_nan=tl.PropagateNan.ALL)
    tl.atomic_max(out, tl.max(top, 0))


@kernel("clamp_max3", "x:*fp32 y:*fp32 z:*fp32 out:*fp32 low:fp32 high:fp32 count:i32", BLOCK=1024)
@triton.jit
def clamp_max3(x, y, z, out, low, high, count, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = where < count
    a, b = tl.load(x + where, mask=inside), tl.load(y + where, mask=inside)
    c = tl.load(z + where, mask=inside)
    value = tl.maximum(tl.maximum(a, b), c) - tl.minimum(tl.minimum(a, b), c)
    tl.store(out + where, tl.clamp(value, low, high), mask=inside)


@kernel("sort_f32", "x:*fp32 out:*fp32", ROWS=4, BLOCK=128)
@kernel("sort_i32", "x:*i32 out:*i32", ROWS=1, BLOCK=1024, warps=8)
@triton.jit
def sort_rows(x, out, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    where = row[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + where, tl.sort(tl.load(x + where), dim=1))


@kernel("topk_16", "x:*fp32 out:*fp32 columns:i32", BLOCK=512, K=16)
@triton.jit
def topk(x, out, columns, BLOCK: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
    tl.store(out + row * K + tl.arange(0, K), tl.topk(value, K))


@kernel("topk_keys", "x:*fp16 values:*fp16 index:*i16 columns:i32/16", BLOCK=256, ROWS=4, K=8)
@triton.jit
def topk_keys(
    x, values, index, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr, K: tl.constexpr
):
    # Value and column are one integer whose order is that of the values.
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    bits = tl.load(
        x + row[:, None] * columns + column[None, :], mask=(column < columns)[None, :], other=-float("inf")
    ).to(tl.int16, bitcast=True)
    order = tl.where(bits < 0, bits ^ 0x7FFF, bits).to(tl.int32)
    best = tl.topk((order << 16) | (BLOCK - 1 - column)[None, :], K, dim=1)
    high = (best >> 16).to(tl.int16)
    high = tl.where(high < 0, high ^ 0x7FFF, high)
    target = row[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(values + target, high.to(tl.float16, bitcast=True))
    tl.store(index + target, (BLOCK - 1 - (best & 0xFFFF)).to(tl.int16))


@kernel("histogram_256", "x:*u8 out:*i32 count:i32/16", BLOCK=4096, BINS=256)
@triton.jit
def histogram(x, out, count, BLOCK: tl.constexpr, BINS: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + where, mask=where < count, other=0).to(tl.int32)
    tl.atomic_add(out + tl.arange(0, BINS), tl.histogram(value, BINS), sem="relaxed")


@kernel("ticket_lock_sum", "x:*fp32 out:*fp32 ticket:*i32 count:i32", BLOCK=1024)
@triton.jit
def ticket_sum(x, out, ticket, count, BLOCK: tl.constexpr):
    # Programs add up in the order of their numbers, so the sum is the same every time.
    program = tl.program_id(0)
    where = program * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + where, mask=where < count, other=0.0), 0)
    while tl.atomic_add(ticket, 0, sem="acquire") != program:
        pass
    tl.store(out, tl.load(out) + part)
    tl.atomic_add(ticket, 1, sem="release")


@kernel("scatter_min_i64", "keys:*i64 values:*i64 table:*i64 owner:*i32 slots:i32 count:i32", BLOCK=256)
@triton.jit
def scatter_min(keys, values, table, owner, slots, count, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = where < count
    slot = (tl.load(keys + where, mask=inside, other=0) % slots).to(tl.int32)
    old = tl.atomic_min(table + slot, tl.load(values + where, mask=inside, other=0), mask=inside)
    tl.atomic_cas(owner + slot, tl.where(old > 0, 0, -1), where)


@kernel("gemv_bf16", "a:*bf16 x:*bf16 y:*bf16 rows:i32 columns:i32/16", ROWS=8, BLOCK=512)
@triton.jit
def gemv(a, x, y, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        tile = tl.load(
            a + row[:, None] * columns + column[None, :],
            mask=(row < rows)[:, None] & (column < columns)[None, :], other=0.0,
        ).to(tl.float32)
        total += tile * tl.load(x + column, mask=column < columns, other=0.0).to(tl.float32)[None, :]
    tl.store(y + row, tl.sum(total, 1).to(tl.bfloat16), mask=row < rows)
