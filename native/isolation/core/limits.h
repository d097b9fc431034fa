/* The limit file: a line `uuid MiB percent` for each card, or the one word `unlimited`.
 *
 * A card without a line may not be used, and a file that is missing or not understood has no
 * lines. Percent is of the card's compute; 0: not limited.
 */
#ifndef ISOLATION_LIMITS_H
#define ISOLATION_LIMITS_H

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
    uint64_t stamp[5]; /* tells a changed file */
};

/* Reads the file if it is not the one that `limits` was read from. `changed` says so. */
enum limits_found limits_read(struct limits *limits, const char *path, bool *changed);

#endif
