/* Graphs allocate when they are launched. The driver tells only afterwards how much. */
#ifndef ISOLATION_GRAPHS_H
#define ISOLATION_GRAPHS_H

/* Says that graphs of this process may hold memory of the card from now on. */
void graphs_may_allocate(int card);

/* Makes the driver give back the memory that graphs keep on a card for their next launch. */
void graphs_trim(int card);

/* Makes the charges equal to what the driver says, after a context was destroyed. */
void graphs_settle(void);

/* To be called in the child of a fork, which has no graphs. */
void graphs_after_fork(void);

#endif
