#include "pools.h"

#include <pthread.h>

#include "charges.h"
#include "graphs.h"

#define MAX_POOLS 256

/* Held while the driver is asked: what a pool has reserved must not change between the question and
 * the charge. Lock order: that of contexts.c, then this mutex, then those of the ledger and
 * limiter.c. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct known_pool {
    memory_pool_t pool; /* NULL: the entry is free */
    int card;
    uint64_t charged;   /* all memory that the pool has reserved */
    uint64_t expected;  /* taken for allocations that other threads are just making */
    uint64_t allocated; /* the part of it that the program uses */
} pools[MAX_POOLS];
static _Atomic int pool_count;

int cuMemPoolTrimTo(memory_pool_t pool, size_t keep);
int cuMemPoolDestroy(memory_pool_t pool);

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
    *known = (struct known_pool){pool, card, 0, 0, 0};
    return known;
}

/* `taken` was reserved for the change that is settled, in addition to what the pool is charged for.
 *
 * Growth that may be due to allocations which are just being made is not charged: their memory was
 * taken before, and each of them is settled when it is done. */
static void settle(struct known_pool *known, uint64_t taken) {
    uint64_t reserved, before = known->charged + taken;
    known->charged = before;
    if (REAL(cuMemPoolGetAttribute)(known->pool, POOL_RESERVED_NOW, &reserved) != OK) return;
    reserved = counted_bytes(reserved);
    if (reserved < before) {
        limiter_give(known->card, before - reserved);
        known->charged = reserved;
    } else if (reserved - before > known->expected) {
        known->charged = reserved - known->expected;
        limiter_take_anyway(known->card, known->charged - before);
    }
}

static void freed(const struct entry *entry) {
    struct known_pool *known = find((memory_pool_t)(uintptr_t)entry->target);
    if (known) {
        known->allocated -= entry->bytes;
        settle(known, 0);
    } else { /* another thread has just destroyed the pool: see pool_destroy */
        limiter_give(entry->card, entry->bytes);
    }
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

/* Without this, a pool that is destroyed later would be charged for this memory again. Whether the
 * driver has freed it, is asked: the program has less of the pool than was allocated. With the mutex
 * held. */
static void drop_ended(struct known_pool *known, uint64_t context) {
    uint64_t used;
    if (REAL(cuMemPoolGetAttribute)(known->pool, POOL_USED_NOW, &used) != OK) return;
    if (used < known->allocated)
        known->allocated -= ledger_drop(context, (uint64_t)(uintptr_t)known->pool);
}

void pools_end_context(uint64_t context) {
    if (!atomic_load_explicit(&pool_count, memory_order_relaxed)) return;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < atomic_load(&pool_count); i++)
        if (pools[i].pool && pools[i].card != NOT_OURS) drop_ended(&pools[i], context);
    settle_all();
    pthread_mutex_unlock(&mutex);
}

void pool_freed(const struct entry *entry) {
    pthread_mutex_lock(&mutex);
    freed(entry);
    pthread_mutex_unlock(&mutex);
}

void pools_trim(int card) {
    if (!atomic_load(&pool_count)) return;
    pthread_mutex_lock(&mutex);
    int mode = capture_relax();
    for (int i = 0; i < atomic_load(&pool_count); i++)
        if (pools[i].pool && pools[i].card == card) REAL(cuMemPoolTrimTo)(pools[i].pool, 0);
    capture_restore(mode);
    settle_all();
    pthread_mutex_unlock(&mutex);
}

void pools_after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
    atomic_store(&pool_count, 0);
}

void pool_found(memory_pool_t pool, int card) {
    pthread_mutex_lock(&mutex);
    if (!find(pool)) add(pool, card);
    pthread_mutex_unlock(&mutex);
}

/* Afterwards the driver cannot be asked about the pool any more. Its charge becomes what the
 * program still uses of it, and each allocation gives back its own part when it is freed. A later
 * pool may have the same handle, so the allocations must not name it any more.
 *
 * The mutex is held while the driver is called: it may give the handle to another thread at once. */
