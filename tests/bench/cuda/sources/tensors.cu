// Products of matrices: CUTLASS's kernels, which calls of the host instantiate, and a copy by CuTe.
#include <cute/tensor.hpp>
#include <cutlass/gemm/device/gemm.h>

using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;

template <typename In, typename Out, typename Unit, typename Arch>
void product(const In *a, const In *b, Out *c, int n) {
    cutlass::gemm::device::Gemm<In, Row, In, Column, Out, Row, float, Unit, Arch> gemm;
    gemm({{n, n, n}, {a, n}, {b, n}, {c, n}, {c, n}, {1.0f, 0.0f}});
}

void instances(const cutlass::half_t *h, const float *f, float *out, int n) {
    product<cutlass::half_t, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm75>(h, h, out, n);
    product<float, float, cutlass::arch::OpClassSimt, cutlass::arch::Sm75>(f, f, out, n);
#ifdef SASSAFRAS_SM80
    product<cutlass::half_t, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80>(h, h, out, n);
    auto b = reinterpret_cast<const cutlass::bfloat16_t *>(h);
    product<cutlass::bfloat16_t, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80>(b, b, out, n);
#endif
}

extern "C" __global__ void transposed(const float *in, float *out) {
    using namespace cute;
    __shared__ float tile[32 * 32];
    auto from = make_tensor(make_gmem_ptr(in), make_layout(make_shape(Int<32>{}, Int<32>{}), GenRowMajor{}));
    auto to = make_tensor(make_gmem_ptr(out), make_layout(make_shape(Int<32>{}, Int<32>{}), GenColMajor{}));
    auto swizzled = composition(Swizzle<3, 2, 3>{}, make_layout(make_shape(Int<32>{}, Int<32>{}), GenRowMajor{}));
    auto shared = make_tensor(make_smem_ptr(tile), swizzled);
    auto threads = make_layout(make_shape(Int<32>{}, Int<4>{}));
    copy(local_partition(from, threads, threadIdx.x), local_partition(shared, threads, threadIdx.x));
    __syncthreads();
    copy(local_partition(shared, threads, threadIdx.x), local_partition(to, threads, threadIdx.x));
}
