// Functions of libcu++: elementary ones, complex numbers, bits, 128-bit integers, algorithms and text.
#include <cuda/std/cmath>
#include <cuda/std/complex>
#include <cuda/std/bit>
#include <cuda/std/numeric>
#include <cuda/std/span>
#include <cuda/std/mdspan>
#include <cuda/std/array>
#include <cuda/std/charconv>
#include <cuda/std/optional>
#include <cuda/std/variant>
#include <cuda/std/algorithm>
#include <cuda/cmath>
namespace s = cuda::std;
template <class T> __device__ void m(const T *x, T *o) {
    int i = threadIdx.x; T a = x[2 * i], b = x[2 * i + 1]; o += 40 * i; int e;
    o[0] = s::sin(a);
    o[1] = s::cos(a);
    o[2] = s::tan(a);
    o[3] = s::asin(a);
    o[4] = s::acos(a);
    o[5] = s::atan2(a, b);
    o[6] = s::sinh(a);
    o[7] = s::cosh(a);
    o[8] = s::tanh(a);
    o[9] = s::asinh(a);
    o[10] = s::acosh(a);
    o[11] = s::atanh(a);
    o[12] = s::exp(a);
    o[13] = s::exp2(a);
    o[14] = s::expm1(a);
    o[15] = s::log(a);
    o[16] = s::log10(a);
    o[17] = s::log1p(a);
    o[18] = s::pow(a, b);
    o[19] = s::cbrt(a);
    o[20] = s::hypot(a, b);
    o[21] = s::erf(a);
    o[22] = s::erfc(a);
    o[23] = s::tgamma(a);
    o[24] = s::lgamma(a);
    o[25] = s::fmod(a, b);
    o[26] = s::remainder(a, b);
    o[27] = s::frexp(a, &e);
    o[28] = s::ldexp(a, e);
    o[29] = s::nextafter(a, b);
    o[30] = s::round(a);
    o[31] = s::llrint(a);
    o[32] = s::logb(a);
    o[33] = s::fdim(a, b);
    o[34] = s::remquo(a, b, &e);
    o[35] = e;
    o[36] = s::ilogb(b);
}
extern "C" __global__ void m32(const float *x, float *o) { m(x, o); }
extern "C" __global__ void m64(const double *x, double *o) { m(x, o); }
template <class T> __device__ void c(const s::complex<T> *x, s::complex<T> *o) {
    auto a = x[threadIdx.x], b = x[threadIdx.x + 32]; o += 16 * threadIdx.x;
    o[0] = a * b;
    o[1] = a / b;
    o[2] = s::exp(a);
    o[3] = s::log(a);
    o[4] = s::sqrt(a);
    o[5] = s::pow(a, b);
    o[6] = s::sin(a);
    o[7] = s::tanh(a);
    o[8] = s::acos(a);
    o[9] = s::polar(s::abs(a), s::arg(b));
}
extern "C" __global__ void c32(const s::complex<float> *x, s::complex<float> *o) { c(x, o); }
extern "C" __global__ void c64(const s::complex<double> *x, s::complex<double> *o) { c(x, o); }
extern "C" __global__ void bits(const unsigned *x, unsigned long long *o, int n) {
    unsigned a = x[threadIdx.x]; unsigned long long l = o[threadIdx.x]; __int128 w = (__int128)l * a;
    o[0] = s::popcount(a) + s::countl_zero(l) + s::countr_one(a) + s::bit_ceil(a) + s::rotl(l,
        a) + s::byteswap(l) + s::has_single_bit(a);
    o[1] = s::gcd(a, a + 7) + s::lcm(a, 12u) + cuda::ceil_div(l,
        (unsigned long long)a) + cuda::ilog2(a) + cuda::isqrt(a);
    o[2] = w / (a + 1);
    o[3] = (w % n) >> 3;
    o[4] = (unsigned __int128)w / l;
    o[5] = s::midpoint(l, (unsigned long long)a);
    o[6] = cuda::mul_hi(l, (unsigned long long)a);
    auto p = cuda::fast_mod_div<unsigned>(n);
    o[7] = a / p;
    o[8] = a % p;
}
extern "C" __global__ void alg(int *x, char *t, int n) {
    s::array<int, 16> a; for (int i = 0; i < 16; i++) a[i] = x[i + 16 * threadIdx.x];
    s::sort_heap(a.begin(), a.end());
    s::make_heap(a.begin(), a.end());
    s::partial_sort(a.begin(), a.begin() + 4, a.end());
    s::rotate(a.begin(), a.begin() + (n & 15), a.end());
    auto it = s::lower_bound(a.begin(), a.end(), n);
    x[threadIdx.x] = *it + s::accumulate(a.begin(), a.end(), 0) + s::inner_product(a.begin(), a.end(), x, 0);
    auto r = s::to_chars(t, t + 20, n * 77); x[1] = r.ptr - t;
    s::variant<int, float, double> v = n > 3 ? s::variant<int, float, double>(1.5f) : s::variant<int, float,
        double>(n);
    x[2] = s::visit([](auto q) { return int(q * 2); }, v);
    s::mdspan<int, s::extents<int, s::dynamic_extent, 16>> md(x, n); x[3] = md(threadIdx.x, 3);
}
