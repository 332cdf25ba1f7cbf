// CUB's algorithms of a device in five parts, since one file would take minutes: transforms and scans,
// reductions and selections, radix sorts, other sorts and copies, the largest of many.
#include <cub/cub.cuh>
#include <cuda/std/functional>
#include <cuda/std/tuple>

struct Odd { template <class T> __host__ __device__ bool operator()(T x) const { return int(x) % 2 != 0; } };
struct Fma { __host__ __device__ float operator()(float a, float b, float c) const { return a * b + c; } };
struct Twice { template <class T> __host__ __device__ T operator()(T a) const { return a + a; } };
struct Comp { template <class T> __host__ __device__ bool operator()(T a, T b) const { return a < b; } };
struct Big { int a, b, c, d; __host__ __device__ Big operator+(const Big &o) const { return {a + o.a, b + o.b,
    c + o.c, d + o.d}; } };

void instances(void *space, size_t &bytes, int *i, long long *l, float *fl, double *d, unsigned char *c,
    short *s, Big *big, int n) {
#if PART == 1
    cub::DeviceTransform::Transform(cuda::std::make_tuple(fl, fl + n, fl + 2 * n), fl + 3 * n, n, Fma{});
    cub::DeviceTransform::Transform(cuda::std::make_tuple(i), i + n, n, Twice{});
    cub::DeviceTransform::Transform(cuda::std::make_tuple(c), c + n, n, Twice{});
    cub::DeviceTransform::Transform(cuda::std::make_tuple(d), d + n, n, Twice{});
    cub::DeviceTransform::Fill(i, n, 7);
    cub::DeviceScan::InclusiveSum(space, bytes, i, i + n, n);
    cub::DeviceScan::InclusiveSum(space, bytes, c, c + n, n);
    cub::DeviceScan::InclusiveScan(space, bytes, fl, fl + n, cuda::maximum<>{}, n);
    cub::DeviceScan::ExclusiveScan(space, bytes, big, big + n, cuda::std::plus<>{}, Big{}, n);
    cub::DeviceScan::ExclusiveSumByKey(space, bytes, i, fl, fl + n, n);
#endif
#if PART == 2
    cub::DeviceReduce::Sum(space, bytes, c, i, n);
    cub::DeviceReduce::Max(space, bytes, d, d + n, n);
    cub::DeviceReduce::Reduce(space, bytes, big, big + n, n, cuda::std::plus<>{}, Big{});
    cub::DeviceReduce::ArgMax(space, bytes, fl, fl + n, l, n);
    cub::DeviceReduce::ReduceByKey(space, bytes, i, i + n, fl, fl + n, i + 2 * n, cuda::std::plus<>{}, n);
    cub::DeviceSegmentedReduce::Sum(space, bytes, fl, fl + n, n, i, i + 1);
    cub::DeviceRunLengthEncode::NonTrivialRuns(space, bytes, l, i, i + n, i + 2 * n, n);
    cub::DeviceHistogram::HistogramEven(space, bytes, c, i, 257, 0, 256, n);
    cub::DeviceHistogram::HistogramRange(space, bytes, fl, i, 65, fl + n, n);
    { int *h[3] = {i, i + 256, i + 512}; int lv[3] = {257, 257, 257}; int lo[3] = {0, 0, 0}, hi[3] = {256, 256, 256};
      cub::DeviceHistogram::MultiHistogramEven<4, 3>(space, bytes, c, h, lv, lo, hi, n); }
    cub::DeviceSelect::Flagged(space, bytes, l, c, l + n, i, n);
    cub::DeviceSelect::Unique(space, bytes, s, s + n, i, n);
    cub::DeviceSelect::UniqueByKey(space, bytes, i, fl, i + n, fl + n, i + 2 * n, n);
    cub::DevicePartition::If(space, bytes, fl, fl + n, fl + 2 * n, fl + 3 * n, i, n, Odd{}, Odd{});
    cub::DeviceAdjacentDifference::SubtractLeftCopy(space, bytes, i, i + n, n);
#endif
#if PART == 3
    cub::DeviceRadixSort::SortKeys(space, bytes, c, c + n, n);
    cub::DeviceRadixSort::SortKeys(space, bytes, s, s + n, n);
    cub::DeviceRadixSort::SortKeysDescending(space, bytes, fl, fl + n, n);
    cub::DeviceRadixSort::SortPairs(space, bytes, l, l + n, i, i + n, n);
    cub::DeviceRadixSort::SortPairs(space, bytes, i, i + n, d, d + n, n);
    cub::DeviceSegmentedRadixSort::SortPairs(space, bytes, i, i + n, fl, fl + n, n, n, i, i + 1);
#endif
#if PART == 4
    cub::DeviceMergeSort::SortPairs(space, bytes, i, fl, n, Comp{});
    cub::DeviceMergeSort::StableSortKeys(space, bytes, d, n, Comp{});
    cub::DeviceSegmentedSort::SortPairs(space, bytes, i, i + n, fl, fl + n, n, n, i, i + 1);
    cub::DeviceSegmentedSort::SortKeys(space, bytes, c, c + n, n, n, i, i + 1);
    cub::DeviceMerge::MergePairs(space, bytes, i, fl, n, i + n, fl + n, n, i + 2 * n, fl + 2 * n, Comp{});
    cub::DeviceMemcpy::Batched(space, bytes, (void **)l, (void **)l + n, i, n);
    cub::DeviceCopy::Batched(space, bytes, (int **)l, (int **)l + n, i, n);
    cub::DeviceFor::ForEachCopyN(i, n, [l] __device__(int x) { atomicAdd((unsigned long long *)l, x); });
    cub::DeviceFind::FindIf(space, bytes, i, i + n, Odd{}, n);
#endif
#if PART == 5
    auto demands = cuda::execution::require(
        cuda::execution::determinism::not_guaranteed, cuda::execution::output_ordering::unsorted);
    auto env = cuda::std::execution::env{demands};
    cub::DeviceTopK::MaxKeys(space, bytes, fl, fl + n, n, 100, env);
    cub::DeviceTopK::MinPairs(space, bytes, i, i + n, l, l + n, n, 100, env);
#endif
}
