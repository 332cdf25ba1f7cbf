// Floats of 16, 8, 6 and 4 bits: conversions and functions of the toolkit's headers.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_fp6.h>
#include <cuda_fp4.h>
template <class F, class T> __device__ void conv(const float *in, const double *d, const __half *h,
    const __nv_bfloat16 *b, F *o, float *back) {
    int i = threadIdx.x;
    o[i] = F(in[i]); o[i + 32] = F(d[i]); o[i + 64] = F(h[i]); o[i + 96] = F(b[i]); back[i] = float(o[i]);
    T *four = (T *)(o + 128);
    four[i] = T(((const float4 *)in)[i]);
    ((float4 *)(back + 64))[i] = float4(four[i]);
}
#define C(F, F4, N) \
    extern "C" __global__ void cv_##N( \
        const float *in, const double *d, const __half *h, const __nv_bfloat16 *b, F *o, float *back) { \
        conv<F, F4>(in, d, h, b, o, back); \
    }
C(__nv_fp8_e4m3, __nv_fp8x4_e4m3, e4m3)
C(__nv_fp8_e5m2, __nv_fp8x4_e5m2, e5m2)
C(__nv_fp6_e2m3, __nv_fp6x4_e2m3, e2m3)
C(__nv_fp6_e3m2, __nv_fp6x4_e3m2, e3m2)
C(__nv_fp4_e2m1, __nv_fp4x4_e2m1, e2m1)
extern "C" __global__ void cv_e8m0(const float *in, __nv_fp8_e8m0 *o,
    float *b) { o[threadIdx.x] = __nv_fp8_e8m0(in[threadIdx.x]); b[threadIdx.x] = float(o[threadIdx.x]); }
extern "C" __global__ void cv_raw(const float2 *in, const __half2 *h, const __nv_bfloat162 *b, unsigned *o) {
    int i = threadIdx.x; float2 x = in[i];
    o[8 * i] = __nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, __NV_E4M3);
    o[8 * i + 1] = __nv_cvt_float2_to_fp8x2(x, __NV_NOSAT, __NV_E5M2);
    o[8 * i + 2] = __nv_cvt_halfraw2_to_fp8x2(h[i], __NV_SATFINITE, __NV_E5M2);
    o[8 * i + 3] = __nv_cvt_bfloat16raw2_to_fp8x2(b[i], __NV_SATFINITE, __NV_E4M3);
    o[8 * i + 4] = __nv_cvt_float2_to_fp4x2(x, __NV_E2M1, cudaRoundNearest);
    o[8 * i + 5] = __nv_cvt_float2_to_fp6x2(x, __NV_E3M2, cudaRoundNearest);
    __half2_raw r = __nv_cvt_fp4x2_to_halfraw2(o[8 * i + 4], __NV_E2M1);
    o[8 * i + 6] = r.x + r.y;
    r = __nv_cvt_fp6x2_to_halfraw2(o[8 * i + 5], __NV_E3M2);
    o[8 * i + 7] = r.x ^ r.y;
}
// Before sm_80 the headers have few functions of bfloat16.
#ifdef SASSAFRAS_SM80
template <class T, class T2> __device__ void math(const T *x, T *o, int *q) {
    int i = threadIdx.x; T a = x[i], b = x[i + 32], c = x[i + 64];
    o[i * 32] = hsin(a);
    o[i * 32 + 1] = hcos(b);
    o[i * 32 + 2] = hexp(a);
    o[i * 32 + 3] = hlog2(a);
    o[i * 32 + 4] = hsqrt(a);
    o[i * 32 + 5] = hrsqrt(a);
    o[i * 32 + 6] = hrcp(b);
    o[i * 32 + 7] = __hfma(a, b, c);
    o[i * 32 + 8] = __hfma_relu(a, b, c);
    o[i * 32 + 9] = __hmin_nan(a, b);
    o[i * 32 + 10] = __hmax(a, b);
    o[i * 32 + 11] = __hdiv(a, b);
    o[i * 32 + 12] = hrint(a);
    o[i * 32 + 13] = hfloor(a);
    o[i * 32 + 14] = hexp10(a);
    o[i * 32 + 15] = htanh(a); o[i * 32 + 16] = __hadd_sat(a, b); o[i * 32 + 17] = habs_(a, b);
    q[i] = __hlt(a, b) + __hltu(a, c) * 2 + __hisnan(a) * 4;
}
__device__ __half habs_(__half a, __half b) { return __habs(a) * b; }
__device__ __nv_bfloat16 habs_(__nv_bfloat16 a, __nv_bfloat16 b) { return __habs(a) * b; }
extern "C" __global__ void mh(const __half *x, __half *o, int *q) { math<__half, __half2>(x, o, q); }
extern "C" __global__ void mb(const __nv_bfloat16 *x, __nv_bfloat16 *o, int *q) { math<__nv_bfloat16,
    __nv_bfloat162>(x, o, q); }
#endif
extern "C" __global__ void conv_int(const __half *x, const __nv_bfloat16 *b, long long *l, unsigned short *s,
    int *i, unsigned long long *u, __half *h, __nv_bfloat16 *bb) {
    l[0] = __half2ll_rd(x[0]);
    s[0] = __half2ushort_rz(x[1]);
    i[0] = __half2int_rn(x[2]);
    u[0] = __half2ull_ru(x[3]);
    h[0] = __ll2half_rn(l[1]);
    h[1] = __ull2half_rz(u[1]);
    h[2] = __uint2half_ru(i[1]);
    h[3] = __double2half(1.0 / i[2]);
    l[2] = __bfloat162ll_rd(b[0]);
    s[1] = __bfloat162ushort_rz(b[1]);
    i[3] = __bfloat162int_rn(b[2]);
    u[3] = __bfloat162ull_ru(b[3]);
    bb[0] = __ll2bfloat16_rn(l[1]);
    bb[1] = __ull2bfloat16_rz(u[1]);
    bb[2] = __uint2bfloat16_ru(i[1]);
    bb[3] = __double2bfloat16(1.0 / i[2]);
    h[4] = __shfl_xor_sync(~0u, h[9], 3);
    atomicAdd(h + 12, h[4]);
    atomicAdd((__half2 *)(h + 14), __half2(h[4], h[3]));
    atomicAdd(bb + 12, bb[4]);
    atomicAdd((__nv_bfloat162 *)(bb + 14), __nv_bfloat162(bb[4], bb[3]));
}
