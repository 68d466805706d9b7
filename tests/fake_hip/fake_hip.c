/* A HIP runtime for tests: its device is host memory, its one kernel is `vector_add` (f32; a, b, out, n, two unused pointers), and
 * what fails is written in the environment variable FAKE_HIP, a list with commas:
 *
 *   CALL=CODE      the call returns this error          hipModuleLoadData=209
 *   CALL@N=CODE    only from its Nth time on            hipMalloc@3=2
 *   CALL=crash     it ends the process                  CALL=hang: it does not return
 *   CALL=spam      it does not return and prints the file $FAKE_HIP_PRINTS to stdout again and again
 *   prints=1       the kernel prints that file, too
 *   devices=N  free=BYTES                               what the machine has (1, 256 MiB)
 *   bus=NAME                                            where its devices are, for the lock
 *   late=CODE      the kernel faults: the next call that waits returns this, and every call after it
 *
 * Numbers: hip_runtime_api.h of ROCm 5 to 7. Calls in a wrong order (no hipInit, no hipSetDevice, a module that is unloaded) are
 * errors here too. */

#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int status;
typedef void *handle;

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_CONFIGURATION = 9, NO_DEVICE = 100,
       INVALID_DEVICE = 101, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500 };

/* The value of `name` in the script, or NULL. */
static const char *scripted(const char *name, size_t *length) {
    const char *at = getenv("FAKE_HIP");
    static struct {
        char name[48];
        long calls;
    } counts[64];
    long calls = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (!counts[i].name[0]) {
            snprintf(counts[i].name, sizeof counts[i].name, "%s", name);
        }
        if (!strcmp(counts[i].name, name)) {
            calls = ++counts[i].calls;
            break;
        }
    }
    for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t own = strlen(name);
        if (strncmp(at, name, own)) {
            continue;
        }
        const char *rest = at + own;
        long from = 1;
        if (*rest == '@') {
            char *end;
            from = strtol(rest + 1, &end, 10);
            rest = end;
        }
        if (*rest == '=' && calls >= from) {
            *length = strcspn(rest + 1, ",");
            return rest + 1;
        }
    }
    return NULL;
}

static long number(const char *name, long otherwise) {
    size_t length;
    const char *value = scripted(name, &length);
    return value ? strtol(value, NULL, 10) : otherwise;
}

static void print_file(void) {
    const char *path = getenv("FAKE_HIP_PRINTS");
    FILE *file = path ? fopen(path, "r") : NULL;
    for (int byte; file && (byte = getc(file)) != EOF;) {
        putchar(byte);
    }
    if (file) {
        fclose(file);
    }
    fflush(stdout);
}

/* `fault` is what every call returns from now on; `pending` becomes it when somebody waits. */
static int is_initialized, is_current, fault, pending;

static status begin(const char *call) {
    size_t length;
    const char *value = scripted(call, &length);
    if (value && length == 5 && !strncmp(value, "crash", 5)) {
        fprintf(stderr, "fake_hip: %s crashes\n", call);
        abort();
    }
    while (value && length == 4 && !strncmp(value, "hang", 4)) {
        pause();
    }
    while (value && length == 4 && !strncmp(value, "spam", 4)) {
        print_file();
    }
    if (value) {
        return (status)strtol(value, NULL, 10);
    }
    if (strcmp(call, "hipInit") && !is_initialized) {
        return NOT_INITIALIZED;
    }
    return fault;
}

#define BEGIN                                                                                                            \
    {                                                                                                                    \
        status scripted_code = begin(__func__);                                                                          \
        if (scripted_code) {                                                                                             \
            return scripted_code;                                                                                        \
        }                                                                                                                \
    }
#define BEGIN_ON_DEVICE                                                                                                  \
    BEGIN if (!is_current) { return INVALID_CONTEXT; }

status hipInit(unsigned flags) {
    is_initialized = 1;
    BEGIN
    return flags ? INVALID_VALUE : SUCCESS;
}

status hipRuntimeGetVersion(int *version) {
    BEGIN
    *version = 60443484;
    return SUCCESS;
}

status hipGetDeviceCount(int *count) {
    *count = 0;
    BEGIN
    *count = (int)number("devices", 1);
    return *count ? SUCCESS : NO_DEVICE;
}

status hipDeviceGet(int *device, int ordinal) {
    BEGIN
    *device = ordinal;
    return ordinal >= 0 && ordinal < number("devices", 1) ? SUCCESS : INVALID_DEVICE;
}

status hipDeviceGetName(char *name, int length, int device) {
    BEGIN
    snprintf(name, (size_t)length, "Fake GPU %d", device);
    return SUCCESS;
}

