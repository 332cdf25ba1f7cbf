"""Arguments of normalisations and losses."""
from ..common import cdiv
from .maker import SMS, maker


@maker("softmax_rows")
def _(m, c):
    rows, columns, stride = 8192, c.BLOCK - 24, c.BLOCK
    return dict(out=m.out("out", rows, stride), x=m.randn("x", rows, stride, scale=3), stride=stride, rows=rows,
                columns=columns), (SMS * 4,)


@maker("softmax_online")
def _(m, c):
    rows, columns = 4096, 10001
    return dict(out=m.out("out", rows, columns), x=m.randn("x", rows, columns, scale=3), columns=columns), (rows,)


@maker("softmax_backward")
def _(m, c):
    rows, columns = 8192, c.BLOCK - 32
    return dict(dx=m.out("dx", rows, columns), dy=m.randn("dy", rows, columns), y=m.softmax("y", rows, columns),
                columns=columns), (rows // c.ROWS,)


@maker("layer_norm_forward")
def _(m, c):
    rows, columns, stride = 8192, 5001, 5008
    return dict(x=m.randn("x", rows, stride, shift=0.5), y=m.out("y", rows, stride), w=m.randn("w", columns),
                b=m.randn("b", columns), mean=m.out("mean", rows), rstd=m.out("rstd", rows), stride=stride,
                columns=columns, eps=1e-5), (rows,)


@maker("layer_norm_backward")
def _(m, c):
    rows, columns, stride = 8192, c.BLOCK - 24, c.BLOCK
    return dict(dx=m.out("dx", rows, stride), dy=m.randn("dy", rows, stride), x=m.randn("x", rows, stride),
                w=m.randn("w", columns), dw=m.zero("dw", c.GROUPS, columns), db=m.zero("db", c.GROUPS, columns),
                mean=m.randn("mean", rows, scale=0.05), rstd=m.rand("rstd", rows, low=0.8, high=1.2),
                locks=m.zero("locks", 2 * c.GROUPS), stride=stride, columns=columns), (rows,)


@maker("layer_norm_weights")
def _(m, c):
    rows, columns = 1021, 16384
    return dict(dw=m.randn("dw", rows, columns), db=m.randn("db", rows, columns), w_out=m.out("w_out", columns),
                b_out=m.out("b_out", columns), rows=rows, columns=columns), (cdiv(columns, c.COLUMNS),)


@maker("rms_norm_forward")
def _(m, c):
    rows, columns = 8192, c.BLOCK
    return dict(x=m.randn("x", rows, columns), w=m.randn("w", columns), out=m.out("out", rows, columns),
                rstd=m.out("rstd", rows), columns=columns, eps=1e-6), (rows,)


@maker("rms_norm_add")
def _(m, c):
    rows, columns = 4096, c.BLOCK - 512
    return dict(x=m.randn("x", rows, columns), residual=m.randn("residual", rows, columns), w=m.randn("w", columns, scale=0.1),
                out=m.out("out", rows, columns), columns=columns, eps=1e-6, offset=1.0), (rows,)


@maker("rms_norm_backward")
def _(m, c):
    rows, columns, per = 8190, c.BLOCK, 8
    programs = cdiv(rows, per)
    return dict(dx=m.out("dx", rows, columns), dy=m.randn("dy", rows, columns), x=m.randn("x", rows, columns),
                w=m.randn("w", columns), rstd=m.rand("rstd", rows, low=0.8, high=1.2),
                dw=m.out("dw", programs, columns), rows=rows, columns=columns, per=per), (programs,)


@maker("group_norm")
def _(m, c):
    images, groups, group, area = 32, 32, 10, 4096
    shape = images, groups * group, area
    return dict(x=m.randn("x", *shape), y=m.out("y", *shape), w=m.randn("w", groups * group),
                b=m.randn("b", groups * group), group=group, area=area, groups=groups, eps=1e-5), (images, groups)


@maker("cross_entropy")
def _(m, c):
    rows, vocabulary = 4096, 32000
    random = m.numpy()
    targets = random.integers(0, vocabulary, rows)
    targets[::17] = -100
    return dict(logits=m.randn("logits", rows, vocabulary, scale=2), targets=m.list("targets", targets.tolist()),
                losses=m.out("losses", rows), stride=vocabulary, vocabulary=vocabulary, ignored=-100, smoothing=0.1,
                count=4.0), (rows,)


@maker("kl_divergence")
def _(m, c):
    rows, columns = 8191, 4001
    return dict(p=m.softmax("p", rows, columns), q=m.softmax("q", rows, columns), out=m.out("out", rows), rows=rows,
                columns=columns), (cdiv(rows, c.ROWS),)
