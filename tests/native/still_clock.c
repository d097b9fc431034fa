/* A monotonic clock that stands still until somebody sleeps; then it jumps to the end of the sleep.
 * Preloaded, it takes the load of the machine out of tests that measure the simulated card. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ll

static _Atomic long long now_ns = 1000 * SECOND_NS;

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, time);
    long long now = atomic_load(&now_ns);
    *time = (struct timespec){(time_t)(now / SECOND_NS), (long)(now % SECOND_NS)};
    return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until,
                    struct timespec *left) {
    if (clock != CLOCK_MONOTONIC || flags != TIMER_ABSTIME)
        return (int)syscall(SYS_clock_nanosleep, clock, flags, until, left);
    long long end = until->tv_sec * SECOND_NS + until->tv_nsec, now = atomic_load(&now_ns);
    while (now < end && !atomic_compare_exchange_weak(&now_ns, &now, end)) {
    }
    return 0;
}
