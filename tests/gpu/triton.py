#!/usr/bin/env python3
"""triton.py --ours SASSAFRAS [--ptxas PTXAS] [--only PART,...] [--seconds 150]

Runs the Triton kernels of tests/bench/triton on a GPU, each with ptxas's cubin and with ours: same PTX, same launcher,
same inputs, in one process, so that results are compared on the GPU and times are taken in turn.
Also runs torch.compile's models, a process for each compiler.

--only takes parts of names; "inductor" alone stands for all models, "kernels" for all kernels.
--dry needs no GPU: it builds the arguments of every kernel without memory and checks them against the signature.
--dry-compile compiles every kernel with both compilers and runs nothing.
Results: a table on stdout, $OUT/triton.json, $OUT/bad.tar.gz (PTX and both cubins of what is wrong or failed).
"""
import argparse
import fcntl
import hashlib
import io
import json
import math
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from pathlib import Path

START = time.time()
SMS = 132
POISON = 0x5B


def cdiv(a, b):
    return -(-a // b)


def say(*words):
    print(f"[{time.time() - START:6.1f}]", *words, file=sys.stderr, flush=True)


def short(error, limit=300):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " | ".join(lines[:1] + lines[-1:]) if len(lines) > 1 else "".join(lines)
    return f"{type(error).__name__}: {text}"[:limit]


# ---------------------------------------------------------------------------------------------------------------------
# Inputs. Every tensor that a Maker makes is watched: all are compared after the launch.


class Maker:
    """Makes the arguments of one registered kernel; names are those of its signature."""

    def __init__(self, entry, device, seed):
        import torch

        self.torch, self.entry, self.device = torch, entry, device
        self.kinds = entry._arguments()
        self.tensors, self.labels = [], []
        self.ignored, self.resets = set(), []
        self.generator = None
        if device != "meta":
            self.generator = torch.Generator(device=device)
            self.generator.manual_seed(seed)
        self.numpy_seed = seed

    def dtype(self, kind):
        torch = self.torch
        return {
            "fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64,
            "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2, "i1": torch.bool, "i8": torch.int8,
            "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "u32": torch.int32, "i64": torch.int64,
            "u64": torch.int64,
        }[kind]

    def of(self, name):
        kind = self.kinds.get(name, name)
        if kind.startswith("tensordesc<"):
            kind = kind[len("tensordesc<"):].split("[")[0]
        return self.dtype(kind.lstrip("*"))

    def watch(self, name, tensor):
        assert tensor.is_contiguous()
        self.tensors.append(tensor)
        self.labels.append(name)
        return tensor

    def randn(self, name, *shape, scale=1.0, shift=0.0):
        t = self.torch.randn(shape, device=self.device, generator=self.generator, dtype=self.torch.float32)
        t.mul_(scale)
        if shift:
            t.add_(shift)
        return self.watch(name, t.to(self.of(name)))

    def rand(self, name, *shape, low=0.0, high=1.0):
        exact = self.of(name) == self.torch.float64
        kind = self.torch.float64 if exact else self.torch.float32
        t = self.torch.rand(shape, device=self.device, generator=self.generator, dtype=kind)
        t.mul_(high - low).add_(low)
        return self.watch(name, t.to(self.of(name)))

    def softmax(self, name, *shape):
        t = self.torch.randn(shape, device=self.device, generator=self.generator, dtype=self.torch.float32)
        return self.watch(name, self.torch.softmax(t, -1).to(self.of(name)))

    def ints(self, name, low, high, *shape):
        t = self.torch.randint(low, high, shape, device=self.device, generator=self.generator, dtype=self.torch.int64)
        return self.watch(name, t.to(self.of(name)))

    def list(self, name, values):
        return self.watch(name, self.torch.tensor(values, dtype=self.torch.int64).to(self.of(name)).to(self.device))

    def out(self, name, *shape):
        t = self.torch.empty(shape, device=self.device, dtype=self.of(name))
        t.view(self.torch.uint8).fill_(POISON)
        return self.watch(name, t)

    def full(self, name, value, *shape):
        return self.watch(name, self.torch.full(shape, value, device=self.device, dtype=self.of(name)))

    def zero(self, name, *shape):
        return self.full(name, 0, *shape)

    def size(self, name, value):
        """value where the kernel was told that the number is a multiple of 16, a bit less elsewhere."""
        return value if self.kinds[name].endswith("/16") else value - 5

    def desc(self, name, tensor):
        from triton.tools.tensor_descriptor import TensorDescriptor

        block = [int(x) for x in re.search(r"\[([\d,]+)\]", self.kinds[name]).group(1).split(",")]
        return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), block)

    def numpy(self):
        import numpy

        return numpy.random.default_rng(self.numpy_seed)


MAKERS = {}


def maker(*names):
    def register(function):
        for name in names:
            MAKERS[name] = function
        return function

    return register


# Each takes the Maker and the constants; it gives a dict of the arguments, and the grid.

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


@maker("conv2d")
def _(m, c):
    batch, side, channels, filters = (16, 56, 128, 128) if c.SIDE == 3 else (32, 56, 256, 512)
    out = (side + 2 * c.PAD - c.SIDE) // c.STRIDE + 1
    return dict(x=m.randn("x", batch, side, side, channels), w=m.randn("w", filters, c.SIDE * c.SIDE, channels, scale=0.1),
                y=m.out("y", batch, out, out, filters), batch=batch, height=side, width=side, channels=channels,
                filters=filters, out_height=out, out_width=out), (cdiv(batch * out * out, c.BM), cdiv(filters, c.BN))


@maker("conv2d_depthwise")
def _(m, c):
    height, width, channels = 250, 253, 256
    return dict(x=m.randn("x", height, width, channels), w=m.randn("w", c.SIDE * c.SIDE, channels),
                y=m.out("y", height, width, channels), height=height, width=width, channels=channels), \
        (height, cdiv(width, c.BW), cdiv(channels, c.BC))


@maker("conv1d_causal")
def _(m, c):
    batch, length, channels = 4, 2001, 4096
    return dict(x=m.randn("x", batch, length, channels), w=m.randn("w", channels, c.TAPS), bias=m.randn("bias", channels),
                y=m.out("y", batch, length, channels), length=length, channels=channels), \
        (cdiv(length, c.BT), cdiv(channels, c.BC), batch)


