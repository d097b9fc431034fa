/* A share of a card's time, for all processes of the container together. Experimental.
 *
 * Every kernel is paid for in time of the card. `paid_ns` in the region says up to when the
 * container has paid, on the common clock: a kernel of 1 ms at 25 % moves it by 4 ms. A launch
 * waits while it is more than a burst ahead of now. One word changed by compare and swap: nothing
 * is held, and who dies owes nothing.
 *
 * What a kernel costs is measured by a pair of events around some of its launches. That also counts
 * the time spent behind kernels of others, so the smallest figure is taken, and raised slowly in
 * case the kernel has become longer. No thread, no NVML, no pids.
 */
#ifndef ISOLATION_SHARE_H
#define ISOLATION_SHARE_H

#include "driver.h"

struct launch {
    bool is_measured, is_per_thread;
    event_t end;
    stream_t stream;
};

/* Around a launch; `what` is the function or the graph. Waits until the container may. */
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

/* In the child of a fork: nothing was measured. */
void share_after_fork(void);

#endif
