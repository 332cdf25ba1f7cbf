"""Arguments of scans and recurrences."""
from ..common import cdiv
from .maker import maker


@maker("cumsum_rows")
def _(m, c):
    rows, columns = 16384, c.BLOCK - 24
    x = m.ints("x", -1000, 1000, rows, columns) if m.of("x") == m.torch.int32 else m.rand("x", rows, columns)
    return dict(x=x, out=m.out("out", rows, columns), columns=columns), (rows,)


@maker("cumsum_2d")
def _(m, c):
    rows, columns = 2047, 16384
    return dict(x=m.rand("x", rows, columns), out=m.out("out", rows, columns), rows=rows, columns=columns), \
        (cdiv(columns, c.BLOCK),)


@maker("linear_recurrence")
def _(m, c):
    batch, length, channels = 64, c.LENGTH - 3, 2048
    shape = batch, length, channels
    return dict(decay=m.rand("decay", *shape, low=0.5), x=m.randn("x", *shape), out=m.out("out", *shape), length=length,
                channels=channels), (cdiv(channels, c.CHANNELS), batch)


@maker("selective_scan")
def _(m, c):
    batch, length, channels = 8, 512, 2048
    return dict(u=m.randn("u", batch, length, channels), delta=m.rand("delta", batch, length, channels, low=-3, high=0),
                a=m.rand("a", channels, c.STATE, low=-2, high=-0.1), b=m.randn("b", batch, length, c.STATE),
                c=m.randn("c", batch, length, c.STATE), out=m.out("out", batch, length, channels), length=length,
                channels=channels), (channels // c.CHANNELS, batch)


@maker("state_update")
def _(m, c):
    batch, heads = 64, 64
    return dict(state=m.randn("state", batch, heads, c.WIDTH, c.STATE), x=m.randn("x", batch, heads, c.WIDTH),
                dt=m.randn("dt", batch, heads), bias=m.randn("bias", heads), a=m.rand("a", heads, low=-1, high=-0.1),
                b=m.randn("b", batch, c.STATE), c=m.randn("c", batch, c.STATE), skip=m.randn("skip", heads),
                z=m.randn("z", batch, heads, c.WIDTH), out=m.out("out", batch, heads, c.WIDTH), heads=heads), \
        (c.WIDTH // c.ROWS, batch, heads)


@maker("linear_attention")
def _(m, c):
    batch, length, heads = 16, 2048 - 8, 16
    return dict(q=m.randn("q", batch, length, heads, c.DK, scale=0.2), k=m.randn("k", batch, length, heads, c.DK, scale=0.2),
                v=m.randn("v", batch, length, heads, c.DV), g=m.rand("g", batch, length, heads, low=-0.1, high=-0.01),
                out=m.out("out", batch, length, heads, c.DV), length=length, heads=heads), (heads, batch)
