/* The limit file: a line `uuid MiB percent` for each card, or the one word `unlimited`.
 *
 * A card without a line may not be used. A file that is missing, not valid, or not the one that the
 * node made counts as one without lines: in doubt, no memory is given. `percent` is the share of the card's compute; 0: not
 * limited.
 */
#ifndef ISOLATION_LIMIT_FILE_H
#define ISOLATION_LIMIT_FILE_H

#include "mounts.h"
#include "region.h"

struct limit {
    char uuid[UUID_SIZE];
    uint64_t bytes;
    unsigned percent;
};

enum limits_found { LIMITS_GOOD, LIMITS_UNLIMITED, LIMITS_MISSING, LIMITS_BAD, LIMITS_FOREIGN };

struct limits {
    int count;
    struct limit cards[MAX_CARDS];
    uint64_t stamp[5]; /* device, inode, size and times of the file that was read */
    const char *problem; /* with LIMITS_FOREIGN: what is wrong with its mount */
};

/* Reads the file again if it has changed since `limits` was read; `changed` says whether it has. A
 * file that is not on the mount at that place is LIMITS_FOREIGN, whatever it says (mounts.h). With
 * an empty directory as the place, any file is read. */
enum limits_found limits_read(struct limits *limits, const char *path, const struct place *place,
                              bool *changed);

#endif
