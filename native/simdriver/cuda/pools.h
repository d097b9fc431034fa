/* Memory pools. A pool keeps freed memory for its next allocations, up to its release threshold,
 * which is 0 unless the program has set another. */
#ifndef SIMDRIVER_CUDA_POOLS_H
#define SIMDRIVER_CUDA_POOLS_H

#include "driver.h"

struct pool;

/* Count an allocation of the pool, and its end. With the driver's lock held. */
bool pool_take(struct pool *pool, uint64_t bytes);
void pool_give_back(struct pool *pool, uint64_t bytes);

#endif
