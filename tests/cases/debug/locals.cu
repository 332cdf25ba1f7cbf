// Every variable in local memory: clang -O0 -g (see the line below), which is how locals.ptx was made.
// clang -x cuda --cuda-device-only -nocudalib -nocudainc --cuda-gpu-arch=sm_75 -g -O0 -S -fdebug-compilation-dir=.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
typedef struct { int a; float b; } Pair;
__device__ int total = 7;
__constant__ float weights[2] = {0.5f, 2.0f};
__device__ __attribute__((noinline)) int twice(int x) { int y = x * 2; return y; }
extern "C" __global__ void locals(float *out, int n, float scale) {
  __shared__ float kept[32];
  int i = __nvvm_read_ptx_sreg_tid_x();
  float sum = 0.0f;
  Pair p;
  p.a = i;
  p.b = scale;
  kept[i] = scale;
  for (int k = 0; k < n; k++) {
    sum += scale * k + twice(k);
  }
  if (i < n) out[i] = sum + p.b + p.a + weights[i & 1] + total + kept[i];
}
