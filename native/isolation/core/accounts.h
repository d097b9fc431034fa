/* How much memory of each card is in use: counted exactly, without a lock between processes, and
 * correct whichever instruction a process is killed at.
 *
 * Memory is counted in granules of 512 bytes. Each card has one 64-bit word, which is changed by
 * compare-and-swap only. It holds the granules in use (34 bits), the slot of the process that made
 * the last change (9 bits), and which of its changes that was (its sequence, 21 bits). The check
 * against the limit and the reservation are one swap. So the limit cannot be passed, and there is
 * no lock that a killed process could leave behind.
 *
 * Each process also records what it holds itself, so that others can give it back after its death.
 * The swap and that record cannot be written in one instruction. For its change number n, a process
 *
 *   1. writes the new total that it will hold to granules[n % 2]; granules[(n - 1) % 2] stays
 *      valid,
 *   2. swaps the word,
 *   3. writes n to `committed`.
 *
 * If it is killed between 1 and 3, others must find out whether the swap happened:
 *
 *   - The word still names change n of its slot: it happened.
 *   - Another process has changed the word since. Before its swap, that process looked whether the
 *     change that it was about to cover had been committed. If not, it wrote the number of that
 *     change to `seen` of the covered account. So `seen` names change n: it happened.
 *   - Neither names change n: it did not happen.
 *
 * Therefore a dead process holds granules[m % 2], where m is the change after `committed` if the
 * word or `seen` names it, and `committed` otherwise. Giving it back is one more change in the name
 * of the dead process, made under the lock of its slot. Whoever makes it may be killed as well: the
 * next one finds the same figures and continues.
 *
 * What must not be changed: the order of 1, 2 and 3; that `seen` is written before the covering
 * swap; that account_clear reads the word before `seen` (the covering process writes them in the
 * other order, so that at least one of them is found).
 *
 * The threads of one process take turns (`turns` in limiter.c): they share the account.
 */
#ifndef ISOLATION_ACCOUNTS_H
#define ISOLATION_ACCOUNTS_H

#include "region.h"

#define GRANULE 512u /* bytes */
#define GRANULE_BITS 34
#define SLOT_BITS 9
#define SEQUENCE_BITS 21
#define MAX_GRANULES ((1ull << GRANULE_BITS) - 1)

_Static_assert(GRANULE_BITS + SLOT_BITS + SEQUENCE_BITS == 64, "accounts: word");
_Static_assert(MAX_SLOTS == 1 << SLOT_BITS, "accounts: slots");

static inline uint64_t granules_of(uint64_t bytes) {
    return bytes / GRANULE + (bytes % GRANULE != 0);
}

/* The bytes that an allocation of this size is counted for. */
static inline uint64_t counted_bytes(uint64_t bytes) {
    return granules_of(bytes) * GRANULE;
}

/* Changes what the slot holds of the card by so many granules, more or less. False, and no change:
 * the card would then have more than `limit` granules in use. Two threads must not call it for the
 * same slot and card at the same time. */
bool account_change(struct region *region, int slot, int card, int64_t granules, uint64_t limit);

/* All granules of the card that are in use. */
uint64_t card_granules(const struct region *region, int card);

/* The granules that a living process holds, by its own record. */
uint64_t slot_granules(const struct region *region, int slot, int card);

/* Gives back what a dead process held. With the lock of its slot held. */
void account_clear(struct region *region, int slot, int card);

#endif