/* By itself a place where no machine has a device. */
status hipDeviceGetPCIBusId(char *name, int length, int device) {
    BEGIN
    size_t own = 0;
    const char *bus = scripted("bus", &own);
    snprintf(name, (size_t)length, "%.*s.%d", bus ? (int)own : 10, bus ? bus : "ffff:ff:1f", device);
    return SUCCESS;
}

status hipDeviceGetAttribute(int *value, int attribute, int device) {
    BEGIN
    (void)device;
    switch (attribute) {
    case 5: *value = 2100000; break;   /* ClockRate, kHz */
    case 19: *value = 4 << 20; break;  /* L2CacheSize */
    case 56: *value = 1024; break;     /* MaxThreadsPerBlock */
    case 59: *value = 8192; break;     /* MemoryBusWidth */
    case 60: *value = 1300000; break;  /* MemoryClockRate, kHz */
    case 63: *value = 304; break;      /* MultiprocessorCount */
    case 74: *value = 65536; break;    /* MaxSharedMemoryPerBlock */
    case 87: *value = 64; break;       /* WarpSize */
    default: return INVALID_VALUE;
    }
    return SUCCESS;
}

status hipSetDevice(int device) {
    BEGIN
    is_current = device >= 0 && device < number("devices", 1);
    return is_current ? SUCCESS : INVALID_DEVICE;
}

/* Memory: every allocation has its size in front. */
static size_t used;
enum { HEADER = 256 };

status hipMemGetInfo(size_t *free_bytes, size_t *total) {
    BEGIN_ON_DEVICE
    *total = (size_t)number("free", 256 << 20);
    *free_bytes = *total > used ? *total - used : 0;
    return SUCCESS;
}

status hipMalloc(void **at, size_t bytes) {
    BEGIN_ON_DEVICE
    if (bytes > (size_t)number("free", 256 << 20) || used + bytes > (size_t)number("free", 256 << 20)) {
        return OUT_OF_MEMORY;
    }
    char *whole = aligned_alloc(HEADER, (bytes + 2 * HEADER - 1) / HEADER * HEADER);
    if (!whole) {
        return OUT_OF_MEMORY;
    }
    memcpy(whole, &bytes, sizeof bytes);
    used += bytes;
    *at = whole + HEADER;
    return SUCCESS;
}

status hipFree(void *at) {
    BEGIN_ON_DEVICE
    size_t bytes;
    memcpy(&bytes, (char *)at - HEADER, sizeof bytes);
    used -= bytes;
    free((char *)at - HEADER);
    return SUCCESS;
}

static status wait_for_all(void) {
    fault = pending;
    return fault;
}

status hipMemcpyHtoD(void *to, const void *from, size_t bytes) {
    BEGIN_ON_DEVICE
    memcpy(to, from, bytes);
    return SUCCESS;
}

status hipMemcpyDtoH(void *to, const void *from, size_t bytes) {
    BEGIN_ON_DEVICE
    memcpy(to, from, bytes);
    return wait_for_all();
}

status hipMemcpyDtoDAsync(void *to, const void *from, size_t bytes, handle stream) {
    BEGIN_ON_DEVICE
    memcpy(to, from, bytes);
    return stream ? INVALID_HANDLE : SUCCESS;
}

status hipMemsetD32Async(uint32_t *to, int word, size_t words, handle stream) {
    BEGIN_ON_DEVICE
    for (size_t i = 0; i < words; i++) {
        to[i] = (uint32_t)word;
    }
    return stream ? INVALID_HANDLE : SUCCESS;
}

/* Only an ELF file is an image. A kernel is its module, as long as that is loaded. */
struct module {
    int is_loaded;
};

status hipModuleLoadData(handle *module, const void *image) {
    BEGIN_ON_DEVICE
    if (memcmp(image, "\177ELF", 4)) {
        return 200; /* hipErrorInvalidImage */
    }
    struct module *made = malloc(sizeof *made);
    made->is_loaded = 1;
    *module = made;
    return SUCCESS;
}

status hipModuleUnload(handle module) {
    BEGIN_ON_DEVICE
    struct module *of = module;
    status before = of->is_loaded ? SUCCESS : INVALID_HANDLE;
    of->is_loaded = 0; /* kept, so that whoever uses it afterwards is told */
    return before;
}

status hipModuleGetFunction(handle *function, handle module, const char *name) {
    BEGIN_ON_DEVICE
    if (!((struct module *)module)->is_loaded) {
        return INVALID_HANDLE;
    }
    *function = module;
    return strcmp(name, "vector_add") ? NOT_FOUND : SUCCESS;
}

status hipFuncGetAttribute(int *value, int attribute, handle function) {
    BEGIN_ON_DEVICE
    *value = attribute == 0 ? 1024 : attribute == 4 ? 10 : 0;
    return ((struct module *)function)->is_loaded ? SUCCESS : INVALID_HANDLE;
}

/* What stands in the argument buffer of vector_add: offsets 0, 8, 16, 24, 32, 40. */
struct arguments {
    const float *a, *b;
    float *out;
    int32_t n;
    void *unused[2];
};

