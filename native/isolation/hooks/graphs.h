/* Graphs allocate when they run; how much, the driver tells afterwards. */
#ifndef ISOLATION_GRAPHS_H
#define ISOLATION_GRAPHS_H

/* From now on, graphs of this process may hold memory. */
void graphs_may_allocate(void);

/* Lets the driver give back what graphs keep on a card for their next run. */
void graphs_trim(int card);

/* In the child of a fork: it has no graphs. */
void graphs_after_fork(void);

#endif
