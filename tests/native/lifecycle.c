/* Creates and destroys one of everything that the driver can create, several times, and then ends
 * normally. Prints how many bytes of the first device are in use before and after. Any call that
 * fails ends the program with its name. Under LeakSanitizer, memory that the driver did not free
 * is reported at the end. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 3
#define MIB (1ull << 20)

typedef unsigned long long pointer_t;
typedef int function_t(); /* functions of the driver have arguments of many kinds */

static void *cuda, *nvml;

static void check(const char *name, int result) {
    if (!result) return;
    printf("%s: %d\n", name, result);
    exit(1);
}

#define CUDA(name, ...) check(#name, ((function_t *)dlsym(cuda, #name))(__VA_ARGS__))
#define NVML(name, ...) check(#name, ((function_t *)dlsym(nvml, #name))(__VA_ARGS__))

/* CUmemAllocationProp and CUmemPoolProps: pinned memory of the first device. */
struct properties {
    int type, handle_types, location_type, location_id;
    char more[72];
};
static struct properties properties = {1, 0, 1, 0, {0}};

static void plain_memory(void) {
    pointer_t pointer;
    size_t pitch;
    void *host, *own = malloc(4096);
    CUDA(cuMemAlloc_v2, &pointer, (size_t)1000);
    CUDA(cuMemFree_v2, pointer);
    CUDA(cuMemAllocPitch_v2, &pointer, &pitch, (size_t)1000, (size_t)3, 4u);
    CUDA(cuMemFree_v2, pointer);
    CUDA(cuMemAllocManaged, &pointer, (size_t)MIB, 1u);
    CUDA(cuMemFree_v2, pointer);
    CUDA(cuMemAllocHost_v2, &host, (size_t)5000);
    memset(host, 1, 5000);
    CUDA(cuMemFreeHost, host);
    CUDA(cuMemHostRegister_v2, own, (size_t)4096, 0u);
    CUDA(cuMemHostUnregister, own);
    free(own);
}

/* So many allocations that the tables grow, and freed in another order. */
static void many(void) {
    enum { COUNT = 3000 };
    static pointer_t pointers[COUNT];
    for (int i = 0; i < COUNT; i++) CUDA(cuMemAlloc_v2, &pointers[i], (size_t)(i % 7000 + 1));
    for (int i = 0; i < COUNT; i++) CUDA(cuMemFree_v2, pointers[i * 7 % COUNT]);
}

static void pools(void) {
    void *pool, *stream;
    pointer_t first, second;
    CUDA(cuStreamCreate, &stream, 0u);
    CUDA(cuMemAllocAsync, &first, (size_t)MIB, stream);
    CUDA(cuMemFreeAsync, first, stream);
    CUDA(cuMemPoolCreate, &pool, &properties);
    CUDA(cuMemAllocFromPoolAsync, &first, (size_t)MIB, pool, stream);
    CUDA(cuMemAllocFromPoolAsync, &second, (size_t)MIB, pool, stream);
    CUDA(cuMemFreeAsync, first, stream);
    CUDA(cuMemPoolTrimTo, pool, (size_t)0);
    CUDA(cuMemPoolDestroy, pool); /* before its last memory */
    CUDA(cuMemFreeAsync, second, stream);
    CUDA(cuStreamSynchronize, stream); /* until then, the pools keep what was freed */
    CUDA(cuStreamDestroy_v2, stream);
}

static void virtual_memory(void) {
    pointer_t handle, address;
    size_t size = 4 * MIB;
    CUDA(cuMemCreate, &handle, size, &properties, 0ull);
    CUDA(cuMemAddressReserve, &address, 2 * size, (size_t)0, 0ull, 0ull);
    CUDA(cuMemMap, address, size, (size_t)0, handle, 0ull);
    CUDA(cuMemMap, address + size, size, (size_t)0, handle, 0ull);
    CUDA(cuMemRelease, handle);
    CUDA(cuMemUnmap, address, 2 * size);
    CUDA(cuMemAddressFree, address, 2 * size);
}

