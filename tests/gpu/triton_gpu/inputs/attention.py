"""Arguments of attention."""
import math

from ..common import cdiv
from .maker import maker


@maker("flash_forward")
def _(m, c):
    batch, heads, kv_heads, length = (2, 16, 4, 2048) if c.D == 256 else (4, 32, 8, 2048)
    kv = batch, kv_heads, length, c.D
    return dict(q=m.randn("q", batch, heads, length, c.D), k=m.randn("k", *kv), v=m.randn("v", *kv),
                out=m.out("out", batch, heads, length, c.D), lse=m.out("lse", batch, heads, length),
                scale=1 / math.sqrt(c.D), heads=heads, kv_heads=kv_heads, length=length), \
        (cdiv(length, c.BM), batch * heads)


@maker("flash_descriptor")
def _(m, c):
    heads, length = 64, 2048
    shape = heads * length, c.D
    return dict(q=m.desc("q", m.randn("q", *shape)), k=m.desc("k", m.randn("k", *shape)),
                v=m.desc("v", m.randn("v", *shape)), out=m.desc("out", m.out("out", *shape)),
                lse=m.out("lse", heads * length), scale=1 / math.sqrt(c.D), length=length), (length // c.BM, heads)


@maker("flash_delta")
def _(m, c):
    heads, length = 256, 2048
    shape = heads, length, c.D
    return dict(out=m.randn("out", *shape), dout=m.randn("dout", *shape), delta=m.out("delta", heads, length),
                length=length), (length // c.BM, heads)


def backward(m, c):
    heads, length = 64, 2048
    shape = heads, length, c.D
    return dict(q=m.randn("q", *shape), k=m.randn("k", *shape), v=m.randn("v", *shape), dout=m.randn("dout", *shape),
                dq=m.out("dq", *shape), dk=m.out("dk", *shape), dv=m.out("dv", *shape),
                lse=m.rand("lse", heads, length, low=11, high=13), delta=m.randn("delta", heads, length, scale=0.2),
                scale=1 / math.sqrt(c.D), length=length), heads, length


@maker("flash_backward_kv")
def _(m, c):
    args, heads, length = backward(m, c)
    return args, (length // c.BN, heads)


@maker("flash_backward_q")
def _(m, c):
    args, heads, length = backward(m, c)
    return args, (length // c.BM, heads)


def pages_of(m, sequences, most, page):
    random = m.numpy()
    lengths = random.integers(page * most // 2, page * most + 1, sequences)
    lengths[0] = 1
    return m.list("lengths", lengths.tolist()), \
        m.list("pages", random.permutation(sequences * most).reshape(sequences, most).tolist())


@maker("paged_decode")
def _(m, c):
    sequences, kv_heads, splits, most = 64, 8, 8, 2048 // c.PAGE
    heads = kv_heads * c.GROUP
    lengths, pages = pages_of(m, sequences, most, c.PAGE)
    cache = sequences * most, c.PAGE, kv_heads, c.D
    return dict(q=m.randn("q", sequences, heads, c.D), k_cache=m.randn("k_cache", *cache),
                v_cache=m.randn("v_cache", *cache), pages=pages, lengths=lengths,
                out=m.out("out", sequences, heads, splits, c.D), lse=m.out("lse", sequences, heads, splits),
                scale=1 / math.sqrt(c.D), kv_heads=kv_heads, most_pages=most, splits=splits), \
        (sequences, kv_heads, splits)


@maker("paged_merge")
def _(m, c):
    sequences, heads, splits, share = 256, 64, 16, 128
    return dict(parts=m.randn("parts", sequences, heads, splits, c.D), lse=m.randn("lse", sequences, heads, splits),
                lengths=m.ints("lengths", 1, splits * share + 1, sequences), out=m.out("out", sequences, heads, c.D),
                splits=splits, share=share), (sequences, heads)


@maker("paged_vector")
def _(m, c):
    sequences, heads, most = 64, 16, 1024 // c.PAGE
    lengths, pages = pages_of(m, sequences, most, c.PAGE)
    cache = sequences * most, heads, c.PAGE, c.D
    return dict(q=m.randn("q", sequences, heads, c.D), k_cache=m.randn("k_cache", *cache),
                v_cache=m.randn("v_cache", *cache), pages=pages, lengths=lengths, out=m.out("out", sequences, heads, c.D),
                scale=1 / math.sqrt(c.D), slopes=m.rand("slopes", heads, low=0.001, high=0.1), heads=heads,
                most_pages=most), (heads, sequences)


@maker("prefill_ragged")
def _(m, c):
    heads, kv_heads = 32, 8
    lengths = m.numpy().integers(300, 1500, 8).tolist()
    starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    tokens = starts[-1]
    return dict(q=m.randn("q", tokens, heads, c.D), k=m.randn("k", tokens, kv_heads, c.D),
                v=m.randn("v", tokens, kv_heads, c.D), out=m.out("out", tokens, heads, c.D),
                starts=m.list("starts", starts), scale=1 / math.sqrt(c.D), soft_cap=30.0, heads=heads,
                kv_heads=kv_heads), (cdiv(max(lengths), c.BM), heads, len(lengths))
