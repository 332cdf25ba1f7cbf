"""Writes group_products.ptx and .ron: products of warp groups with sums of small numbers.

The layouts of the factors are those of the PTX manual; expected.py imports FILES."""
import random,struct
from launchfile import number_lines
R=random.Random(5)
W={'f16':16,'bf16':16,'tf32':32,'e4m3':8,'e5m2':8,'s8':8,'u8':8,'b1':1}
def enc(t,v):
    if t=='f16': return struct.unpack('<H',struct.pack('<e',v))[0]
    if t in('bf16',): return struct.unpack('<I',struct.pack('<f',v))[0]>>16
    if t=='tf32': return struct.unpack('<I',struct.pack('<f',v))[0]
    if t in ('s8','u8'): return v&255
    if t=='b1': return v
    m,b=(3,7) if t=='e4m3' else (2,15)
    if v==0: return 0
    s=0x80 if v<0 else 0; v=abs(v); e=0
    while v>=2: v/=2;e+=1
    while v<1: v*=2;e-=1
    f=(v-1)*(1<<m); assert f==int(f)
    return s|(e+b)<<m|int(f)
def value(t):
    if t=='b1': return R.randrange(2)
    if t=='u8': return R.randrange(0,12)
    if t=='s8': return R.randrange(-9,9)
    return R.choice([0,1,2,3,-1,-2,-3,4])
