/* Virtual memory management (virtual.c). */
#ifndef ISOLATION_VIRTUAL_H
#define ISOLATION_VIRTUAL_H

/* To be called in the child of a fork, which has no memory. */
void virtual_after_fork(void);

#endif
