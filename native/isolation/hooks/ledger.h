/* The memory that this process is charged for, by address or handle. */
#ifndef ISOLATION_LEDGER_H
#define ISOLATION_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "../core/region.h"

/* The kind is part of the key: an address and a handle may be the same number. */
enum kind { POINTER = 1, ARRAY, PHYSICAL, MAPPING, EXTERNAL };

struct entry {
    uint64_t key;     /* ledger_key */
    uint64_t bytes;   /* the charge; of a MAPPING: its length */
    uint64_t context; /* the memory is freed with this context; 0: with none */
    uint64_t target;  /* of a MAPPING: the key of its PHYSICAL memory; of a POINTER: its pool */
    int32_t card;
    uint32_t references; /* of a PHYSICAL: the number of handles and mappings */
};

static inline uint64_t ledger_key(enum kind kind, uint64_t value) {
    return value ^ (uint64_t)kind << 60; /* no address has these bits */
}

/* Adds the entry. `replaced` is the entry that had the same key before; its key is 0 if there was
 * none. (A driver may call one of its hooked functions from another.) False: there is no memory for
 * it. */
bool ledger_put(const struct entry *entry, struct entry *replaced);

/* Removes the entry and returns it in `taken`; false if there is none. */
bool ledger_take(uint64_t key, struct entry *taken);

/* Adds a reference; false if there is no such entry. */
bool ledger_retain(uint64_t key);

/* Removes a reference. With the last one, removes the entry, returns it in `taken`, and is true. */
bool ledger_release(uint64_t key, struct entry *taken);

/* Removes all entries of the context that have no target, and adds their charges to `bytes`, by
 * card. */
void ledger_take_of(uint64_t context, uint64_t bytes[MAX_CARDS]);

/* Removes all entries of the context that have this target. Returns the sum of their charges. */
uint64_t ledger_drop(uint64_t context, uint64_t target);

/* Removes the target from all entries that have it: they are charged by themselves from now on. */
void ledger_detach(uint64_t target);

/* To be called in the child of a fork: the memory is the parent's. */
void ledger_forget_all(void);

#endif
