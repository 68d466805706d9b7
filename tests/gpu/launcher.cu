// launcher IMAGE KERNEL N LAUNCHES: times a kernel (const float *, float *, int) by hand: events around each launch, median.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <fstream>
#include <iterator>
#include <vector>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        CUresult status = (call);                                                                                      \
        if (status != CUDA_SUCCESS) {                                                                                  \
            const char *name;                                                                                          \
            cuGetErrorName(status, &name);                                                                             \
            fprintf(stderr, "%s: %s\n", #call, name);                                                                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    std::ifstream file(argv[1], std::ios::binary);
    std::vector<char> image((std::istreambuf_iterator<char>(file)), {});
    int n = atoi(argv[3]), launches = atoi(argv[4]);
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, image.data()));
    CHECK(cuModuleGetFunction(&kernel, module, argv[2]));
    CUdeviceptr in, out;
    CHECK(cuMemAlloc(&in, 4 * (size_t)n));
    CHECK(cuMemAlloc(&out, 4 * (size_t)n));
    CHECK(cuMemsetD32(in, 0x3f000000, n));
    void *arguments[] = {&in, &out, &n};
    CUevent start, stop;
    CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&stop, CU_EVENT_DEFAULT));
    std::vector<float> times;
    for (int i = 0; i < launches + 50; i++) {
        CHECK(cuEventRecord(start, 0));
        CHECK(cuLaunchKernel(kernel, (n + 255) / 256, 1, 1, 256, 1, 1, 0, 0, arguments, 0));
        CHECK(cuEventRecord(stop, 0));
        CHECK(cuEventSynchronize(stop));
        float ms;
        CHECK(cuEventElapsedTime(&ms, start, stop));
        if (i >= 50) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    printf("%.6f ms\n", times[times.size() / 2]);
}
