#!/usr/bin/env python3
"""Micro kernels for latencies and throughputs of sm_90: PTX -> cubins of ptxas and of sassafras -> manifest.

  make.py [--ours BIN] [--ptxas BIN] [--nvdisasm BIN] [--out DIR] [--sim] [--only REGEX]

DIR (default target/latency) gets NAME.ptxas.cubin, NAME.ours.cubin and manifest.json; DIR.tar.gz is packed from it.
Every kernel: (in, out, chase, n). in: 64 bytes per thread; out: 32 bytes per thread: t0, t1, result.
The measured region lies between two clock reads and is run four times in the kernel; the last, warm one counts.
"""
import argparse, concurrent.futures as cf, json, os, random, re, struct, subprocess, sys, tarfile

M = []          # measurements


def R(text):
    """tables/latency/FILE row."""
    return text


def add(name, op, body, table, value=None, C=1, n=(64, 192), threads=(32,), pre="", start="", fin=None, decl="", wide=0,
        kind="lat", loop=False, stall=None, target="sm_90", buf=None, mod="", sim=True, same=True, per=1, ends="", scale=None):
    """One measurement. body(i): PTX of step i. C: 32-bit start values x0..; wide: 64-bit start values d0.."""
    M.append(dict(name=name, op=op, body=body, table=table, value=value, C=C, n=n, threads=threads, pre=pre, start=start, fin=fin,
                  decl=decl, wide=wide, kind=kind, loop=loop, stall=stall, target=target, buf=buf, mod=mod, sim=sim, same=same,
                  per=per, ends=ends, scale=scale))


def lat(name, op, body, table, value=None, **k):
    add(name, op, body, table, value, **k)


def tput(name, op, body, table, value=None, C=8, threads=(32, 128, 512, 1024), **k):
    """body(i, c): step i on chain c."""
    add("t_" + name, op, lambda i: body(i, i % C), table, value, C=C, threads=threads, kind="tput", **k)


TP = "throughput.ron"
# ---------------------------------------------------------------- fixed-latency chains
RAW = "raw.ron sm90 R "


def w(i, k=0):
    return f"%w{1 + (2 * i + k) % 6}"


lat("iadd3", ["IADD3"], lambda i: f"add.u32 %x0, %x0, {w(i)}; add.u32 %x0, %x0, {w(i, 1)};", RAW + "alu->alu", 4, stall=[("IADD3", "IADD3")])
lat("lop3", ["LOP3"], lambda i: f"lop3.b32 %x0, %x0, {w(i)}, {w(i, 1)}, {hex([0x6a, 0xc6, 0x96][i % 3])};", RAW + "alu->alu", 4, stall=[("LOP3", "LOP3")])
lat("shf", ["SHF"], lambda i: f"shf.l.wrap.b32 %x0, %x0, {w(i)}, {w(i, 1)};", RAW + "alu->alu", 4, stall=[("SHF", "SHF")])
lat("prmt", ["PRMT"], lambda i: f"prmt.b32 %x0, %x0, {w(i)}, %s{i % 2};", RAW + "alu->alu", 4,
    decl=".reg .b32 %s<2>;", pre="xor.b32 %s0, %z, 0x6120; xor.b32 %s1, %z, 0x2534;", stall=[("PRMT", "PRMT")])
lat("imnmx", ["IMNMX", "VIMNMX"], lambda i: f"{'max' if i % 2 else 'min'}.s32 %x0, %x0, {w(i)};", RAW + "alu->alu", 4)
lat("lea", ["LEA", "IMAD"], lambda i: f"shl.b32 %x0, %x0, 3; add.u32 %x0, %x0, {w(i)};", RAW + "alu->alu (or fma)", 4)
lat("i2fp", ["I2FP"], lambda i: "cvt.rn.f32.s32 %x0, %x0;", RAW + "alu->alu", 4, stall=[("I2FP", "I2FP")])
lat("f2fp", ["F2FP"], lambda i: f"cvt.rn.f16x2.f32 %x0, %x0, {w(i)};", RAW + "alu->alu", 4)
lat("isetp_sel", ["ISETP"], lambda i: f"setp.lt.s32 %p, %x0, {w(i)}; selp.b32 %x0, {w(i,1)}, %w7, %p;", "raw.ron P alu->alu 4 + R alu->alu 4", 8, stall=[("ISETP", "SEL"), ("SEL", "ISETP")])
lat("fsetp_fsel", ["FSETP"], lambda i: f"setp.lt.f32 %p, %x0, {w(i)}; selp.f32 %x0, {w(i,1)}, %w7, %p;", "raw.ron P alu->alu 4 + R alu->alu 4", 8)
lat("isetp_guard", ["ISETP"], lambda i: f"setp.lt.s32 %p, %x0, {w(i)}; @%p add.u32 %x0, %x0, {w(i,1)};", "raw.ron P alu->guard 13 + R alu->alu 4", 17, stall=[("ISETP", "@P")])
lat("fmnmx", ["FMNMX"], lambda i: f"{'max' if i % 2 else 'min'}.f32 %x0, %x0, {w(i)};", RAW + "alu->alu", 4)
lat("ffma", ["FFMA"], lambda i: f"fma.rn.ftz.f32 %x0, %x0, {w(i)}, {w(i,1)};", RAW + "fma->fma", 4, stall=[("FFMA", "FFMA")])
lat("fadd", ["FADD"], lambda i: f"add.rn.ftz.f32 %x0, %x0, {w(i)};", RAW + "fma->fma", 4, stall=[("FADD", "FADD")])
lat("fmul", ["FMUL"], lambda i: f"mul.rn.ftz.f32 %x0, %x0, {w(i)};", RAW + "fma->fma", 4, stall=[("FMUL", "FMUL")])
lat("imad", ["IMAD"], lambda i: f"mad.lo.u32 %x0, %x0, {w(i)}, {w(i,1)};", RAW + "fma->fma", 4, stall=[("IMAD", "IMAD")])
lat("imad_lop3", ["IMAD"], lambda i: f"mad.lo.u32 %x0, %x0, {w(i)}, {w(i,1)}; lop3.b32 %x0, %x0, {w(i)}, {w(i, 1)}, 0x6a;", RAW + "fma->alu 5 + alu->fma 5", 10, stall=[("IMAD", "LOP3"), ("LOP3", "IMAD")])
lat("ffma_lop3", ["FFMA"], lambda i: f"fma.rn.ftz.f32 %x0, %x0, {w(i)}, {w(i,1)}; lop3.b32 %x0, %x0, {w(i)}, 0xbfffffff, 0x6a;", RAW + "fma->alu 5 + alu->fma 5", 10, stall=[("FFMA", "LOP3"), ("LOP3", "FFMA")])
lat("imad_wide_c", ["IMAD.WIDE"], lambda i: f"mad.wide.u32 %d0, {w(i)}, {0x12345 + 0x100037 * i}, %d0;", RAW + "wide_low->wide_low 4", 4, C=0, wide=1, stall=[("IMAD.WIDE", "IMAD.WIDE")])
lat("imad_wide_a", ["IMAD.WIDE"], lambda i: f"mov.b64 {{%x0, %x1}}, %d0; mad.wide.u32 %d0, %x0, %x1, %d1;", RAW + "wide_low, wide_high->wide_ab 6", 6, C=2, wide=2, stall=[("IMAD.WIDE", "IMAD.WIDE")])
lat("imad_hi", ["IMAD.HI"], lambda i: f"mul.hi.u32 %x0, %x0, {w(i)};", RAW + "wide_high->wide_ab 6 (IMAD_HI)", 6, pre="".join(f"or.b32 %w{j}, %w{j}, 0xff000000;" for j in range(8)), stall=[("IMAD.HI", "IMAD.HI")])
lat("imad_wide_lop3", ["IMAD.WIDE"], lambda i: f"mov.b64 {{%x0, %x1}}, %d0; lop3.b32 %x0, %x0, {w(i)}, %x1, 0x6a; mul.wide.u32 %d0, %x0, {w(i)};", RAW + "wide->alu 5 + alu->wide_ab 5", 10, wide=2, C=2, stall=[("IMAD.WIDE", "LOP3"), ("LOP3", "IMAD.WIDE")])
HALF = "and.b32 %w{0}, %w{0}, 0x03ff03ff; or.b32 %w{0}, %w{0}, 0x38003800;"
HPRE = " ".join(HALF.format(i) for i in range(8))
lat("hfma2", ["HFMA2"], lambda i: f"fma.rn.f16x2 %x0, %x0, {w(i)}, {w(i,1)};", RAW + "half->half 5 (demanded 4)", 5, pre=HPRE, stall=[("HFMA2", "HFMA2")])
lat("hadd2", ["HADD2"], lambda i: f"add.f16x2 %x0, %x0, {w(i)}; sub.f16x2 %x0, %x0, {w(i,1)};", RAW + "half->half 5 (demanded 4)", 5, pre=HPRE, stall=[("HADD2", "HADD2")])
lat("hmul2", ["HMUL2", "HFMA2"], lambda i: f"mul.f16x2 %x0, %x0, {w(i)};", RAW + "half->half 5", 5, pre=HPRE, n=(8, 32))
lat("hmnmx2", ["HMNMX2"], lambda i: f"{'max' if i % 2 else 'min'}.f16x2 %x0, %x0, {w(i)};", RAW + "half_alu->half_alu 5 (demanded 4)", 5, pre=HPRE)
lat("hfma2_lop3", ["HFMA2"], lambda i: f"fma.rn.f16x2 %x0, %x0, {w(i)}, {w(i,1)}; lop3.b32 %x0, %x0, 0x3bff3bff, {w(i)}, 0x6a;", RAW + "half->alu 5 + alu->half 5", 10, pre=HPRE, stall=[("HFMA2", "LOP3"), ("LOP3", "HFMA2")])
lat("hfma2_bf16", ["HFMA2"], lambda i: f"fma.rn.bf16x2 %x0, %x0, {w(i)}, {w(i,1)};", RAW + "half->half 5", 5, stall=[("HFMA2", "HFMA2")])
lat("dfma", ["DFMA"], lambda i: f"fma.rn.f64 %d0, %d0, %d{1 + i % 2}, %d{2 - i % 2};", RAW + "fp64->fp64 8", 8, C=0, wide=3, stall=[("DFMA", "DFMA")])
lat("dadd", ["DADD"], lambda i: f"add.rn.f64 %d0, %d0, %d{1 + i % 2};", RAW + "fp64->fp64 8", 8, C=0, wide=3, stall=[("DADD", "DADD")])
lat("dmul", ["DMUL"], lambda i: f"mul.rn.f64 %d0, %d0, %d{1 + i % 2};", RAW + "fp64->fp64 8", 8, C=0, wide=3, n=(32, 64), stall=[("DMUL", "DMUL")])
lat("dadd_lop3", ["DADD"], lambda i: f"add.rn.f64 %d0, %d0, %d{1 + i % 2}; mov.b64 {{%x0, %x1}}, %d0; xor.b32 %x0, %x0, {w(i)}; mov.b64 %d0, {{%x0, %x1}};", RAW + "fp64->alu 10 + alu->fp64 6", 16, C=2, wide=3, stall=[("DADD", "LOP3"), ("LOP3", "DADD")])
lat("dsetp_sel", ["DSETP"], lambda i: f"setp.lt.f64 %p, %d0, %d{1 + i % 2}; selp.f64 %d0, %d3, %d4, %p;", "raw.ron P fp64->alu 6 + R alu->fp64 6", 12, C=0, wide=5)
lat("idp4a", ["IDP"], lambda i: f"dp4a.u32.u32 %x0, %x0, {w(i)}, {w(i,1)};", RAW + "fma->fma 4 (IDP)", 4, stall=[("IDP", "IDP")])
lat("idp4a_c", ["IDP"], lambda i: f"dp4a.u32.u32 %x0, {w(i)}, {w(i,1)}, %x0;", RAW + "fma->fma 4 (IDP c)", 4)
lat("vote_ballot", ["VOTE"], lambda i: f"setp.lt.u32 %p, %x0, {w(i)}; vote.sync.ballot.b32 %x0, %p, -1;", "raw.ron P alu->vote 13? + R vote->alu 4", None)
lat("vote_any_p", ["VOTE"], lambda i: f"vote.sync.{'any' if i % 2 else 'all'}.pred %p, %p, -1;", "raw.ron P vote->vote", None, start="setp.lt.u32 %p, %x0, %w1;", fin="selp.b32 %r, %x0, 0, %p;", n=(16, 48))
# ---------------------------------------------------------------- uniform datapath (values from parameters, loop)
UD = dict(loop=True, C=0, n=(4, 20), per=64)


