/* Which card a call is about, and what contexts this process has on it. */
#ifndef ISOLATION_DEVICES_H
#define ISOLATION_DEVICES_H

#include "driver.h"

/* The card of a device as the program counts them; NO_CARD if it may not be used. */
int card_of(int device);

/* The device of the calling thread's context; false without one: the driver will say so. */
bool current_device(int *device);

/* The calling thread's context, as a number; 0 if it is not known. */
uint64_t current_context(void);

/* In the child of a fork: it has no contexts. */
void contexts_after_fork(void);

#endif
