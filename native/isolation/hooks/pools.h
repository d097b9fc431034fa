/* Memory pools keep freed memory for later allocations. A pool is charged for all memory that it
 * has reserved. Only the driver knows how much that is, so it is asked after every change
 * ("settle"). */
#ifndef ISOLATION_POOLS_H
#define ISOLATION_POOLS_H

#include "ledger.h"

/* Makes the charges of all pools equal to what the driver says. */
void pools_settle(void);

/* Records that memory was given back to its pool. */
void pool_freed(const struct entry *entry);

/* Makes the pools of a card give back the memory that they keep, and settles. */
void pools_trim(int card);

/* To be called in the child of a fork, which has no pools. */
void pools_after_fork(void);

#endif