def uni(name, op, step, table, value, regs=4, **k):
    body = lambda i: "\n".join(step(j) for j in range(64))
    lat(name, op, body, table, value, start="mov.u32 %u0, %n; ", decl=".reg .b32 %u<8>;",
        pre="ld.param.u32 %u1, [pn]; add.u32 %u2, %u1, 77; xor.b32 %u3, %u1, 0x1234; mul.lo.u32 %u4, %u1, 1001;", fin="mov.b32 %r, %u0;", **UD, **k)


# ---------------------------------------------------------------- variable-latency units
XU = TP + " MUFU.. result 22; classes.ron unit expected 22"
for f, o in [("rcp", "RCP"), ("rsqrt", "RSQ"), ("ex2", "EX2"), ("lg2", "LG2"), ("sqrt", "SQRT"), ("sin", "SIN"), ("cos", "COS")]:
    lat("mufu_" + f, ["MUFU"], lambda i, f=f: f"{f if f != 'rcp' or i % 2 else 'lg2'}.approx.ftz.f32 %x0, %x0;", XU, 22, n=(16, 48))
lat("mufu_tanh", ["MUFU"], lambda i: "tanh.approx.f32 %x0, %x0;", XU, 22, n=(16, 48))
lat("mufu_rcp64h", ["MUFU"], lambda i: "rcp.approx.ftz.f64 %d0, %d0;", XU, 22, C=0, wide=1, n=(16, 48))
lat("mufu_rsq64h", ["MUFU"], lambda i: "rsqrt.approx.ftz.f64 %d0, %d0;", XU, 22, C=0, wide=1, n=(16, 48))
lat("mufu_ex2_f16", ["MUFU"], lambda i: "ex2.approx.f16x2 %x0, %x0;", XU, 22, n=(16, 48))
lat("f2i", ["F2I"], lambda i: f"cvt.{['rzi','rni'][i%2]}.s32.f32 %x0, %x0;", XU, 22, n=(16, 48))
lat("f2i_f64", ["F2I"], lambda i: "cvt.rzi.s32.f64 %x0, %d0; mov.b64 %d0, {%w1, %x0};", XU, 22, wide=1, n=(16, 48))
lat("i2f_f64", ["I2F"], lambda i: "cvt.rn.f64.s32 %d0, %x0; mov.b64 {%x1, %x0}, %d0;", XU, 22, wide=1, C=2, n=(16, 48))
lat("i2f_u64", ["I2F"], lambda i: "cvt.rn.f32.u64 %x0, %d0; mov.b64 %d0, {%w1, %x0};", XU, 22, wide=1, C=2, n=(16, 48))
lat("f2f_f64_f32", ["F2F"], lambda i: "cvt.f64.f32 %d0, %x0; mov.b64 {%x1, %x0}, %d0;", XU, 22, wide=1, C=2, n=(16, 48))
lat("f2f_f32_f64", ["F2F"], lambda i: "cvt.rn.f32.f64 %x0, %d0; mov.b64 %d0, {%w1, %x0};", XU, 22, wide=1, C=2, n=(16, 48))
lat("frnd", ["FRND"], lambda i: f"cvt.{['rni','rmi','rpi','rzi'][i%4]}.f32.f32 %x0, %x0; xor.b32 %x0, %x0, {w(i)};", XU + " + alu->unit", 26, n=(16, 48))
lat("popc", ["POPC"], lambda i: "popc.b32 %x0, %x0;", XU, 22, n=(16, 48))
lat("flo", ["FLO"], lambda i: "bfind.u32 %x0, %x0;", XU, 22, n=(16, 48))
lat("brev", ["BREV"], lambda i: f"brev.b32 %x0, %x0; xor.b32 %x0, %x0, {w(i)};", XU + " + alu->unit", 26, n=(16, 48))
lat("s2r", ["S2R", "S2UR"], lambda i: "setp.ne.u32 %p, %x0, 77; @%p mov.u32 %x0, %warpid;", TP + " S2R result 26; classes.ron unit 22 (+ ISETP->guard 13)", 39, n=(16, 48), same=False)
lat("cs2r_clock", ["CS2R", "S2UR"], lambda i: "mov.u32 %x1, %clock; xor.b32 %x0, %x0, %x1;", "CS2R_32 class alu", None, n=(16, 48), same=False, C=2)
lat("match_any", ["MATCH"], lambda i: "match.any.sync.b32 %x0, %x0, -1;", XU, 22, n=(8, 24))
lat("match_all", ["MATCH"], lambda i: "match.all.sync.b32 %x0|%p, %x0, -1;", XU, 22, n=(8, 24))
lat("redux_add", ["REDUX"], lambda i: "redux.sync.add.s32 %x0, %x0, -1;", TP + " REDUX result 26", 26, n=(8, 24))
lat("redux_min", ["REDUX"], lambda i: f"redux.sync.{'min' if i % 2 else 'max'}.s32 %x0, %x0, -1; add.u32 %x0, %x0, %w1;", TP + " REDUX result 26", 30, n=(8, 24))
lat("shfl_bfly", ["SHFL"], lambda i: "shfl.sync.bfly.b32 %x0, %x0, 1, 0x1f, -1;", TP + " SHFL result 24; classes.ron agu 260?", 24, n=(16, 48))
lat("shfl_idx", ["SHFL"], lambda i: "shfl.sync.idx.b32 %x0, %w1, %x0, 0x1f, -1;", TP + " SHFL result 24", 24, n=(16, 48))
lat("movm", ["MOVM"], lambda i: "movmatrix.sync.aligned.m8n8.trans.b16 %x0, %x0;", TP + " MOVM result 30; classes.ron matrix_move 30", 30, n=(8, 24))
# ---------------------------------------------------------------- memory latencies
SM = ".shared .align 128 .b8 smem[16384];"
SFILL = """mov.u32 %sb, smem; mov.u32 %ti, %tid.x; mov.u32 %i, %ti;
SF_@: shl.b32 %j, %i, 2; add.u32 %j, %j, %sb; st.shared.u32 [%j], %sb; add.u32 %i, %i, %nt; setp.lt.u32 %p, %i, 4096; @%p bra SF_@; bar.sync 0;"""
SD = ".reg .b32 %sb, %ti, %i, %j;"
SS = "add.u32 %x0, %sb, %tz;"        # start address, after the clock
sh = dict(mod="", decl=SD + SM, pre=SFILL, start=SS, n=(16, 48))
lat("lds32", ["LDS"], lambda i: "ld.shared.u32 %x0, [%x0];", TP + " LDS result 28; classes.ron shared 28", 28, **sh)
lat("lds64", ["LDS.64"], lambda i: "ld.volatile.shared.v2.u32 {%x1, %x0}, [%x0];", TP + " LDS size=64 result 32", 32, C=2, **sh)
lat("lds128", ["LDS.128"], lambda i: "ld.volatile.shared.v4.u32 {%x1, %x2, %x3, %x0}, [%x0];", TP + " LDS size=128 result 40", 40, C=4, **sh)
lat("lds_u8", ["LDS"], lambda i: "ld.shared.u8 %x1, [%x0]; and.b32 %x1, %x1, %z; add.u32 %x0, %sb, %x1;", TP + " LDS result 28 (+ 2 alu)", 37, C=2, **sh)
lat("ldsm_x1", ["LDSM"], lambda i: "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%x0}, [%x0];", TP + " LDSM result 28", 28, **sh)
lat("ldsm_x4", ["LDSM"], lambda i: "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%x0, %x1, %x2, %x3}, [%x0];", TP + " LDSM size=128 result 40", 40, C=4, **sh)
lat("atoms_add", ["ATOMS"], lambda i: "atom.shared.add.u32 %x0, [%x0], %z;", TP + " ATOMS result 60", 60, ends="32 lanes on one address", **sh)
lat("atoms_lane", ["ATOMS"], lambda i: "atom.shared.exch.b32 %x0, [%x0], %x0;", TP + " ATOMS result 60", 60, **{**sh, "start": "shl.b32 %j, %ti, 2; and.b32 %j, %j, 1023; add.u32 %x0, %sb, %j; add.u32 %x0, %x0, %tz; st.shared.u32 [%x0], %x0;"})
lat("atoms_cas", ["ATOMS"], lambda i: "atom.shared.cas.b32 %x0, [%x0], %x0, %x0;", TP + " ATOMS result 60", 60, **{**sh, "start": "shl.b32 %j, %ti, 2; and.b32 %j, %j, 1023; add.u32 %x0, %sb, %j; add.u32 %x0, %x0, %tz; st.shared.u32 [%x0], %x0;"})
G64 = dict(decl=".reg .b64 %c<4>;", fin="cvt.u32.u64 %r, %c0; and.b32 %r, %r, %z;", C=1)
GS = "mov.b64 %c1, {%tz, %z}; add.u64 %c0, %ch, %c1;"
lat("ldg_l1", ["LDG"], lambda i: "ld.global.u64 %c0, [%c0];", TP + " LDG result 260 (L2); L1 hit", 260, n=(16, 48), buf="self", start=GS + "st.global.u64 [%ch], %ch;", **G64)
lat("ldg_l1_128", ["LDG"], lambda i: "ld.volatile.global.v2.u64 {%c2, %c0}, [%c0];", TP + " LDG size=128 result 272 (volatile: L2)", 272, n=(16, 48), buf="self", start=GS + "st.global.v2.u64 [%ch], {%ch, %ch};", **G64)
lat("ldg_l2", ["LDG"], lambda i: "ld.global.cg.u64 %c0, [%c0];", TP + " LDG result 260; classes.ron agu 260", 260, n=(32, 96), buf="l2", start=GS, sim=False, **G64)
lat("ldg_l2_ca_strong", ["LDG"], lambda i: "ld.relaxed.gpu.global.u64 %c0, [%c0];", TP + " LDG result 260", 260, n=(32, 96), buf="l2", start=GS, sim=False, **G64)
lat("ldg_dram", ["LDG"], lambda i: "ld.global.cg.u64 %c0, [%c0];", "none: DRAM", None, n=(32, 96), buf="dram", start="shl.b32 %ra, %rep, 20; cvt.u64.u32 %c2, %ra;" + GS + "add.u64 %c0, %c0, %c2;", sim=False, **G64)
lat("ldg_const", ["LDG"], lambda i: "ld.global.nc.u64 %c0, [%c0];", TP + " LDG result 260; L1 hit .CONSTANT", 260, n=(16, 48), buf="l1", start=GS, sim=False, **G64)
lat("ld_generic_l1", ["LD.", "LD "], lambda i: "ld.u64 %c0, [%c0];", TP + " LD result 260; L1 hit", 260, n=(16, 48), buf="self", start=GS + "st.global.u64 [%ch], %ch;", **G64)
lat("atomg_add64", ["ATOM"], lambda i: "atom.global.add.u64 %c0, [%c0], %c3;", TP + " ATOMG result 260", 260, n=(16, 48), buf="self", threads=(1,),
    start=GS + "mov.b64 %c3, {%z, %z}; st.global.u64 [%ch], %ch;", **G64)
