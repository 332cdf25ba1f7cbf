// Regions that OpenMP offloads, for clang.
#pragma omp begin declare target
static int weight = 3;
static int weighted(int x) { return x * weight; }
#pragma omp end declare target

void scaled(int *values, int n) {
#pragma omp target teams distribute parallel for map(tofrom : values[0 : n])
    for (int i = 0; i < n; i++) values[i] = weighted(values[i]) + i;
}

double dot(const double *a, const double *b, int n) {
    double sum = 0;
#pragma omp target teams distribute parallel for map(to : a[0 : n], b[0 : n]) reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}
