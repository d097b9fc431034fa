/* Memory pools keep what was freed for the next allocation: a pool is charged for all that it has
 * reserved, which only the driver knows, so it is asked after every change. */
#ifndef ISOLATION_POOLS_H
#define ISOLATION_POOLS_H

/* Brings the charges of all pools up to date. */
void pools_settle(void);

/* Lets the pools of a card give back what they keep, and settles. */
void pools_trim(int card);

/* In the child of a fork: it has no pools. */
void pools_after_fork(void);

#endif
