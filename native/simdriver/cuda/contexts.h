/* Contexts. */
#ifndef SIMDRIVER_CUDA_CONTEXTS_H
#define SIMDRIVER_CUDA_CONTEXTS_H

#include "driver.h"

/* OK, or INVALID_CONTEXT if it is not the handle of a context. */
int context_check(const struct context *context);

/* Called with the lock held, before the context's memory is freed. */
void arrays_end(const struct context *context);
void external_end(const struct context *context);

/* Gives back the memory that the device keeps for graphs: its last context was destroyed. With the
 * lock held. */
void graphs_end(int device);

/* Waits until all work that was started in the context has ended. */
void context_wait(const struct context *context);

/* Records work in the context that ends at this time. */
void context_extend(struct context *context, uint64_t done_ns);

#endif