lat("atomg_cas64", ["ATOM"], lambda i: "atom.global.cas.b64 %c0, [%c0], %c0, %c0;", TP + " ATOMG result 260", 260, n=(16, 48), buf="self", threads=(1,), start=GS + "st.global.u64 [%ch], %ch;", **G64)
lat("ldl", ["LDL"], lambda i: "ld.local.u32 %x0, [%x0];", TP + " LDL result 34", 34, n=(16, 48), decl=".local .align 16 .b8 loc[64]; .reg .b32 %lb;",
    pre="mov.u32 %lb, loc; st.local.u32 [%lb], %lb; st.local.u32 [%lb+4], %z; add.u32 %lb, %lb, %z;", start="add.u32 %x0, %lb, %tz;", fin="and.b32 %r, %x0, %z;")
CM = ".const .align 16 .b32 cmem[64] = {" + ", ".join(["0"] * 64) + "};"
lat("ldc_indexed", ["LDC"], lambda i: "ld.const.u32 %x0, [%x0]; add.u32 %x0, %x0, %cb;", TP + " LDC result 30; classes.ron constant 40 (+ alu 4)", 44, n=(16, 48), mod=CM,
    decl=".reg .b32 %cb;", pre="mov.u32 %cb, cmem; add.u32 %cb, %cb, %z;", start="add.u32 %x0, %cb, %tz;", fin="and.b32 %r, %x0, %z;")
