#include "pools.h"

#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "streams.h"

/* Attributes, by number. */
enum { RELEASE_THRESHOLD = 4, RESERVED_NOW, RESERVED_MOST, USED_NOW, USED_MOST };

struct pool {
    int device;
    bool is_default;
    int reuse[4]; /* attributes 1 to 3 */
    uint64_t threshold, used, kept, most;
    struct pool *next;
};

static struct pool defaults[MAX_CARDS];
static struct pool *present[MAX_CARDS]; /* NULL: the default */
static struct pool *others;

/* As far as it is read: type, handles, location. */
struct pool_properties {
    int type, handles, location_type, location_id;
};

bool pool_take(struct pool *pool, uint64_t bytes) {
    uint64_t reused = bytes < pool->kept ? bytes : pool->kept;
    if (bytes > reused && !take_memory(pool->device, bytes - reused)) return false;
    pool->kept -= reused;
    pool->used += bytes;
    if (pool->used > pool->most) pool->most = pool->used;
    return true;
}

/* Until it has no more than `most`, or nothing that is not in use. */
static void trim(struct pool *pool, uint64_t most) {
    uint64_t reserved = pool->used + pool->kept;
    uint64_t excess = reserved > most ? reserved - most : 0;
    if (excess > pool->kept) excess = pool->kept;
    pool->kept -= excess;
    if (excess) give_back_memory(pool->device, excess);
}

void pool_give_back(struct pool *pool, uint64_t bytes) {
    pool->used -= bytes;
    pool->kept += bytes;
    trim(pool, pool->threshold);
}

static struct pool *default_pool(int device) {
    struct pool *pool = &defaults[device];
    if (!pool->is_default) *pool = (struct pool){.device = device, .is_default = true};
    return pool;
}

static struct pool *present_pool(int device) {
    return present[device] ? present[device] : default_pool(device);
}

static bool is_known(const struct pool *pool) {
    if (!pool) return false;
    for (int i = 0; i < MAX_CARDS; i++)
        if (pool == &defaults[i]) return true;
    for (const struct pool *other = others; other; other = other->next)
        if (other == pool) return true;
    return false;
}

CALL(cuDeviceGetDefaultMemPool, struct pool **pool, int device) {
    WITH_DEVICE(device);
    if (!pool) return INVALID_VALUE;
    *pool = default_pool(device);
    return OK;
}

CALL(cuDeviceGetMemPool, struct pool **pool, int device) {
    WITH_DEVICE(device);
    if (!pool) return INVALID_VALUE;
    *pool = present_pool(device);
    return OK;
}

CALL(cuDeviceSetMemPool, int device, struct pool *pool) {
    WITH_DEVICE(device);
    if (!is_known(pool)) return INVALID_VALUE;
    present[device] = pool;
    return OK;
}

CALL(cuMemPoolCreate, struct pool **made, const struct pool_properties *properties) {
    WITH_DRIVER(driver);
    if (!made || !properties || properties->location_type != 1) return INVALID_VALUE;
    if (properties->location_id < 0 || properties->location_id >= driver->card_count)
        return INVALID_DEVICE;
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool) return OUT_OF_MEMORY;
    pool->device = properties->location_id;
    driver_lock();
    pool->next = others;
    others = pool;
    driver_unlock();
    *made = pool;
    return OK;
}

CALL(cuMemPoolDestroy, struct pool *pool) {
    WITH_DRIVER(driver);
    if (!is_known(pool) || pool->is_default) return INVALID_VALUE;
    driver_lock();
    for (int i = 0; i < MAX_CARDS; i++)
        if (present[i] == pool) present[i] = NULL;
    pool->threshold = 0;
    trim(pool, 0);
    driver_unlock();
    /* It stays until the process ends: memory may still be in it. */
    return OK;
}

CALL(cuMemPoolSetAttribute, struct pool *pool, int attribute, void *value) {
    WITH_DRIVER(driver);
    if (!is_known(pool) || !value) return INVALID_VALUE;
    if (attribute >= 1 && attribute <= 3) pool->reuse[attribute] = *(int *)value;
    else if (attribute == RELEASE_THRESHOLD) pool->threshold = *(uint64_t *)value;
    else if (attribute == RESERVED_MOST || attribute == USED_MOST) pool->most = pool->used;
    else return INVALID_VALUE;
    return OK;
}

CALL(cuMemPoolGetAttribute, struct pool *pool, int attribute, void *value) {
    WITH_DRIVER(driver);
    if (!is_known(pool) || !value) return INVALID_VALUE;
    switch (attribute) {
    case 1: case 2: case 3:
        *(int *)value = pool->reuse[attribute];
        return OK;
    case RELEASE_THRESHOLD:
        *(uint64_t *)value = pool->threshold;
        return OK;
    case RESERVED_NOW:
        *(uint64_t *)value = pool->used + pool->kept;
        return OK;
    case USED_NOW:
        *(uint64_t *)value = pool->used;
        return OK;
    case RESERVED_MOST: case USED_MOST:
        *(uint64_t *)value = pool->most;
        return OK;
    default:
        return INVALID_VALUE;
    }
}

CALL(cuMemPoolTrimTo, struct pool *pool, size_t keep) {
    WITH_DRIVER(driver);
    if (!is_known(pool)) return INVALID_VALUE;
    driver_lock();
    trim(pool, keep);
    driver_unlock();
    return OK;
}

CALL(cuMemPoolSetAccess, struct pool *pool, const void *access, size_t count) {
    WITH_DRIVER(driver);
    return is_known(pool) && (access || !count) ? OK : INVALID_VALUE;
}

CALL(cuMemPoolGetAccess, int *flags, struct pool *pool, const int *location) {
    WITH_DRIVER(driver);
    if (!is_known(pool) || !flags || !location) return INVALID_VALUE;
    *flags = location[1] == pool->device ? 3 : 0; /* location: type, id */
    return OK;
}

CALL(cuMemAllocFromPoolAsync, pointer_t *pointer, size_t size, struct pool *pool,
     struct stream *stream) {
    WITH_CONTEXT(context);
    (void)stream;
    if (!is_known(pool)) return INVALID_VALUE;
    return allocate(context, pool->device, ON_DEVICE, size, pool, pointer);
}
ALSO(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync);

CALL(cuMemAllocAsync, pointer_t *pointer, size_t size, struct stream *stream) {
    WITH_CONTEXT(context);
    return cuMemAllocFromPoolAsync(pointer, size, present_pool(context->device), stream);
}
ALSO(cuMemAllocAsync_ptsz, cuMemAllocAsync);

CALL(cuMemFreeAsync, pointer_t pointer, struct stream *stream) {
    WITH_CONTEXT(context);
    stream_wait(stream, context);
    return pointer ? release(pointer, ON_DEVICE) : INVALID_VALUE;
}
ALSO(cuMemFreeAsync_ptsz, cuMemFreeAsync);
