/* Properties of contexts that programs read and set. */
#include "contexts.h"
#include "pools.h"
#include "streams.h"
#include "threads.h"

CALL(cuCtxGetDevice, int *device) {
    struct context *context;
    WITH_DRIVER(driver);
    int problem = thread_context(&context);
    if (problem) return problem;
    if (!device) return INVALID_VALUE;
    *device = context->device;
    return OK;
}

/* The context that a function is about: NULL means the current one. */
static int given_or_current(struct context **context) {
    WITH_DRIVER(driver);
    return *context ? context_check(*context) : thread_context(context);
}

CALL(cuCtxGetDevice_v2, int *device, struct context *context) {
    int problem = given_or_current(&context);
    if (problem) return problem;
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
    int problem = given_or_current(&context);
    if (problem) return problem;
    if (!id) return INVALID_VALUE;
    *id = context->id;
    return OK;
}

CALL(cuCtxSynchronize_v2, struct context *context) {
    int problem = given_or_current(&context);
    if (problem) return problem;
    context_wait(context);
    pools_release();
    return device_health(context->device);
}

CALL(cuCtxSynchronize, void) {
    WITH_CONTEXT(context);
    return cuCtxSynchronize_v2(context);
}

CALL(cuCtxGetApiVersion, struct context *context, unsigned *version) {
    int problem = given_or_current(&context);
    if (problem) return problem;
    if (!version) return INVALID_VALUE;
    *version = 3020;
    return OK;
}

CALL(cuCtxGetStreamPriorityRange, int *least, int *greatest) {
    WITH_CONTEXT(context);
    (void)context;
    if (least) *least = 0;
    if (greatest) *greatest = GREATEST_PRIORITY;
    return OK;
}

CALL(cuCtxSetLimit, unsigned limit, size_t value) {
    WITH_CONTEXT(context);
    if (limit >= LIMITS) return UNSUPPORTED_LIMIT;
    context->limits[limit] = value;
    return OK;
}

CALL(cuCtxGetLimit, size_t *value, unsigned limit) {
    WITH_CONTEXT(context);
    if (!value) return INVALID_VALUE;
    if (limit >= LIMITS) return UNSUPPORTED_LIMIT;
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
    if (flags) return INVALID_VALUE;
    return peer == context ? INVALID_CONTEXT : context_check(peer);
}

CALL(cuCtxDisablePeerAccess, struct context *peer) {
    WITH_CONTEXT(context);
    (void)context;
    return context_check(peer);
}
