#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_merge_sort.cuh>
extern "C" __global__ void sort_floats(const float *in, float *out) {
    using Sort = cub::BlockRadixSort<float, 128, 4>;
    __shared__ typename Sort::TempStorage s; float v[4];
    cub::LoadDirectBlocked(threadIdx.x, in, v); Sort(s).Sort(v); cub::StoreDirectBlocked(threadIdx.x, out, v);
}
extern "C" __global__ void sort_pairs(const unsigned long long *in, unsigned *values) {
    using Sort = cub::BlockRadixSort<unsigned long long, 64, 3, unsigned>;
    __shared__ typename Sort::TempStorage s; unsigned long long k[3]; unsigned v[3];
    for (int i = 0; i < 3; i++) { k[i] = in[threadIdx.x * 3 + i]; v[i] = threadIdx.x * 3 + i; }
    Sort(s).SortDescending(k, v); cub::StoreDirectBlocked(threadIdx.x, values, v);
}
extern "C" __global__ void scan_sums(const int *in, int *out, int *total) {
    using Scan = cub::BlockScan<int, 128>; __shared__ typename Scan::TempStorage s; int v[3], all;
    cub::LoadDirectStriped<128>(threadIdx.x, in, v); Scan(s).ExclusiveSum(v, v, all);
    cub::StoreDirectStriped<128>(threadIdx.x, out, v); if (threadIdx.x == 0) *total = all;
}
struct Max { __device__ double operator()(double a, double b) const { return a > b ? a : b; } };
extern "C" __global__ void reduce_max(const double *in, double *out, int n) {
    using Reduce = cub::BlockReduce<double, 96>; __shared__ typename Reduce::TempStorage s;
    double v = threadIdx.x < n ? in[threadIdx.x] : -1e300; double r = Reduce(s).Reduce(v, Max(), n); if (threadIdx.x == 0) *out = r;
}
extern "C" __global__ void histogram(const unsigned char *in, unsigned *out) {
    using H = cub::BlockHistogram<unsigned char, 128, 4, 64, cub::BLOCK_HISTO_SORT>; __shared__ typename H::TempStorage s; __shared__ unsigned bins[64];
    unsigned char v[4]; for (int i = 0; i < 4; i++) v[i] = in[threadIdx.x * 4 + i] & 63;
    H(s).Histogram(v, bins); __syncthreads(); if (threadIdx.x < 64) out[threadIdx.x] = bins[threadIdx.x];
}
struct Less { __device__ bool operator()(short a, short b) const { return a < b; } };
extern "C" __global__ void merge_sort(const short *in, short *out) {
    using Sort = cub::BlockMergeSort<short, 64, 5>; __shared__ typename Sort::TempStorage s; short v[5];
    cub::LoadDirectBlocked(threadIdx.x, in, v); Sort(s).Sort(v, Less()); cub::StoreDirectBlocked(threadIdx.x, out, v);
}
extern "C" __global__ void flags(const int *in, int *out) {
    using D = cub::BlockDiscontinuity<int, 64>; __shared__ typename D::TempStorage s; int v[2], f[2];
    cub::LoadDirectBlocked(threadIdx.x, in, v); D(s).FlagHeads(f, v, cuda::std::not_equal_to<>()); cub::StoreDirectBlocked(threadIdx.x, out, f);
}
extern "C" __global__ void warps(const int *in, int *out, float *most) {
    using S = cub::WarpScan<int, 8>; using R = cub::WarpReduce<float>; __shared__ typename S::TempStorage s[16]; __shared__ typename R::TempStorage r[4];
    int v = in[threadIdx.x], w; S(s[threadIdx.x / 8]).InclusiveSum(v, w); out[threadIdx.x] = w;
    float m = R(r[threadIdx.x / 32]).Sum(w * 0.5f); if (threadIdx.x % 32 == 0) most[threadIdx.x / 32] = m;
}
