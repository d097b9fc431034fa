#define _GNU_SOURCE
#include "clock.h"

#include <errno.h>
#include <time.h>

uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec;
}

void sleep_until_ns(uint64_t time) {
    if (time <= now_ns()) return;
    struct timespec until = {(time_t)(time / SECOND_NS), (long)(time % SECOND_NS)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}
