// Algorithms of a block and of a warp: CUB.
#include <cub/cub.cuh>

constexpr int THREADS = 128;
constexpr int ITEMS = 4;

template <typename T>
__device__ void load(const T *from, T (&items)[ITEMS]) {
    for (int i = 0; i < ITEMS; i++) items[i] = from[threadIdx.x * ITEMS + i];
}

template <typename T>
__device__ void store(T *to, const T (&items)[ITEMS]) {
    for (int i = 0; i < ITEMS; i++) to[threadIdx.x * ITEMS + i] = items[i];
}

template <typename T>
__device__ void scan(const T *in, T *out) {
    using Scan = cub::BlockScan<T, THREADS>;
    __shared__ typename Scan::TempStorage shared;
    T items[ITEMS], total;
    load(in, items);
    Scan(shared).InclusiveSum(items, items, total);
    store(out, items);
    if (threadIdx.x == 0) out[THREADS * ITEMS] = total;
}

template <typename T>
__device__ void sort(const T *in, T *out) {
    using Sort = cub::BlockRadixSort<T, THREADS, ITEMS>;
    __shared__ typename Sort::TempStorage shared;
    T items[ITEMS];
    load(in, items);
    Sort(shared).SortDescending(items);
    store(out, items);
}

template <typename T>
__device__ void reduce(const T *in, T *out) {
    using Block = cub::BlockReduce<T, THREADS>;
    using Warp = cub::WarpReduce<T>;
    __shared__ typename Block::TempStorage block;
    __shared__ typename Warp::TempStorage warps[THREADS / 32];
    T items[ITEMS];
    load(in, items);
    T sum = Block(block).Sum(items);
    if (threadIdx.x == 0) out[0] = sum;
    T least = Warp(warps[threadIdx.x / 32]).Reduce(items[0], [](T a, T b) { return b < a ? b : a; });
    if (threadIdx.x % 32 == 0) out[1 + threadIdx.x / 32] = least;
}

template <typename T>
__device__ void exchange(const T *in, T *out) {
    using Load = cub::BlockLoad<T, THREADS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Exchange = cub::BlockExchange<T, THREADS, ITEMS>;
    using Neighbours = cub::BlockAdjacentDifference<T, THREADS>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Exchange::TempStorage exchange;
        typename Neighbours::TempStorage neighbours;
    } shared;
    T items[ITEMS];
    Load(shared.load).Load(in, items);
    __syncthreads();
    Exchange(shared.exchange).BlockedToStriped(items);
    __syncthreads();
    Neighbours(shared.neighbours).SubtractLeft(items, items, [](T a, T b) { return a - b; });
    store(out, items);
}

#define KERNELS(name, T)                                                                   \
    extern "C" __global__ void scan_##name(const T *in, T *out) { scan(in, out); }         \
    extern "C" __global__ void sort_##name(const T *in, T *out) { sort(in, out); }         \
    extern "C" __global__ void reduce_##name(const T *in, T *out) { reduce(in, out); }     \
    extern "C" __global__ void exchange_##name(const T *in, T *out) { exchange(in, out); }

KERNELS(bytes, signed char)
KERNELS(ints, int)
KERNELS(longs, long long)
KERNELS(floats, float)
KERNELS(doubles, double)