# byte address of an element, by the tables of the manual
def addr(start,lbo,sbo,span,bits,turned,line,place):
    T=128//bits
    if not turned:
        if span==0: e=((line%8)*T + (line//8)*(sbo*8//bits)) + (place%T)+ (place//T)*(lbo*8//bits)
        else: e=(line%8)*(span*8//bits)+(line//8)*(sbo*8//bits)+place
    else:
        if span==0: e=(line%T)+(line//T)*(sbo*8//bits)+(place%8)*T+(place//8)*(lbo*8//bits)
        else:
            w=span*8//bits
            e=(line%w)+(line//w)*(lbo*8//bits)+(place%8)*w+(place//8)*(sbo*8//bits)
    bit=e*bits; byte=start+bit//8
    if span: byte^=((byte>>7)&(span//16-1))<<4
    return byte*8+bit%8
kernels=[];launches=[]
def emit(name,op,ta,tb,td,n,k,span,ta_turn=0,tb_turn=0,neg=(1,1),rs=False,sparse=False,sel=0,scale=1,sat=False,twice=False,narrow=False):
    bits=W[ta]; kept=k//2 if sparse else k
    A=[[value(ta) for _ in range(kept)] for _ in range(64)]
    B=[[value(tb) for _ in range(k)] for _ in range(n)]
    # Lines of a factor that are longer than those of the pattern go on in the next one.
    if narrow:
        for i in range(n-1): B[i][k//2:]=B[i+1][:k//2]
    acc_f16= td=='f16'
    C=[[R.randrange(-8,9) for _ in range(n)] for _ in range(64)]
    if sat: C=[[R.choice([2147483647,-2147483648,5]) for _ in range(n)] for _ in range(64)]
    LAY={0:0,128:1,64:2,32:3}
    def geometry(start,lines,depth,turned):
        byt=depth*bits//8
        if not turned:
            if span==0: lbo,sbo=128*((lines+7)//8),128   # chunk columns apart
            # A swizzled factor of this kind has no use for the first one.
            else: lbo,sbo=512 if narrow else 16,8*span
        else:
            w=span*8//bits if span else 8
            if span==0: sbo,lbo=16*8*((depth+7)//8),128
            else: lbo,sbo=8*span*((depth+7)//8),8*span
        return lbo,sbo
    image={}
    la=geometry(0,64,kept,ta_turn); lb=geometry(0,n,k,tb_turn)
    sa=1024; sb=1024+16384
    def put(start,l,lines,depth,turned,M,t):
        for i in range(lines):
            for j in range(depth):
                a=addr(start,l[0],l[1],span,W[t],turned,i,j); v=enc(t,M[i][j])
                for x in range(W[t]):
                    if v>>x&1: image[a+x]=1
                    image.setdefault((a+x),0)
    base=1024
    if not rs: put(sa,la,64,kept,ta_turn,A,ta)
    put(sb,lb,n,k,tb_turn,B,tb)
    # compact: B right behind A
    used=sorted(image); lo=[b for b in used]
    words={}
    for b in used: words[b//32]=words.get(b//32,0)|(image[b]<<(b%32))
    amax=max([w for w in words if w*4<sb],default=sa//4-1); bmin=sb//4
    # place as a list of (offset words): A area then B area
    awords=[words.get(w,0) for w in range(sa//4,amax+1)]
    bmax=max(words); bwords=[words.get(w,0) for w in range(bmin,bmax+1)]
    # the dense first factor
    meta=[[0]*32 for _ in range(4)]
    D=[[0]*k for _ in range(64)]
    for r in range(64):
        if not sparse: D[r]=A[r]; continue
        w,rr=r//16,r%16
        if bits==32:
            for c in range(k//2):
                one=R.randrange(2); idx=0b1110 if one else 0b0100
                D[r][2*c+one]=A[r][c]
                meta[w][rr%8*4+sel*2+c//4]|=idx<<(c%4*4+rr//8*16)
        else:
            for c in range(k//4):
                i,j=sorted(R.sample(range(4),2))
                D[r][4*c+i]=A[r][2*c];D[r][4*c+j]=A[r][2*c+1]
                lane,at=(rr%8*4+c//8*2+rr//8,c%8*4) if bits==8 else (rr%8*4+sel*2+c//4,c%4*4+rr//8*16)
                meta[w][lane]|=(i|j<<2)<<at
    sg=neg[0]*neg[1]
    def fin(v):
        if td=='s32':
            if sat: v=max(-2**31,min(2**31-1,v))
            return v&0xffffffff
        return v
    E=[[fin((C[r][c] if scale else 0)+sg*(2 if twice else 1)*sum((x&y) if ta=='b1' else x*y for x,y in zip(D[r],B[c]))) for c in range(n)] for r in range(64)]
    cnt=n//4 if acc_f16 else n//2
    def frag(M,tid):
        w,l=tid//32,tid%32;out=[]
        vals=[M[16*w+l//4+8*((i//2)%2)][8*(i//4)+2*(l%4)+i%2] for i in range(n//2)]
        if acc_f16: return [enc('f16',vals[2*i])|enc('f16',vals[2*i+1])<<16 for i in range(n//4)]
        if td=='f32': return [struct.unpack('<I',struct.pack('<f',v))[0] for v in vals]
        return [v&0xffffffff for v in vals]
    def afrag(tid):
        w,l=tid//32,tid%32; per=32//bits; out=[]
        for reg in range(4):
            word=0
            for x in range(per):
                row=16*w+l//4+8*(reg%2); kk=(l%4)*per+x+4*per*(reg//2)
                word|=enc(ta,A[row][kk])<<(x*bits)
            out.append(word)
        return out
    perthread=[]
    for t in range(128):
        p=frag(C,t)
        if rs: p=p+afrag(t)
        if sparse: p=p+[meta[t//32][t%32]]
        perthread.append(p)
    stride=len(perthread[0])
    data=[w for p in perthread for w in p]
    nthread=len(data)
    data+=awords+bwords+[0]*max(0,128-len(awords)-len(bwords))
    exp=[w for t in range(128) for w in frag(E,t)]
    reg='%d'
    cty='f32' if td=='f32' else 'b32'
    dl='{'+', '.join(f'%d{i}' for i in range(cnt))+'}'
    lines=[]
    o=lines.append
    o(f'.visible .entry {name}(.param .u64 in, .param .u64 out, .param .u32 added)\n{{')
    o(f'    .reg .{cty} %d<{cnt}>;\n    .reg .b32 %a<4>;\n    .reg .b32 %r<8>;\n    .reg .b32 %meta;\n    .reg .b64 %rd<8>;\n    .reg .b64 %da;\n    .reg .b64 %db;\n    .reg .pred %p<3>;\n')
    o(f'    ld.param.u64 %rd1, [in];\n    ld.param.u64 %rd2, [out];\n    ld.param.u32 %r5, [added];\n    setp.ne.u32 %p1, %r5, 0;\n    mov.u32 %r0, %tid.x;\n    mad.wide.u32 %rd3, %r0, {4*stride}, %rd1;\n    mad.wide.u32 %rd2, %r0, {4*cnt}, %rd2;')
    o(f'    mov.u32 %r1, area;\n    mov.u32 %r2, %r0;\n{name}_copy:\n    mad.wide.u32 %rd4, %r2, 4, %rd1;\n    ld.global.b32 %r3, [%rd4+{4*nthread}];')
    na=len(awords)
    # words below na go to the A area (base), others to the B area
    alen=((na*4+1023)//1024)*1024
    o(f'    shl.b32 %r4, %r2, 2;\n    setp.ge.u32 %p0, %r2, {na};\n    @%p0 add.u32 %r4, %r4, {alen-4*na};\n    add.u32 %r4, %r4, %r1;\n    st.shared.b32 [%r4], %r3;\n    add.u32 %r2, %r2, 128;\n    setp.lt.u32 %p0, %r2, {na+len(bwords)};\n    @%p0 bra {name}_copy;')
    o('    fence.proxy.async;\n    bar.sync 0;')
    for i in range(cnt): o(f'    ld.global.b32 %d{i}, [%rd3+{4*i}];')
    at=cnt
    if rs:
        for i in range(4): o(f'    ld.global.b32 %a{i}, [%rd3+{4*(at+i)}];')
        at+=4
    if sparse: o(f'    ld.global.b32 %meta, [%rd3+{4*at}];')
    def desc(reg,off,l):
        const=(l[0]>>4)<<16|(l[1]>>4)<<32|LAY[span]<<62
        o(f'    add.u32 %r6, %r1, {off};\n    shr.u32 %r6, %r6, 4;\n    and.b32 %r6, %r6, 16383;\n    cvt.u64.u32 {reg}, %r6;\n    or.b64 {reg}, {reg}, {const if const<2**63 else const-2**64};')
    if not rs: desc('%da',0,la)
    desc('%db',alen,lb)
    rest=['%p1' if scale!=2 else '1']
    if ta not in('s8','u8','b1'): rest+= [str(neg[0]),str(neg[1])]
    if ta in('f16','bf16'): rest+= ([str(tb_turn)] if rs else [str(ta_turn),str(tb_turn)])
    sp='.sp' if sparse else ''
    ms=f', %meta, {sel}' if sparse else ''
    aop='{%a0, %a1, %a2, %a3}' if rs else '%da'
    suffix='.satfinite' if sat else ('.and.popc' if ta=='b1' else '')
    ins=f'    wgmma.mma_async{sp}.sync.aligned.m64n{n}k{k}.{td}.{ta}.{tb}{suffix}\n        {dl}, {aop}, %db{ms}, {", ".join(rest)};'
    o('    wgmma.fence.sync.aligned;'); o(ins); o('    wgmma.commit_group.sync.aligned;')
    if twice:
        rest[0]='1'
        o(f'    wgmma.mma_async{sp}.sync.aligned.m64n{n}k{k}.{td}.{ta}.{tb}{suffix}\n        {dl}, {aop}, %db{ms}, {", ".join(rest)};')
        o('    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 1;')
    o('    wgmma.wait_group.sync.aligned 0;')
    for i in range(cnt): o(f'    st.global.b32 [%rd2+{4*i}], %d{i};')
    o('    ret;\n}\n')
    kernels.append('\n'.join(lines))
    launches.append(f'''        (
            kernel: "{name}",
            grid: (1, 1, 1),
            block: (128, 1, 1),
            smem: 0,
            tolerance: exact,
            args: [
                in(type: u32, data: [
{number_lines(data,False)}                ]),
                out(type: u32, expect: [
{number_lines(exp,True)}                ]),
                u32({1 if scale else 0}),
            ],
        ),
''')
emit('f16_swizzled','','f16','f16','f32',16,16,128)
emit('f16_turned','','f16','f16','f32',16,16,32,1,1,neg=(-1,1))
emit('bf16_plain','','bf16','bf16','f32',8,16,0,neg=(1,-1),scale=0)
emit('bf16_plain_turned','','bf16','bf16','f32',8,16,0,1,1)
emit('f16_registers','','f16','f16','f16',16,16,32,rs=True,neg=(-1,1))
emit('f16_registers_turned','','f16','f16','f32',8,16,0,0,1,rs=True,twice=True)
emit('tf32_wide','','tf32','tf32','f32',8,8,64,neg=(-1,-1),twice=True)
emit('fp8_mixed','','e4m3','e5m2','f32',8,32,64)
emit('fp8_half','','e5m2','e4m3','f16',16,32,32,rs=True,neg=(1,-1))
emit('integers','','s8','u8','s32',8,32,128)
emit('integers_clamped','','u8','s8','s32',8,32,32,rs=True,sat=True)
emit('bits','','b1','b1','s32',8,256,0)
emit('sparse_f16','','f16','f16','f32',8,32,64,sparse=True,sel=1)
emit('sparse_f16_registers','','f16','f16','f32',8,32,64,sparse=True,sel=0,rs=True,neg=(-1,1))
emit('sparse_tf32','','tf32','tf32','f32',8,16,64,sparse=True,sel=1)
emit('sparse_fp8','','e4m3','e4m3','f32',8,64,64,sparse=True)
emit('sparse_integers','','s8','s8','s32',8,64,64,sparse=True,rs=True)
emit('sparse_narrow','','f16','f16','f32',8,32,32,sparse=True,narrow=True)
PTX = ('''// Products of warp groups: types, layouts of the factors in shared memory, factors in registers, signs,
// sparse factors. Each kernel copies the factors as they lie behind the sums of its input.
.version 8.7
.target sm_90a
.address_size 64

.shared .align 1024 .b8 area[16384];

'''+'\n'.join(kernels))
RON = ('// Written from the meaning of the kernels: the layouts of the manual, sums of small numbers.\n(\n    module: "group_products.ptx",\n    launches: [\n'+''.join(launches)+'    ],\n)\n')
FILES = {"group_products.ptx": PTX, "group_products.ron": RON}
