// Atomic operations of libcu++: each scope and size, with and without an order.
#include <cuda/atomic>
#include <cuda/std/atomic>
#include <cuda/std/cstdint>
template <class T, cuda::thread_scope S>
__device__ void one(T *p, T v, T *out, int i) {
    cuda::atomic_ref<T, S> a(*p);
    T e = a.load(cuda::memory_order_acquire);
    a.compare_exchange_strong(e, v, cuda::memory_order_acq_rel);
    T x = a.exchange(v, cuda::memory_order_seq_cst);
    a.store(e, cuda::memory_order_release);
    a.compare_exchange_weak(x, v, cuda::memory_order_relaxed);
    out[i] = x;
    out[i + 1] = e;
}
template <class T, cuda::thread_scope S>
__device__ void arith(T *p, T v, T *out, int i) {
    cuda::atomic_ref<T, S> a(*p);
    out[i] = a.fetch_add(v, cuda::memory_order_relaxed);
    out[i + 1] = a.fetch_sub(v, cuda::memory_order_acquire);
    out[i + 2] = a.fetch_min(v, cuda::memory_order_release);
    out[i + 3] = a.fetch_max(v, cuda::memory_order_acq_rel);
    if constexpr (!cuda::std::is_floating_point_v<T>) {
        out[i + 4] = a.fetch_and(v, cuda::memory_order_seq_cst);
        out[i + 5] = a.fetch_or(v, cuda::memory_order_relaxed);
        out[i + 6] = a.fetch_xor(v, cuda::memory_order_relaxed);
    }
}
#define ALL(T, NAME) \
extern "C" __global__ void at_##NAME(T *p, T v, T *out) { \
    __shared__ T s; s = v; __syncthreads(); \
    one<T, cuda::thread_scope_system>(p, v, out, 0); one<T, cuda::thread_scope_device>(p, v, out, 2); \
    one<T, cuda::thread_scope_block>(&s, v, out, 4); one<T, cuda::thread_scope_thread>(p, v, out, 6); \
    arith<T, cuda::thread_scope_system>(p, v, out, 10); arith<T, cuda::thread_scope_device>(p, v, out, 20); \
    arith<T, cuda::thread_scope_block>(&s, v, out, 30); }
ALL(uint8_t, u8)
ALL(int16_t, s16)
ALL(int32_t, s32)
ALL(uint32_t, u32)
ALL(uint64_t, u64)
ALL(int64_t, s64)
ALL(float, f32)
ALL(double, f64)
#ifdef SASSAFRAS_SM90
struct alignas(16) P { long long a, b; };
extern "C" __global__ void at_b128(P *p, P v, P *out) {
    __shared__ P s; s = v; __syncthreads();
    one<P, cuda::thread_scope_system>(p, v, out, 0); one<P, cuda::thread_scope_device>(p, v, out, 2);
    one<P, cuda::thread_scope_block>(&s, v, out, 4);
}
#endif
extern "C" __global__ void waits(cuda::atomic<int, cuda::thread_scope_device> *a, int *out) {
    a->wait(0); out[threadIdx.x] = a->load(); a->notify_all();
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
    cuda::std::atomic_flag f; f.clear(); out[1] = f.test_and_set();
}
