// Barriers that lose threads or call a function, latches, semaphores, pipelines with roles, a grid and a cluster that meet,
// and groups made of labels: libcu++ and cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
using B = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void bar_copy(const int4 *in, int4 *out, int n) {
    __shared__ alignas(16) int4 tile[256];
    __shared__ B bar;
    auto g = cg::this_thread_block();
    if (g.thread_rank() == 0) init(&bar, g.size());
    g.sync();
    for (int i = 0; i < n; i += 256) {
        cuda::memcpy_async(g, tile, in + i, cuda::aligned_size_t<16>(sizeof(tile)), bar);
        bar.arrive_and_wait();
        int4 v = tile[255 - threadIdx.x]; v.x += v.w;
        out[i + threadIdx.x] = v;
        g.sync();
    }
}
extern "C" __global__ void bar_drop(int *out) {
    __shared__ B bar; __shared__ int v[256];
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    v[threadIdx.x] = threadIdx.x * 3;
    if (threadIdx.x & 1) { bar.arrive_and_drop(); return; }
    bar.arrive_and_wait();
    out[threadIdx.x] = v[threadIdx.x ^ 1];
}
extern "C" __global__ void bar_completion(int *out) {
    struct F { int *o; __device__ void operator()() noexcept { atomicAdd(o, 1); } };
    using C = cuda::barrier<cuda::thread_scope_block, F>;
    __shared__ cuda::std::aligned_storage_t<sizeof(C), alignof(C)> st;
    C *b = reinterpret_cast<C *>(&st);
    if (threadIdx.x == 0) new (b) C(blockDim.x, F{out});
    __syncthreads();
    for (int i = 0; i < 3; i++) b->arrive_and_wait();
    out[1 + threadIdx.x] = out[0];
}
extern "C" __global__ void device_bar(cuda::barrier<cuda::thread_scope_device> *b, cuda::std::latch *l,
    cuda::counting_semaphore<cuda::thread_scope_device, 8> *s, int *out) {
    out[threadIdx.x] = threadIdx.x;
    b->arrive_and_wait();
    s->acquire(); out[32 + threadIdx.x]++; s->release();
    l->arrive_and_wait();
}
template <int N> __device__ void pipe(const float4 *in, float4 *out, int n) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, N> st;
    __shared__ float4 tiles[N][128];
    auto g = cg::this_thread_block();
    auto role = threadIdx.x < 128 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto p = cuda::make_pipeline(g, &st, role);
    if (threadIdx.x < 128) for (int i = 0; i < n; i++) {
        p.producer_acquire();
        cuda::memcpy_async(&tiles[i % N][threadIdx.x], in + i * 128 + threadIdx.x, cuda::aligned_size_t<16>(16), p);
        p.producer_commit();
    } else for (int i = 0; i < n; i++) {
        p.consumer_wait();
        float4 v = tiles[i % N][255 - threadIdx.x]; v.x *= v.y;
        out[i * 128 + threadIdx.x - 128] = v;
        p.consumer_release();
    }
}
extern "C" __global__ void pipe2(const float4 *in, float4 *out, int n) { pipe<2>(in, out, n); }
extern "C" __global__ void pipe5(const float4 *in, float4 *out, int n) { pipe<5>(in, out, n); }
extern "C" __global__ void pipe_thread(const int *in, int *out, int n) {
    __shared__ int t[3][64];
    auto p = cuda::make_pipeline();
    for (int i = 0, j = 0; i < n; i++) {
        for (; j < n && j < i + 3; j++) { p.producer_acquire(); cuda::memcpy_async(&t[j % 3][threadIdx.x],
            in + j * 64 + threadIdx.x, sizeof(int), p); p.producer_commit(); }
        cuda::pipeline_consumer_wait_prior<0>(p);
        out[i * 64 + threadIdx.x] = t[i % 3][threadIdx.x];
        p.consumer_release();
    }
}
extern "C" __global__ void grid_sync(int *out) {
    auto g = cg::this_grid();
    out[g.thread_rank()] = g.num_blocks(); g.sync();
    auto t = g.barrier_arrive();
    out[g.thread_rank()] += out[(g.thread_rank() + 1) % g.size()];
    g.barrier_wait(std::move(t));
}
extern "C" __global__ void tiles(int *out, float *f, long long *l) {
    auto b = cg::this_thread_block();
    auto t8 = cg::tiled_partition<8>(b); auto t32 = cg::tiled_partition<32>(b);
    int v = out[threadIdx.x];
    out[threadIdx.x] = cg::reduce(t8, v, cg::plus<int>()) + cg::inclusive_scan(t32, v) + cg::exclusive_scan(t8, v,
        cg::bit_xor<int>());
    f[threadIdx.x] = cg::reduce(t32, f[threadIdx.x], cg::less<float>());
    l[threadIdx.x] = cg::reduce(t32, l[threadIdx.x], cg::greater<long long>());
    auto lab = cg::labeled_partition(t32, v & 3);
    out[threadIdx.x + 64] = cg::reduce(lab, v, cg::plus<int>()) + lab.shfl(v, 0);
    auto bin = cg::binary_partition(t32, v > 5);
    out[threadIdx.x + 128] = cg::inclusive_scan(bin, v,
        cg::plus<int>()) + bin.size() + t32.match_any(v) + t8.any(v) + t8.ballot(v > 3);
    cg::reduce_update_async(t32, *(cuda::atomic<int, cuda::thread_scope_block>*)(out + 300), v, cg::plus<int>());
    auto co = cg::coalesced_threads();
    if (v > 2) {
        auto few = cg::coalesced_threads();
        out[400 + threadIdx.x] = few.thread_rank() + co.num_threads() + few.shfl_up(v, 1);
    }
    cg::invoke_one(t32, [&] { out[500] = 1; });
    out[501] = cg::invoke_one_broadcast(t8, [&] { return out[1]; });
}
extern "C" __global__ void big_tile(int *out) {
    __shared__ cg::block_tile_memory<512> m; auto b = cg::this_thread_block(m);
    auto t = cg::tiled_partition<128>(b);
    out[threadIdx.x] = cg::reduce(t, out[threadIdx.x], cg::plus<int>());
    t.sync();
    out[threadIdx.x] += t.shfl(out[threadIdx.x], 5);
}
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster(int *out) {
    __shared__ int v[128];
    auto c = cg::this_cluster();
    v[threadIdx.x] = threadIdx.x + c.block_rank();
    c.sync();
    int *r = c.map_shared_rank(v, (c.block_rank() + 1) % c.num_blocks());
    int x = r[127 - threadIdx.x];
    c.sync();
    atomicAdd(c.map_shared_rank(v, 0) + threadIdx.x, 1);
    auto t = c.barrier_arrive(); c.barrier_wait(std::move(t));
    out[c.thread_rank()] = x + v[threadIdx.x] + c.query_shared_rank(r);
}
#endif
