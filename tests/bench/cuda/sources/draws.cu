// Random numbers of cuRAND: each generator and distribution.
#include <curand_kernel.h>
template <class S> __device__ void draws(S *s, unsigned *u, float *f, double *d, int n) {
    S a = s[threadIdx.x];
    for (int i = 0; i < n; i++) {
        u[i] = curand(&a);
        f[4 * i] = curand_uniform(&a);
        f[4 * i + 1] = curand_normal(&a);
        f[4 * i + 2] = curand_log_normal(&a, 1.f, 2.f);
        d[2 * i] = curand_uniform_double(&a);
        d[2 * i + 1] = curand_normal_double(&a);
        u[n + i] = curand_poisson(&a, 3.5);
        float2 x = curand_normal2(&a); f[4 * i + 3] = x.x + x.y;
    }
    s[threadIdx.x] = a;
}
#define ALL(S, N) extern "C" __global__ void rn_##N(S *s, unsigned *u, float *f, double *d, int n) { draws(s, u, f, d, n); }
ALL(curandStateXORWOW, xorwow) ALL(curandStateMRG32k3a, mrg) ALL(curandStatePhilox4_32_10, philox)
extern "C" __global__ void rn_init(curandStateXORWOW *a, curandStateMRG32k3a *b, curandStatePhilox4_32_10 *c,
    unsigned long long seed) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    curand_init(seed, i, 5, a + i); curand_init(seed, i, 7, b + i); curand_init(seed, i, 9, c + i);
    skipahead(1000ull, a + i); skipahead_sequence(3ull, c + i);
}
extern "C" __global__ void rn_sobol(curandStateSobol32 *a, curandStateScrambledSobol64 *b,
    curandDirectionVectors32_t *v, curandDirectionVectors64_t *w, float *f, double *d) {
    curand_init(v[threadIdx.x], 3, a + threadIdx.x); curand_init(w[threadIdx.x], 17ull, 5, b + threadIdx.x);
    f[threadIdx.x] = curand_normal(a + threadIdx.x); d[threadIdx.x] = curand_normal_double(b + threadIdx.x);
}
extern "C" __global__ void rn_philox4(curandStatePhilox4_32_10 *s, float4 *f, double2 *d, uint4 *u) {
    auto a = s[threadIdx.x];
    f[threadIdx.x] = curand_normal4(&a);
    d[threadIdx.x] = curand_normal2_double(&a);
    u[threadIdx.x] = curand_poisson4(&a, 100.0);
    s[threadIdx.x] = a;
}
