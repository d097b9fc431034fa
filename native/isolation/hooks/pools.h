/* Memory pools keep freed memory for later allocations. A pool is charged for all memory that it
 * has reserved. Only the driver knows how much that is, so it is asked after every change
 * ("settle"): allocations, frees, trims, and synchronisations, at which pools give memory back. */
#ifndef ISOLATION_POOLS_H
#define ISOLATION_POOLS_H

#include "devices.h"
#include "ledger.h"

/* In the place of a card: a pool of host memory, or of another process, which is charged for it. */
#define NOT_OURS (-2)

/* Makes the charges of all pools equal to what the driver says. */
void pools_settle(void);

/* To be called after a context has ended: the driver may have freed what was allocated in it. */
void pools_end_context(uint64_t context);

/* Records that memory was given back to its pool. */
void pool_freed(const struct entry *entry);

/* Makes the pools of a card give back the memory that they keep, and settles. */
void pools_trim(int card);

/* Records the card of a pool, if the pool is not known. */
void pool_found(memory_pool_t pool, int card);

/* Calls the driver's cuMemPoolDestroy. */
int pool_destroy(memory_pool_t pool);

/* One allocation from a pool, between pool_begin and pool_end. */
struct pool_request {
    memory_pool_t pool;
    int card;
    uint64_t bytes, taken;
    uint64_t context; /* that of the stream */
    bool is_locked; /* the mutex is held, see pools.c */
};

/* To be called before and after the driver allocates from the pool. `device` is where an unknown
 * pool is assumed to be. pool_begin reserves the memory; false: there is not enough. pool_end gets
 * and returns the driver's result. */
bool pool_begin(struct pool_request *request, memory_pool_t pool, int device, stream_t stream,
                uint64_t bytes);
int pool_end(struct pool_request *request, int result, const pointer_t *pointer);

/* To be called in the child of a fork, which has no pools. */
void pools_after_fork(void);

#endif
