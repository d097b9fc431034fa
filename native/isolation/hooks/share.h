/* A share of a card's time, for all processes of the container together. Experimental.
 *
 * The container pays for every kernel with time. `paid_ns` in the region is the time on the
 * machine's clock up to which the container has paid: a kernel of 1 ms at 25 % moves it by 4 ms. A
 * launch waits while `paid_ns` is more than a burst ahead of now. It is one word that is changed by
 * compare-and-swap: no process holds anything that it could leave behind when it dies.
 *
 * The cost of a kernel is measured by a pair of events around some of its launches. The measured
 * time includes waiting behind kernels of other containers. So the smallest measurement counts, and
 * it is raised slowly, for the case that the kernel has become longer. There is no thread and no
 * use of NVML or pids.
 */
#ifndef ISOLATION_SHARE_H
#define ISOLATION_SHARE_H

#include "driver.h"

struct launch {
    bool is_measured, is_per_thread;
    event_t end;
    stream_t stream;
};

/* To be called before and after a launch; `what` is the function or the graph. share_wait waits
 * until the container has time left. */
void share_wait(struct launch *launch, int device, const void *what);
void share_measured(struct launch *launch);

static inline void share_begin(struct launch *launch, int device, const void *what,
                               stream_t stream, bool is_per_thread) {
    launch->is_measured = false;
    if (__builtin_expect(!limiter_has_percent(), 1)) return;
    launch->stream = stream;
    launch->is_per_thread = is_per_thread;
    share_wait(launch, device, what);
}

static inline void share_end(struct launch *launch) {
    if (__builtin_expect(launch->is_measured, 0)) share_measured(launch);
}

/* To be called when a context was destroyed, and the events in it. */
void share_forget(uint64_t context);

/* To be called in the child of a fork, which has no measurements. */
void share_after_fork(void);

#endif
