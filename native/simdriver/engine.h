/* The time of a card: one queue of kernels for all processes, and how busy the card was.
 *
 * Busy time is recorded in a ring of BUCKETS buckets, each of which stands for BUCKET_NS of time.
 * The upper half of a bucket is the number of the time span that it is about, the lower half the
 * busy nanoseconds in it. So one compare-and-swap both starts a new span and adds to the current
 * one, and a reader recognises a bucket that was not written for a while. Times are those of
 * process/clock.h.
 */
#ifndef SIMDRIVER_ENGINE_H
#define SIMDRIVER_ENGINE_H

#include "layout.h"

/* Queues a kernel of that length; returns the time at which it will end. Waits while more than a
 * second of work is queued. `slot`: of the process, to which the time is added, too. */
uint64_t engine_run(struct sim_state *state, int card, int slot, uint64_t length_ns);

/* In percent, over the last second. */
unsigned busy_percent(const _Atomic uint64_t *busy);

/* Whether it worked after that time. A bucket keeps its content until its place is needed again, so
 * this is known of any time, to a quarter of a second. */
int busy_since(const _Atomic uint64_t *busy, uint64_t since_ns);

/* What NVML shows: the load of simulated programs and the one that the fault injector adds. */
unsigned card_percent(const struct card *card);

#endif
