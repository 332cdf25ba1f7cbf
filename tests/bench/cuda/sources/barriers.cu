// What waits: barriers, pipelines and groups of libcu++ and cooperative groups; from sm_90 on clusters and bulk copies.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

namespace groups = cooperative_groups;
constexpr int THREADS = 128;

extern "C" __global__ void staged(const int *in, int *out, int rounds) {
    constexpr auto scope = cuda::thread_scope_block;
    __shared__ cuda::pipeline_shared_state<scope, 2> state;
    __shared__ int tiles[2][THREADS];
    auto block = groups::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int next = 0, round = 0; round < rounds; round++) {
        for (; next < rounds && next < round + 2; next++) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, tiles[next % 2], in + next * THREADS, sizeof(int) * THREADS, pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum += tiles[round % 2][THREADS - 1 - threadIdx.x];
        pipeline.consumer_release();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void met(int *out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int values[THREADS];
    auto block = groups::this_thread_block();
    if (block.thread_rank() == 0) init(&barrier, block.size());
    block.sync();
    values[threadIdx.x] = threadIdx.x;
    auto token = barrier.arrive();
    barrier.wait(std::move(token));
    auto tile = groups::tiled_partition<16>(block);
    int sum = groups::reduce(tile, values[threadIdx.x ^ 32], groups::plus<int>());
    auto active = groups::coalesced_threads();
    cuda::atomic_ref<int, cuda::thread_scope_device> total(out[0]);
    if (active.thread_rank() == 0) total.fetch_add(sum, cuda::memory_order_relaxed);
    out[1 + threadIdx.x] = tile.shfl_down(sum, 3);
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) paired(const int *in, int *out) {
    namespace ptx = cuda::ptx;
    __shared__ alignas(128) int tile[THREADS];
    __shared__ uint64_t barrier;
    auto cluster = groups::this_cluster();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&barrier, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, sizeof tile, &barrier);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, sizeof tile);
    }
    cluster.sync();
    while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {}
    cluster.sync();
    const int *other = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1);
    out[cluster.thread_rank()] = other[threadIdx.x];
    cluster.sync();
}
#endif
