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
    // Each launch between two events; the queue empty before each, and full all the time.
    for (int queued = 0; queued < 2; queued++) {
        int warmup = 50;
        std::vector<CUevent> events(2 * (launches + warmup));
        for (CUevent &event : events) CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
        for (size_t i = 0; i < events.size(); i += 2) {
            CHECK(cuEventRecord(events[i], 0));
            CHECK(cuLaunchKernel(kernel, (n + 255) / 256, 1, 1, 256, 1, 1, 0, 0, arguments, 0));
            CHECK(cuEventRecord(events[i + 1], 0));
            if (!queued) CHECK(cuEventSynchronize(events[i + 1]));
        }
        CHECK(cuCtxSynchronize());
        std::vector<float> times(launches);
        for (int i = 0; i < launches; i++)
            CHECK(cuEventElapsedTime(&times[i], events[2 * (warmup + i)], events[2 * (warmup + i) + 1]));
        std::sort(times.begin(), times.end());
        printf("%s %.6f ms%s", queued ? "queued" : "one by one", times[times.size() / 2], queued ? "\n" : ", ");
    }
}
