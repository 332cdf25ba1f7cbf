"""Matrix products: by pointers, by descriptors, persistent, split, grouped, scaled, sparse."""
import triton
import triton.language as tl

from .registry import kernel

PLAIN = "a:*{0} b:*{0} c:*{1} m:i32 n:i32 k:i32 stride_a:i32/16 stride_b:i32/16 stride_c:i32/16"


@triton.jit
def tile_of(program, m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    # Programs next to each other work on GROUP rows of tiles, which share their columns in the cache.
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    group = program // (GROUP * tiles_n)
    height = min(tiles_m - group * GROUP, GROUP)
    inner = program % (GROUP * tiles_n)
    return group * GROUP + inner % height, inner // height


@triton.jit
def activate(x, KIND: tl.constexpr):
    if KIND == "relu":
        return tl.maximum(x, 0.0)
    if KIND == "leaky":
        return tl.where(x >= 0, x, 0.01 * x)
    if KIND == "silu":
        return x * tl.sigmoid(x)
    return x


@kernel("matmul_f16", PLAIN.format("fp16", "fp16"), BM=128, BN=128, BK=64, GROUP=8, ACC=tl.float32, KIND="none", since=75)
@kernel("matmul_f16_leaky", PLAIN.format("fp16", "fp16"), BM=128, BN=256, BK=64, GROUP=8, ACC=tl.float32, KIND="leaky", warps=8, since=80)
@kernel("matmul_bf16_64", PLAIN.format("bf16", "bf16"), BM=64, BN=64, BK=64, GROUP=8, ACC=tl.float32, KIND="silu", stages=4, since=80)
@kernel("matmul_bf16_tall", PLAIN.format("bf16", "fp32"), BM=32, BN=128, BK=128, GROUP=4, ACC=tl.float32, KIND="none", stages=5, since=80)
@kernel("matmul_tf32", PLAIN.format("fp32", "fp32"), BM=128, BN=64, BK=32, GROUP=8, ACC=tl.float32, KIND="relu", since=80)
@kernel("matmul_int8", PLAIN.format("i8", "i32"), BM=128, BN=128, BK=64, GROUP=8, ACC=tl.int32, KIND="none", since=80)
@kernel("matmul_fp8", PLAIN.format("fp8e4nv", "fp16"), BM=128, BN=128, BK=128, GROUP=8, ACC=tl.float32, KIND="none", warps=8, since=89)
@kernel("matmul_fp8_e5", PLAIN.format("fp8e5", "bf16"), BM=128, BN=256, BK=64, GROUP=8, ACC=tl.float32, KIND="none", warps=8, stages=4, since=80)
@kernel("matmul_f64", PLAIN.format("fp64", "fp64"), BM=32, BN=32, BK=16, GROUP=8, ACC=tl.float64, KIND="none", since=80)
@kernel("matmul_f16_small", PLAIN.format("fp16", "fp32"), BM=16, BN=32, BK=32, GROUP=1, ACC=tl.float32, KIND="none", warps=2, stages=2, since=75)
@triton.jit
def matmul(
    a, b, c, m, n, k, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    ACC: tl.constexpr, KIND: tl.constexpr,
):
    tile_m, tile_n = tile_of(tl.program_id(0), m, n, BM, BN, GROUP)
    rows = (tile_m * BM + tl.arange(0, BM)) % m
    columns = (tile_n * BN + tl.arange(0, BN)) % n
    inner = tl.arange(0, BK)
    left = a + rows[:, None] * stride_a + inner[None, :]
    right = b + inner[:, None] * stride_b + columns[None, :]
    total = tl.zeros((BM, BN), dtype=ACC)
    for step in range(0, tl.cdiv(k, BK)):
        x = tl.load(left, mask=inner[None, :] < k - step * BK, other=0.0)
        y = tl.load(right, mask=inner[:, None] < k - step * BK, other=0.0)
        total = tl.dot(x, y, total, out_dtype=ACC)
        left += BK
        right += BK * stride_b
    result = activate(total, KIND).to(c.dtype.element_ty)
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(c + rows[:, None] * stride_c + columns[None, :], result, mask=inside)


@kernel("matmul_tn_f16", PLAIN.format("fp16", "fp16"), BM=128, BN=128, BK=32, since=80, stages=4)
@triton.jit
def matmul_transposed(
    a, b, c, m, n, k, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    # Both operands have k as their slow dimension: a is k × m.
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        x = tl.load(a + (start + inner)[:, None] * stride_a + rows[None, :])
        y = tl.load(b + (start + inner)[:, None] * stride_b + columns[None, :])
        total = tl.dot(tl.trans(x), y, total)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.float16))


