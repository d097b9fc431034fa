/* The policy `residue` for one node: as `_costs` of residue.py, in the same order of operations.
 *
 * Compiled with -ffp-contract=off: a fused multiplication and addition rounds once, NumPy twice.
 */
#include "engine.h"

#include <math.h>
#include <string.h>

#define FINE 250
#define HALF 125
#define PULL_FINE 2
#define PULLED (3 * WHOLE)
#define FLAG_BITS 8
#define PARTLY_USED 30

/* An index beyond the table leads to its end, as in NumPy's mode "clip". */
static int64_t at(const int64_t *table, int64_t length, int64_t place) {
    return table[place < 0 ? 0 : place >= length ? length - 1 : place];
}

static int64_t size_of(const struct columns *c, const struct residue *r, int64_t card,
                       int64_t node) {
    return r->only_total ? r->only_total : c->card_total[card_at(c, node, card)];
}

/* The index into the tables for the free part of a card. */
static int64_t place_of(const struct columns *c, const struct residue *r, int64_t card,
                        int64_t node, int64_t counts_compute) {
    int64_t free = c->card_free[card_at(c, node, card)];
    int64_t size = size_of(c, r, card, node);
    if (counts_compute) {
        int64_t most = c->card_compute[card_at(c, node, card)] * size / 100;
        free = most < free ? most : free;
    }
    return free + (r->only_total ? r->only_total : at(r->first, r->totals, size));
}

/* Whether all that is free of the node's cards is in tables of one size: then nothing leads beyond
 * them. It nearly always is, and to look that up takes a fraction of the time.
 */
static int is_simple(const struct columns *c, const struct residue *r, int64_t node) {
    return r->only_total && free_of(c, node)[LARGEST_FREE] <= r->only_total;
}

int64_t residue_usable(const struct columns *c, const struct residue *r, int64_t node,
                       int64_t counts_compute) {
    int64_t sum = 0;
    if (!counts_compute && is_simple(c, r, node)) {
        const int32_t *free = c->card_free + card_at(c, node, 0);
        for (int64_t card = 0; card < c->rows; card++)
            sum += r->usable[r->only_total + free[card]];
        return sum;
    }
    for (int64_t card = 0; card < c->rows; card++)
        sum += at(r->usable, r->length, place_of(c, r, card, node, counts_compute));
    return sum;
}

/* Keeps the `count` least of what it is given, in order. */
static void keep_least(int64_t *least, int64_t *kept, int64_t count, int64_t value) {
    int64_t place;
    if (*kept < count)
        place = (*kept)++;
    else if (value < least[count - 1])
        place = count - 1;
    else
        return;
    for (; place > 0 && least[place - 1] > value; place--)
        least[place] = least[place - 1];
    least[place] = value;
}

/* As `parted` of residue_tables.py. */
static void set_lost(struct memo *found, int64_t difference) {
    found->lost = floor_div(difference + (1 << FLAG_BITS) / 2, 1 << FLAG_BITS);
    found->spent = found->lost + (difference - found->lost * (1 << FLAG_BITS)) * PARTLY_USED;
}

/* The same as `judge_share` for one share of memory, where it is simple. */
static void judge_one_share(const struct columns *c, const struct shape *s, int64_t node,
                            struct memo *found) {
    const struct residue *r = s->residue;
    const int32_t *free = c->card_free + card_at(c, node, 0);
    const int64_t *usable = r->usable + r->only_total, *worth = r->worth + r->only_total;
    int64_t before = 0, difference = NEVER;
    for (int64_t card = 0; card < c->rows; card++) {
        int64_t lost = worth[free[card]] - worth[free[card] - s->memory];
        before += usable[free[card]];
        difference = lost < difference ? lost : difference;
    }
    found->before = before;
    set_lost(found, difference);
    found->taken = s->memory * WHOLE / r->only_total;
}

