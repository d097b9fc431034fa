#include "accounts.h"

#define SEQUENCE_MASK ((1u << SEQUENCE_BITS) - 1)
#define SEEN (1u << 31) /* set in `seen` when it names a change: 0 is a sequence, too */

static uint64_t word_of(uint64_t granules, int slot, uint32_t sequence) {
    return granules << (64 - GRANULE_BITS) | (uint64_t)slot << SEQUENCE_BITS | sequence;
}

static uint64_t word_granules(uint64_t word) {
    return word >> (64 - GRANULE_BITS);
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

/* Sequences wrap around. A change is committed if it is not ahead of `committed`: at most one
 * change can be, and half of the range is far more than the changes that can be behind while a word
 * is looked at. */
static bool is_committed(const struct account *account, uint32_t sequence) {
    uint32_t behind = (atomic_load(&account->committed) - sequence) & SEQUENCE_MASK;
    return behind < SEQUENCE_MASK / 2;
}

/* Records that the change in the word happened, for the case that its process dies before it
 * commits the change. To be called before the word is swapped.
 *
 * The word is read again after `seen`: if it has changed, the swap will fail anyway, and the change
 * may be an old one, whose number must not replace a newer one in `seen`. For the same reason
 * `seen` is written by compare-and-swap. */
static void witness(struct region *region, int card, uint64_t word) {
    struct account *other = &region->slots[word_slot(word)].accounts[card];
    uint32_t sequence = word_sequence(word);
    if (is_committed(other, sequence)) return;
    uint32_t seen = atomic_load(&other->seen);
    if (seen == (sequence | SEEN) || atomic_load(&region->cards[card].word) != word) return;
    atomic_compare_exchange_strong(&other->seen, &seen, sequence | SEEN);
}

bool account_change(struct region *region, int slot, int card, int64_t granules, uint64_t limit) {
    struct account *own = &region->slots[slot].accounts[card];
    _Atomic uint64_t *shared = &region->cards[card].word;
    uint32_t last = atomic_load_explicit(&own->committed, memory_order_relaxed);
    uint32_t next = after(last);
    uint64_t held = atomic_load_explicit(&own->granules[last % 2], memory_order_relaxed);
    if (limit > MAX_GRANULES) limit = MAX_GRANULES;
    /* `seen` may name a change of this number from before the sequence wrapped around. It would
     * make a swap look as if it had happened. */
    if (atomic_load_explicit(&own->seen, memory_order_relaxed) == (next | SEEN))
        atomic_store(&own->seen, 0);
    atomic_store_explicit(&own->granules[next % 2], held + (uint64_t)granules,
                          memory_order_release);
    uint64_t word = atomic_load(shared), used;
    do {
        used = word_granules(word);
        if (granules > 0 && (used > limit || (uint64_t)granules > limit - used)) return false;
        if (word_slot(word) != slot) witness(region, card, word);
    } while (!atomic_compare_exchange_weak(shared, &word,
                                           word_of(used + (uint64_t)granules, slot, next)));
    atomic_store_explicit(&own->committed, next, memory_order_release);
    return true;
}

uint64_t card_granules(const struct region *region, int card) {
    return word_granules(atomic_load(&region->cards[card].word));
}

uint64_t slot_granules(const struct region *region, int slot, int card) {
    const struct account *account = &region->slots[slot].accounts[card];
    return atomic_load(&account->granules[atomic_load(&account->committed) % 2]);
}

void account_clear(struct region *region, int slot, int card) {
    struct account *account = &region->slots[slot].accounts[card];
    uint32_t next = after(atomic_load(&account->committed));
    /* First the word, then `seen`: a process that removes the change from the word writes `seen`
     * before. Read in the other order, both could be missed. */
    uint64_t word = atomic_load(&region->cards[card].word);
    bool is_in_word = word_slot(word) == slot && word_sequence(word) == next;
    if (is_in_word || atomic_load(&account->seen) == (next | SEEN))
        atomic_store(&account->committed, next);
    uint64_t held = slot_granules(region, slot, card);
    if (held) account_change(region, slot, card, -(int64_t)held, 0);
    atomic_store(&account->has_context, 0);
}
