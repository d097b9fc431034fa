#include "pools.h"

#include <pthread.h>

#include "charges.h"
#include "graphs.h"

#define MAX_POOLS 256
#define NOT_OURS (-2) /* a pool of host memory, or of another process, which is charged for it */

/* Held while the driver is asked: what a pool has reserved must not change between the question and
 * the charge. Lock order: that of contexts.c, then this mutex, then those of the ledger and
 * limiter.c. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct known_pool {
    memory_pool_t pool;
    int card;
    uint64_t charged;   /* all memory that the pool has reserved */
    uint64_t allocated; /* the part of it that the program uses */
} pools[MAX_POOLS];
static _Atomic int pool_count;

int cuMemPoolTrimTo(memory_pool_t pool, size_t keep);
int cuMemAllocFromPoolAsync(pointer_t *pointer, size_t size, memory_pool_t pool, stream_t stream);

/* The functions from here to settle_all are called with the mutex held. */
static struct known_pool *find(memory_pool_t pool) {
    for (int i = 0; i < atomic_load(&pool_count); i++)
        if (pools[i].pool == pool) return &pools[i];
    return NULL;
}

static struct known_pool *add(memory_pool_t pool, int card) {
    struct known_pool *known = find(pool);
    if (!known) known = find(NULL);
    if (!known) {
        if (atomic_load(&pool_count) == MAX_POOLS) return NULL;
        known = &pools[atomic_fetch_add(&pool_count, 1)];
    }
    *known = (struct known_pool){pool, card, 0, 0};
    return known;
}

/* `taken` was reserved for the change that is settled, in addition to what the pool is charged
 * for. */
static void settle(struct known_pool *known, uint64_t taken) {
    uint64_t reserved, before = known->charged + taken;
    if (REAL(cuMemPoolGetAttribute)(known->pool, POOL_RESERVED_NOW, &reserved) != OK)
        reserved = before;
    reserved = counted_bytes(reserved);
    if (reserved > before) limiter_take_anyway(known->card, reserved - before);
    else limiter_give(known->card, before - reserved);
    known->charged = reserved;
}

static void settle_all(void) {
    for (int i = 0; i < atomic_load(&pool_count); i++)
        if (pools[i].pool && pools[i].card != NOT_OURS) settle(&pools[i], 0);
}

void pools_settle(void) {
    if (!atomic_load_explicit(&pool_count, memory_order_relaxed)) return;
    pthread_mutex_lock(&mutex);
    settle_all();
    pthread_mutex_unlock(&mutex);
}

/* After cuMemPoolDestroy, the allocations of the pool are charged one by one: see there. */
void pool_freed(const struct entry *entry) {
    pthread_mutex_lock(&mutex);
    struct known_pool *known = find((memory_pool_t)(uintptr_t)entry->target);
    if (known) {
        known->allocated -= entry->bytes;
        settle(known, 0);
    } else {
        limiter_give(entry->card, entry->bytes);
    }
    pthread_mutex_unlock(&mutex);
}

void pools_trim(int card) {
    if (!atomic_load(&pool_count)) return;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < atomic_load(&pool_count); i++)
        if (pools[i].pool && pools[i].card == card) REAL(cuMemPoolTrimTo)(pools[i].pool, 0);
    settle_all();
    pthread_mutex_unlock(&mutex);
}

void pools_after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
    atomic_store(&pool_count, 0);
}

/* A pool that was not created through a hook belongs to a device: it is its default or current
 * pool. For any other kind the current device is assumed. */
static int device_of(memory_pool_t pool, int current) {
    int count = 0;
    memory_pool_t other;
    REAL(cuDeviceGetCount)(&count);
    for (int device = 0; device < count; device++) {
        if (REAL(cuDeviceGetDefaultMemPool)(&other, device) == OK && other == pool) return device;
        if (REAL(cuDeviceGetMemPool)(&other, device) == OK && other == pool) return device;
    }
    return current;
}

static int card_of_pool(memory_pool_t pool, int current) {
    pthread_mutex_lock(&mutex);
    struct known_pool *known = find(pool);
    if (!known) known = add(pool, card_of(device_of(pool, current)));
    int card = known ? known->card : NO_CARD;
    pthread_mutex_unlock(&mutex);
    return card;
}

/* Records the allocation, and settles its pool. With the mutex held. */
static void settle_allocation(memory_pool_t pool, int card, pointer_t pointer, uint64_t bytes,
                              uint64_t taken) {
    struct known_pool *known = find(pool);
    struct entry entry = {ledger_key(POINTER, pointer), counted_bytes(bytes), 0,
                          (uint64_t)(uintptr_t)pool, card, 1};
    struct entry replaced;
    if (!known) return;
    if (ledger_put(&entry, &replaced)) known->allocated += entry.bytes;
    settle(known, taken);
}

static int allocated(int result, memory_pool_t pool, int card, pointer_t *pointer, uint64_t bytes) {
    uint64_t taken = counted_bytes(bytes);
    if (result != OK) {
        limiter_give(card, taken);
        return result;
    }
    graphs_may_allocate();
    pthread_mutex_lock(&mutex);
    settle_allocation(pool, card, *pointer, bytes, taken);
    pthread_mutex_unlock(&mutex);
    return result;
}

/* When the share is nearly used up: the memory that the pool keeps is charged already, so that only
 * the rest has to be taken. If true, the mutex stays held until unlock_after_kept: no other thread
 * may count on the same kept memory. */
