"""Arguments of elementwise kernels."""
from ..common import cdiv
from .maker import maker


@maker("add")
def _(m, c):
    n = m.size("count", 1 << 25)
    return dict(x=m.randn("x", n), y=m.randn("y", n), out=m.out("out", n), count=n), (cdiv(n, c.BLOCK),)


@maker("gelu")
def _(m, c):
    n = m.size("count", 1 << 25)
    return dict(x=m.randn("x", n, scale=2), out=m.out("out", n), count=n), (cdiv(n, c.BLOCK),)


@maker("swiglu_forward")
def _(m, c):
    rows, width = 4096, 11008
    return dict(gate_up=m.randn("gate_up", rows, 2 * width), out=m.out("out", rows, width), width=width), \
        (rows, cdiv(width, c.BLOCK))


@maker("swiglu_backward")
def _(m, c):
    rows, width = 8192, c.BLOCK - 48
    shape = rows, width
    return dict(grad=m.randn("grad", *shape), gate=m.randn("gate", *shape), up=m.randn("up", *shape),
                dgate=m.out("dgate", *shape), dup=m.out("dup", *shape), width=width), (rows,)


@maker("dropout")
def _(m, c):
    n = m.size("count", 1 << 25)
    return dict(x=m.randn("x", n), out=m.out("out", n), count=n, rate=0.3, seed=1234), (cdiv(n, c.BLOCK),)


@maker("bias_dropout_residual")
def _(m, c):
    rows, columns = 8192, 4096
    return dict(x=m.randn("x", rows, columns), bias=m.randn("bias", columns), residual=m.randn("residual", rows, columns),
                out=m.out("out", rows, columns), columns=columns, rate=0.1, seed=77), \
        (rows // c.ROWS, cdiv(columns, c.BLOCK))


@maker("rope_halves")
def _(m, c):
    tokens = 8192
    qs, ks = c.Q_HEADS * 2 * c.HALF, c.K_HEADS * 2 * c.HALF
    return dict(q=m.randn("q", tokens, qs), k=m.randn("k", tokens, ks), cos=m.rand("cos", tokens, c.HALF, low=-1),
                sin=m.rand("sin", tokens, c.HALF, low=-1), q_stride=qs, k_stride=ks), (tokens,)


@maker("rope_pairs")
def _(m, c):
    tokens, heads = 4096, 32
    shape = tokens, heads, 2 * c.HALF
    return dict(x=m.randn("x", *shape), out=m.out("out", *shape), positions=m.ints("positions", 0, 8192, tokens),
                heads=heads, base=10000.0), (tokens, cdiv(heads, c.HEADS))


@maker("adamw")
def _(m, c):
    n = (1 << 24) - 5
    return dict(weight=m.out("weight", n), master=m.randn("master", n), grad=m.randn("grad", n, scale=0.1),
                m=m.randn("m", n, scale=0.1), v=m.rand("v", n, low=0.001, high=0.1), count=n, lr=1e-3, beta1=0.9,
                beta2=0.999, eps=1e-8, decay=0.01, step=10.0), (cdiv(n, c.BLOCK),)


@maker("lion")
def _(m, c):
    n = (1 << 24) - 5
    return dict(weight=m.randn("weight", n), grad=m.randn("grad", n), m=m.randn("m", n), count=n, lr=1e-3, beta1=0.9,
                beta2=0.99), (cdiv(n, c.BLOCK),)


@maker("transpose")
def _(m, c):
    rows, columns, batch = m.size("rows", 4096), m.size("columns", 4096), 2
    return dict(x=m.randn("x", batch, rows, columns), out=m.out("out", batch, columns, rows), rows=rows,
                columns=columns), (cdiv(rows, c.BLOCK), cdiv(columns, c.BLOCK), batch)


@maker("embedding_forward")
def _(m, c):
    vocabulary, tokens, width = 32000, 8192, 4096
    return dict(table=m.randn("table", vocabulary, width), ids=m.ints("ids", 0, vocabulary, tokens),
                out=m.out("out", tokens, width), width=width), (tokens, cdiv(width, c.BLOCK))


@maker("embedding_backward")
def _(m, c):
    vocabulary, tokens, width = 32000, 8192, 1024
    return dict(grad=m.randn("grad", tokens, width), ids=m.ints("ids", 0, vocabulary, tokens),
                table_grad=m.zero("table_grad", vocabulary, width), tokens=tokens, width=width), \
        (cdiv(tokens, c.ROWS), cdiv(width, c.BLOCK))


@maker("special_functions")
def _(m, c):
    n = (1 << 22) - 5
    return dict(x=m.rand("x", n, low=-0.9, high=5), y=m.rand("y", n, low=0.1, high=5), out=m.out("out", n),
                wide=m.out("wide", n), count=n), (cdiv(n, c.BLOCK),)


@maker("hash_mix")
def _(m, c):
    n = (1 << 24) - 5
    return dict(keys=m.ints("keys", -(1 << 31), 1 << 31, n), out=m.out("out", n), count=n, modulus=1000003), \
        (cdiv(n, c.BLOCK),)
