/* HIP's symbols over the CUDA driver, for tests: see README.md beside this file.
 *
 * Numbers of HIP: hip_runtime_api.h (hipDeviceAttribute_t, hipError_t, HIP_LAUNCH_PARAM_*), the same in ROCm 5.2, 6 and 7.
 * Numbers of CUDA: CUDA Driver API reference (CUdevice_attribute, CUfunction_attribute, CU_LAUNCH_PARAM_*).
 * Errors need no table: those that a driver of one of the two reports have the same number in the other. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef int status;
typedef uint64_t device_pointer; /* hipDeviceptr_t is a void *, which is passed alike */
typedef void *handle;

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_CONFIGURATION = 9, NO_DEVICE = 100, UNKNOWN = 999 };

#define FUNCTIONS(F)                                                                                                     \
    F(cuInit, (unsigned flags))                                                                                          \
    F(cuDriverGetVersion, (int *version))                                                                                \
    F(cuDeviceGetCount, (int *count))                                                                                    \
    F(cuDeviceGet, (int *device, int ordinal))                                                                           \
    F(cuDeviceGetName, (char *name, int length, int device))                                                             \
    F(cuDeviceGetPCIBusId, (char *name, int length, int device))                                                         \
    F(cuDeviceGetAttribute, (int *value, int attribute, int device))                                                     \
    F(cuDevicePrimaryCtxRetain, (handle *context, int device))                                                           \
    F(cuCtxSetCurrent, (handle context))                                                                                 \
    F(cuCtxSynchronize, (void))                                                                                          \
    F(cuMemGetInfo_v2, (size_t *free, size_t *total))                                                                    \
    F(cuMemAlloc_v2, (device_pointer *at, size_t bytes))                                                                 \
    F(cuMemFree_v2, (device_pointer at))                                                                                 \
    F(cuMemcpyHtoD_v2, (device_pointer to, const void *from, size_t bytes))                                              \
    F(cuMemcpyDtoH_v2, (void *to, device_pointer from, size_t bytes))                                                    \
    F(cuMemcpyDtoDAsync_v2, (device_pointer to, device_pointer from, size_t bytes, handle stream))                       \
    F(cuMemsetD32Async, (device_pointer to, unsigned word, size_t words, handle stream))                                 \
    F(cuModuleLoadData, (handle *module, const void *image))                                                             \
    F(cuModuleUnload, (handle module))                                                                                   \
    F(cuModuleGetFunction, (handle *function, handle module, const char *name))                                          \
    F(cuFuncGetAttribute, (int *value, int attribute, handle function))                                                  \
    F(cuFuncSetAttribute, (handle function, int attribute, int value))                                                   \
    F(cuLaunchKernel, (handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,             \
                       unsigned block_y, unsigned block_z, unsigned dynamic_lds, handle stream, void **parameters,       \
                       void **extra))                                                                                    \
    F(cuEventCreate, (handle *event, unsigned flags))                                                                    \
    F(cuEventDestroy_v2, (handle event))                                                                                 \
    F(cuEventRecord, (handle event, handle stream))                                                                      \
    F(cuEventSynchronize, (handle event))                                                                                \
    F(cuEventElapsedTime, (float *milliseconds, handle from, handle to))

#define DECLARE(name, parameters) static status(*name) parameters;
FUNCTIONS(DECLARE)

static pthread_once_t loaded_once = PTHREAD_ONCE_INIT;
static int is_loaded;

static void load(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        return;
    }
    is_loaded = 1;
#define RESOLVE(name, parameters)                                                                                        \
    *(void **)&name = dlsym(library, #name);                                                                             \
    is_loaded = is_loaded && name;
    FUNCTIONS(RESOLVE)
}

/* A machine without NVIDIA's driver is, to HIP, one without a device. */
status hipInit(unsigned flags) {
    pthread_once(&loaded_once, load);
    return is_loaded ? cuInit(flags) : NO_DEVICE;
}

#define NEEDS_DRIVER                                                                                                     \
    if (!is_loaded) {                                                                                                    \
        return NOT_INITIALIZED;                                                                                          \
    }

status hipRuntimeGetVersion(int *version) { NEEDS_DRIVER return cuDriverGetVersion(version); }

