// CUDA without a header, for clang.
#define GLOBAL __attribute__((global))
#define SHARED __attribute__((shared))
#define DEVICE __attribute__((device))

DEVICE int seen;

extern "C" GLOBAL void reversed(const int *in, int *out, int n) {
    SHARED int tile[256];
    int thread = __nvvm_read_ptx_sreg_tid_x();
    tile[thread] = in[thread];
    __nvvm_bar_sync(0);
    out[thread] = tile[n - 1 - thread];
    __atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
}

extern "C" GLOBAL void collatz(const unsigned *in, unsigned *out) {
    int thread = __nvvm_read_ptx_sreg_tid_x() + 256 * __nvvm_read_ptx_sreg_ctaid_x();
    unsigned value = in[thread], steps = 0;
    while (value > 1) {
        value = value % 2 ? 3 * value + 1 : value / 2;
        steps++;
    }
    out[thread] = steps;
}

extern "C" GLOBAL void smoothed(const float *in, double *out, int n) {
    int thread = __nvvm_read_ptx_sreg_tid_x();
    double sum = 0;
    for (int i = -2; i <= 2; i++) {
        int at = thread + i;
        if (at >= 0 && at < n) sum += in[at] / (1.0 + i * i);
    }
    out[thread] = sum;
}
