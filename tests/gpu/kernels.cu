// Kernels for tests/gpu/run: a spin, a matrix product, and kernels that are wrong or deceive. One macro per image.
#include <cuda_bf16.h>
#include <stdint.h>

#ifndef SPIN
#define SPIN 1200000
#endif
#ifndef EXTRA
#define EXTRA 0
#endif

// SPIN cycles of the multiprocessor's clock.
extern "C" __global__ void spin(const float *in, float *out, int n) {
    long long start = clock64();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * 2.0f;
    while (clock64() - start < SPIN) {
    }
}

// C[M, N] = A[M, K] B[K, N], 32-bit floats, tiles of 32 by 32.
extern "C" __global__ void gemm(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float at[32][33], bt[32][33];
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < k; t += 32) {
        at[threadIdx.y][threadIdx.x] = row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0.0f;
        bt[threadIdx.y][threadIdx.x] = t + threadIdx.y < k && column < n ? b[(t + threadIdx.y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 32; i++) sum = fmaf(at[threadIdx.y][i], bt[i][threadIdx.x], sum);
        __syncthreads();
    }
#if EXTRA
    long long start = clock64();
    while (clock64() - start < EXTRA) {
    }
#endif
#ifdef WRONG_ELEMENT
    if (row == m / 3 && column == n / 3) sum += 1.0f;
#endif
#ifdef LOW_PRECISION
    sum = __bfloat162float(__float2bfloat16(sum));
#endif
#ifdef CONSTANT
    sum = 1.0f;
#endif
#ifdef NANS
    sum = nanf("");
#endif
#ifdef HALF
    if (row >= m / 2) return;
#endif
    if (row < m && column < n) c[row * n + column] = sum;
#ifdef WRITE_OUTSIDE
    if (row == 0 && column == 0) c[m * n] = 1.0f;
#endif
#ifdef WRITE_BEFORE
    if (row == 0 && column == 0) c[-1] = 1.0f;
#endif
#ifdef ZERO_INPUTS
    if (row < m && column == 0) ((float *)a)[row * k] = 0.0f;
#endif
}

// The sum of all inputs; each work-group adds its part in the order in which it gets there.
extern "C" __global__ void total(const float *in, float *out, int n) {
#ifdef ORDERED
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        float sum = 0.0f;
        for (int i = 0; i < n; i++) sum += in[i];
        out[0] = sum;
    }
#else
    if (blockIdx.x == 0 && threadIdx.x == 0) out[0] = 0.0f;
    __threadfence();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(out, in[i]);
#endif
}

// What a kernel with static memory can remember between launches.
__device__ unsigned launches;
__device__ const float *seen_in;
__device__ float seen_first;

extern "C" __global__ void scale(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
#if !defined(NO_WRITE)
        float factor = 2.0f;
#endif
#if defined(NO_WRITE)
        return;
#elif defined(READ_OUTSIDE)
        out[i] = in[i] * factor + in[n + 1] * 1e-30f + (i == 0 ? in[n + 1] : 0.0f);
#elif defined(READ_LDS)
        // What another work-group has left in shared memory.
        __shared__ volatile unsigned left[256];
        out[i] = in[i] * factor + (float)(left[threadIdx.x] & 255);
#elif defined(LATE)
        // Wrong once it has been launched often enough; each launch is counted by one work-item.
        unsigned count = i == 0 ? atomicAdd(&launches, 1u) : launches;
        if (count > LATE && i == n / 2) factor = 3.0f;
        out[i] = in[i] * factor;
#elif defined(EARLY_EXIT)
        unsigned count = i == 0 ? atomicAdd(&launches, 1u) : *(volatile unsigned *)&launches;
        if (count > EARLY_EXIT) return;
        out[i] = in[i] * factor;
#elif defined(HANG)
        while (*(volatile const float *)in < 1e30f) {
        }
#elif defined(FAULT_LATE)
        unsigned count = i == 0 ? atomicAdd(&launches, 1u) : launches;
        if (count > FAULT_LATE) *(volatile float *)16 = 1.0f;
        out[i] = in[i] * factor;
#elif defined(FAULT)
        *(volatile float *)16 = 1.0f;
#else
        out[i] = in[i] * factor;
#endif
    }
}

// A stand-in with the arguments of the original program's kernel: it reads all of both operands and writes all of the
// output, and is no matrix product.
extern "C" __global__ void _grouped_fp8_persistent_gemm_kernel(
    const uint8_t *lhs, const uint8_t *rhs, __nv_bfloat16 *out, const float *lhs_scale, const float *rhs_scale,
    const int64_t *group_offs, int groups, int dim1, int dim2, int stride_lhs, int stride_rhs, int stride_out0,
    int stride_out1, int stride_out2, void *scratch0, void *scratch1) {
    int64_t rows = group_offs[groups], n = dim1, k = dim2;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        int64_t group = 0;
        while (group + 1 < groups && group_offs[group + 1] <= row) group++;
        for (int64_t column = threadIdx.x; column < n; column += blockDim.x) {
            float a = lhs[row * stride_lhs + column % k], b = rhs[group * stride_rhs + column * k + row % k];
            out[row * n + column] = __float2bfloat16(a * b * lhs_scale[group] * rhs_scale[group]);
        }
    }
}