status hipGetDeviceCount(int *count) {
    *count = 0;
    if (!is_loaded) {
        return NO_DEVICE;
    }
    status got = cuDeviceGetCount(count);
    return got ? got : *count > 0 ? SUCCESS : NO_DEVICE; /* HIP says it with an error, CUDA with the count */
}

status hipDeviceGet(int *device, int ordinal) { NEEDS_DRIVER return cuDeviceGet(device, ordinal); }
status hipDeviceGetName(char *name, int length, int device) { NEEDS_DRIVER return cuDeviceGetName(name, length, device); }
status hipDeviceGetPCIBusId(char *name, int length, int device) {
    NEEDS_DRIVER return cuDeviceGetPCIBusId(name, length, device);
}

status hipDeviceGetAttribute(int *value, int attribute, int device) {
    static const struct {
        int hip, cuda;
    } table[] = {
        {5, 13},  /* ClockRate */
        {19, 38}, /* L2CacheSize */
        {56, 1},  /* MaxThreadsPerBlock */
        {59, 37}, /* MemoryBusWidth */
        {60, 36}, /* MemoryClockRate */
        {63, 16}, /* MultiprocessorCount */
        {74, 97}, /* MaxSharedMemoryPerBlock: with HIP nothing has to be opted in to */
        {87, 10}, /* WarpSize */
    };
    NEEDS_DRIVER
    for (size_t row = 0; row < sizeof table / sizeof *table; row++) {
        if (table[row].hip == attribute) {
            return cuDeviceGetAttribute(value, table[row].cuda, device);
        }
    }
    return INVALID_VALUE;
}

status hipSetDevice(int device) {
    handle context = NULL;
    NEEDS_DRIVER
    status got = cuDevicePrimaryCtxRetain(&context, device);
    return got ? got : cuCtxSetCurrent(context);
}

status hipDeviceSynchronize(void) { NEEDS_DRIVER return cuCtxSynchronize(); }
status hipMemGetInfo(size_t *free, size_t *total) { NEEDS_DRIVER return cuMemGetInfo_v2(free, total); }
status hipMalloc(device_pointer *at, size_t bytes) { NEEDS_DRIVER return cuMemAlloc_v2(at, bytes); }
status hipFree(device_pointer at) { NEEDS_DRIVER return cuMemFree_v2(at); }
status hipMemcpyHtoD(device_pointer to, const void *from, size_t bytes) {
    NEEDS_DRIVER return cuMemcpyHtoD_v2(to, from, bytes);
}
status hipMemcpyDtoH(void *to, device_pointer from, size_t bytes) { NEEDS_DRIVER return cuMemcpyDtoH_v2(to, from, bytes); }
status hipMemcpyDtoDAsync(device_pointer to, device_pointer from, size_t bytes, handle stream) {
    NEEDS_DRIVER return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
status hipMemsetD32Async(device_pointer to, int word, size_t words, handle stream) {
    NEEDS_DRIVER return cuMemsetD32Async(to, (unsigned)word, words, stream);
}
status hipModuleLoadData(handle *module, const void *image) { NEEDS_DRIVER return cuModuleLoadData(module, image); }
status hipModuleUnload(handle module) { NEEDS_DRIVER return cuModuleUnload(module); }
status hipModuleGetFunction(handle *function, handle module, const char *name) {
    NEEDS_DRIVER return cuModuleGetFunction(function, module, name);
}
/* MAX_THREADS_PER_BLOCK 0, SHARED_SIZE 1, LOCAL_SIZE 3, NUM_REGS 4 have the same numbers. */
status hipFuncGetAttribute(int *value, int attribute, handle function) {
    NEEDS_DRIVER return cuFuncGetAttribute(value, attribute, function);
}
status hipEventCreateWithFlags(handle *event, unsigned flags) { NEEDS_DRIVER return cuEventCreate(event, flags); }
status hipEventDestroy(handle event) { NEEDS_DRIVER return cuEventDestroy_v2(event); }
status hipEventRecord(handle event, handle stream) { NEEDS_DRIVER return cuEventRecord(event, stream); }
status hipEventSynchronize(handle event) { NEEDS_DRIVER return cuEventSynchronize(event); }
status hipEventElapsedTime(float *milliseconds, handle from, handle to) {
    NEEDS_DRIVER return cuEventElapsedTime(milliseconds, from, to);
}

/* HIP's argument buffer: POINTER 1, buffer, SIZE 2, size, END 3. CUDA ends the list with 0. */
static status translate(void **extra, void *translated[5]) {
    if (!extra) {
        translated[0] = NULL;
        return SUCCESS;
    }
    if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3 || !extra[1] || !extra[3]) {
        return INVALID_VALUE;
    }
    for (int i = 0; i < 4; i++) {
        translated[i] = extra[i];
    }
    translated[4] = (void *)0;
    return SUCCESS;
}

