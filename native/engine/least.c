/* The node with the least cost and price, without a look at every node.
 *
 * Each block of nodes has a bound: no node in it has less. A node that costs more than before leaves
 * the bound as it is, and so do prices that rise. Where a bound is too low, a search looks at the
 * block in vain, once, and sets it right.
 */
#include "engine.h"

/* Searches of the block with the lowest bound, before all blocks are looked at in their order. */
#define TRIES 4

/* Where the cost is NEVER, the use is 0, and its price too. */
static int64_t total_of(const struct shape *s, int64_t node) {
    return s->prices ? s->costs[node] + s->prices[s->uses[node]] : s->costs[node];
}

static int64_t least_of_block(const struct shape *s, int64_t block) {
    int64_t least = NEVER;
    for (uint32_t left = s->fitting[block]; left; left &= left - 1) {
        int64_t total = total_of(s, block * BLOCK + __builtin_ctz(left));
        least = total < least ? total : least;
    }
    return least;
}

void set_cost(struct shape *s, int64_t node, int64_t cost, int32_t use) {
    s->costs[node] = cost;
    s->uses[node] = use;
    s->fitting[node / BLOCK] |= (uint16_t)(1u << node % BLOCK);
    s->classes |= (uint64_t)1 << (use - 1) / USES_OF_CLASS;
    int64_t total = total_of(s, node);
    if (total < s->bounds[node / BLOCK])
        s->bounds[node / BLOCK] = total;
}

void set_never(struct shape *s, int64_t node) {
    s->costs[node] = NEVER;
    s->uses[node] = 0;
    s->fitting[node / BLOCK] &= (uint16_t)~(1u << node % BLOCK);
}

/* The least by which the price of a node of this shape rises; below 0 if any falls. */
static int64_t least_rise(const struct shape *s, const int64_t *before, const int64_t *prices) {
    int64_t least = NEVER;
    for (int64_t class = 0; class < CLASSES; class++) {
        if (!(s->classes >> class & 1))
            continue;
        for (int64_t each = 0; each < USES_OF_CLASS; each++) {
            int64_t use = 1 + class * USES_OF_CLASS + each, rise = prices[use] - before[use];
            least = rise < least ? rise : least;
        }
    }
    return s->classes ? least : 0;
}

/* Both tables are alive here. */
static void set_prices(const struct columns *c, struct shape *s, const int64_t *prices) {
    const int64_t *before = s->prices;
    s->prices = prices;
    int64_t known = before && prices, rise = known ? least_rise(s, before, prices) : 0;
    for (int64_t block = 0; block < c->size / BLOCK; block++)
        if (s->bounds[block] != NEVER)
            s->bounds[block] = known ? s->bounds[block] + rise : least_of_block(s, block);
}

static int64_t lowest_block(const struct columns *c, const struct shape *s) {
    int64_t lowest = 0;
    for (int64_t block = 1; block < c->size / BLOCK; block++)
        lowest = s->bounds[block] < s->bounds[lowest] ? block : lowest;
    return lowest;
}

static int64_t first_with(const struct shape *s, int64_t block, int64_t total) {
    uint32_t left = s->fitting[block];
    while (total_of(s, block * BLOCK + __builtin_ctz(left)) != total)
        left &= left - 1;
    return block * BLOCK + __builtin_ctz(left);
}

int64_t least_node(const struct columns *c, struct shape *s, const int64_t *prices) {
    if (prices != s->prices)
        set_prices(c, s, prices);
    int64_t best = 0, least = NEVER;
    for (int64_t each = 0; each < TRIES; each++) {
        best = lowest_block(c, s);
        int64_t bound = s->bounds[best];
        least = s->bounds[best] = bound == NEVER ? NEVER : least_of_block(s, best);
        if (least == bound) /* all blocks before it have more, those after it not less */
            return least == NEVER ? -1 : first_with(s, best, least);
    }
    for (int64_t block = 0; block < c->size / BLOCK; block++) {
        int64_t bound = s->bounds[block];
        if (bound > least || bound == NEVER || (bound == least && block >= best))
            continue;
        int64_t here = s->bounds[block] = least_of_block(s, block);
        if (here < least || (here == least && here != NEVER && block < best)) {
            least = here;
            best = block;
        }
    }
    return least == NEVER ? -1 : first_with(s, best, least);
}
