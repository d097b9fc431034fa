/* Paths and figures: those of every container, or others from `limiter.conf` beside this library.
 *
 * Never from the environment: it belongs to the program that is to be limited. The directory of the
 * library is as safe as the library: whoever can write there could replace the library itself. A
 * file that is mounted over `limiter.conf` is not from that directory, and is not read.
 */
#ifndef ISOLATION_SETTINGS_H
#define ISOLATION_SETTINGS_H

#include <limits.h>
#include <stdint.h>

struct settings {
    char limits[PATH_MAX];       /* the limit file */
    char limits_mount[PATH_MAX]; /* the directory of the mount that it must be on; empty: any */
    char root[PATH_MAX];         /* where the file system that this directory is in is mounted */
    char region[PATH_MAX]; /* see region.h */
    char cuda[PATH_MAX];   /* the real driver's libraries; empty: they are found by name */
    char nvml[PATH_MAX];
    uint64_t context_bytes; /* measured memory of the first context of a process on a card */
    const char *problem;    /* why the file with the settings was not read; NULL: no problem */
    char source[PATH_MAX];  /* that file */
};

/* Reads the file at the first call. */
const struct settings *settings(void);

#endif
