// Objects: functions and variables of other objects, calls through pointers and tables, recursion.
extern __device__ int elsewhere(int x);
extern __device__ int counter;
extern __constant__ float weights[4];

struct Shape {
    __device__ virtual float area() const = 0;
};

struct Square : Shape {
    float side;
    __device__ explicit Square(float side) : side(side) {}
    __device__ float area() const override { return side * side; }
};

struct Disc : Shape {
    float radius;
    __device__ explicit Disc(float radius) : radius(radius) {}
    __device__ float area() const override { return 3.14f * radius * radius; }
};

__device__ __noinline__ int depth(int n) { return n <= 1 ? 1 : depth(n / 2) + depth(n - n / 2); }
__device__ int doubled(int x) { return 2 * x; }
__device__ int (*const table[])(int) = {elsewhere, depth, doubled};

extern "C" __global__ void calls(int *out, float *areas, int n) {
    out[threadIdx.x] = table[threadIdx.x % 3](n) + atomicAdd(&counter, 1);
    Square square(n);
    Disc disc(n);
    const Shape *shape = threadIdx.x % 2 ? static_cast<const Shape *>(&square) : &disc;
    areas[threadIdx.x] = shape->area() * weights[threadIdx.x % 4];
}
