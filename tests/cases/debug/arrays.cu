// A shared array whose size the launch gives: nvcc 13.0.88 -G -arch=sm_75 -ptx, which is how arrays.ptx was made.
extern __shared__ float given[];
extern "C" __global__ void arrays(float *a, int n) {
  __shared__ int fixed[4];
  int i = threadIdx.x;
  given[i] = a[i];
  fixed[i & 3] = i;
  __syncthreads();
  a[i] = given[n - 1 - i] + fixed[(i + 1) & 3];
}
