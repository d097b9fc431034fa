#include "pools.h"

#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "streams.h"

struct pool {
    int device;
    bool is_default;
    int reuse[4]; /* attributes 1 to 3, by number; they change nothing */
    uint64_t threshold;
    uint64_t used;    /* by allocations of the program */
    uint64_t kept;    /* freed, and kept for the next allocation */
    uint64_t highest; /* the largest value of `used` */
    struct pool *next;
};

static struct pool defaults[MAX_CARDS];
static struct pool *current[MAX_CARDS]; /* NULL: the default pool */
static struct pool *others;

bool pool_take(struct pool *pool, uint64_t bytes) {
    uint64_t reused = bytes < pool->kept ? bytes : pool->kept;
    if (bytes > reused && !take_memory(pool->device, bytes - reused)) return false;
    pool->kept -= reused;
    pool->used += bytes;
    if (pool->used > pool->highest) pool->highest = pool->used;
    return true;
}

/* Gives memory back to the card until the pool has at most `most`, or keeps nothing unused. */
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

static struct pool *current_pool(int device) {
    return current[device] ? current[device] : default_pool(device);
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
    *pool = current_pool(device);
    return OK;
}

CALL(cuDeviceSetMemPool, int device, struct pool *pool) {
    WITH_DEVICE(device);
    if (!is_known(pool)) return INVALID_VALUE;
    current[device] = pool;
    return OK;
}

CALL(cuMemPoolCreate, struct pool **made, const struct pool_properties *properties) {
    WITH_DRIVER(driver);
    if (!made || !properties || properties->location.type != LOCATION_DEVICE) return INVALID_VALUE;
    int device = properties->location.id;
    if (device < 0 || device >= driver->card_count) return INVALID_DEVICE;
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool) return OUT_OF_MEMORY;
    pool->device = device;
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
        if (current[i] == pool) current[i] = NULL;
    pool->threshold = 0;
    trim(pool, 0);
    driver_unlock();
    /* The struct is not freed: allocations of the pool may still be in use. */
    return OK;
}

CALL(cuMemPoolSetAttribute, struct pool *pool, int attribute, void *value) {
    WITH_DRIVER(driver);
    if (!is_known(pool) || !value) return INVALID_VALUE;
    if (attribute >= 1 && attribute <= 3) pool->reuse[attribute] = *(int *)value;
    else if (attribute == POOL_RELEASE_THRESHOLD) pool->threshold = *(uint64_t *)value;
    else if (attribute == POOL_RESERVED_HIGHEST || attribute == POOL_USED_HIGHEST)
        pool->highest = pool->used;
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
    case POOL_RELEASE_THRESHOLD:
        *(uint64_t *)value = pool->threshold;
        return OK;
    case POOL_RESERVED_NOW:
        *(uint64_t *)value = pool->used + pool->kept;
        return OK;
    case POOL_USED_NOW:
        *(uint64_t *)value = pool->used;
        return OK;
    case POOL_RESERVED_HIGHEST: case POOL_USED_HIGHEST:
        *(uint64_t *)value = pool->highest;
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

CALL(cuMemPoolGetAccess, int *flags, struct pool *pool, const struct location *location) {
    WITH_DRIVER(driver);
    if (!is_known(pool) || !flags || !location) return INVALID_VALUE;
    *flags = location->id == pool->device ? 3 : 0; /* read and write, or none */
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
    return cuMemAllocFromPoolAsync(pointer, size, current_pool(context->device), stream);
}
ALSO(cuMemAllocAsync_ptsz, cuMemAllocAsync);

CALL(cuMemFreeAsync, pointer_t pointer, struct stream *stream) {
    WITH_CONTEXT(context);
    stream_wait(stream, context);
    return pointer ? release(pointer, ON_DEVICE) : INVALID_VALUE;
}
ALSO(cuMemFreeAsync_ptsz, cuMemFreeAsync);
