#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/atomic>
#include <cuda/semaphore>
#include <cuda/latch>
#include <cuda/std/atomic>
namespace cg = cooperative_groups;
#define K extern "C" __global__ void
K bar(const int *in, int *out) {
  using B = cuda::barrier<cuda::thread_scope_block>; __shared__ B b; __shared__ int x[64]; if (!threadIdx.x) init(&b, 64); __syncthreads();
  int v = in[threadIdx.x]; for (int i = 0; i < 3; i++) { x[threadIdx.x] = v; auto t = b.arrive(); b.wait(cuda::std::move(t)); v += x[(threadIdx.x + 7) & 63] * 3; b.arrive_and_wait(); }
  if (threadIdx.x < 20) b.arrive_and_drop(); else { b.arrive_and_wait(); b.arrive_and_wait(); } out[threadIdx.x] = v;
}
K pipe(const int *in, int *out) {
  extern __shared__ int sm[]; auto block = cg::this_thread_block(); __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> st; auto p = cuda::make_pipeline(block, &st);
  int acc = 0; size_t f = 0;
  for (size_t c = 0; c < 8; c++) { for (; f < 8 && f < c + 2; f++) { p.producer_acquire(); cuda::memcpy_async(block, sm + (f % 2) * 128, in + f * 128, sizeof(int) * 128, p); p.producer_commit(); }
    p.consumer_wait(); for (int i = 0; i < 2; i++) acc = acc * 31 + sm[(c % 2) * 128 + ((threadIdx.x + i * 65) & 127)]; p.consumer_release(); }
  out[threadIdx.x] = acc;
}
K pipe_roles(const int *in, int *out) {
  __shared__ int sm[2][64]; auto block = cg::this_thread_block(); __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> st;
  auto role = threadIdx.x < 64 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer; auto p = cuda::make_pipeline(block, &st, role);
  if (threadIdx.x < 64) for (int c = 0; c < 10; c++) { p.producer_acquire(); cuda::memcpy_async(&sm[c & 1][threadIdx.x], in + c * 64 + threadIdx.x, cuda::aligned_size_t<4>(4), p); p.producer_commit(); }
  else { int acc = 0; for (int c = 0; c < 10; c++) { p.consumer_wait(); acc = acc * 7 + sm[c & 1][(threadIdx.x * 3) & 63]; p.consumer_release(); } out[threadIdx.x - 64] = acc; }
}
K refs(const int *in, int *io) {
  int v = in[threadIdx.x]; 
  cuda::atomic_ref<int, cuda::thread_scope_device>(io[0]).fetch_add(v, cuda::memory_order_relaxed);
  cuda::atomic_ref<int, cuda::thread_scope_system>(io[1]).fetch_xor(v);
  cuda::atomic_ref<int, cuda::thread_scope_device>(io[2]).fetch_max(v, cuda::memory_order_acq_rel);
  cuda::atomic_ref<unsigned, cuda::thread_scope_device>((unsigned &)io[3]).fetch_min(v, cuda::memory_order_release);
  cuda::atomic_ref<unsigned, cuda::thread_scope_device>((unsigned &)io[4]).fetch_or(v, cuda::memory_order_acquire);
  cuda::atomic_ref<unsigned, cuda::thread_scope_device>((unsigned &)io[5]).fetch_and(v, cuda::memory_order_seq_cst);
  cuda::atomic_ref<int, cuda::thread_scope_device> r(io[6]); int e = r.load(cuda::memory_order_acquire); while (!r.compare_exchange_weak(e, e * 5 + 1, cuda::memory_order_acq_rel, cuda::memory_order_relaxed)) {}
  if (threadIdx.x == 0 && blockIdx.x == 0) { cuda::atomic_ref<int, cuda::thread_scope_system>(io[7]).store(v, cuda::memory_order_release); io[8] = cuda::atomic_ref<int, cuda::thread_scope_system>(io[9]).exchange(v); }
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_block);
  cuda::atomic_ref<int, cuda::thread_scope_block>(io[10 + blockIdx.x]).fetch_sub(v);
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>(((unsigned long long *)io)[10]).fetch_add(v); cuda::atomic_ref<long long, cuda::thread_scope_device>(((long long *)io)[11]).fetch_max(v);
}
K floats(const float *in, float *io) {
  float v = float(__float_as_int(in[threadIdx.x]) & 1023);
  cuda::atomic_ref<float, cuda::thread_scope_device>(io[0]).fetch_add(v, cuda::memory_order_relaxed); cuda::atomic_ref<double, cuda::thread_scope_device>(((double *)io)[1]).fetch_add(v);
  cuda::atomic_ref<float, cuda::thread_scope_device> m(io[6]); m.fetch_max(v); cuda::atomic_ref<double, cuda::thread_scope_block> n(((double *)io)[4]); n.fetch_min(v);
}
K sems(int *io, int *out) {
  __shared__ alignas(16) char raw[64]; auto &s = *(cuda::counting_semaphore<cuda::thread_scope_block, 3> *)raw;
  if (threadIdx.x == 0) { new (&s) cuda::counting_semaphore<cuda::thread_scope_block, 3>(3); } __syncthreads();
  s.acquire(); atomicAdd(io, 1); s.release(); __syncthreads(); out[threadIdx.x] = *(volatile int *)io;
}
K spin(int *io) {
  cuda::atomic_ref<int, cuda::thread_scope_device> lock(io[0]);
  if (threadIdx.x == 0) { while (lock.exchange(1, cuda::memory_order_acquire)) __nanosleep(20); int v = *(volatile int *)(io + 1); *(volatile int *)(io + 1) = v + blockIdx.x + 5; lock.store(0, cuda::memory_order_release); lock.notify_one(); }
}
K small(const unsigned char *in, unsigned char *io) {
  cuda::atomic_ref<unsigned char, cuda::thread_scope_device>(io[1]).fetch_add(in[threadIdx.x]); cuda::atomic_ref<short, cuda::thread_scope_device>(((short *)io)[3]).fetch_max(in[threadIdx.x] * 3);
  cuda::atomic_ref<unsigned short, cuda::thread_scope_block>(((unsigned short *)io)[4]).fetch_xor(in[threadIdx.x] * 77);
  cuda::atomic_ref<bool, cuda::thread_scope_device>((bool &)io[12]).store(true);
}
K flag(unsigned *io, int *out) {
  cuda::std::atomic_ref<unsigned> a(io[0]); unsigned o = a.fetch_add(3); __syncwarp(); a.wait(0);  out[threadIdx.x] = a.load() + (o ? 0 : 0);
}
