/* Which nodes a shape of pods fits on and what they cost: as `_judge` of verdicts.py. */
#include "engine.h"

#include <string.h>

#define WITH_CARDS ((int64_t)1 << 55)
#define MOST_PODS ((int64_t)1 << 20)
#define PERCENT 100

EXPORTED int64_t gpupool_engine_layout(void) {
    return LAYOUT;
}

/* For the tests: the size of the structure with this number, in the order of engine.h. */
EXPORTED int64_t gpupool_engine_size_of(int64_t structure) {
    const int64_t sizes[] = {sizeof(struct columns), sizeof(struct residue), sizeof(struct shape),
                             sizeof(struct typical)};
    return sizes[structure];
}

static int has_shares(const struct columns *c, const int64_t *share, int64_t node) {
    int64_t units = share[0], cards = share[1], percent = share[2], found = 0;
    if (c->largest_free[node] < units)
        return cards <= 0;
    if (cards == 1 && !percent)
        return 1;
    for (int64_t card = 0; card < c->rows; card++)
        found += c->card_free[card_at(c, node, card)] >= units &&
                 c->card_compute[card_at(c, node, card)] >= percent;
    return found >= cards;
}

static int fits(const struct columns *c, const struct shape *s, int64_t node) {
    if (!s->allowed[node] || c->whole_free[node] < s->whole)
        return 0;
    for (int64_t each = 0; each < s->need_count; each++)
        if (c->free[s->needs[2 * each] * c->size + node] < s->needs[2 * each + 1])
            return 0;
    for (int64_t each = 0; each < s->share_count; each++)
        if (!has_shares(c, s->shares + 3 * each, node))
            return 0;
    return 1;
}

/* Rounded up; a node without the resource counts as fully used. */
static int64_t used_percent(int64_t free, int64_t total) {
    int64_t scale = total / PERCENT > 1 ? total / PERCENT : 1, parts = free / scale;
    return PERCENT - (parts < PERCENT ? parts : PERCENT);
}

static int64_t least_allocated(const struct columns *c, int64_t node) {
    int64_t cpu = used_percent(c->free[c->size + node], c->cpu_total[node]);
    int64_t memory = used_percent(c->memory_free[node], c->memory_total[node]);
    return (cpu + memory) * MOST_PODS + c->pods[node];
}

static int64_t policy_cost(const struct columns *c, const struct shape *s, int64_t node,
                           struct scratch *scratch) {
    return s->residue ? residue_cost(c, s, node, &scratch->memo)
                      : fgd_cost(c, s, node, &scratch->sizes);
}

static int64_t cost_of(const struct columns *c, const struct shape *s, int64_t node,
                       struct scratch *scratch) {
    if (s->cards)
        return policy_cost(c, s, node, scratch);
    if (!c->has_cards[node])
        return least_allocated(c, node);
    int asks = s->cpu_milli || s->memory_bytes;
    return WITH_CARDS + (asks ? policy_cost(c, s, node, scratch) : least_allocated(c, node));
}

static int32_t use_of(const struct columns *c, const struct shape *s, int64_t node) {
    int32_t untouched = c->whole_free[node];
    if (untouched > MOST_UNTOUCHED)
        untouched = MOST_UNTOUCHED;
    int32_t use = (c->machine[node] * (MOST_UNTOUCHED + 1) + untouched) * 2 + 1;
    return use + (!s->memory || c->largest_part[node] < s->memory);
}

/* Where the cost is NEVER, the use is 0, and its price too. */
static int64_t total_of(const struct shape *s, int64_t node) {
    return s->prices ? s->costs[node] + s->prices[s->uses[node]] : s->costs[node];
}

/* In two rows of sums, so that the processor need not wait for one after the other. */
static int64_t least_of_block(const struct shape *s, int64_t block) {
    const int64_t *costs = s->costs + block * BLOCK, *prices = s->prices;
    const int32_t *uses = s->uses + block * BLOCK;
    int64_t even = NEVER, odd = NEVER;
    for (int64_t node = 0; node < BLOCK; node += 2) {
        int64_t one = costs[node] + (prices ? prices[uses[node]] : 0);
        int64_t other = costs[node + 1] + (prices ? prices[uses[node + 1]] : 0);
        even = one < even ? one : even;
        odd = other < odd ? other : odd;
    }
    return even < odd ? even : odd;
}

static void set_cost(const struct shape *s, int64_t node, int64_t cost, int32_t use) {
    int64_t block = node / BLOCK, before = total_of(s, node);
    s->costs[node] = cost;
    s->uses[node] = use;
    int64_t total = total_of(s, node);
    if (total < s->bounds[block])
        s->bounds[block] = total;
    else if (before <= s->bounds[block])
        s->bounds[block] = least_of_block(s, block);
}

/* Judges the nodes that a part of the change log lists; a node may be in it several times. */
EXPORTED void gpupool_engine_judge(struct columns *c, const struct shape *s, const int64_t *nodes,
                                   int64_t count) {
    int64_t round = ++c->round;
    struct scratch scratch;
    scratch.memo.is_set = 0;
    if (!s->residue)
        clear_sizes(&scratch.sizes);
    for (int64_t each = 0; each < count; each++) {
        int64_t node = nodes[each];
        if (c->seen[node] == round)
            continue;
        c->seen[node] = round;
        int does = fits(c, s, node);
        if (does)
            set_cost(s, node, cost_of(c, s, node, &scratch), use_of(c, s, node));
        else
            set_cost(s, node, NEVER, 0);
    }
}

/* Makes the bounds anew, unless the prices are those of before. Both tables are alive here. */
static void set_prices(const struct columns *c, struct shape *s, const int64_t *prices) {
    const int64_t *before = s->prices;
    s->prices = prices;
    if (before && prices && !memcmp(before, prices, USES * sizeof *prices))
        return;
    for (int64_t block = 0; block < c->size / BLOCK; block++)
        if (s->bounds[block] != NEVER)
            s->bounds[block] = least_of_block(s, block);
}

/* The first node with the least cost and price; -1: no node fits. `prices` may be NULL. */
EXPORTED int64_t gpupool_engine_least(const struct columns *c, struct shape *s,
                                      const int64_t *prices) {
    int64_t best = -1, least = NEVER;
    if (prices != s->prices)
        set_prices(c, s, prices);
    for (int64_t block = 0; block < c->size / BLOCK; block++) {
        if (s->bounds[block] >= least) /* a later node with the same total does not win */
            continue;
        for (int64_t node = block * BLOCK; node < (block + 1) * BLOCK; node++) {
            int64_t total = total_of(s, node);
            if (total < least) {
                least = total;
                best = node;
            }
        }
    }
    return best;
}
