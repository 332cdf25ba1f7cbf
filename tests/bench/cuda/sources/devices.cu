// Algorithms of a device: CUB's kernels, which calls of the host instantiate.
#include <cub/cub.cuh>

struct Odd {
    __host__ __device__ bool operator()(int x) const { return x % 2 != 0; }
};

template <typename T>
void all(void *space, size_t &bytes, T *keys, T *other, int *values, int *more, int n) {
    cub::DeviceReduce::Sum(space, bytes, keys, other, n);
    cub::DeviceReduce::ArgMin(space, bytes, keys, other, values, n);
    cub::DeviceScan::ExclusiveSum(space, bytes, keys, other, n);
    cub::DeviceRadixSort::SortPairs(space, bytes, keys, other, values, more, n);
    cub::DeviceMergeSort::SortKeys(space, bytes, keys, n, [] __host__ __device__(T a, T b) { return a < b; });
    cub::DeviceRunLengthEncode::Encode(space, bytes, keys, other, values, more, n);
}

void instances(void *space, size_t &bytes, int *ints, float *floats, double *doubles, int n) {
    all(space, bytes, ints, ints + n, ints, ints + n, n);
    all(space, bytes, floats, floats + n, ints, ints + n, n);
    all(space, bytes, doubles, doubles + n, ints, ints + n, n);
    cub::DeviceSelect::If(space, bytes, ints, ints + n, ints, n, Odd{});
    cub::DevicePartition::If(space, bytes, ints, ints + n, ints, n, Odd{});
    cub::DeviceHistogram::HistogramEven(space, bytes, floats, ints, 65, 0.0f, 1.0f, n);
    cub::DeviceFor::Bulk(space, bytes, n, [ints] __device__(int i) { ints[i] += i; });
}
