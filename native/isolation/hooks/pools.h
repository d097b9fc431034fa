/* Memory pools keep what was freed for the next allocation: a pool is charged for all that it has
 * reserved, which only the driver knows, so it is asked after every change. */
#ifndef ISOLATION_POOLS_H
#define ISOLATION_POOLS_H

#include "ledger.h"

/* Brings the charges of all pools up to date. */
void pools_settle(void);

/* An allocation of a pool was given back to it. */
void pool_freed(const struct entry *entry);

/* Lets the pools of a card give back what they keep, and settles. */
void pools_trim(int card);

/* In the child of a fork: it has no pools. */
void pools_after_fork(void);

#endif
