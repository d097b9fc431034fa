/* How much of each card is in use: counted exactly, without locks between processes, and right
 * whichever instruction a process is killed at.
 *
 * A card has one word, changed by compare and swap: how many units are in use (34 bits), whose
 * change was the last (slot, 9 bits) and which of his changes (sequence, 21 bits). A reservation
 * and its check against the limit are that one swap, so the limit cannot be passed.
 *
 * A process also keeps what it holds itself, to be given back when it dies. For its change number
 * n it first writes the result to units[n % 2], then swaps the word, then writes n to `committed`.
 * Killed in between, did the swap happen? It did if the word still names that change. If somebody
 * else has swapped since, he looked first whether the change that he was about to cover up had
 * been committed, and wrote its number to `seen` if not. So what a dead process holds is
 * units[m % 2], with m the change after `committed` if the word or `seen` names it, or else
 * `committed`. Giving it back is a change in the dead process' name, under its slot's lock, and
 * whoever does that may be killed too.
 *
 * Threads of one process take turns (`turns`). A unit is 512 bytes.
 */
#ifndef ISOLATION_ACCOUNTS_H
#define ISOLATION_ACCOUNTS_H

#include "region.h"

#define UNIT 512u
#define UNIT_BITS 34
#define SLOT_BITS 9
#define SEQUENCE_BITS 21
#define MAX_UNITS ((1ull << UNIT_BITS) - 1)

_Static_assert(UNIT_BITS + SLOT_BITS + SEQUENCE_BITS == 64, "accounts: word");
_Static_assert(MAX_SLOTS == 1 << SLOT_BITS, "accounts: slots");

static inline uint64_t units_of(uint64_t bytes) {
    return bytes / UNIT + (bytes % UNIT != 0);
}

/* Adds to, or takes from, what the slot holds; false if the card would have more than `limit` in
 * use then. Two threads must not do it for the same slot and card at the same time. */
bool account_change(struct region *region, int slot, int card, int64_t units, uint64_t limit);

/* All that is in use of the card. */
uint64_t card_units(const struct region *region, int card);

/* What a slot holds, by its own account. */
uint64_t slot_units(const struct region *region, int slot, int card);

/* With the slot's lock held, and its process dead: nothing is in use by it any more. */
void account_clear(struct region *region, int slot, int card);

#endif
