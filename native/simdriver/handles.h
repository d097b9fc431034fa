/* Objects that programs know by a handle: streams, events, pools and so on.
 *
 * The memory of an object is never given back. A program that uses a handle after it destroyed the
 * object gets an error, and nothing reads memory that was freed. The next object of the same kind
 * gets the place that became free last, and so the same handle: programs that compare a new handle
 * with an old one meet that here, as they do with the real driver.
 */
#ifndef SIMDRIVER_HANDLES_H
#define SIMDRIVER_HANDLES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define HANDLE_CHUNKS 24 /* each has twice the objects of the one before */

struct handles {
    size_t size; /* of one object */
    _Atomic(char *) chunks[HANDLE_CHUNKS];
    struct handle_cell *unused;
};

#define HANDLES_OF(type) {.size = sizeof(type)}

void *handle_new(struct handles *kind); /* filled with zeros; NULL: out of memory */
bool handle_is_live(const struct handles *kind, const void *object);
bool handle_end(struct handles *kind, void *object); /* false: it is not live */

/* The next live object; NULL after the last. `cursor` begins at 0. */
void *handle_next(const struct handles *kind, size_t *cursor);

#endif