@maker("max_pool")
def _(m, c):
    height, width, channels = 223, 225, 256
    oh, ow = (height + 1) // 2, (width + 1) // 2
    return dict(x=m.randn("x", height, width, channels), y=m.out("y", oh, ow, channels),
                where=m.out("where", oh, ow, channels), height=height, width=width, channels=channels), \
        (oh, ow, cdiv(channels, c.BC))


class Constants:
    def __init__(self, values):
        self.__dict__.update(values)


def build(entry, device, seed):
    """(maker, values in the order of the function, grid of three)."""
    name = entry.function.__name__ if hasattr(entry.function, "__name__") else entry.function.fn.__name__
    m = Maker(entry, device, seed)
    args, grid = MAKERS[name](m, Constants(entry.constants))
    check(entry, args)
    values = [args[p] if p in args else entry.constants[p] for p in entry.function.arg_names]
    return m, values, tuple(grid) + (1,) * (3 - len(grid))


def check(entry, args):
    """The arguments against the signature: names, kinds, ranges, multiples."""
    kinds = entry._arguments()
    assert set(args) == set(kinds), f"arguments differ: {set(args) ^ set(kinds)}"
    for name, kind in kinds.items():
        value = args[name]
        if kind.startswith("tensordesc<"):
            block = re.search(r"\[([\d,]+)\]", kind).group(1)
            assert ",".join(map(str, value.block_shape)) == block, f"{name}: block"
        elif kind.startswith("*"):
            sizes = {"fp64": 8, "i64": 8, "u64": 8, "fp32": 4, "i32": 4, "u32": 4, "fp16": 2, "bf16": 2, "i16": 2}
            assert value.element_size() == sizes.get(kind[1:], 1), f"{name}: size of elements"
            assert value.data_ptr() % 16 == 0, f"{name}: alignment"
        elif kind.startswith("fp"):
            assert isinstance(value, float), f"{name}: not a float"
        else:
            assert isinstance(value, int), f"{name}: not an int"
            bits = int(re.match(r"[iu](\d+)", kind).group(1))
            assert -(1 << (bits - 1)) <= value < 1 << (bits if kind[0] == "u" else bits - 1), f"{name}: range"
            assert not kind.endswith("/16") or value % 16 == 0, f"{name}: no multiple of 16"


# ---------------------------------------------------------------------------------------------------------------------
# Compiling: Triton with ptxas fills its cache and makes the launcher; our compiler is run on the PTX.


def source_of(entry):
    from triton.compiler import ASTSource

    return ASTSource(entry.function, entry.types(), entry.constants, entry.attributes())


def compile_triton(entry):
    import triton
    from triton.backends.compiler import GPUTarget

    source = source_of(entry)
    return source, triton.compile(source, target=GPUTarget("cuda", 90, 32), options=dict(entry.options))


def compile_one(entry, options, folder):
    """In a child process. Writes NAME.json, and the PTX and cubins beside it."""
    from triton import knobs

    result = {"name": entry.name}
    base = folder / entry.name
    times = {}

    def listener(**event):
        for stage, microseconds in event["times"].lowering_stages:
            times[stage] = microseconds / 1e6

    try:
        try:
            knobs.compilation.listener = listener
        except Exception:
            pass
        started = time.time()
        source, compiled = compile_triton(entry)
        result["triton_s"] = round(time.time() - started, 3)
        result["ptxas_s"] = round(times.get("cubin", 0), 3)
        result["shared"] = compiled.metadata.shared
        result["warps"] = compiled.metadata.num_warps
        base.with_suffix(".ptx").write_text(compiled.asm["ptx"])
        base.with_suffix(".ptxas.cubin").write_bytes(compiled.asm["cubin"])
    except BaseException as error:
        result["refused"] = short(error)
        return result
    try:
        command = [options.ours, "-lineinfo", "-v", "--gpu-name=sm_90a", str(base.with_suffix(".ptx")), "-o",
                   str(base.with_suffix(".ours.cubin"))]
        started = time.time()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        result["ours_s"] = round(time.time() - started, 3)
        text = done.stdout.decode(errors="replace")
        if done.returncode != 0 or not base.with_suffix(".ours.cubin").exists():
            result["ours_error"] = f"exit {done.returncode}: {text.strip()[-250:]}"
    except BaseException as error:
        result["ours_error"] = short(error)
    try:
        # The launcher is C that Triton compiles: now, while there are processors to spare.
        from triton.backends.nvidia import driver

        constants = {(entry.function.arg_names.index(k),) if isinstance(k, str) else k: v
                     for k, v in source.constants.items()}
        text = driver.make_launcher(constants, dict(source.signature.items()),
                                    getattr(compiled.metadata, "tensordesc_meta", None))
        driver.compile_module_from_src(src=text, name="__triton_launcher", library_dirs=driver.library_dirs(),
                                       include_dirs=driver.include_dirs, libraries=driver.libraries)
    except BaseException as error:
        result["launcher_note"] = short(error)
    return result


def spawn_compile(entry, options, folder):
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        log = os.open(str(folder / f"{entry.name}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        signal.alarm(75)
        result = compile_one(entry, options, folder)
        part = folder / f"{entry.name}.part"
        part.write_text(json.dumps(result))
        part.rename(folder / f"{entry.name}.json")
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


# ---------------------------------------------------------------------------------------------------------------------
# Running, in a child that holds the GPU


TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}
# A rounding more or less may choose the other neighbour here: so many elements, as a share, may differ.
SOFT = {"moe_gate_topk": 1e-4, "quantize_rows_int8": 1e-3}


def same_bits(torch, a, b):
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8))


def difference(torch, reference, other):
    """(largest relative difference, elements that differ); relative to the number and the root mean square."""
    if not reference.dtype.is_floating_point:
        wrong = int((reference != other).sum())
        return (float("inf") if wrong else 0.0), wrong
    worst, wrong = 0.0, 0
    a_all, b_all = reference.reshape(-1), other.reshape(-1)
    step = 1 << 25
    squares, count = 0.0, 0
    for at in range(0, a_all.numel(), step):
        a = a_all[at:at + step].to(torch.float64)
        good = torch.isfinite(a)
        squares += float(torch.where(good, a * a, torch.zeros_like(a)).sum())
        count += int(good.sum())
    rms = math.sqrt(squares / max(count, 1))
    for at in range(0, a_all.numel(), step):
        a, b = a_all[at:at + step].to(torch.float64), b_all[at:at + step].to(torch.float64)
        equal = (a == b) | (torch.isnan(a) & torch.isnan(b))
        part = int((~equal).sum())
        if part:
            wrong += part
            error = torch.where(equal, torch.zeros_like(a), (a - b).abs() / (a.abs() + rms))
            error = torch.nan_to_num(error, nan=float("inf"), posinf=float("inf"))
            worst = max(worst, float(error.max()))
    return worst, wrong