@kernel("matmul_persistent", PLAIN.format("fp16", "fp16"), BM=128, BN=128, BK=64, GROUP=8, since=80, warps=8)
@triton.jit
def matmul_persistent(
    a, b, c, m, n, k, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):
    tiles = tl.cdiv(m, BM) * tl.cdiv(n, BN)
    steps = tl.cdiv(k, BK)
    inner = tl.arange(0, BK)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        tile_m, tile_n = tile_of(tile, m, n, BM, BN, GROUP)
        rows = tile_m * BM + tl.arange(0, BM)
        columns = tile_n * BN + tl.arange(0, BN)
        rows = tl.max_contiguous(tl.multiple_of(tl.where(rows < m, rows, 0), BM), BM)
        columns = tl.max_contiguous(tl.multiple_of(tl.where(columns < n, columns, 0), BN), BN)
        total = tl.zeros((BM, BN), tl.float32)
        for step in range(steps):
            at = step * BK + inner
            x = tl.load(a + rows[:, None] * stride_a + at[None, :], mask=(at < k)[None, :], other=0.0)
            y = tl.load(b + at[:, None] * stride_b + columns[None, :], mask=(at < k)[:, None], other=0.0)
            total = tl.dot(x, y, total)
        rows = tile_m * BM + tl.arange(0, BM)
        columns = tile_n * BN + tl.arange(0, BN)
        inside = (rows < m)[:, None] & (columns < n)[None, :]
        tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.float16), mask=inside)


@kernel("matmul_desc_f16", "a:*fp16 b:*fp16 c:*fp16 m:i32 n:i32/16 k:i32/16", BM=128, BN=128, BK=64, GROUP=8, since=90, warps=8, stages=4)
@kernel("matmul_desc_fp8", "a:*fp8e4nv b:*fp8e4nv c:*fp16 m:i32 n:i32/16 k:i32/16", BM=128, BN=256, BK=128, GROUP=8, since=90, warps=8)
@triton.jit
def matmul_descriptor(
    a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):
    tile_m, tile_n = tile_of(tl.program_id(0), m, n, BM, BN, GROUP)
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BN, BK])
    target = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BM, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        x = left.load([tile_m * BM, start])
        y = right.load([tile_n * BN, start])
        total = tl.dot(x, y.T, total)
    target.store([tile_m * BM, tile_n * BN], total.to(c.dtype.element_ty))


HOST = "a:tensordesc<{0}[{1},{3}]> b:tensordesc<{0}[{2},{3}]> c:tensordesc<{4}[{1},{5}]> m:i32 n:i32 k:i32"


