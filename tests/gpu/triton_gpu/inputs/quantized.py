"""Arguments of quantised kernels."""
from ..common import cdiv
from .maker import maker


@maker("quantize_rows")
def _(m, c):
    rows, columns = 8192, c.BLOCK - 512
    return dict(x=m.randn("x", rows, columns), out=m.out("out", rows, columns), scales=m.out("scales", rows),
                columns=columns), (rows,)


@maker("quantize_groups")
def _(m, c):
    groups = (1 << 18) - 3
    return dict(x=m.randn("x", groups, c.GROUP), out=m.out("out", groups, c.GROUP), scales=m.out("scales", groups),
                groups=groups, eps=1e-10), (cdiv(groups, c.COUNT),)


@maker("quantize_mx")
def _(m, c):
    n = (1 << 25) - 64
    return dict(x=m.randn("x", n), out=m.out("out", n), scales=m.out("scales", n // 32), count=n), (cdiv(n, c.BLOCK),)


@maker("dequantize_int4")
def _(m, c):
    rows, columns, group = 4096, 8192, 128
    words = columns // 8
    return dict(packed=m.ints("packed", -(1 << 31), 1 << 31, rows, words),
                scales=m.rand("scales", rows // group, columns, low=0.01, high=0.1),
                zeros=m.ints("zeros", -(1 << 31), 1 << 31, rows // group, words), out=m.out("out", rows, columns),
                columns=columns, group=group), (rows // c.ROWS, cdiv(words, c.BLOCK))


@maker("gemm_awq")
def _(m, c):
    mm, n, k, group = 126, 4096, 4096, 128
    return dict(x=m.randn("x", mm, k), packed=m.ints("packed", -(1 << 31), 1 << 31, k, n // 8),
                zeros=m.ints("zeros", -(1 << 31), 1 << 31, k // group, n // 8),
                scales=m.rand("scales", k // group, n, low=0.01, high=0.05), out=m.out("out", c.SPLIT, mm, n), m=mm, n=n,
                k=k, group=group), (cdiv(mm, c.BM) * cdiv(n, c.BN), c.SPLIT)


@maker("gemm_w4")
def _(m, c):
    mm, n, k = 2048 - 3, 4096, 4096
    return dict(x=m.randn("x", mm, k), packed=m.ints("packed", 0, 256, n, k // 2),
                scales=m.rand("scales", n, k // c.GROUP, low=0.01, high=0.05), out=m.out("out", mm, n), m=mm, n=n, k=k), \
        (cdiv(mm, c.BM) * cdiv(n, c.BN),)


@maker("gemm_w8")
def _(m, c):
    mm, n, k = 2048 - 3, 4096, 4096
    return dict(x=m.randn("x", mm, k), w=m.ints("w", -127, 128, k, n), scales=m.rand("scales", n, low=0.001, high=0.01),
                out=m.out("out", mm, n), m=mm, n=n, k=k), (cdiv(mm, c.BM) * cdiv(n, c.BN),)


@maker("gemm_int8_scaled")
def _(m, c):
    mm, n, k = 4096 - 3, 4096, 4096
    return dict(x=m.ints("x", -127, 128, mm, k), w=m.ints("w", -127, 128, n, k),
                row_scales=m.rand("row_scales", mm, low=0.001, high=0.01),
                column_scales=m.rand("column_scales", n, low=0.001, high=0.01), bias=m.randn("bias", n),
                out=m.out("out", mm, n), m=mm, n=n, k=k), (cdiv(mm, c.BM) * cdiv(n, c.BN),)


@maker("gemm_fp8_blocks")
def _(m, c):
    mm, n, k = 2048 - 3, 4096, 4096
    return dict(x=m.randn("x", mm, k), w=m.randn("w", n, k), x_scales=m.rand("x_scales", mm, k // c.BK, low=0.1),
                w_scales=m.rand("w_scales", n // 128, k // c.BK, low=0.1), out=m.out("out", mm, n), m=mm, n=n, k=k), \
        (cdiv(mm, c.BM) * cdiv(n, c.BN),)
