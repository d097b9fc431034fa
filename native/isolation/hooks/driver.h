/* Finds the functions of the real driver, and gives programs our hooks in their place. */
#ifndef ISOLATION_DRIVER_H
#define ISOLATION_DRIVER_H

#include <stdbool.h>

#include "../../interface/cuda.h"
#include "../core/limiter.h"

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

/* The driver's function. If it has none, one that returns "not supported". */
void *real_function(enum function_id id);

/* Calls the driver's function: REAL(cuMemFree_v2)(pointer). */
#define REAL(name) ((__typeof__(&name))real_function(ID_##name))

const char *function_name(enum function_id id);

/* Our function in front of the driver's; NULL if the limiter only calls the driver's. */
void *hook_of(enum function_id id);

/* From now on REAL calls `found`, if the driver had no such function until now. */
void learn_function(enum function_id id, void *found);

/* Functions of the driver that are called but not hooked. */
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
int cuStreamIsCapturing_ptsz(stream_t stream, int *status);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuStreamGetCtx(stream_t stream, context_t *context);
int cuCtxPushCurrent_v2(context_t context);
int cuCtxPopCurrent_v2(context_t *context);

#endif
