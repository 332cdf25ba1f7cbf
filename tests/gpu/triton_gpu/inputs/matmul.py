"""Arguments of products of matrices."""
from ..common import cdiv
from .maker import SMS, maker


def product(m, size, trans_a=False, exact=False, c_zero=False, scale=0.5):
    """a, b, c and sizes of the kernels with strides."""
    mm, nn, kk = size

    def side(name, *shape):
        if m.of(name) == m.torch.int8:
            return m.ints(name, -127, 128, *shape)
        return m.randn(name, *shape, scale=scale)

    a = side("a", kk, mm) if trans_a else side("a", mm, kk)
    b = side("b", kk, nn)
    c = m.zero("c", mm, nn) if c_zero else m.out("c", mm, nn)
    return dict(a=a, b=b, c=c, m=mm, n=nn, k=kk, stride_a=mm if trans_a else kk, stride_b=nn, stride_c=nn)


@maker("matmul")
def _(m, c):
    size = {"matmul_f64": (2048, 2048, 2048), "matmul_f16_small": (2048, 2048, 2048),
            "matmul_bf16_tall": (512, 4096, 8192), "matmul_tf32": (4096, 2048, 4096)}.get(m.entry.name, (4096, 4096, 4096))
    return product(m, size), (cdiv(size[0], c.BM) * cdiv(size[1], c.BN),)


@maker("matmul_transposed")
def _(m, c):
    return product(m, (4096, 4096, 4096), trans_a=True), (4096 // c.BM, 4096 // c.BN)


@maker("matmul_persistent")
def _(m, c):
    return product(m, (4096, 4096, 4096)), (min(SMS, (4096 // c.BM) * (4096 // c.BN)),)


@maker("matmul_descriptor")
def _(m, c):
    size = 4096
    return dict(a=m.randn("a", size, size, scale=0.5), b=m.randn("b", size, size, scale=0.5), c=m.out("c", size, size),
                m=size, n=size, k=size), (cdiv(size, c.BM) * cdiv(size, c.BN),)


@maker("matmul_tma")
def _(m, c):
    size = 4096
    return dict(a=m.desc("a", m.randn("a", size, size, scale=0.25)), b=m.desc("b", m.randn("b", size, size, scale=0.25)),
                c=m.desc("c", m.out("c", size, size)), m=size, n=size, k=size), \
        (min(SMS, cdiv(size, c.BM) * cdiv(size, c.BN)),)


@maker("matmul_split_k")
def _(m, c):
    size = (64, 4096, 8192) if c.BM == 16 else (512, 4096, 4096)
    return product(m, size, c_zero=True), (cdiv(size[0], c.BM) * cdiv(size[1], c.BN), c.SPLIT)


@maker("matmul_stream_k")
def _(m, c):
    mm, nn, kk = 2048, 2048 + 128, 2048
    tiles, steps, programs = (mm // c.BM) * (nn // c.BN), kk // c.BK, SMS
    args = product(m, (mm, nn, kk), c_zero=True)
    args.update(locks=m.zero("locks", tiles), full=tiles * steps // programs, iterations=tiles * steps,
                partial=tiles * steps % programs)
    return args, (programs,)


PROBLEMS = [(2048, 2048, 1024), (1024, 4096, 2048), (512, 1024, 4096), (4096, 512, 512)]


@maker("grouped_gemm")
def _(m, c):
    a = [m.randn("fp16", x, z, scale=0.5) for x, y, z in PROBLEMS]
    b = [m.randn("fp16", z, y, scale=0.5) for x, y, z in PROBLEMS]
    out = [m.out("fp16", x, y) for x, y, z in PROBLEMS]
    return dict(as_=m.list("as_", [t.data_ptr() for t in a]), bs=m.list("bs", [t.data_ptr() for t in b]),
                cs=m.list("cs", [t.data_ptr() for t in out]), sizes=m.list("sizes", [list(p) for p in PROBLEMS]),
                strides=m.list("strides", [[z, y, y] for x, y, z in PROBLEMS]), count=len(PROBLEMS)), (SMS,)


@maker("grouped_gemm_tma")
def _(m, c):
    a = [m.randn("fp16", x, z, scale=0.5) for x, y, z in PROBLEMS]
    b = [m.randn("fp16", y, z, scale=0.5) for x, y, z in PROBLEMS]
    out = [m.out("fp16", x, y) for x, y, z in PROBLEMS]
    return dict(as_=m.list("as_", [t.data_ptr() for t in a]), bs=m.list("bs", [t.data_ptr() for t in b]),
                cs=m.list("cs", [t.data_ptr() for t in out]), sizes=m.list("sizes", [list(p) for p in PROBLEMS]),
                count=len(PROBLEMS)), (SMS,)


@maker("dot_scaled")
def _(m, c):
    size = 2048

    def side(name, kind):
        return m.ints(name, 0, 256, size, size // 2) if kind == "e2m1" else m.randn(name, size, size)

    return dict(a=side("a", c.A), a_scale=m.ints("a_scale", 124, 128, size, size // c.PER), b=side("b", c.B),
                b_scale=m.ints("b_scale", 124, 128, size, size // c.PER), c=m.out("c", size, size), m=size, n=size,
                k=size), (cdiv(size, c.BM), cdiv(size, c.BN))


@maker("bmm")
def _(m, c):
    batch, size = 16, 1024
    shape = batch, size, size
    return dict(a=m.randn("a", *shape, scale=0.5), b=m.randn("b", *shape, scale=0.5), c=m.out("c", *shape), m=size,
                n=size, k=size), (size // c.BM, size // c.BN, batch)


@maker("syrk")
def _(m, c):
    size = 4096
    return dict(a=m.randn("a", size, size, scale=0.5), c=m.out("c", size, size), m=size, k=size, alpha=0.5), \
        (size // c.BM, size // c.BM)


@maker("block_sparse_matmul")
def _(m, c):
    blocks, each, n = 128, 16, 4096
    random = m.numpy()
    columns, starts = [], [0]
    for row in range(blocks):
        chosen = sorted(random.choice(blocks, size=int(random.integers(0, 2 * each)), replace=False).tolist())
        columns += chosen
        starts.append(len(columns))
    return dict(values=m.randn("values", len(columns), c.SIDE, c.SIDE), row_starts=m.list("row_starts", starts),
                block_columns=m.list("block_columns", columns), b=m.randn("b", blocks * c.SIDE, n),
                c=m.out("c", blocks * c.SIDE, n), n=n), (blocks, cdiv(n, c.BN))


@maker("lora")
def _(m, c):
    tokens, width, outputs, adapters = 4096, 4096, 4096, 8
    return dict(x=m.randn("x", tokens, width), down=m.randn("down", adapters, c.RANK, width, scale=0.05),
                up=m.randn("up", adapters, outputs, c.RANK), out=m.randn("out", tokens, outputs),
                adapters=m.ints("adapters", 0, adapters, cdiv(tokens, c.BM)), tokens=tokens, width=width,
                outputs=outputs, scale=0.5), (cdiv(tokens, c.BM),)