static bool lock_and_use_kept(memory_pool_t pool, int card, uint64_t bytes, uint64_t *taken) {
    uint64_t reserved, used;
    pthread_mutex_lock(&mutex);
    struct known_pool *known = find(pool);
    if (known && REAL(cuMemPoolGetAttribute)(pool, POOL_RESERVED_NOW, &reserved) == OK &&
        REAL(cuMemPoolGetAttribute)(pool, POOL_USED_NOW, &used) == OK && reserved > used) {
        uint64_t kept = reserved - used;
        *taken = bytes > kept ? counted_bytes(bytes - kept) : 0;
        if (!*taken || limiter_take(card, *taken)) return true;
    }
    pthread_mutex_unlock(&mutex);
    return false;
}

static int unlock_after_kept(int result, memory_pool_t pool, int card, pointer_t *pointer,
                             uint64_t bytes, uint64_t taken) {
    if (result == OK) settle_allocation(pool, card, *pointer, bytes, taken);
    else limiter_give(card, taken);
    pthread_mutex_unlock(&mutex);
    return result;
}

#define ALLOCATE(pool, call)                                                                \
    do {                                                                                    \
        int device, card;                                                                   \
        uint64_t taken;                                                                     \
        if (!limiter_is_on() || !pointer || !size || !current_device(&device)) return call; \
        if ((card = card_of_pool(pool, device)) == NOT_OURS) return call;                   \
        if (limiter_take(card, size)) return allocated(call, pool, card, pointer, size);    \
        if (lock_and_use_kept(pool, card, size, &taken))                                    \
            return unlock_after_kept(call, pool, card, pointer, size, taken);               \
        if (!reserve(card, size)) return OUT_OF_MEMORY;                                    \
        return allocated(call, pool, card, pointer, size);                                  \
    } while (0)

CALL(cuMemAllocFromPoolAsync, pointer_t *pointer, size_t size, memory_pool_t pool,
     stream_t stream) {
    ALLOCATE(pool, REAL(cuMemAllocFromPoolAsync)(pointer, size, pool, stream));
}

CALL(cuMemAllocFromPoolAsync_ptsz, pointer_t *pointer, size_t size, memory_pool_t pool,
     stream_t stream) {
    ALLOCATE(pool, REAL(cuMemAllocFromPoolAsync_ptsz)(pointer, size, pool, stream));
}

static memory_pool_t current_pool(void) {
    int device;
    memory_pool_t pool = NULL;
    if (current_device(&device)) REAL(cuDeviceGetMemPool)(&pool, device);
    return pool;
}

CALL(cuMemAllocAsync, pointer_t *pointer, size_t size, stream_t stream) {
    memory_pool_t pool = limiter_is_on() ? current_pool() : NULL;
    ALLOCATE(pool, REAL(cuMemAllocAsync)(pointer, size, stream));
}

CALL(cuMemAllocAsync_ptsz, pointer_t *pointer, size_t size, stream_t stream) {
    memory_pool_t pool = limiter_is_on() ? current_pool() : NULL;
    ALLOCATE(pool, REAL(cuMemAllocAsync_ptsz)(pointer, size, stream));
}

static int record_pool(int result, const memory_pool_t *pool, int card) {
    if (result != OK || !limiter_is_on()) return result;
    pthread_mutex_lock(&mutex);
    if (!find(*pool)) add(*pool, card);
    pthread_mutex_unlock(&mutex);
    return result;
}

static int card_at(const struct location *location) {
    return location->type == LOCATION_DEVICE ? card_of(location->id) : NOT_OURS;
}

CALL(cuMemPoolCreate, memory_pool_t *pool, const struct pool_properties *properties) {
    int result = REAL(cuMemPoolCreate)(pool, properties);
    return result == OK ? record_pool(result, pool, card_at(&properties->location)) : result;
}

CALL(cuMemPoolImportFromShareableHandle, memory_pool_t *pool, void *handle, int type,
     unsigned long long flags) {
    int result = REAL(cuMemPoolImportFromShareableHandle)(pool, handle, type, flags);
    return record_pool(result, pool, NOT_OURS);
}

CALL(cuMemGetDefaultMemPool, memory_pool_t *pool, struct location *location, int type) {
    int result = REAL(cuMemGetDefaultMemPool)(pool, location, type);
    return result == OK ? record_pool(result, pool, card_at(location)) : result;
}

CALL(cuMemGetMemPool, memory_pool_t *pool, struct location *location, int type) {
    int result = REAL(cuMemGetMemPool)(pool, location, type);
    return result == OK ? record_pool(result, pool, card_at(location)) : result;
}

CALL(cuMemPoolTrimTo, memory_pool_t pool, size_t keep) {
    int result = REAL(cuMemPoolTrimTo)(pool, keep);
    if (limiter_is_on()) pools_settle();
    return result;
}

/* The driver cannot be asked about the pool any more. Its charge becomes what the program still
 * uses of it, and each allocation gives back its own part when it is freed (pool_freed). */
CALL(cuMemPoolDestroy, memory_pool_t pool) {
    int result = REAL(cuMemPoolDestroy)(pool);
    if (result != OK || !limiter_is_on()) return result;
    pthread_mutex_lock(&mutex);
    struct known_pool *known = find(pool);
    if (known) {
        if (known->charged > known->allocated)
            limiter_give(known->card, known->charged - known->allocated);
        else
            limiter_take_anyway(known->card, known->allocated - known->charged);
        known->pool = NULL;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}
