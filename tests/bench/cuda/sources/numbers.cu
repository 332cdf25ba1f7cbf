// The functions of libdevice, halves, and integers that are no opcodes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T>
__device__ T functions(T x, T y) {
    T sum = sin(x) + cos(y) * tan(x) + exp(x) - log(y) + pow(x, y) + atan2(x, y) + erf(x) * tgamma(y) + lgamma(x);
    sum += sinh(x) + acosh(y) + cbrt(x) + fmod(x, y) + remainder(y, x) + hypot(x, y) + rsqrt(x) / y + j0(x) + y1(y);
    int exponent;
    return sum + frexp(x, &exponent) + ldexp(y, exponent) + rint(x) + normcdfinv(y) + erfcx(x) + sqrt(y);
}

extern "C" __global__ void floats(const float *in, float *out) {
    out[threadIdx.x] = functions(in[threadIdx.x], in[threadIdx.x + 1]);
}

extern "C" __global__ void doubles(const double *in, double *out) {
    out[threadIdx.x] = functions(in[threadIdx.x], in[threadIdx.x + 1]);
}

extern "C" __global__ void halves(const __half2 *in, __half2 *out, const __nv_bfloat162 *more, __nv_bfloat162 *other) {
    __half2 a = in[threadIdx.x], b = in[threadIdx.x + 32];
    out[threadIdx.x] = __hfma2(h2exp(a), h2rsqrt(b), __h2div(__hmax2(a, b), h2sin(b)));
    __nv_bfloat162 c = more[threadIdx.x];
    other[threadIdx.x] = __hadd2(__hmul2(c, c), h2log(c));
}

extern "C" __global__ void integers(const unsigned long long *in, unsigned long long *out, int n) {
    unsigned long long a = in[threadIdx.x], b = in[threadIdx.x + 1] | 1;
    unsigned __int128 wide = (unsigned __int128)a * b + a;
    unsigned low = a, high = b;
    out[threadIdx.x] = a / b + a % 7 + __umul64hi(a, b) + (unsigned long long)(wide / (b + 2)) + __popcll(a) + __brevll(b);
    out[threadIdx.x + 32] = __clzll(a) + __ffsll(b) + __funnelshift_l(low, high, n) + __vabsdiffu4(low, high) +
                            __dp4a((int)low, (int)high, n) + __byte_perm(low, high, n) + (low % (unsigned)(n | 1));
}