static void judge_share(const struct columns *c, const struct shape *s, int64_t node,
                        struct memo *found) {
    const struct residue *r = s->residue;
    int64_t least[MOST_ROWS], kept = 0, largest = 0, difference = 0;
    int64_t count = s->cards < c->rows ? s->cards : c->rows;
    found->before = 0;
    for (int64_t card = 0; card < c->rows; card++) {
        int64_t size = size_of(c, r, card, node), part = s->compute * size / 100;
        int64_t place = place_of(c, r, card, node, r->counts_compute);
        int64_t asked = part > s->memory ? part : s->memory;
        largest = size > largest ? size : largest;
        found->before += at(r->usable, r->length, place);
        keep_least(least, &kept, count,
                   at(r->worth, r->length, place) - at(r->worth, r->length, place - asked));
    }
    for (int64_t each = 0; each < kept; each++)
        difference += least[each];
    set_lost(found, difference);
    found->taken = s->cards * s->memory * WHOLE / largest;
}

/* How much more GPU is unusable for lack of this host resource. */
static double rise(int64_t host, int64_t asked, double cards_for, int64_t before, int64_t after) {
    double fed = (double)host * cards_for;
    double then = (double)after - (fed - (double)asked * cards_for), now = (double)before - fed;
    return (then > 0 ? then : 0.0) - (now > 0 ? now : 0.0);
}

/* Compares what the memo knows of the cards with a node's, and takes it over. */
static int64_t is_same(int32_t *known, const int32_t *column, const struct columns *c,
                       int64_t node) {
    size_t length = (size_t)c->rows * sizeof *known;
    const int32_t *here = column + card_at(c, node, 0);
    if (!memcmp(known, here, length))
        return 1;
    memcpy(known, here, length);
    return 0;
}

/* Whether the node's cards are those of the memo; they are, when this returns. Of the columns only
 * those are read that count: they are most of what this reads at all.
 */
static int64_t is_alike(const struct columns *c, const struct shape *s, int64_t node,
                        struct memo *memo) {
    int64_t alike = is_same(memo->free, c->card_free, c, node) & memo->is_set;
    if (!s->residue->only_total)
        alike &= is_same(memo->total, c->card_total, c, node);
    if (s->residue->counts_compute)
        alike &= is_same(memo->compute, c->card_compute, c, node);
    memo->is_set = 1;
    return alike;
}

static void judge_cards(const struct columns *c, const struct shape *s, int64_t node,
                        struct memo *memo) {
    if (is_alike(c, s, node, memo))
        return;
    int by_memory = s->cards == 1 && !s->compute && !s->residue->counts_compute;
    if (by_memory && 0 < s->memory && s->memory <= s->residue->only_total &&
        is_simple(c, s->residue, node)) {
        judge_one_share(c, s, node, memo);
    } else if (s->memory) {
        judge_share(c, s, node, memo);
    } else {
        memo->before = residue_usable(c, s->residue, node, s->residue->counts_compute);
        memo->lost = memo->spent = memo->taken = s->cards * WHOLE;
    }
}

int64_t residue_cost(const struct columns *c, const struct shape *s, int64_t node,
                     struct memo *memo) {
    const struct residue *r = s->residue;
    judge_cards(c, s, node, memo);
    int64_t before = memo->before, after = before - memo->spent;
    int64_t cost = (memo->lost - memo->taken) * FINE + (after < PULLED ? after : PULLED) * PULL_FINE;
    const int64_t *free = free_of(c, node);
    double rises = rise(free[CPU], s->cpu_milli, r->cards_for[0], before, after);
    rises += rise(free[MEMORY], s->memory_bytes, r->cards_for[1], before, after);
    cost += (int64_t)floor(rises * HALF);
    return floor_div(cost, FINE) * BULKS + c->bulk[node];
}

EXPORTED int64_t gpupool_engine_best_card(const struct columns *c, const struct residue *r,
                                          int64_t node, int64_t memory) {
    int64_t best = -1, least = NEVER;
    for (int64_t card = 0; card < c->rows; card++) {
        int64_t place = place_of(c, r, card, node, 0);
        int64_t lost = at(r->worth, r->length, place) - at(r->worth, r->length, place - memory);
        if (lost < least) {
            least = lost;
            best = card;
        }
    }
    return best;
}
