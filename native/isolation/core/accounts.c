#include "accounts.h"

#define SEQUENCE_MASK ((1u << SEQUENCE_BITS) - 1)
#define SEEN (1u << 31)

static uint64_t word_of(uint64_t units, int slot, uint32_t sequence) {
    return units << (64 - UNIT_BITS) | (uint64_t)slot << SEQUENCE_BITS | sequence;
}

static uint64_t word_units(uint64_t word) {
    return word >> (64 - UNIT_BITS);
}

static int word_slot(uint64_t word) {
    return (int)(word >> SEQUENCE_BITS & (MAX_SLOTS - 1));
}

static uint32_t word_sequence(uint64_t word) {
    return (uint32_t)word & SEQUENCE_MASK;
}

static uint32_t after(uint32_t sequence) {
    return (sequence + 1) & SEQUENCE_MASK;
}

static bool is_committed(const struct account *account, uint32_t sequence) {
    uint32_t behind = (atomic_load(&account->committed) - sequence) & SEQUENCE_MASK;
    return behind < SEQUENCE_MASK / 2;
}

/* Before another's change disappears from the word: it did happen, should he not live to say it. */
static void witness(struct region *region, int card, uint64_t word) {
    struct account *other = &region->slots[word_slot(word)].accounts[card];
    uint32_t sequence = word_sequence(word);
    if (is_committed(other, sequence)) return;
    uint32_t seen = atomic_load(&other->seen);
    if (seen == (sequence | SEEN) || atomic_load(&region->cards[card].word) != word) return;
    atomic_compare_exchange_strong(&other->seen, &seen, sequence | SEEN);
}

bool account_change(struct region *region, int slot, int card, int64_t units, uint64_t limit) {
    struct account *own = &region->slots[slot].accounts[card];
    _Atomic uint64_t *shared = &region->cards[card].word;
    uint32_t last = atomic_load_explicit(&own->committed, memory_order_relaxed);
    uint32_t next = after(last);
    uint64_t held = atomic_load_explicit(&own->units[last % 2], memory_order_relaxed);
    if (limit > MAX_UNITS) limit = MAX_UNITS;
    /* Left from the time before the sequence began anew. */
    if (atomic_load_explicit(&own->seen, memory_order_relaxed) == (next | SEEN))
        atomic_store(&own->seen, 0);
    atomic_store_explicit(&own->units[next % 2], held + (uint64_t)units, memory_order_release);
    uint64_t word = atomic_load(shared), used;
    do {
        used = word_units(word);
        if (units > 0 && (used > limit || (uint64_t)units > limit - used)) return false;
        if (word_slot(word) != slot) witness(region, card, word);
    } while (!atomic_compare_exchange_weak(shared, &word,
                                           word_of(used + (uint64_t)units, slot, next)));
    atomic_store_explicit(&own->committed, next, memory_order_release);
    return true;
}

uint64_t card_units(const struct region *region, int card) {
    return word_units(atomic_load(&region->cards[card].word));
}

uint64_t slot_units(const struct region *region, int slot, int card) {
    const struct account *account = &region->slots[slot].accounts[card];
    return atomic_load(&account->units[atomic_load(&account->committed) % 2]);
}

void account_clear(struct region *region, int slot, int card) {
    struct account *account = &region->slots[slot].accounts[card];
    uint32_t next = after(atomic_load(&account->committed));
    uint64_t word = atomic_load(&region->cards[card].word);
    /* First the word, then what was seen: who takes it out of the word says so before. */
    bool is_in_word = word_slot(word) == slot && word_sequence(word) == next;
    if (is_in_word || atomic_load(&account->seen) == (next | SEEN))
        atomic_store(&account->committed, next);
    uint64_t held = slot_units(region, slot, card);
    if (held) account_change(region, slot, card, -(int64_t)held, 0);
    atomic_store(&account->has_context, 0);
}
