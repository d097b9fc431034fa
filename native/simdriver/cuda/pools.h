/* Memory pools. One keeps nothing back: what is freed is free at once. */
#ifndef SIMDRIVER_CUDA_POOLS_H
#define SIMDRIVER_CUDA_POOLS_H

struct pool;

/* With the driver's lock held. */
void pool_changed(struct pool *pool, long long bytes);

#endif
