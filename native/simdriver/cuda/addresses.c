#define _GNU_SOURCE
#include "addresses.h"

#include <stdint.h>
#include <sys/mman.h>

#define KEPT 64 /* more than a program frees between two allocations of one size */
#define EMPTY (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/* A ring, in the order in which the addresses were given back. They stay mapped, without memory:
 * the kernel would give them to others. */
static struct range {
    char *start; /* NULL: none */
    size_t size;
} ranges[KEPT];
static unsigned next_range;

static void *map_new(size_t size, size_t alignment) {
    size_t whole = size + alignment;
    char *memory = mmap(NULL, whole, PROT_NONE, EMPTY, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    char *start = (char *)(((uintptr_t)memory + alignment - 1) / alignment * alignment);
    if (start > memory) munmap(memory, (size_t)(start - memory));
    if (memory + whole > start + size)
        munmap(start + size, (size_t)(memory + whole - (start + size)));
    return start;
}

void *addresses_take(size_t size, size_t alignment) {
    for (unsigned back = 1; back <= KEPT; back++) {
        struct range *range = &ranges[(next_range - back) % KEPT];
        char *start = range->start;
        if (!start || range->size != size || (uintptr_t)start % alignment) continue;
        range->start = NULL;
        return start;
    }
    return map_new(size, alignment);
}

void addresses_give(void *start, size_t size) {
    struct range *oldest = &ranges[next_range++ % KEPT];
    if (oldest->start) munmap(oldest->start, oldest->size);
    *oldest = (struct range){start, size};
    if (mmap(start, size, PROT_NONE, EMPTY | MAP_FIXED, -1, 0) != MAP_FAILED) return;
    munmap(start, size);
    oldest->start = NULL;
}