int pool_destroy(memory_pool_t pool) {
    pthread_mutex_lock(&mutex);
    int result = REAL(cuMemPoolDestroy)(pool);
    struct known_pool *known = result == OK && pool ? find(pool) : NULL;
    if (known) {
        if (known->charged > known->allocated)
            limiter_give(known->card, known->charged - known->allocated);
        else
            limiter_take_anyway(known->card, known->allocated - known->charged);
        known->pool = NULL;
        ledger_detach((uint64_t)(uintptr_t)pool);
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

/* A pool that was not created through a hook belongs to a device: it is its default or current
 * pool. For any other kind `assumed` is taken. */
static int device_of(memory_pool_t pool, int assumed) {
    int count = 0;
    memory_pool_t other;
    REAL(cuDeviceGetCount)(&count);
    for (int device = 0; device < count; device++) {
        if (REAL(cuDeviceGetDefaultMemPool)(&other, device) == OK && other == pool) return device;
        if (REAL(cuDeviceGetMemPool)(&other, device) == OK && other == pool) return device;
    }
    return assumed;
}

static int card_of_pool(memory_pool_t pool, int device) {
    pthread_mutex_lock(&mutex);
    struct known_pool *known = find(pool);
    if (!known) known = add(pool, card_of(device_of(pool, device)));
    int card = known ? known->card : NO_CARD;
    pthread_mutex_unlock(&mutex);
    return card;
}

static void expect(memory_pool_t pool, uint64_t bytes) {
    pthread_mutex_lock(&mutex);
    struct known_pool *known = find(pool);
    if (known) known->expected += bytes;
    pthread_mutex_unlock(&mutex);
}

/* When the share is nearly used up: the memory that the pool keeps is charged already, so that only
 * the rest has to be taken. If true, the mutex stays held until pool_end: no other thread may count
 * on the same kept memory. */
static bool lock_and_use_kept(struct pool_request *request) {
    uint64_t reserved, used;
    pthread_mutex_lock(&mutex);
    if (find(request->pool) &&
        REAL(cuMemPoolGetAttribute)(request->pool, POOL_RESERVED_NOW, &reserved) == OK &&
        REAL(cuMemPoolGetAttribute)(request->pool, POOL_USED_NOW, &used) == OK && reserved > used) {
        uint64_t kept = reserved - used, bytes = request->bytes;
        request->taken = bytes > kept ? counted_bytes(bytes - kept) : 0;
        request->is_locked = !request->taken || limiter_take(request->card, request->taken);
        if (request->is_locked) return true;
    }
    pthread_mutex_unlock(&mutex);
    return false;
}

bool pool_begin(struct pool_request *request, memory_pool_t pool, int device, stream_t stream,
                uint64_t bytes) {
    *request = (struct pool_request){.pool = pool, .card = card_of_pool(pool, device)};
    if (request->card == NOT_OURS) return true;
    request->bytes = bytes;
    request->context = context_of_stream(stream);
    if (!limiter_take(request->card, bytes)) {
        if (lock_and_use_kept(request)) return true;
        if (!reserve(request->card, bytes)) return false;
    }
    request->taken = counted_bytes(bytes);
    expect(pool, request->taken);
    return true;
}

/* With the mutex held. */
static void record(const struct pool_request *request, struct known_pool *known,
                   pointer_t pointer) {
    struct entry replaced, entry = {ledger_key(POINTER, pointer), counted_bytes(request->bytes),
                                    request->context, (uint64_t)(uintptr_t)request->pool,
                                    request->card, 1};
    bool is_put = ledger_put(&entry, &replaced);
    if (is_put && known) known->allocated += entry.bytes;
    if (is_put && replaced.key && replaced.target) freed(&replaced);
    else if (is_put && replaced.key) limiter_give(replaced.card, replaced.bytes);
}

int pool_end(struct pool_request *request, int result, const pointer_t *pointer) {
    if (request->card == NOT_OURS) return result;
    if (result == OK) graphs_may_allocate(request->card);
    if (!request->is_locked) pthread_mutex_lock(&mutex);
    struct known_pool *known = find(request->pool);
    if (known && !request->is_locked) known->expected -= request->taken;
    if (result == OK) record(request, known, *pointer);
    else limiter_give(request->card, request->taken);
    if (known) settle(known, result == OK ? request->taken : 0);
    pthread_mutex_unlock(&mutex);
    return result;
}
