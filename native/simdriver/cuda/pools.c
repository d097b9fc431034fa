#include "pools.h"

#include <stdlib.h>
#include <string.h>

#include "../../process/clock.h"
#include "allocations.h"
#include "../handles.h"
#include "streams.h"

/* Memory that was freed, and is kept for the next allocation. */
struct freed {
    struct freed *next;
    uint64_t bytes;
    uint64_t free_ns; /* the time at which the work before the free ends */
};

struct pool {
    int device;
    bool is_default;
    bool is_managed;   /* it counts for its device, or for the first one, wherever it is */
    bool is_destroyed; /* and allocations of it are still in use */
    int reuse[4];      /* attributes 1 to 3, by number; they change nothing */
    uint64_t threshold;
    uint64_t used; /* by allocations of the program */
    uint64_t kept; /* the sum of `freed` */
    struct freed *freed;
    uint64_t highest_used, highest_reserved;
};

static struct handles pools = HANDLES_OF(struct pool);
static struct pool *defaults[MAX_CARDS];
static struct pool *current[MAX_CARDS]; /* NULL: the default pool */

/* The functions from here to pools_end are called with the lock held. */
static bool take(const struct pool *pool, uint64_t bytes) {
    return pool->is_managed ? take_managed(pool->device, bytes) : take_memory(pool->device, bytes);
}

static void give_back(const struct pool *pool, uint64_t bytes) {
    if (pool->is_managed) give_back_managed(pool->device, bytes);
    else give_back_memory(pool->device, bytes);
}

static void reduce(struct pool *pool, struct freed **link, uint64_t bytes) {
    struct freed *freed = *link;
    pool->kept -= bytes;
    freed->bytes -= bytes;
    if (freed->bytes) return;
    *link = freed->next;
    free(freed);
}

bool pool_take(struct pool *pool, uint64_t bytes) {
    uint64_t reused = bytes < pool->kept ? bytes : pool->kept;
    if (bytes > reused && !take(pool, bytes - reused)) return false;
    while (reused) {
        uint64_t part = pool->freed->bytes < reused ? pool->freed->bytes : reused;
        reduce(pool, &pool->freed, part);
        reused -= part;
    }
    pool->used += bytes;
    if (pool->used > pool->highest_used) pool->highest_used = pool->used;
    if (pool->used + pool->kept > pool->highest_reserved)
        pool->highest_reserved = pool->used + pool->kept;
    return true;
}

/* Gives memory back to the card until the pool has at most `most`, or keeps nothing that is free by
 * now. */
static void trim(struct pool *pool, uint64_t most) {
    uint64_t now = now_ns();
    for (struct freed **link = &pool->freed; *link && pool->used + pool->kept > most;) {
        struct freed *freed = *link;
        if (freed->free_ns > now) {
            link = &freed->next;
            continue;
        }
        uint64_t excess = pool->used + pool->kept - most;
        uint64_t part = freed->bytes < excess ? freed->bytes : excess;
        give_back(pool, part);
        reduce(pool, link, part);
    }
    if (pool->is_destroyed && !pool->used && !pool->kept) handle_end(&pools, pool);
}

void pool_give_back(struct pool *pool, uint64_t bytes, uint64_t free_ns) {
    struct freed *last = pool->freed, *freed = last;
    /* What is free by now need not be told apart. */
    if (!last || last->free_ns > now_ns() || free_ns > now_ns()) freed = calloc(1, sizeof *freed);
    if (!freed) freed = last;
    pool->used -= bytes;
    if (!freed) { /* the machine is out of memory, and there is no entry to add to */
        give_back(pool, bytes);
        return;
    }
    if (freed != last) {
        freed->next = last;
        pool->freed = freed;
    }
    freed->bytes += bytes;
    if (free_ns > freed->free_ns) freed->free_ns = free_ns;
    pool->kept += bytes;
    if (pool->is_destroyed) trim(pool, 0);
}

void pools_end(int device) {
    struct pool *pool;
    for (size_t cursor = 0; (pool = handle_next(&pools, &cursor));) {
        if (pool->device != device) continue;
        for (struct freed *freed = pool->freed; freed; freed = freed->next) freed->free_ns = 0;
        trim(pool, 0);
    }
}

void pools_release(void) {
    struct pool *pool;
    driver_lock();
    for (size_t cursor = 0; (pool = handle_next(&pools, &cursor));) trim(pool, pool->threshold);
    driver_unlock();
}