lat("sts_lds", ["LDS"], lambda i: "st.volatile.shared.u32 [%sb], %x0; ld.volatile.shared.u32 %x0, [%sb];", TP + " LDS after STS of the same word", None, **sh)
lat("stg_ldg", ["LDG"], lambda i: "st.volatile.global.u32 [%ch], %x0; ld.volatile.global.u32 %x0, [%ch];", "none: store to load through L2", None, n=(8, 24), threads=(1,), buf="self", sim=True)
lat("cp_async", ["LDGSTS"], lambda i: "cp.async.ca.shared.global [%sb], [%ch], 4; cp.async.commit_group; cp.async.wait_group 0;", TP + " LDGSTS result 260 (one copy and its wait, L1/L2 hit)", 260, buf="self", **{**sh, "n": (8, 24), "start": ""}, C=1)
# ---------------------------------------------------------------- barriers, fences, control
lat("bar_sync", ["BAR"], lambda i: "bar.sync 0;", "cycle_model.rs: a barrier costs nothing; stalls.ron BAR 6; classes.ron agu", None, n=(16, 48), threads=(32, 64, 128, 256, 512, 1024), kind="bar")
lat("bar_red", ["BAR"], lambda i: f"setp.lt.u32 %p, %x0, {w(i)}; bar.red.popc.u32 %x0, 0, %p;", "classes.ron barrier_result 260; " + TP + " B2R 26", None, n=(8, 24), threads=(32, 128, 1024), kind="bar")
for f in ["membar.cta", "membar.gl", "membar.sys", "fence.acq_rel.cta", "fence.acq_rel.gpu", "fence.sc.gpu", "fence.proxy.async"]:
    nm = f.replace(".", "_")
    lat(nm, ["MEMBAR", "FENCE"], lambda i, f=f: f + ";", TP + " MEMBAR/FENCE result 260", 260, n=(4, 12), kind="bar")
    if "gl" in f or "gpu" in f or "cta" in f:
        lat(nm + "_stg", ["STG"], lambda i, f=f: f"st.global.u32 [%ch], %x0; {f}; st.global.u32 [%ch+128], %x0; {f};", TP + " MEMBAR/FENCE result 260 after a store", 260, n=(4, 12), buf="self", kind="bar")
lat("loop", ["BRA"], lambda i: f"add.u32 %x0, %x0, {w(i)};", "stalls.ron BRA 5: taken branch, counted loop (IADD + ISETP + BRA)", None, loop=True, n=(64, 256), kind="bar")
lat("divergent", ["BSSY"], lambda i: "and.b32 %x1, %x0, 1; setp.eq.u32 %p, %x1, 0; @%p bra DV_@; mad.lo.u32 %x0, %x0, %w1, %w1; mad.lo.u32 %x0, %x0, %w2, %w3; mad.lo.u32 %x0, %x0, %w3, %w5; mad.lo.u32 %x0, %x0, %w4, %w1; mad.lo.u32 %x0, %x0, %w5, %w3; mad.lo.u32 %x0, %x0, %w6, %w5; mad.lo.u32 %x0, %x0, %w1, %w1; mad.lo.u32 %x0, %x0, %w2, %w3; mad.lo.u32 %x0, %x0, %w3, %w5; mad.lo.u32 %x0, %x0, %w4, %w1; mad.lo.u32 %x0, %x0, %w5, %w3; mad.lo.u32 %x0, %x0, %w6, %w5; mad.lo.u32 %x0, %x0, %w1, %w1; mad.lo.u32 %x0, %x0, %w2, %w3; mad.lo.u32 %x0, %x0, %w3, %w5; mad.lo.u32 %x0, %x0, %w4, %w1; st.shared.u32 [%lad], %x0; bra DJ_@; DV_@: mad.lo.u32 %x0, %x0, %w2, %w2; mad.lo.u32 %x0, %x0, %w3, %w4; mad.lo.u32 %x0, %x0, %w4, %w6; mad.lo.u32 %x0, %x0, %w5, %w2; mad.lo.u32 %x0, %x0, %w6, %w4; mad.lo.u32 %x0, %x0, %w1, %w6; mad.lo.u32 %x0, %x0, %w2, %w2; mad.lo.u32 %x0, %x0, %w3, %w4; mad.lo.u32 %x0, %x0, %w4, %w6; mad.lo.u32 %x0, %x0, %w5, %w2; mad.lo.u32 %x0, %x0, %w6, %w4; mad.lo.u32 %x0, %x0, %w1, %w6; mad.lo.u32 %x0, %x0, %w2, %w2; mad.lo.u32 %x0, %x0, %w3, %w4; mad.lo.u32 %x0, %x0, %w4, %w6; mad.lo.u32 %x0, %x0, %w5, %w2; st.shared.u32 [%lad+4096], %x0; DJ_@: xor.b32 %x0, %x0, %tx;",
    "stalls.ron BSYNC 5; raw.ron B 9 (demanded 5): divergent if/else, 16 IMAD (64 cycles) and a store in each arm", None, loop=True, n=(16, 64), C=2, decl=SD + ".reg .b32 %lad;" + SM, pre=SFILL + "shl.b32 %lad, %ti, 2; add.u32 %lad, %lad, %sb;", kind="bar", same=True)
lat("convergent_if", ["BSSY", "BRA"], lambda i: "setp.eq.u32 %p, %x0, 0; @%p bra DV_@; mul.lo.u32 %x0, %x0, %w1; st.shared.u32 [%lad], %x0; bar.warp.sync -1; DV_@: add.u32 %x0, %x0, %w3;",
    "uniformly not taken if around a store", None, loop=True, n=(16, 64), C=2, decl=SD + ".reg .b32 %lad;" + SM, pre=SFILL + "shl.b32 %lad, %ti, 2; add.u32 %lad, %lad, %sb;", kind="bar")
CALLF = ".visible .func (.reg .b32 %o) callee(.reg .b32 %a, .reg .b32 %b) { mad.lo.u32 %o, %a, %b, %a; ret; }"
lat("call_ret", ["CALL"], lambda i: f"call.uni (%x0), callee, (%x0, {w(i)});", "stalls.ron CALL 5, RET 5", None, mod=CALLF, n=(8, 24), kind="bar")
MB = ".shared .align 8 .b64 mb; .reg .b32 %mba, %par, %sb; .reg .b64 %st;"
MBP = "mov.u32 %mba, mb; mbarrier.init.shared.b64 [%mba], 1; fence.proxy.async; "
lat("mbar_arrive_wait", ["SYNCS"], lambda i: f"mbarrier.arrive.shared.b64 %st, [%mba];\nMW{i}_@: mbarrier.try_wait.shared.b64 %p, [%mba], %st;\n@!%p bra MW{i}_@;", TP + " SYNCS: * 30; classes.ron agu 260: arrive + try_wait", None, n=(8, 24), decl=MB, pre=MBP, threads=(1,), kind="bar", sim=True)
lat("mbar_arrive", ["SYNCS.ARRIVE"], lambda i: "mbarrier.arrive.shared.b64 %st, [%mba]; cvt.u32.u64 %x1, %st; and.b32 %x1, %x1, %z; add.u32 %mba, %mba, %x1;", "SYNCS.ARRIVE.A1T0 result (+2 alu)", None, n=(8, 24), decl=MB, pre=MBP, threads=(1,), kind="bar", C=2, same=False)
lat("mbar_test", ["SYNCS"], lambda i: "mbarrier.test_wait.parity.shared.b64 %p, [%mba], %par; selp.b32 %par, 0, 1, %p;", "SYNCS.PHASECHK result (+ SEL)", None, n=(8, 24), decl=MB, pre=MBP + "xor.b32 %par, %z, 1;", threads=(1,), kind="bar", fin="mov.b32 %r, %par;")
for size in (16, 1024, 8192):
    lat(f"bulk_{size}", ["UBLKCP"], lambda i, size=size: f"mbarrier.arrive.expect_tx.shared.b64 %st, [%mba], {size};\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sb], [%ch], {size}, [%mba];\nMW{i}_@: mbarrier.try_wait.shared.b64 %p, [%mba], %st;\n@!%p bra MW{i}_@;",
        "classes.ron bulk 400; " + TP + " UBLKCP: * 30: bulk copy L2 -> shared and its wait", 400, n=(4, 12), decl=MB + SM, pre="mov.u32 %sb, smem;" + MBP, threads=(1,), buf="self", kind="bar")