static void arrays(void) {
    struct {
        size_t width, height, depth;
        int format;
        unsigned channels, flags;
    } shape = {64, 64, 4, 32, 1, 0};
    void *array;
    CUDA(cuArray3DCreate_v2, &array, &shape);
    CUDA(cuArrayDestroy, array);
    CUDA(cuMipmappedArrayCreate, &array, &shape, 3u);
    CUDA(cuMipmappedArrayDestroy, array);
}

static void kernels(void) {
    void *module, *function, *stream, *start, *end;
    pointer_t global;
    size_t size;
    float milliseconds;
    CUDA(cuModuleLoadData, &module, "any");
    CUDA(cuModuleGetFunction, &function, module, "busy_50us");
    CUDA(cuModuleGetGlobal_v2, &global, &size, module, "variable");
    CUDA(cuStreamCreate, &stream, 0u);
    CUDA(cuEventCreate, &start, 0u);
    CUDA(cuEventCreate, &end, 0u);
    CUDA(cuEventRecord, start, stream);
    CUDA(cuLaunchKernel, function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, NULL, NULL);
    CUDA(cuEventRecord, end, stream);
    CUDA(cuEventSynchronize, end);
    CUDA(cuEventElapsedTime, &milliseconds, start, end);
    CUDA(cuEventDestroy_v2, start);
    CUDA(cuEventDestroy_v2, end);
    CUDA(cuStreamDestroy_v2, stream);
    CUDA(cuModuleUnload, module);
}

static void graphs(void) {
    struct {
        struct properties properties;
        void *access;
        size_t access_count, size;
        pointer_t pointer;
    } allocation = {.properties = properties, .size = MIB};
    void *graph, *node, *executable;
    CUDA(cuGraphCreate, &graph, 0u);
    CUDA(cuGraphAddMemAllocNode, &node, graph, NULL, (size_t)0, &allocation);
    CUDA(cuGraphInstantiateWithFlags, &executable, graph, 0ull);
    CUDA(cuGraphDestroy, graph);
    CUDA(cuGraphLaunch, executable, NULL);
    CUDA(cuGraphExecDestroy, executable);
    CUDA(cuDeviceGraphMemTrim, 0);
}

static void external_memory(void) {
    unsigned long long description[13] = {1, 3, 0, MIB};
    void *memory;
    CUDA(cuImportExternalMemory, &memory, description);
    CUDA(cuDestroyExternalMemory, memory);
}

/* With memory in it, which is freed with the context. */
static void *contexts(void *unused) {
    void *context;
    pointer_t pointer;
    CUDA(cuCtxCreate_v2, &context, 0u, 0);
    for (int i = 0; i < 100; i++) CUDA(cuMemAlloc_v2, &pointer, (size_t)MIB);
    CUDA(cuCtxDestroy_v2, context);
    return unused;
}

static void threads(void) {
    pthread_t thread[8];
    for (int i = 0; i < 8; i++) pthread_create(&thread[i], NULL, contexts, NULL);
    for (int i = 0; i < 8; i++) pthread_join(thread[i], NULL);
}

static void monitoring(void) {
    struct {
        unsigned pid;
        unsigned long long used;
        unsigned instances[2];
    } processes[4];
    unsigned count = 4;
    void *card, *events;
    NVML(nvmlInit_v2);
    NVML(nvmlDeviceGetHandleByIndex_v2, 0u, &card);
    NVML(nvmlDeviceGetComputeRunningProcesses_v3, card, &count, processes);
    NVML(nvmlEventSetCreate, &events);
    NVML(nvmlDeviceRegisterEvents, card, 8ull, events);
    NVML(nvmlEventSetFree, events);
    NVML(nvmlShutdown);
}

static size_t used(void) {
    size_t unused, total;
    CUDA(cuMemGetInfo_v2, &unused, &total);
    return total - unused;
}

int main(void) {
    void *context;
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!cuda || !nvml) return puts(dlerror()), 1;
    CUDA(cuInit, 0u);
    CUDA(cuDevicePrimaryCtxRetain, &context, 0);
    CUDA(cuCtxSetCurrent, context);
    size_t before = used();
    void (*const all[])(void) = {plain_memory, many,   pools,           virtual_memory, arrays,
                                 kernels,      graphs, external_memory, threads,        monitoring};
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) all[i]();
    printf("%zu %zu\n", before, used());
    CUDA(cuDevicePrimaryCtxRelease_v2, 0);
    return 0;
}