class Runner:
    def __init__(self, pipe, entries, options, folder):
        import torch

        self.torch, self.pipe, self.entries, self.options, self.folder = torch, pipe, entries, options, folder
        self.device = "cuda"
        if options.fake:
            fake_cuda(torch)
            self.device = "cpu"
        torch.cuda.set_device(0)
        self.flush = torch.empty(256 * 1024 * 1024 // 4, dtype=torch.int, device=self.device)
        self.flush.zero_()
        torch.cuda.synchronize()
        try:
            import triton

            triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
        except Exception:
            pass
        self.lock = open(folder / "gpu.lock", "w")

    def stage(self, text):
        self.pipe.send({"stage": text})

    def load(self, entry):
        if self.options.fake:
            return FakeKernel(entry, "ptxas"), FakeKernel(entry, "ours")
        from triton.compiler import CompiledKernel

        source, theirs = compile_triton(entry)
        ours = None
        path = self.folder / f"{entry.name}.ours.cubin"
        if path.exists():
            ours = CompiledKernel(source, theirs.metadata_group, theirs.hash)
            ours.kernel = path.read_bytes()
            ours.asm["cubin"] = ours.kernel
        return theirs, ours

    def facts(self, kernel, side, result):
        kernel._init_handles()
        result[f"regs_{side}"] = kernel.n_regs
        result[f"spills_{side}"] = kernel.n_spills

    def correct(self, entry, result):
        torch = self.torch
        m, values, grid = build(entry, self.device, 20261126)
        result["grid"] = grid
        result["mbytes"] = round(sum(t.numel() * t.element_size() for t in m.tensors) / 1e6, 1)
        first = [t.clone() for t in m.tensors]
        theirs, ours = self.load(entry)

        def go(kernel):
            for t, old in zip(m.tensors, first):
                t.copy_(old)
            torch.cuda.synchronize()
            kernel[grid](*values)
            torch.cuda.synchronize()

        self.stage("ptxas")
        self.facts(theirs, "ptxas", result)
        go(theirs)
        reference = [t.clone() for t in m.tensors]
        written = [i for i, t in enumerate(reference) if not same_bits(torch, t, first[i])]
        result["written"] = [m.labels[i] for i in written]
        for i in written:
            if reference[i].dtype.is_floating_point:
                t = reference[i].reshape(-1)
                bad = sum(int((~torch.isfinite(t[at:at + (1 << 26)].to(torch.float32))).sum())
                          for at in range(0, t.numel(), 1 << 26))
                if bad:
                    result.setdefault("not_finite", {})[m.labels[i]] = bad / t.numel()
        go(theirs)
        noise = {}
        for i, t in enumerate(m.tensors):
            if not same_bits(torch, t, reference[i]):
                noise[i] = difference(torch, reference[i], t)
        result["noise"] = {m.labels[i]: n for i, n in noise.items()}
        result["ptxas_ran"] = True
        if ours is None:
            result["verdict"] = "no cubin"
            return
        self.stage("ours")
        self.facts(ours, "ours", result)
        go(ours)
        verdict, worst, details = "same", 0.0, {}
        for i, t in enumerate(m.tensors):
            label = m.labels[i]
            if label in m.ignored or same_bits(torch, t, reference[i]):
                continue
            error, wrong = difference(torch, reference[i], t)
            if wrong == 0:
                continue  # zeros of two signs, or other NaNs
            kind = str(t.dtype).removeprefix("torch.")
            limit = TOLERANCE.get(kind, 0.13 if kind.startswith("float8") else 0.0)
            noisy_error, noisy_wrong = noise.get(i, (0.0, 0))
            share = wrong / t.numel()
            if error <= limit or error <= 4 * noisy_error < float("inf") or share <= SOFT.get(entry.name, 0):
                level = "close"
            elif noisy_wrong and wrong <= 4 * noisy_wrong:
                level = "noisy"
            else:
                level = "WRONG"
                where = (t.reshape(-1).view(torch.uint8) != reference[i].reshape(-1).view(torch.uint8)).nonzero()
                at = int(where[0]) // t.element_size()
                details[label + "_first"] = [at, float(reference[i].reshape(-1)[at].to(torch.float64)),
                                             float(t.reshape(-1)[at].to(torch.float64))]
            details[label] = [level, error, share]
            worst = max(worst, error)
            verdict = max(verdict, level, key=["same", "close", "noisy", "WRONG"].index)
        result.update(verdict=verdict, error=worst, details=details)
        mine = [t.clone() for t in m.tensors]
        go(ours)
        unstable = [m.labels[i] for i, t in enumerate(m.tensors)
                    if i not in noise and m.labels[i] not in m.ignored and not same_bits(torch, t, mine[i])]
        if unstable:
            result["unstable"] = unstable

    def timed(self, entry, result):
        torch = self.torch
        m, values, grid = build(entry, self.device, 20261126)
        theirs, ours = self.load(entry)
        sides = {"ptxas": theirs}
        if ours is not None:
            sides["ours"] = ours
        launch = {side: kernel[grid] for side, kernel in sides.items()}

        def once(side):
            for t in m.resets:
                t.zero_()
            self.flush.zero_()
            before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            before.record()
            launch[side](*values)
            after.record()
            return before, after

        self.stage("timing")
        rough = {}
        for side in sides:
            for _ in range(3):
                pair = once(side)
            torch.cuda.synchronize()
            rough[side] = pair[0].elapsed_time(pair[1])
        count = max(6, min(60, int(self.options.rep / max(sum(rough.values()) / 2, 0.01))))
        if max(rough.values()) > 200:
            count = 2
        pairs = {side: [] for side in sides}
        for number in range(count):
            for side in (list(sides) if number % 2 else list(sides)[::-1]):
                pairs[side].append(once(side))
        torch.cuda.synchronize()
        for side, events in pairs.items():
            times = sorted(a.elapsed_time(b) for a, b in events)
            result[f"ms_{side}"] = times[len(times) // 2]
            result[f"best_{side}"] = times[0]
        if ours is not None:
            result["ratio"] = result["ms_ours"] / result["ms_ptxas"]
            result["ratio_best"] = result["best_ours"] / result["best_ptxas"]

    def serve(self):
        self.pipe.send({"ready": True})
        while True:
            index, phase = self.pipe.recv()
            entry, result = self.entries[index], {}
            fatal = False
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX)
                self.stage("start")
                (self.correct if phase == "correct" else self.timed)(entry, result)
            except BaseException as error:
                result["error_text"] = short(error)
                result["trace"] = traceback.format_exc()[-1500:]
                try:
                    self.torch.cuda.synchronize()
                except BaseException:
                    fatal = True
            if fatal:
                # The context is lost; the kernel lets go of the lock with the process.
                self.pipe.send({"result": result, "fatal": True})
                os._exit(1)
            fcntl.flock(self.lock, fcntl.LOCK_UN)
            self.pipe.send({"result": result, "fatal": False})


class FakeKernel:
    """Stands for a kernel where there is no GPU, to try this script: --fake."""

    n_regs, n_spills = 32, 0

    def __init__(self, entry, side):
        self.entry, self.side = entry, side

    def _init_handles(self):
        pass

    def __getitem__(self, grid):
        def launch(*values):
            for name, value in zip(self.entry.function.arg_names, values):
                value = getattr(value, "base", value)
                if not hasattr(value, "data_ptr"):
                    continue
                value.view(-1)[:3] = 1
                if self.side == "ours":
                    if self.entry.name == "add_f32":
                        value.view(-1)[7:9] = 3
                    if self.entry.name == "gelu_tanh_bf16":
                        os._exit(9)
                    if self.entry.name == "gelu_erf_f16":
                        time.sleep(1000)
                    if self.entry.name == "swiglu_fwd":
                        raise RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered")

        return launch


def fake_cuda(torch):
    class Event:
        def __init__(self, **_):
            self.at = 0

        def record(self):
            self.at = time.time()

        def elapsed_time(self, other):
            return (other.at - self.at) * 1000

    torch.cuda.Event, torch.cuda.synchronize, torch.cuda.set_device = Event, lambda: None, lambda _: None


class Child:
    """The process that runs kernels; replaced when it dies."""

    def __init__(self, entries, options, folder):
        self.pipe, other = multiprocessing.Pipe()
        self.started = time.time()
        self.since, self.job, self.at, self.ready = time.time(), None, "init", False
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.pipe.close()
                log = os.open(str(folder / "runner.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                os.dup2(log, 1)
                os.dup2(log, 2)
                Runner(other, entries, options, folder).serve()
            except EOFError:
                pass
            except BaseException:
                traceback.print_exc()
                try:
                    other.send({"broken": traceback.format_exc()[-800:]})
                except BaseException:
                    pass
            finally:
                os._exit(1)
        other.close()

    def give(self, index, phase):
        self.job, self.since, self.at = (index, phase), time.time(), "waiting"
        self.pipe.send((index, phase))

    def poll(self):
        """None, or ("ready" | "done" | "dead" | "broken", what)."""
        try:
            while self.pipe.poll():
                message = self.pipe.recv()
                if "stage" in message:
                    self.at, self.since = message["stage"], time.time()
                elif "ready" in message:
                    self.ready = True
                    return "ready", None
                elif "broken" in message:
                    return "broken", message["broken"]
                else:
                    return ("dead" if message["fatal"] else "done"), message["result"]
        except (EOFError, OSError):
            return "dead", None
        limit = {"init": 60, "waiting": 60, "start": 25}.get(self.at, 10)
        if (self.job or not self.ready) and time.time() - self.since > limit:
            self.kill()
            return "dead", {"error_text": f"no answer in {limit} s", "hang": True}
        return None

    def kill(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except OSError:
            pass

    def bury(self):
        self.kill()
        for _ in range(40):  # a process with a kernel that hangs may take long to go
            try:
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    break
            except OSError:
                break
            time.sleep(0.05)
        self.pipe.close()


# ---------------------------------------------------------------------------------------------------------------------
# torch.compile, a process for each compiler


def inductor_models(torch, device="cuda"):
    """name -> function that gives (callable, inputs, wants gradients)."""
    F = torch.nn.functional
    bf, f16 = torch.bfloat16, torch.float16

    def randn(*shape, dtype=torch.float32, scale=1.0, grad=False):
        return (torch.randn(shape, device=device) * scale).to(dtype).requires_grad_(grad)

    def gelu_mlp():
        w1, w2 = randn(4096, 1024, dtype=bf, scale=0.03), randn(1024, 4096, dtype=bf, scale=0.02)
        b1, b2 = randn(4096, dtype=bf), randn(1024, dtype=bf)
        return lambda x: F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2) + x, [randn(8192, 1024, dtype=bf)]

    def layernorm():
        w, b = randn(4096), randn(4096)
        return lambda x: F.layer_norm(x, (4096,), w, b), [randn(8192, 4096)]

    def softmax():
        mask = torch.tril(torch.ones(1024, 1024, dtype=torch.bool, device=device))
        return lambda x: torch.softmax((x * 0.125).masked_fill(~mask, float("-inf")).float(), -1).to(bf), \
            [randn(32, 1024, 1024, dtype=bf)]

    def rmsnorm():
        w = randn(4096, dtype=bf)

        def function(x, r):
            x = x + r
            y = x.float()
            return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(bf) * w, x

        return function, [randn(8192, 4096, dtype=bf), randn(8192, 4096, dtype=bf)]

    def transformer_block():
        d, heads = 1024, 16
        p = [randn(3 * d, d, dtype=bf, scale=0.03, grad=True), randn(d, d, dtype=bf, scale=0.03, grad=True),
             randn(4 * d, d, dtype=bf, scale=0.03, grad=True), randn(d, 4 * d, dtype=bf, scale=0.02, grad=True),
             randn(d, dtype=bf, grad=True), randn(d, dtype=bf, grad=True)]

        def function(x, qkv_w, out_w, up_w, down_w, n1, n2):
            b, t, _ = x.shape
            h = F.layer_norm(x, (d,), n1)
            q, k, v = (z.view(b, t, heads, d // heads).transpose(1, 2) for z in F.linear(h, qkv_w).chunk(3, -1))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + F.linear(a.transpose(1, 2).reshape(b, t, d), out_w)
            h = F.layer_norm(x, (d,), n2)
            return x + F.linear(F.gelu(F.linear(h, up_w), approximate="tanh"), down_w)

        return function, [randn(8, 1024, d, dtype=bf, grad=True)] + p

    def conv_bn_relu():
        w = randn(128, 64, 3, 3, dtype=f16, scale=0.05).to(memory_format=torch.channels_last)
        mean, var, g, b = randn(128), torch.rand(128, device=device) + 0.5, randn(128), randn(128)
        return lambda x: F.relu(F.batch_norm(F.conv2d(x, w, padding=1).float(), mean.clone(), var.clone(), g, b, True)), \
            [randn(32, 64, 56, 56, dtype=f16).to(memory_format=torch.channels_last)]

    def embedding_loss():
        table, head = randn(16000, 512, scale=0.5, grad=True), randn(16000, 512, dtype=bf, scale=0.05, grad=True)
        ids = torch.randint(0, 16000, (4096,), device=device)
        return lambda t, h, i: F.cross_entropy(F.linear(F.embedding(i, t).to(bf), h).float(), i.roll(1)), \
            [table, head, ids]

    def cumsum_gate():
        return lambda x, y: torch.cumsum(x * 0.01, -1) * torch.sigmoid(y), [randn(4096, 4096), randn(4096, 4096)]

    def argmax_topk():
        return lambda x: (x.argmax(-1), x.amax(-1), torch.topk(x, 8).values * 2, (x > 1).sum(-1)), [randn(8192, 2048)]

    def sort_small():
        return lambda x: tuple(torch.sort(x * 2.0, dim=-1, stable=True)), [randn(16384, 256)]

    def group_norm_silu():
        w, b = randn(320), randn(320)
        return lambda x: F.silu(F.group_norm(x, 32, w, b)) + x.mean((2, 3), keepdim=True), [randn(16, 320, 64, 64)]

    return {f.__name__: f for f in (gelu_mlp, layernorm, softmax, rmsnorm, cumsum_gate, argmax_topk, conv_bn_relu,
                                    embedding_loss, transformer_block, group_norm_silu, sort_small)}


def inductor_side(options):
    """The whole of one process: writes its results to a file after every model."""
    import torch

    results = {"models": {}}
    path = Path(options.result)

    def save():
        path.with_suffix(".part").write_text(json.dumps(results))
        path.with_suffix(".part").rename(path)

    try:
        from triton import knobs

        results["ptxas_path"] = str(knobs.nvidia.ptxas.path)
        results["ptxas_version"] = str(knobs.nvidia.ptxas.version)
    except BaseException as error:
        results["ptxas_path"] = short(error)
    save()
    try:
        import torch._inductor.config as config

        config.max_autotune = False
        for owner, name in ((config.triton, "autotune_pointwise"), (config, "fx_graph_cache")):
            if hasattr(owner, name):
                setattr(owner, name, False)
    except BaseException as error:
        results["config_note"] = short(error)
    lock = open(Path(options.folder) / "gpu.lock", "w")
    watched = {"name": None, "stage": "", "until": 0.0}

    def watch():
        # A kernel that hangs would hold the lock for ever.
        while True:
            time.sleep(0.25)
            if watched["name"] and time.time() > watched["until"]:
                results["models"][watched["name"]]["error_text"] = f"no end while {watched['stage']}"
                save()
                os._exit(3)

    import threading

    threading.Thread(target=watch, daemon=True).start()
    only = [part for part in options.only.split(",") if part and part not in ("inductor", "kernels")]
    for name, make in inductor_models(torch).items():
        if only and not any(part in name for part in only):
            continue
        if time.time() > options.until:
            results["models"][name] = {"not_run": True}
            continue
        entry = results["models"][name] = {}
        try:
            watched.update(name=name, stage="compiling", until=time.time() + 60)
            torch.manual_seed(5)
            function, inputs = make()
            grads = [t for t in inputs if t.requires_grad]

            def step(f):
                out = f(*inputs)
                outs = list(out) if isinstance(out, (tuple, list)) else [out]
                if grads:
                    loss = outs[0] if outs[0].dim() == 0 else outs[0].float().square().mean() * 100
                    outs = outs + list(torch.autograd.grad(loss, grads))
                return [t.detach() for t in outs]

            torch._dynamo.reset()
            started = time.time()
            compiled = torch.compile(function)
            step(compiled)
            torch.cuda.synchronize()
            entry["compile_s"] = round(time.time() - started, 2)
            watched.update(stage="waiting", until=time.time() + 60)
            fcntl.flock(lock, fcntl.LOCK_EX)
            watched.update(stage="running", until=time.time() + 15)
            reference, mine = step(function), step(compiled)
            torch.cuda.synchronize()
            worst, wrong, digest = 0.0, [], hashlib.sha256()
            for i, (a, b) in enumerate(zip(reference, mine)):
                digest.update(b.contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()
                              if b.numel() < 1 << 24 else str(float(b.double().sum())).encode())
                if not a.dtype.is_floating_point:
                    share = float((a != b).double().mean())
                    if share > 1e-4:
                        wrong.append(f"output {i}: {share:.2e} of the integers differ")
                    continue
                error, _ = difference(torch, a, b)
                worst = max(worst, error)
                limit = {"float32": 2e-3}.get(str(a.dtype).removeprefix("torch."), 6e-2)
                if bool(torch.isfinite(a).all()) and error > limit:
                    wrong.append(f"output {i}: {error:.2e}")
            entry.update(error=worst, wrong=wrong, digest=digest.hexdigest()[:16])
            from triton.testing import do_bench

            entry["ms"] = do_bench(lambda: step(compiled), warmup=10, rep=60, return_mode="median")
            if options.side == "ptxas":
                entry["eager_ms"] = do_bench(lambda: step(function), warmup=5, rep=20, return_mode="median")
        except BaseException as error:
            entry["error_text"] = short(error, 600)
            entry["trace"] = traceback.format_exc()[-2500:]
            save()
            text = str(error)
            if "CUDA error" in text or "illegal" in text or isinstance(error, (KeyboardInterrupt, SystemExit)):
                # The context is lost: a new process goes on with the models that are left.
                os._exit(3)
        finally:
            watched["name"] = None
            try:
                fcntl.flock(lock, fcntl.LOCK_UN)
            except BaseException:
                pass
        save()
    results["finished"] = True
    save()
    os._exit(0)


class Inductor:
    """One side's process, started again where it dies, with the models that it has not tried."""

    def __init__(self, side, ptxas, options, folder):
        self.side, self.ptxas, self.options, self.folder = side, ptxas, options, folder
        self.results, self.tries, self.process, self.skip = {"models": {}}, 0, None, []
        self.done = False
        self.start()

    def start(self):
        self.tries += 1
        self.result = self.folder / f"inductor.{self.side}.{self.tries}.json"
        environment = dict(os.environ)
        if self.ptxas:
            environment["TRITON_PTXAS_PATH"] = self.ptxas
        environment.update(
            TRITON_CACHE_DIR=str(self.folder / f"cache.{self.side}"),
            TORCHINDUCTOR_CACHE_DIR=str(self.folder / f"inductor.{self.side}"), TORCHINDUCTOR_COMPILE_THREADS="4",
            OMP_NUM_THREADS="2",
        )
        left = [name for name in self.wanted() if name not in self.results["models"]]
        command = [sys.executable, os.path.abspath(__file__), "--inductor-side", self.side, "--result", str(self.result),
                   "--folder", str(self.folder), "--until", str(self.options.inductor_until), "--only", ",".join(left)]
        log = open(self.folder / f"inductor.{self.side}.log", "ab")
        self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def wanted(self):
        only = [part for part in self.options.only.split(",") if part]
        names = ["gelu_mlp", "layernorm", "softmax", "rmsnorm", "cumsum_gate", "argmax_topk", "conv_bn_relu",
                 "embedding_loss", "transformer_block", "group_norm_silu", "sort_small"]
        if not only or "inductor" in only:
            return names
        return [name for name in names if any(part in name for part in only)]

    def collect(self):
        try:
            found = json.loads(self.result.read_text())
        except (OSError, ValueError):
            return False
        models = {**self.results["models"], **found["models"]}
        self.results.update(found)
        self.results["models"] = models
        return found.get("finished", False)

    def poll(self):
        """True when nothing more comes."""
        if self.done:
            return True
        if self.process.poll() is None:
            if time.time() > self.options.inductor_until + 12:
                self.stop()
                self.done = True
            return self.done
        finished = self.collect()
        left = [name for name in self.wanted() if name not in self.results["models"]]
        if finished or not left or self.tries >= 6 or time.time() > self.options.inductor_until:
            self.done = True
        else:
            if self.process.returncode not in (0, 3):
                # It died within a model: the first that has no result.
                self.results["models"][left[0]] = {"error_text": f"process died: {self.process.returncode}"}
            if len(left) > 1 or self.process.returncode in (0, 3):
                self.start()
            else:
                self.done = True
        return self.done

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)
        except BaseException:
            pass
        self.collect()


# ---------------------------------------------------------------------------------------------------------------------


def load_kernels(options):
    places = [options.kernels] if options.kernels else []
    here = Path(__file__).resolve().parent
    places += ["tests/bench/triton", here, here / "tests/bench/triton"]
    for place in places:
        if (Path(place) / "kernels" / "registry.py").exists():
            sys.path.insert(0, str(Path(place).resolve()))
            break
    else:
        sys.exit("no kernels: give --kernels tests/bench/triton")
    sys.dont_write_bytecode = True
    from kernels import KERNELS

    only = [part for part in options.only.split(",") if part]
    chosen = [e for e in KERNELS if e.allows(90)]
    if only and "kernels" not in only:
        chosen = [e for e in chosen if any(part in e.name for part in only)]
    return chosen


def dry(entries):
    """Builds all arguments without memory."""
    bad = total = 0
    for entry in entries:
        try:
            m, values, grid = build(entry, "meta", 1)
            size = sum(t.numel() * t.element_size() for t in m.tensors) / 1e6
            blocks = math.prod(grid)
            note = "  SMALL" if blocks < 100 else ""
            assert all(g >= 1 for g in grid) and grid[1] < 65536 and grid[2] < 65536, f"grid {grid}"
            print(f"{entry.name:28} {size:8.1f} MB  {len(values):2} values  grid {grid}{note}")
            total += 1
        except BaseException as error:
            bad += 1
            print(f"{entry.name:28} BAD {short(error)}")
    print(f"{total} of {len(entries)} kernels have launches, {bad} bad")
    return 1 if bad else 0


def number(value, form="{:.3f}"):
    return form.format(value) if isinstance(value, (int, float)) else "-"


def report(records, inductor, out, folder, note):
    order = {"same": 0, "close": 0, "noisy": 0}
    rows = sorted(records.values(), key=lambda r: (r.get("ratio", 0 if r.get("verdict") in order else 1e9), r["name"]))
    width = max([len(r["name"]) for r in rows] + [10])
    print(f"\n{'kernel':{width}} {'result':8} {'error':>8} {'regs p/o':>9} {'spill p/o':>9} {'shared':>6} "
          f"{'ptxas ms':>9} {'our ms':>9} {'ratio':>6}")
    for r in rows:
        if r["state"] in ("skipped", "not run"):
            continue
        print(f"{r['name']:{width}} {r.get('verdict', r['state']):8.8} {number(r.get('error'), '{:.1e}'):>8} "
              f"{str(r.get('regs_ptxas', '-')) + '/' + str(r.get('regs_ours', '-')):>9} "
              f"{str(r.get('spills_ptxas', '-')) + '/' + str(r.get('spills_ours', '-')):>9} {str(r.get('shared', '-')):>6} "
              f"{number(r.get('ms_ptxas'), '{:.4f}'):>9} {number(r.get('ms_ours'), '{:.4f}'):>9} "
              f"{number(r.get('ratio')):>6}")
    print()
    for r in rows:
        words = []
        if r["state"] in ("skipped", "not run"):
            words.append(f"{r['state']}: {r.get('reason', '')}")
        for key in ("ours_error", "failure", "timing_failure"):
            if r.get(key):
                words.append(f"{key}: {r[key]}")
        if r.get("verdict") == "WRONG":
            words.append("wrong: " + json.dumps(r.get("details")))
        for key in ("unstable", "not_finite"):
            if r.get(key):
                words.append(f"{key}: {json.dumps(r[key])}")
        if r.get("ptxas_ran") and not r.get("written"):
            words.append("ptxas's kernel wrote nothing")
        for text in words:
            print(f"  {r['name']}: {text}"[:330])
    models = []
    if inductor:
        print(f"\n{'torch.compile':20} {'ptxas':>7} {'ours':>7} {'error p':>8} {'error o':>8} {'bits':>6} {'eager ms':>9} "
              f"{'ptxas ms':>9} {'our ms':>9} {'ratio':>6}")
        theirs, mine = (inductor[s].results["models"] if s in inductor else {} for s in ("ptxas", "ours"))
        for name in dict.fromkeys(list(theirs) + list(mine)):
            p, o = theirs.get(name, {}), mine.get(name, {})

            def word(e):
                if e.get("error_text"):
                    return "FAILED"
                if "ms" not in e and "wrong" not in e:
                    return "not run"
                return "WRONG" if e.get("wrong") else "right"

            ratio = o["ms"] / p["ms"] if "ms" in o and "ms" in p else None
            models.append((name, word(p), word(o), ratio))
            bits = "-" if not (p.get("digest") and o.get("digest")) else "same" if p["digest"] == o["digest"] else "differ"
            print(f"{name:20} {word(p):>7} {word(o):>7} {number(p.get('error'), '{:.1e}'):>8} "
                  f"{number(o.get('error'), '{:.1e}'):>8} {bits:>6} {number(p.get('eager_ms')):>9} {number(p.get('ms')):>9} "
                  f"{number(o.get('ms')):>9} {number(ratio):>6}")
        for side, models_of in (("ptxas", theirs), ("ours", mine)):
            for name, e in models_of.items():
                if e.get("error_text") or e.get("wrong"):
                    print(f"  {name} with {side}: {e.get('error_text') or e['wrong']}"[:600])
        for side, one in inductor.items():
            print(f"  {side}: {one.results.get('ptxas_path')} {one.results.get('ptxas_version')}")

    def count(*verdicts):
        return sum(r.get("verdict") in verdicts for r in records.values())

    ratios = [r["ratio"] for r in records.values() if r.get("ratio")]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    states = {s: sum(r["state"] == s for r in records.values()) for s in ("failed", "baseline", "skipped", "not run")}
    print(f"\nkernels: {count('same', 'close', 'noisy')} right ({count('same')} bit for bit, {count('close')} close, "
          f"{count('noisy')} as noisy as ptxas's), {count('WRONG')} wrong, {states['failed']} failed with ours, "
          f"{states['baseline']} failed with ptxas's cubin too, {states['skipped']} skipped, {states['not run']} not run")
    if ratios:
        print(f"times ours/ptxas: geometric mean {mean:.3f} of {len(ratios)}; "
              f"{sum(x <= 1.02 for x in ratios)} at most 1.02, {sum(x > 1.1 for x in ratios)} above 1.1, "
              f"{sum(x > 1.5 for x in ratios)} above 1.5, worst {max(ratios):.2f}")
    both = [(r["ptxas_s"], r["ours_s"]) for r in records.values() if r.get("ptxas_s") and r.get("ours_s")]
    if both:
        print(f"compile times, all processors busy: ptxas {sum(x for x, _ in both):.1f} s, ours {sum(y for _, y in both):.1f} s")
    good = [x for *_, x in models if x]
    if models:
        print(f"models: {sum(o == 'right' for _, _, o, _ in models)} right, {sum(o == 'WRONG' for _, _, o, _ in models)} wrong, "
              f"{sum(o == 'FAILED' for _, _, o, _ in models)} failed, {sum(o == 'not run' for _, _, o, _ in models)} not run"
              + (f"; geometric mean {math.exp(sum(map(math.log, good)) / len(good)):.3f}" if good else ""))
    print(f"{time.time() - START:.0f} s{note}")
    sys.stdout.flush()
    try:
        data = {"kernels": records, "inductor": {s: i.results for s, i in (inductor or {}).items()}, "note": note,
                "mean": mean}
        (out / "triton.json").write_text(json.dumps(data, indent=1, default=str))
    except BaseException as error:
        say("triton.json:", short(error))
    try:
        room = 13_000_000
        with tarfile.open(out / "bad.tar.gz", "w:gz") as tar:
            def add(path, name):
                nonlocal room
                if path.exists() and path.stat().st_size:
                    body = path.read_bytes()
                    squeezed = len(body) // 3
                    if squeezed < room:
                        room -= squeezed
                        info = tarfile.TarInfo(name)
                        info.size = len(body)
                        tar.addfile(info, io.BytesIO(body))

            for r in rows:
                if r["state"] == "failed" or r.get("verdict") in ("WRONG", "no cubin") or r.get("unstable"):
                    for ending in (".ptx", ".ours.cubin", ".ptxas.cubin"):
                        add(folder / f"{r['name']}{ending}", f"{r['name']}{ending}")
            for log in ["runner.log", "inductor.ours.log", "inductor.ptxas.log"]:
                path = folder / log
                if path.exists():
                    (folder / (log + ".end")).write_bytes(path.read_bytes()[-200_000:])
                    add(folder / (log + ".end"), log)
            if inductor and "ours" in inductor and any(e.get("error_text") or e.get("wrong")
                                                       for e in inductor["ours"].results["models"].values()):
                for side in ("ours", "ptxas"):
                    for path in sorted((folder / f"cache.{side}").rglob("*.*")) + \
                            sorted((folder / f"inductor.{side}").rglob("*.*")):
                        if path.suffix in (".ptx", ".cubin"):
                            add(path, f"inductor.{side}/{path.parent.name[:12]}/{path.name[:120]}")
        if (out / "bad.tar.gz").stat().st_size > 15_000_000:
            (out / "bad.tar.gz").unlink()
            say("bad.tar.gz was too large")
    except BaseException as error:
        say("bad.tar.gz:", short(error))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours")
    parser.add_argument("--ptxas", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--jobs", type=int, default=max(2, min(16, (os.cpu_count() or 4) - 5)))
    parser.add_argument("--rep", type=float, default=25, help="milliseconds of kernel time for each side")
    parser.add_argument("--kernels", default="", help="the folder that holds kernels/")
    parser.add_argument("--no-inductor", action="store_true")
    parser.add_argument("--keep", default="", help="folder for PTX and cubins, kept")
    parser.add_argument("--fake", action="store_true", help="no GPU: tries the script itself")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--dry-compile", action="store_true")
    parser.add_argument("--inductor-side", dest="side", default="")
    parser.add_argument("--result", default="")
    parser.add_argument("--folder", default="")
    parser.add_argument("--until", type=float, default=0)
    options = parser.parse_args()
    if options.side:
        return inductor_side(options)
    end = START + options.seconds - 7
    options.inductor_until = START + options.seconds * 0.52
    out = Path(os.environ.get("OUT") or ".")
    out.mkdir(parents=True, exist_ok=True)
    folder = Path(options.keep or tempfile.mkdtemp(prefix="triton-gpu-"))
    folder.mkdir(parents=True, exist_ok=True)
    if options.dry:
        return dry(load_kernels(options))
    if not options.ours or not os.path.exists(options.ours):
        sys.exit("--ours PATH is needed")
    options.ours = os.path.abspath(options.ours)
    if options.ptxas:
        options.ptxas = os.path.abspath(options.ptxas)
        os.environ["TRITON_PTXAS_PATH"] = options.ptxas
    os.environ["TRITON_CACHE_DIR"] = str(folder / "cache.kernels")
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    try:
        (folder / "gpu.lock").touch()
    except OSError:
        pass
    inductor = {}
    only = [part for part in options.only.split(",") if part]
    if not options.no_inductor and not options.dry_compile:
        try:
            for side, path in (("ptxas", options.ptxas), ("ours", options.ours)):
                one = Inductor.__new__(Inductor)
                one.options = options
                if one.wanted():
                    inductor[side] = Inductor(side, path, options, folder)
        except BaseException as error:
            say("inductor:", short(error))
    for module in ("torch", "triton"):
        try:
            __import__(module)
        except BaseException as error:
            say(f"{module}:", short(error))
    entries = load_kernels(options) if not only or only != ["inductor"] else []
    records = {e.name: {"name": e.name, "state": "not run", "reason": "no time left"} for e in entries}
    say(f"{len(entries)} kernels, {options.jobs} processes, files in {folder}")
    note = ""
    child = None
    try:
        # Products and attention take longest to compile.
        slow = re.compile(r"matmul|flash|gemm|moe|conv|paged|dot|bmm|sort|special|linear")
        todo = sorted(range(len(entries)), key=lambda i: (not slow.search(entries[i].name), i))
        compiling, checks, times = {}, [], []
        deaths = 0
        timing = False
        while True:
            now = time.time()
            if now > end:
                note = "; the time was up"
                break
            busy = False
            # Compile.
            while todo and len(compiling) < options.jobs:
                index = todo.pop(0)
                compiling[spawn_compile(entries[index], options, folder)] = (index, now)
            for pid, (index, since) in list(compiling.items()):
                if now - since > 80:
                    try:
                        os.killpg(pid, signal.SIGKILL)
                    except OSError:
                        pass
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    continue
                busy = True
                del compiling[pid]
                record = records[entries[index].name]
                try:
                    found = json.loads((folder / f"{entries[index].name}.json").read_text())
                except (OSError, ValueError):
                    log = folder / f"{entries[index].name}.log"
                    found = {"refused": "the compiling process died: " + (log.read_text()[-200:] if log.exists() else "")}
                record.update(found)
                if "refused" in found:
                    record.update(state="skipped", reason=found["refused"])
                else:
                    if "ours_error" in found:
                        record.update(verdict="no cubin")
                    checks.append(index)
            if not todo and not compiling and options.dry_compile:
                break
            # Run.
            if not options.dry_compile:
                if child is None and (checks or times or todo or compiling) and deaths < 60:
                    child = Child(entries, options, folder)
                if child is not None:
                    event = child.poll()
                    if event:
                        busy = True
                        kind, what = event
                        if kind == "ready":
                            say("a runner is ready")
                        elif kind == "broken" or (kind == "dead" and not child.ready):
                            say("a runner could not start:", what)
                            child.bury()
                            child = None
                            deaths += 12
                        else:
                            index, phase = child.job or (None, None)
                            at = child.at
                            child.job = None
                            if index is not None:
                                record, what = records[entries[index].name], what or {}
                                trouble = what.pop("error_text", None)
                                if kind == "dead" and not trouble:
                                    trouble = "the process died"
                                record.update(what)
                                if trouble:
                                    trouble = f"at {at}: {trouble}"
                                if trouble and at == "waiting" and phase == "correct" and not record.get("again"):
                                    record["again"] = True
                                    checks.append(index)
                                elif phase == "correct":
                                    record.pop("reason", None)
                                    if trouble:
                                        record["failure"] = trouble
                                        record["state"] = "failed" if at == "ours" else "baseline"
                                        record["verdict"] = "FAILED" if at == "ours" else "baseline"
                                    else:
                                        record["state"] = "failed" if record.get("verdict") == "no cubin" else "ran"
                                        times.append(index)
                                elif trouble:
                                    record["timing_failure"] = trouble
                            if kind == "dead":
                                say(f"{entries[index].name if index is not None else ''}: {trouble if index is not None else ''}")
                                child.bury()
                                child = None
                                deaths += 1
                    if child is not None and child.ready and child.job is None:
                        if checks:
                            child.give(checks.pop(0), "correct")
                        elif times and not todo and not compiling and all(i.poll() for i in inductor.values()):
                            if not timing:
                                say("all checked; timing")
                                timing = True
                            child.give(times.pop(0), "time")
                models_done = all([i.poll() for i in inductor.values()])
                idle = child is None or child.job is None
                if not todo and not compiling and models_done and (
                        (idle and not checks and not times) or (child is None and deaths >= 60)):
                    break
            if not busy:
                time.sleep(0.01)
    except BaseException as error:
        note = f"; stopped by {short(error)}"
        traceback.print_exc()
    for pid in compiling if "compiling" in locals() else ():
        try:
            os.killpg(pid, signal.SIGKILL)
        except OSError:
            pass
    if child is not None:
        child.bury()
    for one in inductor.values():
        one.stop()
    if options.dry_compile:
        for r in records.values():
            print(f"{r['name']:28} triton {number(r.get('triton_s'))} ptxas {number(r.get('ptxas_s'))} "
                  f"ours {number(r.get('ours_s'))} shared {r.get('shared')} {r.get('refused') or r.get('ours_error') or ''}"[:230])
            if r.get("launcher_note"):
                print("   launcher:", r["launcher_note"][:150])
        bad = [r["name"] for r in records.values() if r.get("ours_error")]
        refused = [r["name"] for r in records.values() if r.get("refused")]
        print(f"{len(records)} kernels, {len(refused)} refused by Triton {refused}, {len(bad)} refused by ours {bad}")
        return 0
    report(records, inductor, out, folder, note)
    if not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