status hipModuleLaunchKernel(handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned dynamic_lds, handle stream, void **parameters,
                             void **extra) {
    enum { MAX_DYNAMIC_SHARED_SIZE_BYTES = 8, WITHOUT_OPT_IN = 48 << 10 };
    void *translated[5];
    NEEDS_DRIVER
    status got = translate(extra, translated);
    if (!got && dynamic_lds > WITHOUT_OPT_IN) {
        got = cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)dynamic_lds);
    }
    return got ? got
               : cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, dynamic_lds, stream,
                                parameters, extra ? translated : NULL);
}

/* The grid counts work-items; the events are stamped around the kernel. */
status hipExtModuleLaunchKernel(handle function, uint32_t global_x, uint32_t global_y, uint32_t global_z, uint32_t block_x,
                                uint32_t block_y, uint32_t block_z, size_t dynamic_lds, handle stream, void **parameters,
                                void **extra, handle start, handle stop, uint32_t flags) {
    NEEDS_DRIVER
    if (flags || dynamic_lds > UINT32_MAX || !block_x || !block_y || !block_z) {
        return INVALID_VALUE;
    }
    if (global_x % block_x || global_y % block_y || global_z % block_z) {
        return INVALID_CONFIGURATION; /* AMD's would run a smaller last work-group; CUDA cannot */
    }
    status got = start ? cuEventRecord(start, stream) : SUCCESS;
    if (!got) {
        got = hipModuleLaunchKernel(function, global_x / block_x, global_y / block_y, global_z / block_z, block_x, block_y,
                                    block_z, (unsigned)dynamic_lds, stream, parameters, extra);
    }
    return got ? got : stop ? cuEventRecord(stop, stream) : SUCCESS;
}

/* The name that AMD's library has, whose header declares this one function as one of C++. */
status _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j(
    handle function, uint32_t global_x, uint32_t global_y, uint32_t global_z, uint32_t block_x, uint32_t block_y,
    uint32_t block_z, size_t dynamic_lds, handle stream, void **parameters, void **extra, handle start, handle stop,
    uint32_t flags) __attribute__((alias("hipExtModuleLaunchKernel")));

const char *hipGetErrorName(status code) {
    static const struct {
        status code;
        const char *name;
    } names[] = {
        {0, "hipSuccess"},
        {1, "hipErrorInvalidValue"},
        {2, "hipErrorOutOfMemory"},
        {3, "hipErrorNotInitialized"},
        {9, "hipErrorInvalidConfiguration"},
        {98, "hipErrorInvalidDeviceFunction"},
        {100, "hipErrorNoDevice"},
        {101, "hipErrorInvalidDevice"},
        {200, "hipErrorInvalidImage"},
        {201, "hipErrorInvalidContext"},
        {209, "hipErrorNoBinaryForGpu"},
        {214, "hipErrorECCNotCorrectable"},
        {218, "hipErrorInvalidKernelFile"},
        {300, "hipErrorInvalidSource"},
        {301, "hipErrorFileNotFound"},
        {400, "hipErrorInvalidHandle"},
        {500, "hipErrorNotFound"},
        {600, "hipErrorNotReady"},
        {700, "hipErrorIllegalAddress"},
        {701, "hipErrorLaunchOutOfResources"},
        {702, "hipErrorLaunchTimeOut"},
        {710, "hipErrorAssert"},
        {719, "hipErrorLaunchFailure"},
        {801, "hipErrorNotSupported"},
    };
    for (size_t row = 0; row < sizeof names / sizeof *names; row++) {
        if (names[row].code == code) {
            return names[row].name;
        }
    }
    return "hipErrorUnknown";
}
