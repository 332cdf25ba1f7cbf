"""Arguments of reductions, sorting and scattering."""
from ..common import cdiv
from .maker import SMS, maker


@maker("argmax_rows")
def _(m, c):
    rows, columns = 32768, c.BLOCK - 21
    return dict(x=m.randn("x", rows, columns), best=m.out("best", rows), index=m.out("index", rows), columns=columns), \
        (rows,)


@maker("variance")
def _(m, c):
    rows, columns = 16384, c.BLOCK - 21
    return dict(x=m.randn("x", rows, columns, shift=3), mean=m.out("mean", rows), variance=m.out("variance", rows),
                columns=columns), (rows // c.ROWS,)


@maker("sum_columns")
def _(m, c):
    rows, columns = 16381, 4096
    return dict(x=m.randn("x", rows, columns, shift=0.5), out=m.zero("out", columns), rows=rows, columns=columns), \
        (cdiv(columns, c.COLUMNS), 16)


@maker("min_max_all")
def _(m, c):
    n = m.size("count", 1 << 25)
    return dict(x=m.ints("x", -(1 << 30), 1 << 30, n), low=m.full("low", (1 << 31) - 1, 1),
                high=m.full("high", -(1 << 31), 1), count=n), (SMS * 8,)


@maker("amax")
def _(m, c):
    n = 1 << 25
    return dict(x=m.randn("x", n), out=m.zero("out", 1), count=n), (SMS * 4,)


@maker("clamp_max3")
def _(m, c):
    n = m.size("count", 1 << 24)
    return dict(x=m.randn("x", n), y=m.randn("y", n), z=m.randn("z", n), out=m.out("out", n), low=0.5, high=2.0,
                count=n), (cdiv(n, c.BLOCK),)


@maker("sort_rows")
def _(m, c):
    rows = 32768 if c.BLOCK == 128 else 4096
    x = m.ints("x", -(1 << 31), 1 << 31, rows, c.BLOCK) if m.of("x") == m.torch.int32 else m.randn("x", rows, c.BLOCK)
    return dict(x=x, out=m.out("out", rows, c.BLOCK)), (rows // c.ROWS,)


@maker("topk")
def _(m, c):
    rows, columns = 8192, c.BLOCK - 11
    return dict(x=m.randn("x", rows, columns), out=m.out("out", rows, c.K), columns=columns), (rows,)


@maker("topk_keys")
def _(m, c):
    rows, columns = 16384, c.BLOCK - 16
    return dict(x=m.randn("x", rows, columns), values=m.out("values", rows, c.K), index=m.out("index", rows, c.K),
                columns=columns), (rows // c.ROWS,)


@maker("histogram")
def _(m, c):
    n = 1 << 25
    return dict(x=m.ints("x", 0, 256, n), out=m.zero("out", c.BINS), count=n), (cdiv(n, c.BLOCK),)


@maker("ticket_sum")
def _(m, c):
    n = 1024 * c.BLOCK - 5
    args = dict(x=m.randn("x", n), out=m.zero("out", 1), ticket=m.zero("ticket", 1), count=n)
    m.resets = [args["ticket"]]
    return args, (cdiv(n, c.BLOCK),)


@maker("scatter_min")
def _(m, c):
    n, slots = (1 << 21) - 5, 1 << 18
    m.ignored.add("owner")  # whoever comes first owns
    return dict(keys=m.ints("keys", 0, 1 << 40, n), values=m.ints("values", -(1 << 40), 1 << 40, n),
                table=m.full("table", 1 << 41, slots), owner=m.zero("owner", slots), slots=slots, count=n), \
        (cdiv(n, c.BLOCK),)


@maker("gemv")
def _(m, c):
    rows, columns = 8192, 8192
    return dict(a=m.randn("a", rows, columns), x=m.randn("x", columns), y=m.out("y", rows), rows=rows,
                columns=columns), (cdiv(rows, c.ROWS),)
