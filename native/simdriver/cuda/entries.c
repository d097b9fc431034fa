#include "entries.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Declared with a wrong type: only their addresses are used here. */
#define ENTRY(name, version, is_per_thread, symbol) extern int symbol(void);
#include "names.inc"
#undef ENTRY

struct entry {
    const char *name;
    int version;
    bool is_per_thread;
    int (*function)(void);
};

/* Sorted by name, and entries of the same name by version: find_entry searches by halves. */
#define ENTRY(name, version, is_per_thread, symbol) {#name, version, is_per_thread, symbol},
static const struct entry ENTRIES[] = {
#include "names.inc"
};
#undef ENTRY
#define COUNT (sizeof ENTRIES / sizeof *ENTRIES)

static size_t first_of(const char *name) {
    size_t low = 0, high = COUNT;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(ENTRIES[middle].name, name) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static const struct entry *newest(size_t first, int version, bool is_per_thread) {
    const struct entry *best = NULL;
    for (size_t i = first; i < COUNT && !strcmp(ENTRIES[i].name, ENTRIES[first].name); i++)
        if (ENTRIES[i].version <= version && ENTRIES[i].is_per_thread == is_per_thread)
            best = &ENTRIES[i];
    return best;
}

enum lookup find_entry(const char *name, int version, bool is_per_thread, void **function) {
    size_t first = first_of(name);
    *function = NULL;
    if (first == COUNT || strcmp(ENTRIES[first].name, name) != 0) return NO_SUCH_NAME;
    const struct entry *entry = is_per_thread ? newest(first, version, true) : NULL;
    if (!entry) entry = newest(first, version, false);
    if (!entry) return NEWER_ONLY;
    *function = (void *)(uintptr_t)entry->function;
    return FOUND;
}
