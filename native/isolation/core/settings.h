/* Where things are: fixed paths of a container, or what `limiter.conf` beside this library says.
 *
 * Never from the environment, which belongs to the program that is to be limited. Whoever can
 * write beside the library could as well replace it.
 */
#ifndef ISOLATION_SETTINGS_H
#define ISOLATION_SETTINGS_H

#include <limits.h>
#include <stdint.h>

struct settings {
    char limits[PATH_MAX]; /* the limit file */
    char region[PATH_MAX]; /* what the container's processes count in */
    char cuda[PATH_MAX];   /* the driver's own libraries; empty: found by name */
    char nvml[PATH_MAX];
    uint64_t context_bytes; /* what a process' first context on a card takes, as was measured */
};

/* Read once. */
const struct settings *settings(void);

#endif
