#include <cute/tensor.hpp>
using namespace cute;
// C = A * B^T of 32x32x32 halves, through shared memory that is swizzled, with ldmatrix and mma.
extern "C" __global__ void gemm_tn(const half_t *a, const half_t *b, float *c) {
    __shared__ half_t sa[32 * 32], sb[32 * 32];
    auto swizzled = composition(Swizzle<2, 3, 3>{}, Layout<Shape<_32, _32>, Stride<_32, _1>>{});
    Tensor ga = make_tensor(make_gmem_ptr(a), Layout<Shape<_32, _32>, Stride<_32, _1>>{});
    Tensor gb = make_tensor(make_gmem_ptr(b), Layout<Shape<_32, _32>, Stride<_32, _1>>{});
    Tensor gc = make_tensor(make_gmem_ptr(c), Layout<Shape<_32, _32>, Stride<_32, _1>>{});
    Tensor ta = make_tensor(make_smem_ptr(sa), swizzled), tb = make_tensor(make_smem_ptr(sb), swizzled);
    auto copier = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, half_t>{},
        Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
    auto part = copier.get_slice(threadIdx.x);
    copy(copier, part.partition_S(ga), part.partition_D(ta)); copy(copier, part.partition_S(gb), part.partition_D(tb));
    cp_async_fence(); cp_async_wait<0>(); __syncthreads();
    auto mma = make_tiled_mma(SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2>>{}, Tile<_32, _32, _16>{});
    auto mine = mma.get_slice(threadIdx.x);
    Tensor ra = mine.partition_fragment_A(ta); Tensor rb = mine.partition_fragment_B(tb); Tensor rc = mine.partition_fragment_C(gc);
    clear(rc);
    auto la = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, mma); auto lb = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, mma);
    auto sla = la.get_slice(threadIdx.x); auto slb = lb.get_slice(threadIdx.x);
    copy(la, sla.partition_S(ta), sla.retile_D(ra)); copy(lb, slb.partition_S(tb), slb.retile_D(rb));
    gemm(mma, ra, rb, rc);
    copy(rc, mine.partition_C(gc));
}
// The SIMT way, of floats.
extern "C" __global__ void gemm_simt(float *a, float *b, float *c) {
    Tensor ga = make_tensor(make_gmem_ptr(a), Layout<Shape<_32, _16>, Stride<_1, _32>>{});
    Tensor gb = make_tensor(make_gmem_ptr(b), Layout<Shape<_32, _16>, Stride<_1, _32>>{});
    Tensor gc = make_tensor(make_gmem_ptr(c), Layout<Shape<_32, _32>, Stride<_1, _32>>{});
    auto threads = Layout<Shape<_8, _8>>{};
    Tensor la = local_partition(ga, threads, threadIdx.x, Step<_1, X>{}); Tensor lb = local_partition(gb, threads, threadIdx.x, Step<X, _1>{});
    Tensor lc = local_partition(gc, threads, threadIdx.x, Step<_1, _1>{});
    Tensor rc = make_tensor_like(lc); clear(rc);
    Tensor xa = make_fragment_like(la); Tensor xb = make_fragment_like(lb); copy(la, xa); copy(lb, xb); gemm(xa, xb, rc); axpby(1.5f, rc, -0.5f, lc);
}