@kernel("matmul_tma_persistent", HOST.format("fp16", 128, 256, 64, "fp16", 256), BM=128, BN=256, BK=64, GROUP=8, HALVES=1, SPECIAL=False, since=90, warps=8)
@kernel("matmul_tma_special", HOST.format("fp16", 128, 128, 64, "fp16", 64), BM=128, BN=128, BK=64, GROUP=8, HALVES=2, SPECIAL=True, since=90, warps=4, stages=4)
@kernel("matmul_tma_special_fp8", HOST.format("fp8e4nv", 128, 256, 128, "fp8e4nv", 128), BM=128, BN=256, BK=128, GROUP=8, HALVES=2, SPECIAL=True, since=90, warps=8)
@kernel("matmul_tma_special_bf16", HOST.format("bf16", 128, 128, 128, "bf16", 128), BM=128, BN=128, BK=128, GROUP=4, HALVES=1, SPECIAL=True, since=90, warps=8, stages=2)
@triton.jit
def matmul_tma(
    a, b, c, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    HALVES: tl.constexpr, SPECIAL: tl.constexpr,
):
    tiles = tl.cdiv(m, BM) * tl.cdiv(n, BN)
    for tile in tl.range(
        tl.program_id(0), tiles, tl.num_programs(0), flatten=not SPECIAL, warp_specialize=SPECIAL
    ):
        tile_m, tile_n = tile_of(tile, m, n, BM, BN, GROUP)
        row, column = tile_m * BM, tile_n * BN
        total = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(k, BK)):
            x = a.load([row, step * BK])
            y = b.load([column, step * BK])
            total = tl.dot(x, y.T, total)
        if HALVES == 2:
            # Half of the tile at a time, so that the epilogue needs half of the shared memory.
            pair = tl.permute(tl.reshape(total, (BM, 2, BN // 2)), (0, 2, 1))
            first, second = tl.split(pair)
            c.store([row, column], first.to(c.dtype))
            c.store([row, column + BN // 2], second.to(c.dtype))
        else:
            c.store([row, column], total.to(c.dtype))


@kernel("matmul_split_k", PLAIN.format("fp16", "fp32"), BM=64, BN=64, BK=64, SPLIT=4, since=75)
@kernel("matmul_split_k_bf16", PLAIN.format("bf16", "bf16"), BM=16, BN=128, BK=128, SPLIT=8, since=90, stages=4)
@triton.jit
def matmul_split_k(
    a, b, c, m, n, k, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr,
):
    tile_m, tile_n = tile_of(tl.program_id(0), m, n, BM, BN, 8)
    part = tl.program_id(1)
    rows = tl.max_contiguous(tl.multiple_of((tile_m * BM + tl.arange(0, BM)) % m, BM), BM)
    columns = tl.max_contiguous(tl.multiple_of((tile_n * BN + tl.arange(0, BN)) % n, BN), BN)
    inner = part * BK + tl.arange(0, BK)
    left = a + rows[:, None] * stride_a + inner[None, :]
    right = b + inner[:, None] * stride_b + columns[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(0, tl.cdiv(k, BK * SPLIT)):
        rest = k - step * BK * SPLIT
        x = tl.load(left, mask=inner[None, :] < rest, other=0.0)
        y = tl.load(right, mask=inner[:, None] < rest, other=0.0)
        total = tl.dot(x, y, total)
        left += BK * SPLIT
        right += BK * SPLIT * stride_b
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    target = c + rows[:, None] * stride_c + columns[None, :]
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.atomic_add(target, total.to(c.dtype.element_ty), mask=inside, sem="relaxed")


@kernel("matmul_stream_k", PLAIN.format("fp16", "fp16") + " locks:*i32 full:i32 iterations:i32 partial:i32", BM=128, BN=128, BK=32, since=80, warps=8, stages=2)
@triton.jit
def matmul_stream_k(
    a, b, c, m, n, k, stride_a, stride_b, stride_c, locks, full, iterations, partial,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    # Programs take equal shares of all inner steps; a tile may belong to several.
    program = tl.program_id(0)
    steps = tl.cdiv(k, BK)
    at = program * full + min(program, partial)
    last = (program + 1) * full + min(program + 1, partial)
    while at < last:
        tile = at // steps
        first_step = at % steps
        until = min(last, at + steps - first_step)
        tile_m, tile_n = tile_of(tile, m, n, BM, BN, 4)
        rows = tile_m * BM + tl.arange(0, BM)
        columns = tile_n * BN + tl.arange(0, BN)
        inner = first_step * BK + tl.arange(0, BK)
        left = a + rows[:, None] * stride_a + inner[None, :]
        right = b + inner[:, None] * stride_b + columns[None, :]
        total = tl.zeros((BM, BN), tl.float32)
        for step in range(at, until):
            total = tl.dot(tl.load(left), tl.load(right), total)
            left += BK
            right += BK * stride_b
        target = c + rows[:, None] * stride_c + columns[None, :]
        if until - at == steps:
            tl.store(target, total.to(tl.float16))
        else:
            while tl.atomic_cas(locks + tile, 0, 1) == 1:
                pass
            tl.store(target, (tl.load(target).to(tl.float32) + total).to(tl.float16))
            tl.debug_barrier()
            tl.atomic_xchg(locks + tile, 0)
        at = until


@kernel("grouped_gemm", "as_:*u64 bs:*u64 cs:*u64 sizes:*i32 strides:*i32 count:i32", BM=128, BN=128, BK=32, since=80)
@triton.jit
def grouped_gemm(as_, bs, cs, sizes, strides, count, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile = tl.program_id(0)
    done = 0
    for problem in range(count):
        m = tl.load(sizes + problem * 3)
        n = tl.load(sizes + problem * 3 + 1)
        k = tl.load(sizes + problem * 3 + 2)
        tiles_n = tl.cdiv(n, BN)
        tiles = tl.cdiv(m, BM) * tiles_n
        while tile >= done and tile < done + tiles:
            lda = tl.load(strides + problem * 3)
            ldb = tl.load(strides + problem * 3 + 1)
            ldc = tl.load(strides + problem * 3 + 2)
            a = tl.load(as_ + problem).to(tl.pointer_type(tl.float16))
            b = tl.load(bs + problem).to(tl.pointer_type(tl.float16))
            c = tl.load(cs + problem).to(tl.pointer_type(tl.float16))
            rows = (tile - done) // tiles_n * BM + tl.arange(0, BM)
            columns = (tile - done) % tiles_n * BN + tl.arange(0, BN)
            inner = tl.arange(0, BK)
            left = a + rows[:, None] * lda + inner[None, :]
            right = b + inner[:, None] * ldb + columns[None, :]
            total = tl.zeros((BM, BN), tl.float32)
            for step in range(0, tl.cdiv(k, BK)):
                tl.multiple_of(left, [16, 16])
                tl.multiple_of(right, [16, 16])
                total = tl.dot(tl.load(left), tl.load(right), total)
                left += BK
                right += BK * ldb
            tl.store(c + rows[:, None] * ldc + columns[None, :], total.to(tl.float16))
            tile += tl.num_programs(0)
        done += tiles


@kernel("grouped_gemm_tma", "as_:*u64 bs:*u64 cs:*u64 sizes:*i32 count:i32", BM=128, BN=128, BK=64, since=90, warps=8)
@triton.jit
def grouped_gemm_tma(as_, bs, cs, sizes, count, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile = tl.program_id(0)
    done = 0
    for problem in range(count):
        m = tl.load(sizes + problem * 3)
        n = tl.load(sizes + problem * 3 + 1)
        k = tl.load(sizes + problem * 3 + 2)
        tiles_n = tl.cdiv(n, BN)
        tiles = tl.cdiv(m, BM) * tiles_n
        if tile >= done and tile < done + tiles:
            a = tl.load(as_ + problem).to(tl.pointer_type(tl.float16))
            b = tl.load(bs + problem).to(tl.pointer_type(tl.float16))
            c = tl.load(cs + problem).to(tl.pointer_type(tl.float16))
            left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
            right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BN, BK])
            target = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BM, BN])
            while tile >= done and tile < done + tiles:
                row = (tile - done) // tiles_n * BM
                column = (tile - done) % tiles_n * BN
                total = tl.zeros((BM, BN), tl.float32)
                for start in range(0, k, BK):
                    total = tl.dot(left.load([row, start]), right.load([column, start]).T, total)
                target.store([row, column], total.to(tl.float16))
                tile += tl.num_programs(0)
        done += tiles


SCALED = "a:*{0} a_scale:*{2} b:*{1} b_scale:*{2} c:*fp16 m:i32 n:i32/16 k:i32/16"


@kernel("dot_scaled_mxfp8", SCALED.format("fp8e4nv", "fp8e4nv", "u8"), BM=128, BN=128, BK=128, A="e4m3", B="e4m3", PER=32, since=89, warps=4, stages=2)
@kernel("dot_scaled_mxfp4", SCALED.format("u8", "u8", "u8"), BM=128, BN=128, BK=128, A="e2m1", B="e2m1", PER=32, since=80, warps=4, stages=2)
@kernel("dot_scaled_mixed", SCALED.format("fp8e5", "u8", "u8"), BM=128, BN=64, BK=128, A="e5m2", B="e2m1", PER=32, since=80, warps=4, stages=3)
@kernel("dot_scaled_nvfp4", SCALED.format("u8", "u8", "fp8e4nv"), BM=128, BN=128, BK=256, A="e2m1", B="e2m1", PER=16, since=100, warps=4, stages=2)
@triton.jit
def dot_scaled(
    a, a_scale, b, b_scale, c, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, PER: tl.constexpr,
):
    # Two numbers of four bits share a byte; PER numbers share a scale.
    A_BYTES: tl.constexpr = BK // 2 if A == "e2m1" else BK
    B_BYTES: tl.constexpr = BK // 2 if B == "e2m1" else BK
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)) % m
    columns = (tl.program_id(1) * BN + tl.arange(0, BN)) % n
    row_bytes = k * A_BYTES // BK
    column_bytes = k * B_BYTES // BK
    left = a + rows[:, None] * row_bytes + tl.arange(0, A_BYTES)[None, :]
    right = b + columns[None, :] * column_bytes + tl.arange(0, B_BYTES)[:, None]
    scales = tl.arange(0, BK // PER)
    left_scale = a_scale + rows[:, None] * (k // PER) + scales[None, :]
    right_scale = b_scale + columns[:, None] * (k // PER) + scales[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(0, k // BK):
        total = tl.dot_scaled(
            tl.load(left), tl.load(left_scale), A, tl.load(right), tl.load(right_scale), B, total
        )
        left += A_BYTES
        right += B_BYTES
        left_scale += BK // PER
        right_scale += BK // PER
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=inside)


@kernel("bmm_f16", "a:*fp16 b:*fp16 c:*fp16 m:i32/16 n:i32/16 k:i32/16", BM=64, BN=128, BK=32, since=75)
@triton.jit
def bmm(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    left = a + batch * m * k + rows[:, None] * k + inner[None, :]
    right = b + batch * k * n + inner[:, None] * n + columns[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        x = tl.load(left, mask=(rows < m)[:, None] & (inner < k - start)[None, :], other=0.0)
        y = tl.load(right, mask=(columns < n)[None, :] & (inner < k - start)[:, None], other=0.0)
        total = tl.dot(x, y, total)
        left += BK
        right += BK * n
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(c + batch * m * n + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=inside)


@kernel("syrk_bf16", "a:*bf16 c:*bf16 m:i32 k:i32/16 alpha:fp32", BM=128, BK=64, since=80, warps=8)
@triton.jit
def syrk(a, c, m, k, alpha, BM: tl.constexpr, BK: tl.constexpr):
    tile_m, tile_n = tl.program_id(0), tl.program_id(1)
    if tile_n > tile_m:
        return
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BM + tl.arange(0, BM)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BM), tl.float32)
    for start in range(0, k, BK):
        x = tl.load(a + rows[:, None] * k + (start + inner)[None, :], mask=(rows < m)[:, None], other=0.0)
        y = tl.load(a + columns[:, None] * k + (start + inner)[None, :], mask=(columns < m)[:, None], other=0.0)
        total = tl.dot(x, y.T, total)
    result = (total * alpha).to(tl.bfloat16)
    inside = (rows < m)[:, None] & (columns < m)[None, :]
    tl.store(c + rows[:, None] * m + columns[None, :], result, mask=inside)
    tl.store(c + columns[:, None] * m + rows[None, :], result.T, mask=(columns < m)[:, None] & (rows < m)[None, :])


@kernel(
    "block_sparse_matmul", "values:*fp16 row_starts:*i32 block_columns:*i32 b:*fp16 c:*fp16 n:i32/16",
    SIDE=32, BN=64, since=75, stages=4,
)
@triton.jit
def block_sparse_matmul(values, row_starts, block_columns, b, c, n, SIDE: tl.constexpr, BN: tl.constexpr):
    block_row = tl.program_id(0)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    side = tl.arange(0, SIDE)
    total = tl.zeros((SIDE, BN), tl.float32)
    for block in range(tl.load(row_starts + block_row), tl.load(row_starts + block_row + 1)):
        inner = tl.load(block_columns + block) * SIDE + side
        x = tl.load(values + block * SIDE * SIDE + side[:, None] * SIDE + side[None, :])
        y = tl.load(b + inner[:, None] * n + columns[None, :], mask=(columns < n)[None, :], other=0.0)
        total = tl.dot(x, y, total)
    rows = block_row * SIDE + side
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=(columns < n)[None, :])


@kernel("lora_two", "x:*bf16 down:*bf16 up:*bf16 out:*bf16 adapters:*i32 tokens:i32 width:i32/16 outputs:i32/16 scale:fp32", RANK=16, BM=32, BK=64, BN=64, since=80)
@triton.jit
def lora(
    x, down, up, out, adapters, tokens, width, outputs, scale,
    RANK: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    adapter = tl.load(adapters + tl.program_id(0)).to(tl.int64)
    rank, inner = tl.arange(0, RANK), tl.arange(0, BK)
    low = tl.zeros((BM, RANK), tl.float32)
    for start in range(0, width, BK):
        a = tl.load(x + rows[:, None] * width + (start + inner)[None, :], mask=(rows < tokens)[:, None], other=0.0)
        b = tl.load(down + adapter * RANK * width + rank[None, :] * width + (start + inner)[:, None])
        low = tl.dot(a, b, low)
    low = (low * scale).to(tl.bfloat16)
    for start in range(0, outputs, BN):
        columns = start + tl.arange(0, BN)
        w = tl.load(up + adapter * RANK * outputs + columns[None, :] * RANK + rank[:, None], mask=(columns < outputs)[None, :], other=0.0)
        target = out + rows[:, None] * outputs + columns[None, :]
        inside = (rows < tokens)[:, None] & (columns < outputs)[None, :]
        old = tl.load(target, mask=inside, other=0.0).to(tl.float32)
        tl.store(target, (old + tl.dot(low, w)).to(tl.bfloat16), mask=inside)