static struct pool *new_pool(int device) {
    struct pool *pool = handle_new(&pools);
    if (pool)
        *pool = (struct pool){.device = device, .reuse = {0, 1, 1, 1}};
    return pool;
}

static struct pool *default_pool(int device) {
    driver_lock();
    if (!defaults[device] && (defaults[device] = new_pool(device)))
        defaults[device]->is_default = true;
    driver_unlock();
    return defaults[device];
}

static struct pool *current_pool(int device) {
    return current[device] ? current[device] : default_pool(device);
}

static bool is_known(const struct pool *pool) {
    return handle_is_live(&pools, pool) && !pool->is_destroyed;
}

CALL(cuDeviceGetDefaultMemPool, struct pool **pool, int device) {
    WITH_DEVICE(device);
    if (!pool) return INVALID_VALUE;
    *pool = default_pool(device);
    return *pool ? OK : OUT_OF_MEMORY;
}

CALL(cuDeviceGetMemPool, struct pool **pool, int device) {
    WITH_DEVICE(device);
    if (!pool) return INVALID_VALUE;
    *pool = current_pool(device);
    return *pool ? OK : OUT_OF_MEMORY;
}

CALL(cuDeviceSetMemPool, int device, struct pool *pool) {
    WITH_DEVICE(device);
    if (!is_known(pool) || pool->device != device) return INVALID_VALUE;
    current[device] = pool;
    return OK;
}

CALL(cuMemPoolCreate, struct pool **made, const struct pool_properties *properties) {
    WITH_DRIVER(driver);
    if (!made || !properties) return INVALID_VALUE;
    bool is_managed = properties->type == MANAGED_POOL;
    if (!is_managed && properties->type != PINNED) return INVALID_VALUE;
    int device = properties->location.id;
    if (properties->location.type != LOCATION_DEVICE) {
        if (!is_managed || properties->location.type > LOCATION_HOST) return INVALID_VALUE;
        device = 0;
    }
    if (device < 0 || device >= driver->card_count) return INVALID_DEVICE;
    *made = new_pool(device);
    if (!*made) return OUT_OF_MEMORY;
    (*made)->is_managed = is_managed;
    return OK;
}

CALL(cuMemPoolDestroy, struct pool *pool) {
    WITH_DRIVER(driver);
    if (!is_known(pool) || pool->is_default) return INVALID_VALUE;
    driver_lock();
    for (int i = 0; i < MAX_CARDS; i++)
        if (current[i] == pool) current[i] = NULL;
    pool->threshold = 0;
    pool->is_destroyed = true;
    trim(pool, 0);
    driver_unlock();
    return OK;
}

CALL(cuMemPoolSetAttribute, struct pool *pool, int attribute, void *value) {
    WITH_DRIVER(driver);
    if (!is_known(pool) || !value) return INVALID_VALUE;
    if (attribute >= 1 && attribute <= 3) pool->reuse[attribute] = *(int *)value;
    else if (attribute == POOL_RELEASE_THRESHOLD) pool->threshold = *(uint64_t *)value;
    else if (attribute == POOL_RESERVED_HIGHEST) pool->highest_reserved = pool->used + pool->kept;
    else if (attribute == POOL_USED_HIGHEST) pool->highest_used = pool->used;
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
    case POOL_RESERVED_HIGHEST:
        *(uint64_t *)value = pool->highest_reserved;
        return OK;
    case POOL_USED_HIGHEST:
        *(uint64_t *)value = pool->highest_used;
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
    WITH_STREAM(context, stream);
    if (!is_known(pool)) return INVALID_VALUE;
    return allocate(context, pool->device, pool->is_managed ? MANAGED : ON_DEVICE, size, pool,
                    pointer);
}
ALSO(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync);

CALL(cuMemAllocAsync, pointer_t *pointer, size_t size, struct stream *stream) {
    WITH_STREAM(context, stream);
    return cuMemAllocFromPoolAsync(pointer, size, current_pool(context->device), stream);
}
ALSO(cuMemAllocAsync_ptsz, cuMemAllocAsync);

CALL(cuMemFreeAsync, pointer_t pointer, struct stream *stream) {
    WITH_STREAM(context, stream);
    struct allocation found;
    if (!find_allocation(pointer, &found)) return INVALID_VALUE;
    if (!found.pool) stream_wait(stream, context);
    return release(pointer, ON_DEVICE, stream_done_ns(stream, context));
}
ALSO(cuMemFreeAsync_ptsz, cuMemFreeAsync);
