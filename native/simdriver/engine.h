/* Time on a card: one queue of kernels for all processes, and how busy it has been.
 *
 * Busy time is kept in BUCKETS of BUCKET_NS: the upper half of an entry says which stretch of time
 * it is about, the lower half how many nanoseconds of it were busy. Times are CLOCK_MONOTONIC, the
 * same in all processes of a machine.
 */
#ifndef SIMDRIVER_ENGINE_H
#define SIMDRIVER_ENGINE_H

#include "layout.h"

uint64_t now_ns(void);
void sleep_until_ns(uint64_t time);

/* Queues a kernel of that length; returns when it will end. Waits while too much is queued. */
uint64_t engine_run(struct sim_state *state, int card, int slot, uint64_t length_ns);

/* In percent, over the last second. */
unsigned busy_percent(const _Atomic uint64_t *busy);

/* What NVML shows: the card's own, or what outside programs are said to do. */
unsigned card_percent(const struct card *card);

#endif
