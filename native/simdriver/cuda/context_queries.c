/* Properties of contexts that programs read and set. */
#include "contexts.h"
#include "threads.h"

CALL(cuCtxGetDevice, int *device) {
    WITH_DRIVER(driver);
    struct context *context = thread_context();
    if (!context) return INVALID_CONTEXT;
    if (!device) return INVALID_VALUE;
    *device = context->device;
    return OK;
}

CALL(cuCtxGetDevice_v2, int *device, struct context *context) {
    WITH_DRIVER(driver);
    if (!context) return cuCtxGetDevice(device);
    if (!device) return INVALID_VALUE;
    *device = context->device;
    return OK;
}

CALL(cuCtxGetFlags, unsigned *flags) {
    WITH_CONTEXT(context);
    if (!flags) return INVALID_VALUE;
    *flags = context->flags;
    return OK;
}

CALL(cuCtxGetId, struct context *context, unsigned long long *id) {
    WITH_DRIVER(driver);
    if (!context) context = thread_context();
    if (!context) return INVALID_CONTEXT;
    if (!id) return INVALID_VALUE;
    *id = (unsigned long long)(uintptr_t)context;
    return OK;
}

CALL(cuCtxSynchronize, void) {
    WITH_CONTEXT(context);
    context_wait(context);
    return device_health(context->device);
}

CALL(cuCtxSynchronize_v2, struct context *context) {
    WITH_DRIVER(driver);
    if (!context) return cuCtxSynchronize();
    context_wait(context);
    return device_health(context->device);
}

CALL(cuCtxGetApiVersion, struct context *context, unsigned *version) {
    WITH_DRIVER(driver);
    if (!context && !thread_context()) return INVALID_CONTEXT;
    if (!version) return INVALID_VALUE;
    *version = 3020;
    return OK;
}

CALL(cuCtxGetStreamPriorityRange, int *least, int *greatest) {
    WITH_CONTEXT(context);
    (void)context;
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return OK;
}

CALL(cuCtxSetLimit, unsigned limit, size_t value) {
    WITH_CONTEXT(context);
    if (limit >= sizeof context->limits / sizeof *context->limits) return INVALID_VALUE;
    context->limits[limit] = value;
    return OK;
}

CALL(cuCtxGetLimit, size_t *value, unsigned limit) {
    WITH_CONTEXT(context);
    if (!value || limit >= sizeof context->limits / sizeof *context->limits) return INVALID_VALUE;
    *value = context->limits[limit];
    return OK;
}

/* Preferences of the program: accepted, without effect. */
CALL(cuCtxGetCacheConfig, int *config) {
    WITH_CONTEXT(context);
    (void)context;
    if (!config) return INVALID_VALUE;
    *config = 0;
    return OK;
}
ALSO(cuCtxGetSharedMemConfig, cuCtxGetCacheConfig);

CALL(cuCtxSetCacheConfig, int config) {
    WITH_CONTEXT(context);
    (void)context;
    (void)config;
    return OK;
}
ALSO(cuCtxSetSharedMemConfig, cuCtxSetCacheConfig);

CALL(cuCtxEnablePeerAccess, struct context *peer, unsigned flags) {
    WITH_CONTEXT(context);
    (void)context;
    return peer && !flags ? OK : INVALID_VALUE;
}

CALL(cuCtxDisablePeerAccess, struct context *peer) {
    WITH_CONTEXT(context);
    (void)context;
    return peer ? OK : INVALID_CONTEXT;
}
