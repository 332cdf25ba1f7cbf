// Variables in registers: nvcc 13.0.88 -G -arch=sm_75 -ptx, which is how registers.ptx was made.
__device__ int total = 3;
__constant__ float weights[2] = {0.5f, 2.0f};
__device__ __noinline__ int twice(int x) {
  int y = x * 2;
  return y + 1;
}
extern "C" __global__ void registers(float *out, int n, float scale) {
  __shared__ float kept[32];
  int i = threadIdx.x;
  float sum = 0.0f;
  double wide = scale;
  long long big = (long long)n * 1000;
  kept[i] = scale;
  __syncthreads();
  for (int k = 0; k < n; k++) {
    sum += scale * k + twice(k);
    wide += k;
    big -= i;
  }
  bool inside = i < n;
  if (inside) out[i] = sum + kept[(i + 1) & 31] + wide + weights[i & 1] + total + big;
}
