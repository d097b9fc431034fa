/* CLOCK_MONOTONIC in nanoseconds: the same clock in all processes of a machine. */
#ifndef PROCESS_CLOCK_H
#define PROCESS_CLOCK_H

#include <stdint.h>

#define SECOND_NS 1000000000ull

uint64_t now_ns(void);

/* Returns at once if the time has passed. Signals do not end the wait early. */
void sleep_until_ns(uint64_t time);

#endif
