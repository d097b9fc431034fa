/* The functions of memory pools, and of the streams, events and contexts at whose synchronisation
 * pools give memory back. */
#include "pools.h"

#define ALLOCATE(pool, device, call)                                            \
    do {                                                                        \
        struct pool_request request;                                            \
        if (!pool_begin(&request, pool, device, stream, size)) return OUT_OF_MEMORY; \
        return pool_end(&request, call, pointer);                               \
    } while (0)

static bool is_counted(const pointer_t *pointer, size_t size) {
    return limiter_is_on() && pointer && size;
}

/* A pool that no hook has seen is assumed to be on the current device, or on the first one. */
static int assumed_device(void) {
    int device;
    return current_device(&device) ? device : 0;
}

CALL(cuMemAllocFromPoolAsync, pointer_t *pointer, size_t size, memory_pool_t pool,
     stream_t stream) {
    if (!is_counted(pointer, size) || !pool)
        return REAL(cuMemAllocFromPoolAsync)(pointer, size, pool, stream);
    ALLOCATE(pool, assumed_device(), REAL(cuMemAllocFromPoolAsync)(pointer, size, pool, stream));
}

CALL(cuMemAllocFromPoolAsync_ptsz, pointer_t *pointer, size_t size, memory_pool_t pool,
     stream_t stream) {
    if (!is_counted(pointer, size) || !pool)
        return REAL(cuMemAllocFromPoolAsync_ptsz)(pointer, size, pool, stream);
    ALLOCATE(pool, assumed_device(),
             REAL(cuMemAllocFromPoolAsync_ptsz)(pointer, size, pool, stream));
}

/* The memory comes from the current pool of the stream's device, which need not be that of the
 * calling thread's context. If the driver cannot say which pool that is, its error is returned:
 * memory that is not counted must not be given. */
static int pool_of(stream_t stream, int *device, memory_pool_t *pool) {
    int result = device_of_stream(stream, device);
    return result == OK ? REAL(cuDeviceGetMemPool)(pool, *device) : result;
}

CALL(cuMemAllocAsync, pointer_t *pointer, size_t size, stream_t stream) {
    int device;
    memory_pool_t pool;
    if (!is_counted(pointer, size)) return REAL(cuMemAllocAsync)(pointer, size, stream);
    int problem = pool_of(stream, &device, &pool);
    if (problem) return problem;
    ALLOCATE(pool, device, REAL(cuMemAllocAsync)(pointer, size, stream));
}

CALL(cuMemAllocAsync_ptsz, pointer_t *pointer, size_t size, stream_t stream) {
    int device;
    memory_pool_t pool;
    if (!is_counted(pointer, size)) return REAL(cuMemAllocAsync_ptsz)(pointer, size, stream);
    int problem = pool_of(stream, &device, &pool);
    if (problem) return problem;
    ALLOCATE(pool, device, REAL(cuMemAllocAsync_ptsz)(pointer, size, stream));
}

/* Managed memory is counted in full, wherever the driver puts it. If its pool is at no device, the
 * one that allocates from it first counts: see assumed_device. */
static int record_pool(int result, const memory_pool_t *pool, const struct location *location,
                       int type) {
    if (result != OK || !limiter_is_on()) return result;
    if (location->type == LOCATION_DEVICE) pool_found(*pool, card_of(location->id));
    else if (type != MANAGED_POOL) pool_found(*pool, NOT_OURS);
    return result;
}

CALL(cuMemPoolCreate, memory_pool_t *pool, const struct pool_properties *properties) {
    int result = REAL(cuMemPoolCreate)(pool, properties);
    return result == OK ? record_pool(result, pool, &properties->location, properties->type)
                        : result;
}

CALL(cuMemPoolImportFromShareableHandle, memory_pool_t *pool, void *handle, int type,
     unsigned long long flags) {
    int result = REAL(cuMemPoolImportFromShareableHandle)(pool, handle, type, flags);
    if (result == OK && limiter_is_on()) pool_found(*pool, NOT_OURS);
    return result;
}

CALL(cuMemGetDefaultMemPool, memory_pool_t *pool, struct location *location, int type) {
    int result = REAL(cuMemGetDefaultMemPool)(pool, location, type);
    return result == OK ? record_pool(result, pool, location, type) : result;
}

CALL(cuMemGetMemPool, memory_pool_t *pool, struct location *location, int type) {
    int result = REAL(cuMemGetMemPool)(pool, location, type);
    return result == OK ? record_pool(result, pool, location, type) : result;
}

CALL(cuMemPoolTrimTo, memory_pool_t pool, size_t keep) {
    int result = REAL(cuMemPoolTrimTo)(pool, keep);
    if (limiter_is_on()) pools_settle();
    return result;
}

CALL(cuMemPoolDestroy, memory_pool_t pool) {
    return limiter_is_on() ? pool_destroy(pool) : REAL(cuMemPoolDestroy)(pool);
}

/* Also after an error: it may be one of earlier work, and the pools have still given back. */
static int synchronised(int result) {
    if (limiter_is_on()) pools_settle();
    return result;
}

CALL(cuStreamSynchronize, stream_t stream) {
    return synchronised(REAL(cuStreamSynchronize)(stream));
}

CALL(cuStreamSynchronize_ptsz, stream_t stream) {
    return synchronised(REAL(cuStreamSynchronize_ptsz)(stream));
}

CALL(cuEventSynchronize, event_t event) {
    return synchronised(REAL(cuEventSynchronize)(event));
}

CALL(cuCtxSynchronize, void) {
    return synchronised(REAL(cuCtxSynchronize)());
}

CALL(cuCtxSynchronize_v2, context_t context) {
    return synchronised(REAL(cuCtxSynchronize_v2)(context));
}
