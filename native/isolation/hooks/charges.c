#include "charges.h"

#include "graphs.h"
#include "pools.h"

bool reserve(int card, uint64_t bytes) {
    if (__builtin_expect(limiter_take(card, bytes), 1)) return true;
    pools_trim(card);
    graphs_trim(card);
    return limiter_take(card, bytes);
}

static void uncharge(const struct entry *entry) {
    if (entry->target) pool_freed(entry);
    else limiter_give(entry->card, entry->bytes);
}

/* An entry that has the same key is out of date: the driver has freed it in a way that was not
 * seen. */
static void put(const struct entry *entry) {
    struct entry replaced;
    if (ledger_put(entry, &replaced) && replaced.key) uncharge(&replaced);
}

int record_charge(int result, enum kind kind, uint64_t value, int card, uint64_t bytes) {
    struct entry entry = {ledger_key(kind, value), bytes, 0, 0, card, 1};
    if (result != OK) {
        limiter_give(card, bytes);
        return result;
    }
    /* Memory of cuMemCreate belongs to no context: it is not freed with one. */
    if (kind != PHYSICAL) entry.context = current_context();
    put(&entry);
    return result;
}

bool discharge_begin(enum kind kind, uint64_t value, struct entry *entry) {
    return limiter_is_on() && ledger_take(ledger_key(kind, value), entry);
}

int discharge_end(int result, bool is_known, const struct entry *entry) {
    if (!is_known) return result;
    if (result != OK) put(entry);
    else uncharge(entry);
    return result;
}
