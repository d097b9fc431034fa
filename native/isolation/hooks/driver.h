/* The functions of the real driver, and the way of programs to ours in their place. */
#ifndef ISOLATION_DRIVER_H
#define ISOLATION_DRIVER_H

#include <stdbool.h>

#include "../core/limiter.h"
#include "cuda.h"

enum function_id {
#define HOOK(name) ID_##name,
#define PLAIN(name) ID_##name,
#define FIRST_OF_NVML NVML_BEGIN, BEFORE_NVML = NVML_BEGIN - 1,
#include "functions.inc"
#undef HOOK
#undef PLAIN
#undef FIRST_OF_NVML
    FUNCTIONS
};

/* The driver's own, or one that says that there is no such function. */
void *real_function(enum function_id id);

#define REAL(name) ((__typeof__(&name))real_function(ID_##name))

/* What a program is to get that asked for a name and was given this by the driver. */
void *routed_address(const char *name, void *found);

/* A function that programs call, declared and begun. */
#define CALL(function, ...)         \
    API int function(__VA_ARGS__);  \
    API int function(__VA_ARGS__)

/* Calls of the driver that are only made from here. */
int cuCtxGetDevice(int *device);
int cuCtxGetCurrent(context_t *context);
int cuDeviceGetCount(int *count);
int cuDeviceGetUuid(unsigned char *uuid, int device);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *is_active);
int cuDeviceGetDefaultMemPool(memory_pool_t *pool, int device);
int cuDeviceGetMemPool(memory_pool_t *pool, int device);
int cuMemPoolGetAttribute(memory_pool_t pool, int attribute, void *value);
int cuDeviceGetGraphMemAttribute(int device, int attribute, void *value);
int cuEventCreate(event_t *event, unsigned flags);
int cuEventRecord(event_t event, stream_t stream);
int cuEventRecord_ptsz(event_t event, stream_t stream);
int cuEventQuery(event_t event);
int cuEventElapsedTime(float *milliseconds, event_t start, event_t end);
int cuStreamIsCapturing(stream_t stream, int *status);

#endif
