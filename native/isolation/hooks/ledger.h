/* What this process was given, and is charged for: by address or handle. */
#ifndef ISOLATION_LEDGER_H
#define ISOLATION_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

/* Part of the key: an address and a handle may be the same number. */
enum kind { POINTER = 1, ARRAY, PHYSICAL, MAPPING, EXTERNAL };

struct entry {
    uint64_t key;     /* ledger_key */
    uint64_t bytes;   /* charged; of a MAPPING: how long it is */
    uint64_t context; /* it goes with this one; 0: with none */
    uint64_t target;  /* of a MAPPING: the key of what is mapped; of a POINTER: its pool, or 0 */
    int32_t card;
    uint32_t references; /* of a PHYSICAL: handles and mappings */
};

static inline uint64_t ledger_key(enum kind kind, uint64_t value) {
    return value ^ (uint64_t)kind << 60; /* no address has these bits */
}

/* False: there is no memory for it. `replaced` is what had the key before; its key is 0 if nothing
 * had. (A driver may use one of its functions to make another.) */
bool ledger_put(const struct entry *entry, struct entry *replaced);

/* Takes the entry out; false if there is none. */
bool ledger_take(uint64_t key, struct entry *taken);

/* One reference more, or one less: then, if it was the last, as ledger_take. False: not known, or
 * others are left. */
bool ledger_retain(uint64_t key);
bool ledger_release(uint64_t key, struct entry *taken);

/* Takes out any entry of the context; false if there is none left. */
bool ledger_take_of(uint64_t context, struct entry *taken);

/* In the child of a fork: all is the parent's. */
void ledger_forget_all(void);

#endif
