/* Memory pools.
 *
 * A pool keeps freed memory for its next allocations. It gives back to the card what is beyond its
 * release threshold (0 unless the program has set another) only when the program synchronises with
 * a stream, an event or a context, or calls cuMemPoolTrimTo. Memory that was freed in a stream
 * cannot be given back before the stream has done the work that precedes the free.
 */
#ifndef SIMDRIVER_CUDA_POOLS_H
#define SIMDRIVER_CUDA_POOLS_H

#include "driver.h"

struct pool;

/* Count an allocation of the pool, and its end at the time `free_ns`. With the driver's lock held. */
bool pool_take(struct pool *pool, uint64_t bytes);
void pool_give_back(struct pool *pool, uint64_t bytes, uint64_t free_ns);

/* To be called after each synchronisation. */
void pools_release(void);

/* Gives back all memory that the pools of the device keep: its last context was destroyed. With the
 * lock held. */
void pools_end(int device);

#endif
