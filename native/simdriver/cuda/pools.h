/* Memory pools. One keeps what is freed for its next allocation, up to its threshold: 0, unless the
 * program has set another. */
#ifndef SIMDRIVER_CUDA_POOLS_H
#define SIMDRIVER_CUDA_POOLS_H

#include "driver.h"

struct pool;

/* With the driver's lock held. */
bool pool_take(struct pool *pool, uint64_t bytes);
void pool_give_back(struct pool *pool, uint64_t bytes);

#endif
