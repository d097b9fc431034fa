/* Contexts: a process' foot on a card. */
#ifndef SIMDRIVER_CUDA_CONTEXTS_H
#define SIMDRIVER_CUDA_CONTEXTS_H

#include "driver.h"

/* Waits until all that was started in the context has ended. */
void context_wait(const struct context *context);

/* What was started in the context now lasts at least until then. */
void context_extend(struct context *context, uint64_t done_ns);

#endif
