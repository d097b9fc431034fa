/* The limit file: a line `uuid MiB percent` for each card, or the one word `unlimited`.
 *
 * A card without a line may not be used. A file that is missing or not valid counts as one without
 * lines: in doubt, no memory is given. `percent` is the share of the card's compute; 0: not
 * limited.
 */
#ifndef ISOLATION_LIMIT_FILE_H
#define ISOLATION_LIMIT_FILE_H

#include "region.h"

struct limit {
    char uuid[UUID_SIZE];
    uint64_t bytes;
    unsigned percent;
};

enum limits_found { LIMITS_GOOD, LIMITS_UNLIMITED, LIMITS_MISSING, LIMITS_BAD };

struct limits {
    int count;
    struct limit cards[MAX_CARDS];
    uint64_t stamp[5]; /* device, inode, size and times of the file that was read */
};

/* Reads the file again if it has changed since `limits` was read; `changed` says whether it has. */
enum limits_found limits_read(struct limits *limits, const char *path, bool *changed);

#endif