# ---------------------------------------------------------------- tensor cores
MMA = [("m16n8k8", "f32.f16.f16.f32", 4, 2, 1, 4, "HMMA.1688.F32", "tensor 18 (16 to tensor; demanded 16)", 16),
       ("m16n8k16", "f32.f16.f16.f32", 4, 4, 2, 4, "HMMA.16816.F32", "tensor_long 24", 24),
       ("m16n8k16", "f16.f16.f16.f16", 2, 4, 2, 2, "HMMA.16816.F16", "tensor_long 24", 24),
       ("m16n8k16", "f32.bf16.bf16.f32", 4, 4, 2, 4, "HMMA.16816.F32.BF16", "tensor_long 24", 24),
       ("m16n8k4", "f32.tf32.tf32.f32", 4, 2, 1, 4, "HMMA.1684.F32.TF32", "tensor 16", 16),
       ("m16n8k8", "f32.tf32.tf32.f32", 4, 4, 2, 4, "HMMA.1688.F32.TF32", "tensor 16", 16),
       ("m16n8k16", "s32.s8.s8.s32", 4, 2, 1, 4, "IMMA.16816", "tensor 16", 16),
       ("m16n8k32", "s32.s8.s8.s32", 4, 4, 2, 4, "IMMA.16832", "tensor_long 24", 24),
       ("m8n8k16", "s32.s8.s8.s32", 2, 1, 1, 2, "IMMA.8816", "tensor_int 14", 14)]
for shape, ty, d, a, b, c, sass, row, val in MMA:
    g = lambda k, n, s=0: "{" + ", ".join(f"%{k}{s + j}" for j in range(n)) + "}"
    nm = sass.lower().replace(".", "_") + ("" if "F16" in sass or "BF16" in sass or "TF32" in sass or "IMMA" in sass else "")
    form = f"mma.sync.aligned.{shape}.row.col.{ty} "
    lat(nm, ["HMMA", "IMMA"], lambda i, form=form, d=d, a=a, b=b: form + f"{g('x', d)}, {g('w', a)}, {g('w', b, 4)}, {g('x', d)};", RAW + row, val, C=d, n=(16, 48), stall=[(sass.split(".")[0], sass.split(".")[0])])
    tput(nm, ["HMMA", "IMMA"], lambda i, ch, form=form, d=d, a=a, b=b: form + f"{g('x', d, d * (i % 6))}, {g('w', a)}, {g('w', b, 4)}, {g('x', d, d * (i % 6))};", TP + " HMMA/IMMA sm_90 cycles 8", 8, C=6 * d, n=(24, 72), threads=(32, 128, 512))
