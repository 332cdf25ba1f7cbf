"""Arguments of mixtures of experts."""
from ..common import cdiv
from .maker import maker


@maker("moe_gate")
def _(m, c):
    tokens = 32768 - 1
    return dict(logits=m.randn("logits", tokens, c.EXPERTS), weights=m.out("weights", tokens, c.K),
                experts_out=m.out("experts_out", tokens, c.K), tokens=tokens), (cdiv(tokens, c.ROWS),)


@maker("moe_count")
def _(m, c):
    per, programs = 256, 1056
    total = per * programs - 7
    return dict(ids=m.ints("ids", 0, c.EXPERTS, total), counts=m.out("counts", programs, c.EXPERTS), total=total,
                per=per), (programs,)


@maker("fused_moe")
def _(m, c):
    tokens, n, k = 2048, 2048, 2048
    experts = 16 if c.TOP == 8 else 8
    random = m.numpy()
    chosen = [[] for _ in range(experts)]
    for token in range(tokens):
        for rank, expert in enumerate(random.choice(experts, size=c.TOP, replace=False).tolist()):
            chosen[expert].append(token * c.TOP + rank)
    valid = tokens * c.TOP
    order, owners = [], []
    for expert, entries in enumerate(chosen):
        blocks = cdiv(len(entries), c.BM)
        order += entries + [valid] * (blocks * c.BM - len(entries))
        # The last expert stands for one that another GPU holds.
        owners += [expert if expert + 1 < experts else -1] * blocks
    steps = cdiv(k, c.BK)
    return dict(x=m.randn("x", tokens, k, scale=0.5), w=m.randn("w", experts, n, k, scale=0.5),
                out=m.out("out", valid, n), weights=m.rand("weights", valid), tokens_of=m.list("tokens_of", order),
                experts_of=m.list("experts_of", owners), padded=m.list("padded", [len(order)]),
                x_scale=m.rand("x_scale", tokens, steps, low=0.1), w_scale=m.rand("w_scale", experts, steps, low=0.1),
                n=n, k=k, valid=valid, stride_expert=n * k), ((len(order) // c.BM + 2) * cdiv(n, c.BN),)


@maker("moe_combine")
def _(m, c):
    tokens, width = 4096, 4096
    return dict(x=m.randn("x", tokens * c.TOP, width), out=m.out("out", tokens, width), width=width), \
        (tokens, cdiv(width, c.BLOCK))