static status run(handle function, uint64_t work_items, void **extra) {
    if (!((struct module *)function)->is_loaded) {
        return INVALID_HANDLE;
    }
    if (!extra || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3 ||
        *(size_t *)extra[3] != sizeof(struct arguments)) {
        return INVALID_VALUE;
    }
    struct arguments arguments;
    memcpy(&arguments, extra[1], sizeof arguments);
    for (uint64_t i = 0; i < work_items && i < (uint64_t)arguments.n; i++) {
        arguments.out[i] = arguments.a[i] + arguments.b[i];
    }
    if (number("prints", 0)) {
        print_file();
    }
    pending = (int)number("late", 0);
    return SUCCESS;
}

status hipModuleLaunchKernel(handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned dynamic_lds, handle stream, void **parameters,
                             void **extra) {
    BEGIN_ON_DEVICE
    if (stream || parameters || dynamic_lds > 65536 || grid_y * grid_z * block_y * block_z != 1) {
        return INVALID_VALUE;
    }
    return run(function, (uint64_t)grid_x * block_x, extra);
}

struct event {
    struct timespec at;
    int is_recorded;
};

static void stamp(struct event *event) {
    if (event) {
        clock_gettime(CLOCK_MONOTONIC, &event->at);
        event->is_recorded = 1;
    }
}

/* The grid counts work-items. Only the name that AMD's library exports. */
status fake_ext_launch(handle function, uint32_t global_x, uint32_t global_y, uint32_t global_z, uint32_t block_x,
                       uint32_t block_y, uint32_t block_z, size_t dynamic_lds, handle stream, void **parameters, void **extra,
                       handle start, handle stop, uint32_t flags)
    __asm__("_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j");

status fake_ext_launch(handle function, uint32_t global_x, uint32_t global_y, uint32_t global_z, uint32_t block_x,
                       uint32_t block_y, uint32_t block_z, size_t dynamic_lds, handle stream, void **parameters, void **extra,
                       handle start, handle stop, uint32_t flags) {
    status scripted_code = begin("hipExtModuleLaunchKernel");
    if (scripted_code) {
        return scripted_code;
    }
    if (flags || stream || parameters || dynamic_lds > 65536 || global_y * global_z * block_y * block_z != 1) {
        return INVALID_VALUE;
    }
    if (global_x < block_x) {
        return INVALID_CONFIGURATION; /* work-groups where work-items are meant */
    }
    stamp(start);
    status ran = run(function, global_x, extra);
    stamp(stop);
    return ran;
}

status hipEventCreateWithFlags(handle *event, unsigned flags) {
    BEGIN_ON_DEVICE
    *event = calloc(1, sizeof(struct event));
    return flags ? INVALID_VALUE : SUCCESS;
}

status hipEventDestroy(handle event) {
    BEGIN_ON_DEVICE
    free(event);
    return SUCCESS;
}

status hipEventRecord(handle event, handle stream) {
    BEGIN_ON_DEVICE
    stamp(event);
    return stream ? INVALID_HANDLE : SUCCESS;
}

status hipEventSynchronize(handle event) {
    BEGIN_ON_DEVICE
    return ((struct event *)event)->is_recorded ? wait_for_all() : INVALID_HANDLE;
}

status hipEventElapsedTime(float *milliseconds, handle from, handle to) {
    BEGIN_ON_DEVICE
    struct event *a = from, *b = to;
    if (!a->is_recorded || !b->is_recorded) {
        return INVALID_HANDLE;
    }
    *milliseconds = (float)((double)(b->at.tv_sec - a->at.tv_sec) * 1e3 + (double)(b->at.tv_nsec - a->at.tv_nsec) * 1e-6);
    return SUCCESS;
}

status hipDeviceSynchronize(void) {
    BEGIN_ON_DEVICE
    return wait_for_all();
}

const char *hipGetErrorName(status code) {
    switch (code) {
    case 1: return "hipErrorInvalidValue";
    case 2: return "hipErrorOutOfMemory";
    case 3: return "hipErrorNotInitialized";
    case 9: return "hipErrorInvalidConfiguration";
    case 98: return "hipErrorInvalidDeviceFunction";
    case 100: return "hipErrorNoDevice";
    case 101: return "hipErrorInvalidDevice";
    case 200: return "hipErrorInvalidImage";
    case 201: return "hipErrorInvalidContext";
    case 209: return "hipErrorNoBinaryForGpu";
    case 400: return "hipErrorInvalidHandle";
    case 500: return "hipErrorNotFound";
    case 700: return "hipErrorIllegalAddress";
    case 701: return "hipErrorLaunchOutOfResources";
    case 719: return "hipErrorLaunchFailure";
    default: return "hipErrorUnknown";
    }
}
