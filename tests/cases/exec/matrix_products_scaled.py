"""Writes matrix_products_scaled.ptx and .ron: products with block scale, dense and sparse, sums of
small numbers.

expected.py imports FILES."""
import random,struct
from launchfile import number_lines
R=random.Random(9)
VAL={'e4m3':(3,7),'e5m2':(2,15),'e2m1':(1,1),'e2m3':(3,1),'e3m2':(2,3)}
def enc(t,v):
    m,b=VAL[t]
    if v==0: return 0
    bits={'e4m3':8,'e5m2':8,'e2m1':4,'e2m3':6,'e3m2':6}[t]
    s=1<<(bits-1) if v<0 else 0; v=abs(v)
    e=0
    while v>=2: v/=2;e+=1
    while v<1: v*=2;e-=1
    f=(v-1)*(1<<m); assert f==int(f) and e+b>0,(t,v)
    return s|(e+b)<<m|int(f)
K=[];L=[]
def emit(name,kind,vec,ta,tb,ts,k,ids,runtime=False,sparse=False,called=False):
    packed=kind!='mxf8f6f4'
    val=lambda: R.choice([0,1,2,3,-1,-2,-3,1.5])
    A=[[val() for _ in range(k)] for _ in range(16)]; B=[[val() for _ in range(k)] for _ in range(8)]
    meta=[0]*32
    stored=A
    if sparse:
        # Of four elements, or pairs of 4-bit elements, two are there; 4 bits of metadata say which.
        unit=2 if packed else 1
        stored=[]
        for r in range(16):
            line=[]
            for chunk in range(k//(4*unit)):
                kept=sorted(R.sample(range(4),2))
                for i in range(4):
                    for x in range(unit):
                        q=(4*chunk+i)*unit+x
                        if i in kept: line.append(A[r][q])
                        else: A[r][q]=0
                lane=r%8*4+chunk//8*2+r//8
                meta[lane]|=(kept[0]|kept[1]<<2)<<(chunk%8*4)
            stored.append(line)
    C=[[R.randrange(-8,9) for _ in range(8)] for _ in range(16)]
    blocks={'1X':1,'2X':2,'4X':4}[vec]
    def sc(): 
        if ts=='ue8m0': e=R.randrange(-2,3); return 127+e,2.0**e
        v=R.choice([0.5,1,1.5,2]); return enc('e4m3',v),v
    SA=[[sc() for _ in range(blocks)] for _ in range(16)]; SB=[[sc() for _ in range(blocks)] for _ in range(8)]
    ba,tA,bb,tB=ids
    wa=[R.getrandbits(32)&0x7f7f7f7f for _ in range(32)]; wb=[R.getrandbits(32)&0x7f7f7f7f for _ in range(32)]
    def put(w,byte,v): return w&~(255<<8*byte)|v<<8*byte
    for r in range(16):
        l=r%8*4+2*tA+r//8
        for i in range(blocks): wa[l]=put(wa[l],ba+i,SA[r][i][0])
    for c in range(8):
        l=c*4+tB
        for i in range(blocks): wb[l]=put(wb[l],bb+i,SB[c][i][0])
    def cell(t,v):
        x=enc(t,v)
        if packed: return x
        return x<<2 if t=='e2m1' else x
    bits=4 if packed else 8; per=32//bits
    def fa(l):
        out=[]
        for reg in range(4):
            w=0
            for x in range(per):
                row=l//4+8*(reg%2); kk=(l%4)*per+x+4*per*(reg//2)
                w|=cell(ta,stored[row][kk])<<(x*bits)
            out.append(w)
        return out
    def fb(l):
        out=[]
        for reg in range(4 if sparse else 2):
            w=0
            for x in range(per): w|=cell(tb,B[l//4][(l%4)*per+x+4*per*reg])<<(x*bits)
            out.append(w)
        return out
    st=k//blocks
    E=[[C[r][c]+sum(SA[r][i][1]*SB[c][i][1]*sum(A[r][q]*B[c][q] for q in range(i*st,(i+1)*st)) for i in range(blocks)) for c in range(8)] for r in range(16)]
    f32=lambda v: struct.unpack('<I',struct.pack('<f',v))[0]
    fc=lambda M,l:[f32(M[l//4+8*(i//2)][2*(l%4)+i%2]) for i in range(4)]
    data=[];exp=[]
    for l in range(32):
        data+=fa(l)+fb(l)+fc(C,l)+[wa[l],wb[l]]+[meta[l]]*sparse; exp+=fc(E,l)
    nb,ns=(4,3) if sparse else (2,2)
    o=[f'.visible .entry {name}(.param .u64 in, .param .u64 out, .param .u32 first, .param .u32 second)\n{{\n    .reg .b32 %a<4>;\n    .reg .b32 %b<{nb}>;\n    .reg .f32 %c<4>;\n    .reg .f32 %d<4>;\n    .reg .b32 %s<{ns}>;\n    .reg .b16 %h<4>;\n    .reg .b32 %r<8>;\n    .reg .b64 %rd<4>;\n\n    ld.param.u64 %rd1, [in];\n    ld.param.u64 %rd2, [out];\n    mov.u32 %r0, %tid.x;\n    mad.wide.u32 %rd1, %r0, {4*(8+nb+ns)}, %rd1;\n    mad.wide.u32 %rd2, %r0, 16, %rd2;']
    for i,(ty,reg) in enumerate([('b32',f'%a{j}') for j in range(4)]+[('b32',f'%b{j}') for j in range(nb)]+[('f32',f'%c{j}') for j in range(4)]+[('b32',f'%s{j}') for j in range(ns)]):
        o.append(f'    ld.global.{ty} {reg}, [%rd1+{4*i}];')
    # Behind a call lanes may be apart, until the product asks for all of them.
    if called: o.append('    call (%r3), turned, (%s0);\n    not.b32 %s0, %r3;')
    if runtime:
        o.append('    ld.param.u32 %r1, [first];\n    ld.param.u32 %r2, [second];\n    mov.b32 {%h0, %h1}, %r1;\n    mov.b32 {%h2, %h3}, %r2;')
        ia,ib='{%h0, %h1}','{%h2, %h3}'
    else: ia,ib=f'{{{ba}, {tA}}}',f'{{{bb}, {tB}}}'
    op='mma.sp::ordered_metadata' if sparse else 'mma'
    regs=lambda c,n: '{'+', '.join(f'%{c}{i}' for i in range(n))+'}'
    selector=', %s2, 0' if sparse else ''
    o.append(f'    {op}.sync.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale.scale_vec::{vec}.f32.{ta}.{tb}.f32.{ts}\n        {regs("d",4)}, {regs("a",4)}, {regs("b",nb)}, {regs("c",4)}{selector},\n        {{%s0}}, {ia}, {{%s1}}, {ib};')
    for i in range(4): o.append(f'    st.global.f32 [%rd2+{4*i}], %d{i};')
    o.append('    ret;\n}\n'); K.append('\n'.join(o))
    L.append(f'''        (
            kernel: "{name}",
            grid: (1, 1, 1),
            block: (32, 1, 1),
            smem: 0,
            tolerance: exact,
            args: [
                in(type: u32, data: [
{number_lines(data,False)}                ]),
                out(type: u32, expect: [
{number_lines(exp,True)}                ]),
                u32({ba|tA<<16}), u32({bb|tB<<16}),
            ],
        ),
''')
emit('scaled_fp8','mxf8f6f4','1X','e4m3','e5m2','ue8m0',32,(0,0,0,0))
emit('scaled_fp8_places','mxf8f6f4','1X','e5m2','e4m3','ue8m0',32,(2,1,1,3))
emit('scaled_fp6_fp4','mxf8f6f4','1X','e2m1','e3m2','ue8m0',32,(3,0,2,2),True)
emit('scaled_fp6','mxf8f6f4','1X','e2m3','e3m2','ue8m0',32,(1,1,0,1))
emit('scaled_mxf4','mxf4','2X','e2m1','e2m1','ue8m0',64,(2,1,0,3))
emit('scaled_nvf4_powers','mxf4nvf4','2X','e2m1','e2m1','ue8m0',64,(0,0,2,1),True)
emit('scaled_nvf4','mxf4nvf4','4X','e2m1','e2m1','ue4m3',64,(0,1,0,2))
emit('scaled_sparse_fp8','mxf8f6f4','1X','e4m3','e5m2','ue8m0',64,(0,0,0,0),False,True)
emit('scaled_sparse_fp8_places','mxf8f6f4','1X','e5m2','e4m3','ue8m0',64,(2,1,1,3),False,True)
emit('scaled_sparse_fp6_fp4','mxf8f6f4','1X','e2m1','e3m2','ue8m0',64,(3,0,2,2),True,True)
emit('scaled_sparse_mxf4','mxf4','2X','e2m1','e2m1','ue8m0',128,(2,1,0,3),False,True)
emit('scaled_sparse_nvf4_powers','mxf4nvf4','2X','e2m1','e2m1','ue8m0',128,(0,0,2,1),True,True)
emit('scaled_sparse_nvf4','mxf4nvf4','4X','e2m1','e2m1','ue4m3',128,(0,1,0,2),False,True)
emit('scaled_called','mxf8f6f4','1X','e4m3','e2m1','ue8m0',32,(1,1,2,3),called=True)
emit('scaled_called_places','mxf4','2X','e2m1','e2m1','ue8m0',64,(2,0,0,3),True,called=True)
TURNED = '.func (.reg .b32 %d) turned(.reg .b32 %s)\n{\n    not.b32 %d, %s;\n    ret;\n}\n\n'
PTX = ('// Products with block scale: types, scales, where the scales are; behind a call.\n.version 8.8\n.target sm_120a\n.address_size 64\n\n'+TURNED+'\n'.join(K))
RON = ('// Written from the meaning of the kernels: scales times sums of small numbers.\n(\n    module: "matrix_products_scaled.ptx",\n    launches: [\n'+''.join(L)+'    ],\n)\n')
FILES = {"matrix_products_scaled.ptx": PTX, "matrix_products_scaled.ron": RON}