DG = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%d2}, {%d3}, {%d0, %d1};"
lat("dmma_884", ["DMMA"], lambda i: DG, TP + " DMMA result 48; classes.ron tensor_late 40", 48, C=0, wide=4, n=(8, 24))
lat("dmma_16816", ["DMMA"], lambda i: "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%d0,%d1,%d2,%d3}, {%d4,%d5,%d6,%d7,%d4,%d5,%d6,%d7}, {%d4,%d5,%d6,%d7}, {%d0,%d1,%d2,%d3};", TP + " DMMA result 48", 48, C=0, wide=8, n=(8, 24))
add("t_dmma_884", ["DMMA"], lambda i: DG.replace("%d0", "%d@").replace("%d1", f"%d{5 + 2 * (i % 6)}").replace("%d@", f"%d{4 + 2 * (i % 6)}"), TP + " DMMA cycles 32", 32, C=0, wide=16, n=(24, 48), threads=(32, 128, 512), kind="tput")
for N in (8, 16, 32, 64, 128, 256):
    accs = ", ".join(f"%f{j}" for j in range(N // 2))
    WD = f".reg .b64 %da, %db; .reg .b32 %f<{N // 2}>;" + SD + ".shared .align 1024 .b8 smem[16384];"
    wi = f"wgmma.mma_async.sync.aligned.m64n{N}k16.f32.f16.f16 {{{accs}}}, %da, %db, %pt, 1, 1, 0, 0;"
    WP = SFILL.replace("st.shared.u32 [%j], %sb", "st.shared.u32 [%j], %z") + "shr.u32 %j, %sb, 4; and.b32 %j, %j, 0x3fff; mov.b64 %da, {%j, 0}; or.b64 %da, %da, 0x0000001000080000; mov.b64 %db, %da;"
    ST = "".join(f"mov.b32 %f{j}, %x0;" for j in range(N // 2)) + "setp.ne.u32 %pt, 1, 0; wgmma.fence.sync.aligned;"
    FI = "mov.b32 %r, %f0;" + "".join(f"xor.b32 %r, %r, %f{j};" for j in range(1, N // 2))
    k = dict(target="sm_90a", decl=WD + ".reg .pred %pt;", pre=WP, start=ST, fin=FI, threads=(128,))
    add(f"t_hgmma_n{N}", ["HGMMA"], lambda i, wi=wi: wi, f"members.ron group; {TP} HGMMA has no row (* alu 2!): cycles per wgmma of a warp group back to back", N / 2, n=(8, 24), kind="wg", ends="wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;", **k)
    if N in (8, 64, 256):
        add(f"hgmma_wait_n{N}", ["HGMMA"], lambda i, wi=wi: wi + "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; wgmma.fence.sync.aligned;", "classes.ron group expected 64: one wgmma and its wait", 64, n=(8, 24), kind="wg", **k)
# ---------------------------------------------------------------- throughputs
X = lambda c: f"%x{c}"
tput("iadd3", ["IADD3"], lambda i, c: f"add.u32 {X(c)}, {X(c)}, {w(i)}; add.u32 {X(c)}, {X(c)}, {w(i,1)};", TP + " * alu 2", 2)
tput("lop3", ["LOP3"], lambda i, c: f"lop3.b32 {X(c)}, {X(c)}, {w(i//8)}, {w(i//8, 1)}, {hex([0x6a, 0xc6, 0x96][i//8 % 3])};", TP + " * alu 2", 2)
tput("shf", ["SHF"], lambda i, c: f"shf.l.wrap.b32 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};", TP + " * alu 2", 2)
tput("prmt", ["PRMT"], lambda i, c: f"prmt.b32 {X(c)}, {X(c)}, {w(i)}, %s0;", TP + " * alu 2", 2, decl=".reg .b32 %s<2>;", pre="xor.b32 %s0, %z, 0x6120;")
tput("isetp_sel", ["ISETP"], lambda i, c: f"setp.lt.s32 %q{c}, {X(c)}, {w(i)}; selp.b32 {X(c)}, {w(i,1)}, %w7, %q{c};", TP + " * alu 2 (two ops)", 4, C=4, decl=".reg .pred %q<8>;")
tput("imnmx", ["IMNMX", "VIMNMX"], lambda i, c: f"{'max' if i//8 % 2 else 'min'}.s32 {X(c)}, {X(c)}, {w(i//8)};", TP + " * alu 2", 2)
tput("lea", ["LEA", "IMAD"], lambda i, c: f"shl.b32 {X(c)}, {X(c)}, 3; add.u32 {X(c)}, {X(c)}, {w(i)};", TP + " * alu 2", 2)
tput("ffma", ["FFMA"], lambda i, c: f"fma.rn.ftz.f32 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};", TP + " FFMA cycles 1", 1)
tput("fadd", ["FADD"], lambda i, c: f"add.rn.ftz.f32 {X(c)}, {X(c)}, {w(i)};", TP + " FADD cycles 1", 1)
tput("fmnmx", ["FMNMX"], lambda i, c: f"{'max' if i//8 % 2 else 'min'}.f32 {X(c)}, {X(c)}, {w(i//8)};", TP + " * alu 2", 2)
tput("imad", ["IMAD"], lambda i, c: f"mad.lo.u32 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};", TP + " IMAD cycles 2", 2)
tput("imad_ffma", ["IMAD", "FFMA"], lambda i, c: f"mad.lo.u32 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};" if c % 2 else f"fma.rn.ftz.f32 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};", TP + " IMAD 2 and FFMA 1 on one pipe: 1.5 per op (fma heavy/lite?)", 1.5)
tput("ffma_lop3", ["LOP3", "FFMA"], lambda i, c: f"lop3.b32 {X(c)}, {X(c)}, {w(i//8)}, {w(i//8, 1)}, 0x6a;" if c % 2 else f"fma.rn.ftz.f32 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};", TP + " alu 2 beside fma 1: 1 per op", 1)
tput("imad_lop3", ["LOP3", "IMAD"], lambda i, c: f"lop3.b32 {X(c)}, {X(c)}, {w(i//8)}, {w(i//8, 1)}, 0x6a;" if c % 2 else f"mad.lo.u32 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};", TP + " alu 2 beside fma 2: 1 per op", 1)
add("t_imad_wide", ["IMAD.WIDE"], lambda i: f"mad.wide.u32 %d{i%8}, {w(i)}, {0x12345 + 0x100037 * i}, %d{i%8};", TP + " IMAD_WIDE cycles 4", 4, C=0, wide=8, threads=(32, 128, 512, 1024), kind="tput")
tput("imad_hi", ["IMAD.HI"], lambda i, c: f"mul.hi.u32 {X(c)}, {X(c)}, {w(i)};", TP + " IMAD_HI cycles 4", 4, pre="".join(f"or.b32 %w{j}, %w{j}, 0xff000000;" for j in range(8)))
tput("idp4a", ["IDP"], lambda i, c: f"dp4a.u32.u32 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};", TP + " IDP cycles 2", 2)
tput("hfma2", ["HFMA2"], lambda i, c: f"fma.rn.f16x2 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};", TP + " HFMA2 half 2", 2, pre=HPRE)
tput("hadd2", ["HADD2"], lambda i, c: f"add.f16x2 {X(c)}, {X(c)}, {w(i//8)};", TP + " HADD2 half 2", 2, pre=HPRE)
tput("hfma2_ffma", ["HFMA2", "FFMA"], lambda i, c: f"fma.rn.f16x2 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};" if c % 2 else f"fma.rn.ftz.f32 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};", TP + " half 2 beside fma 1: 1 per op", 1, pre=HPRE)
tput("hfma2_imad", ["HFMA2", "IMAD"], lambda i, c: f"fma.rn.f16x2 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};" if c % 2 else f"mad.lo.u32 {X(c)}, {X(c)}, {w(i)}, {w(i,1)};", TP + " half 2 beside fma 2: 1 per op", 1, pre=HPRE)
tput("hmnmx2", ["HMNMX2"], lambda i, c: f"{'max' if i//8 % 2 else 'min'}.f16x2 {X(c)}, {X(c)}, {w(i//8)};", TP + " HMNMX2 half 2", 2, pre=HPRE)
for o, f in [("DFMA", "fma.rn.f64 %d{c}, %d{c}, %d8, %d9;"), ("DADD", "add.rn.f64 %d{c}, %d{c}, %d8;"), ("DMUL", "mul.rn.f64 %d{c}, %d{c}, %d8;")]:
    add("t_" + o.lower(), [o], lambda i, f=f: f.replace("{c}", str(i % 8)), TP + " DFMA fp64 cycles 2", 2, C=0, wide=10, threads=(32, 128, 512, 1024), kind="tput")
for f in ("ex2", "rcp", "rsqrt", "lg2"):
    tput("mufu_" + f, ["MUFU"], lambda i, c, f=f: f"{f if f != 'rcp' or i // 8 % 2 else 'lg2'}.approx.ftz.f32 {X(c)}, {X(c)};", TP + " MUFU cycles 8", 8, n=(32, 96))
tput("mufu_tanh", ["MUFU"], lambda i, c: f"tanh.approx.f32 {X(c)}, {X(c)};", TP + " MUFU cycles 8", 8, n=(32, 96))
tput("popc", ["POPC"], lambda i, c: f"popc.b32 {X(c)}, {X(c)};", TP + " POPC cycles 8", 8, n=(32, 96))
tput("flo", ["FLO"], lambda i, c: f"bfind.u32 {X(c)}, {X(c)};", TP + " FLO cycles 8", 8, n=(32, 96))
tput("brev", ["BREV"], lambda i, c: f"brev.b32 {X(c)}, {X(c)}; add.u32 {X(c)}, {X(c)}, {w(i)};", TP + " BREV cycles 8", 8, n=(32, 96))
tput("f2i", ["F2I"], lambda i, c: f"cvt.{['rzi','rni'][i//8%2]}.s32.f32 {X(c)}, {X(c)};", TP + " F2I cycles 8", 8, n=(32, 96))
tput("i2fp", ["I2FP"], lambda i, c: f"cvt.rn.f32.s32 {X(c)}, {X(c)};", TP + " * alu 2 (I2FP)", 2, n=(32, 96))
tput("f2fp", ["F2FP"], lambda i, c: f"cvt.rn.f16x2.f32 {X(c)}, {X(c)}, {w(i)};", TP + " * alu 2 (F2FP)", 2, n=(32, 96))
tput("shfl", ["SHFL"], lambda i, c: f"shfl.sync.bfly.b32 {X(c)}, {X(c)}, 1, 0x1f, -1;", TP + " SHFL mio 4", 4, n=(32, 96))
tput("redux", ["REDUX"], lambda i, c: f"redux.sync.add.s32 {X(c)}, {X(c)}, -1;", TP + " REDUX xu 8", 8, n=(16, 48))
tput("match_any", ["MATCH"], lambda i, c: f"match.any.sync.b32 {X(c)}, {X(c)}, -1;", TP + " MATCH xu 8", 8, n=(16, 48))
tput("vote", ["VOTE"], lambda i, c: f"setp.lt.u32 %q{c}, {X(c)}, {w(i)}; vote.sync.ballot.b32 {X(c)}, %q{c}, -1;", TP + " VOTE alu 2 (+ ISETP 2)", 4, C=4, decl=".reg .pred %q<8>;", n=(32, 96))
tput("s2r", ["S2R", "S2UR"], lambda i, c: f"mov.u32 %y, %warpid; add.u32 {X(c)}, {X(c)}, %y;", TP + " S2R xu 4", 4, decl=".reg .b32 %y;", n=(32, 96), same=False)
LSH = "shl.b32 %j, %ti, {k}; add.u32 %j, %j, %sb; add.u32 %j, %j, %tz;"
big = dict(decl=SD + ".reg .b32 %l<4>;" + SM.replace("16384", "32768"), n=(16, 48))
for nm, k, ins, val in [("lds32", 2, "ld.volatile.shared.u32 %l0", 4), ("lds64", 3, "ld.volatile.shared.v2.u32 {%l0, %l1}", 8), ("lds128", 4, "ld.volatile.shared.v4.u32 {%l0, %l1, %l2, %l3}", 16)]:
    tput(nm, ["LDS"], lambda i, c, ins=ins, k=k: f"{ins}, [%j+{(i % 4) * 4096}]; xor.b32 {X(c)}, {X(c)}, %l0;", TP + f" LDS mio {val}", val, pre=SFILL.replace("4096", "8192"), start=LSH.format(k=k), fin="mov.b32 %r, %x0;" + "".join(f"xor.b32 %r, %r, %x{c};" for c in range(1, 8)) + "and.b32 %r, %r, %z;", **big)
for nm, k, ins, val in [("sts32", 2, "{%x0}", 4), ("sts64", 3, "{%x0, %x1}", 8), ("sts128", 4, "{%x0, %x1, %x2, %x3}", 16)]:
    v = {2: "u32", 3: "v2.u32", 4: "v4.u32"}[k]
    tput(nm, ["STS"], lambda i, c, ins=ins, v=v: f"st.volatile.shared.{v} [%j+{(i % 4) * 4096}], {ins if len(ins) > 5 else '%x0'};", TP + f" STS mio {val}", val, start=LSH.format(k=k), pre=SFILL.replace("4096", "8192"), **big)
tput("ldsm_x4", ["LDSM"], lambda i, c: f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%l0, %l1, %l2, %l3}}, [%j+{(i % 4) * 4096}]; xor.b32 {X(c)}, {X(c)}, %l0;", TP + " LDSM size=128 mio 16", 16, start=LSH.format(k=4), pre=SFILL.replace("4096", "8192"), fin="mov.b32 %r, %x0;" + "".join(f"xor.b32 %r, %r, %x{c};" for c in range(1, 8)) + "and.b32 %r, %r, %z;", **big)
tput("atoms_add", ["ATOMS"], lambda i, c: f"atom.shared.add.u32 %l0, [%j+{(i % 4) * 4096}], %x7; xor.b32 {X(c)}, {X(c)}, %l0;", TP + " ATOMS mio 8", 8, start=LSH.format(k=2), pre=SFILL.replace("4096", "8192"), fin="mov.b32 %r, %x0;" + "".join(f"xor.b32 %r, %r, %x{c};" for c in range(1, 8)) + "and.b32 %r, %r, %z;", **big)
GL = "cvt.u64.u32 %c0, %tid4; mov.b64 %c1, {%tz, %z}; add.u64 %c0, %c0, %ch; add.u64 %c0, %c0, %c1;"
gd = dict(decl=".reg .b64 %c<4>; .reg .b32 %l<4>, %tid4;", n=(16, 48), buf="zero", fin="mov.b32 %r, %x0;" + "".join(f"xor.b32 %r, %r, %x{c};" for c in range(1, 8)) + "and.b32 %r, %r, %z;")
for nm, k, ins, val in [("ldg32", 2, "ld.global.u32 %l0", 4), ("ldg64", 3, "ld.global.v2.u32 {%l0, %l1}", 8), ("ldg128", 4, "ld.global.v4.u32 {%l0, %l1, %l2, %l3}", 16)]:
    use = {2: "", 3: "xor.b32 %l0, %l0, %l1;", 4: "lop3.b32 %l0, %l0, %l1, %l2, 0x96; xor.b32 %l0, %l0, %l3;"}[k]
    tput(nm + "_l1", ["LDG"], lambda i, c, ins=ins, use=use: f"{ins}, [%c0+{i * 512}]; {use} xor.b32 {X(c)}, {X(c)}, %l0;", TP + f" LDG mio {val}", val, start=f"mov.u32 %tid4, %tid.x; shl.b32 %tid4, %tid4, {k}; " + GL, **gd)
for nm, k, ins, val in [("stg32", 2, "u32 [A], %x0", 4), ("stg64", 3, "v2.u32 [A], {%x0, %x1}", 8), ("stg128", 4, "v4.u32 [A], {%x0, %x1, %x2, %x3}", 16)]:
    tput(nm, ["STG"], lambda i, c, ins=ins: f"st.global.{ins.replace('A', '%c0+' + str(i * 16384))};", TP + f" STG mio {val}", val, start=f"mov.u32 %tid4, %tid.x; shl.b32 %tid4, %tid4, {k}; " + GL, **gd)
tput("red", ["RED"], lambda i, c: f"red.global.add.u32 [%c0+{i * 4096}], %x0;", TP + " RED mio 4", 4, start="mov.u32 %tid4, %tid.x; shl.b32 %tid4, %tid4, 2; " + GL, **gd)


def ptx(m, n, name):
    C, W = int(m["C"]), m["wide"]
    fin = m["fin"]
    if fin is None:
        fin = "mov.b32 %r, 0;" + "".join(f"xor.b32 %r, %r, %x{c};" for c in range(C))
        fin += "".join(f"mov.b64 {{%ra, %rb}}, %d{c}; xor.b32 %r, %r, %ra; xor.b32 %r, %r, %rb;" for c in range(W))
    start = "cvt.u32.u64 %ra, %t0; and.b32 %tz, %ra, %z;"
    start += "".join(f"xor.b32 %x{c}, %w{c % 8}, %tz;" + (f"add.u32 %x{c}, %x{c}, {c};" if c >= 8 else "") for c in range(C))
    start += "".join(f"xor.b32 %ra, %w{(c + 3) % 8}, %tz; xor.b32 %rb, %w{c % 8}, %tz; add.u32 %rb, %rb, {c * 5}; mov.b64 %d{c}, {{%ra, %rb}};" for c in range(W))
    start += m["start"]
    uniq = name
    if m["loop"]:
        body = f"mov.u32 %k, 0;\nLP_{uniq}:\n.pragma \"nounroll\";\n" + m["body"](0) + f"\nadd.u32 %k, %k, 1;\nsetp.lt.u32 %p, %k, %n;\n@%p bra LP_{uniq};"
    else:
        body = "\n".join(m["body"](i) for i in range(n))
    text = f"""
.visible .entry {name}(.param .u64 pin, .param .u64 pout, .param .u64 pch, .param .u32 pn)
{{
.reg .b32 %x<{max(C, 4)}>, %w<8>, %z, %tz, %r, %ra, %rb, %rep, %k, %n, %nt, %tx, %four;
.reg .b64 %d<{max(W, 4)}>, %t0, %t1, %in, %o, %ch, %ad;
.reg .pred %p, %pe, %pr;
{m['decl']}
ld.param.u64 %in, [pin]; ld.param.u64 %o, [pout]; ld.param.u64 %ch, [pch]; ld.param.u32 %n, [pn];
cvta.to.global.u64 %in, %in; cvta.to.global.u64 %o, %o; cvta.to.global.u64 %ch, %ch;
mov.u32 %tx, %tid.x; mov.u32 %nt, %ntid.x;
mul.wide.u32 %ad, %tx, 64; add.u64 %in, %in, %ad;
ld.global.v4.u32 {{%w0, %w1, %w2, %w3}}, [%in]; ld.global.v4.u32 {{%w4, %w5, %w6, %w7}}, [%in+16]; ld.global.u32 %z, [%in+32]; ld.global.u32 %four, [%in+48];
mul.wide.u32 %ad, %tx, 32; add.u64 %o, %o, %ad;
{m['pre']}
mov.u32 %rep, 0;
REP_{uniq}:
.pragma "nounroll";
bar.sync 0;
mov.u64 %t0, %clock64;
{start}
{body}
{m['ends'] if 'wgmma' in m['ends'] else ''}
{fin}
setp.eq.u32 %pe, %r, 0x7a5b3c1d;
@%pe bra OUT_{uniq};
mov.u64 %t1, %clock64;
add.u32 %rep, %rep, 1;
setp.lt.u32 %pr, %rep, %four;
@%pr bra REP_{uniq};
OUT_{uniq}:
st.global.v2.u64 [%o], {{%t0, %t1}};
st.global.u32 [%o+16], %r;
ret;
}}
"""
    return text.replace("_@", "_" + uniq)


def module(m):
    ks = [("k1", m["n"][0])] if m["loop"] else [("k1", m["n"][0]), ("k2", m["n"][1])]
    body = "".join(ptx(m, n, k) for k, n in ks)
    return f".version 8.5\n.target {m['target']}\n.address_size 64\n{m['mod']}\n" + body


LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*(/\*.*)?$")


def sections(path):
    b = open(path, "rb").read()
    shoff, = struct.unpack_from("<Q", b, 40)
    ent, num, strx = struct.unpack_from("<HHH", b, 58)
    hs = [struct.unpack_from("<IIQQQQIIQQ", b, shoff + i * ent) for i in range(num)]
    names = hs[strx]
    get = lambda o: b[names[4] + o:b.index(0, names[4] + o)].decode()
    return {get(h[0]): (h[4], h[5]) for h in hs}


def regions(nvdisasm, path):
    """Kernel -> [(file offset, text)] between its first two clock reads (or first and last that are 64 bits apart)."""
    text = subprocess.run([nvdisasm, "-c", path], capture_output=True, text=True).stdout
    secs, out, cur = sections(path), {}, None
    for line in text.splitlines():
        s = re.search(r"\.section\s+\.text\.([\w$]+)", line)
        if s:
            cur = s[1]
            out.setdefault(cur, [])
            continue
        g = LINE.match(line)
        if g and cur:
            out[cur].append((secs[".text." + cur][0] + int(g[1], 16), g[2]))
    res = {}
    for k, ins in out.items():
        clocks = [i for i, (_, t) in enumerate(ins) if "SR_CLOCK" in t]
        res[k] = ins[clocks[0] + 1:clocks[-1]] if len(clocks) >= 2 else []
    return res


def opcode(t):
    t = re.sub(r"^@!?U?P\w+\s+", "", t)
    return t.split()[0]


def hist(ins):
    h = {}
    for _, t in ins:
        h[opcode(t)] = h.get(opcode(t), 0) + 1
    return h


def count(ins, ops):
    return sum(1 for _, t in ins if any((opcode(t) + " ").startswith(o) for o in ops))


def build(m, a):
    base = os.path.join(a.out, m["name"])
    src = os.path.join(a.ptx, m["name"] + ".ptx")
    open(src, "w").write(module(m))
    e = dict(name=m["name"], op="/".join(m["op"]), table=m["table"], value=m["value"], threads=list(m["threads"]), kind=m["kind"], loop=m["loop"],
             n=list(m["n"]), buf=m["buf"], same=m["same"], cubins={}, units={}, stall=[], note=m["ends"] if "wgmma" not in m["ends"] else "")
    log = []
    for who, cmd in (("ptxas", [a.ptxas]), ("ours", [a.ours])):
        cub = f"{base}.{who}.cubin"
        if os.path.exists(cub):
            os.remove(cub)
        r = subprocess.run(cmd + [f"-arch={m['target']}", src, "-o", cub], capture_output=True, text=True, timeout=120)
        if r.returncode or not os.path.exists(cub):
            log.append(f"{m['name']}: {who} refuses: {(r.stdout + r.stderr).strip()[:300]}")
            continue
        reg = regions(a.nvdisasm, cub)
        if not reg.get("k1"):
            log.append(f"{m['name']}: {who}: no region between clock reads")
            continue
        if m["loop"]:
            u = count(reg["k1"], m["op"])
            u = u / (1 if m["per"] == 1 else 1)
            units = [u * m["n"][0], u * m["n"][1]]
            diff = hist(reg["k1"])
            per = 1
        else:
            units = [count(reg["k1"], m["op"]), count(reg["k2"], m["op"])]
            h1, h2 = hist(reg["k1"]), hist(reg["k2"])
            diff = {o: h2.get(o, 0) - h1.get(o, 0) for o in sorted(set(h1) | set(h2))}
            diff = {o: c for o, c in diff.items() if c}
        e["cubins"][who] = os.path.basename(cub)
        e["units"][who] = units
        e.setdefault("ops", {})[who] = diff
        if who == "ptxas" and m["stall"]:
            for frm, to in m["stall"]:
                ks = reg["k1"]
                offs = []
                hit = lambda t, pat: (t.startswith("@") and not t.startswith("@!PT")) if pat == "@P" else opcode(t).startswith(pat)
                for at in range(len(ks) - 1):
                    if not hit(ks[at][1], frm):
                        continue
                    end = at + 1
                    while end < len(ks) and opcode(ks[end][1]) == "NOP":
                        end += 1
                    if end < len(ks) and hit(ks[end][1], to):
                        offs.append([o for o, _ in ks[at:end]])
                short = min((len(c) for c in offs), default=0)
                offs = [c for c in offs if len(c) == short]
                if len(offs) >= 4:
                    b = open(cub, "rb").read()
                    now = sorted({sum((struct.unpack_from("<Q", b, o + 8)[0] >> 41) & 15 for o in c) for c in offs})
                    e["stall"].append(dict(pair=f"{frm}->{to}", offs=offs, now=now))
                else:
                    log.append(f"{m['name']}: stall {frm}->{to}: only {len(offs)} adjacent pairs")
    if len(e["units"]) == 2 and not m["loop"]:
        want = (m["n"][1] - m["n"][0])
        for who, u in e["units"].items():
            if u[1] - u[0] <= 0:
                log.append(f"{m['name']}: {who}: opcode {m['op']} counts {u}: {e['ops'][who]}")
        if e["ops"]["ptxas"] != e["ops"]["ours"]:
            log.append(f"{m['name']}: differs: ptxas {e['ops']['ptxas']} ours {e['ops']['ours']}")
        elif e["units"]["ptxas"][1] - e["units"]["ptxas"][0] != want:
            log.append(f"{m['name']}: {want} steps are {e['ops']['ptxas']} (both)")
    elif m["loop"] and len(e["units"]) == 2 and e["ops"]["ptxas"] != e["ops"]["ours"]:
        log.append(f"{m['name']}: loop: ptxas {e['ops']['ptxas']} ours {e['ops']['ours']}")
    if a.sim and m["sim"]:
        outs = {}
        for who in e["cubins"]:
            for k, n in ([("k1", m["n"][0]), ("k1", m["n"][1])] if m["loop"] else [("k1", 0), ("k2", 0)]):
                th = m["threads"][0]
                tmp = f"{a.ptx}/{m['name']}.{who}.{k}.{n}"
                chase = f"inout:{a.ptx}/chase.bin:{tmp}.chase"
                nn = n if m["loop"] else 3
                r = subprocess.run([a.ours, "run", os.path.join(a.out, e["cubins"][who]), "--kernel", k, "--grid", "1", "--block", str(th), "--arg", f"in:{a.ptx}/in.bin",
                                    "--arg", f"out:{tmp}.out:{32 * th}", "--arg", chase, "--arg", f"u32:{nn}"], capture_output=True, text=True, timeout=300)
                cyc = re.search(r"(\d+) cycles|cycles[^0-9]*(\d+)", r.stdout + r.stderr)
                if r.returncode:
                    log.append(f"{m['name']}: {who} {k} in the simulator: {(r.stdout + r.stderr).strip()[:400]}")
                    continue
                b = open(tmp + ".out", "rb").read()
                ok = all(struct.unpack_from("<QQ", b, t * 32)[1] > 0 for t in range(th))
                if not ok:
                    log.append(f"{m['name']}: {who} {k}: did not reach its end")
                outs.setdefault((k, n), {})[who] = [struct.unpack_from("<I", b, t * 32 + 16)[0] for t in range(th)]
        for k, o in outs.items():
            if m["same"] and len(o) == 2 and o["ptxas"] != o["ours"]:
                log.append(f"{m['name']} {k}: results differ in the simulator: ptxas {o['ptxas'][:4]} ours {o['ours'][:4]}")
    return e, log


def seeds(threads=1024, seed=7):
    r = random.Random(seed)
    b = b""
    for t in range(threads):
        ws = [0x3f000000 | r.randrange(1 << 23) | 1 for _ in range(7)] + [0x3f400000 | 1]
        b += struct.pack("<16I", *ws, 0, 1, 2, 3, 4, 5, 6, 7)
    return b


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ours", default="target/release/sassafras")
    p.add_argument("--ptxas", default="target/vendor/ptxas")
    p.add_argument("--nvdisasm", default="target/vendor/nvdisasm")
    p.add_argument("--out", default="target/latency")
    p.add_argument("--ptx", default="target/latency_ptx")
    p.add_argument("--sim", action="store_true")
    p.add_argument("--only", default="")
    p.add_argument("-j", type=int, default=2)
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    os.makedirs(a.ptx, exist_ok=True)
    open(f"{a.out}/in.bin", "wb").write(seeds())
    open(f"{a.ptx}/in.bin", "wb").write(seeds())
    open(f"{a.ptx}/chase.bin", "wb").write(bytes(1 << 21))
    ms = [m for m in M if re.search(a.only, m["name"])]
    names = [m["name"] for m in ms]
    assert len(set(names)) == len(names), [n for n in names if names.count(n) > 1]
    with cf.ThreadPoolExecutor(a.j) as pool:
        res = list(pool.map(lambda m: build(m, a), ms))
    for _, log in res:
        for line in log:
            print(line)
    if not a.only:
        json.dump([e for e, _ in res], open(f"{a.out}/manifest.json", "w"), indent=0)
        with tarfile.open(a.out + ".tar.gz", "w:gz") as t:
            t.add(a.out, arcname="latency")
    print(len(res), "measurements;", sum("ptxas" in e["cubins"] for e, _ in res), "ptxas,", sum("ours" in e["cubins"] for e, _ in res), "ours")


if __name__ == "__main__":
    main()
