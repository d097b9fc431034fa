/* The node with the least cost and price, without a look at every node.
 *
 * Each block of nodes has a bound: no node in it has less. Each group of blocks has one too. A node
 * that costs more than before leaves the bounds as they are, and so do prices that rise. Where a
 * bound is too low, a search looks at the block in vain, once, and sets it right.
 */
#include "engine.h"

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
    int64_t total = total_of(s, node), block = node / BLOCK;
    if (total < s->bounds[block])
        s->bounds[block] = total;
    if (total < s->groups[block / GROUP])
        s->groups[block / GROUP] = total;
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

static int64_t blocks_of(const struct columns *c) {
    return c->size / BLOCK;
}

static int64_t groups_of(const struct columns *c) {
    return (blocks_of(c) + GROUP - 1) / GROUP;
}

void clear_bounds(const struct columns *c, struct shape *s) {
    for (int64_t block = 0; block < blocks_of(c); block++)
        s->bounds[block] = NEVER;
    for (int64_t group = 0; group < groups_of(c); group++)
        s->groups[group] = NEVER;
}

static void raise_all(int64_t *bounds, int64_t count, int64_t rise) {
    for (int64_t each = 0; each < count; each++)
        bounds[each] += bounds[each] == NEVER ? 0 : rise;
}

/* Both tables are alive here. */
static void set_prices(const struct columns *c, struct shape *s, const int64_t *prices) {
    const int64_t *before = s->prices;
    s->prices = prices;
    if (before && prices) {
        int64_t rise = least_rise(s, before, prices);
        raise_all(s->bounds, blocks_of(c), rise);
        raise_all(s->groups, groups_of(c), rise);
        return;
    }
    clear_bounds(c, s);
    for (int64_t block = 0; block < blocks_of(c); block++) {
        int64_t least = s->bounds[block] = least_of_block(s, block);
        s->groups[block / GROUP] = least < s->groups[block / GROUP] ? least : s->groups[block / GROUP];
    }
}

static int64_t lowest(const int64_t *bounds, int64_t first, int64_t end) {
    int64_t lowest = first, least = bounds[first];
    for (int64_t each = first + 1; each < end; each++) {
        lowest = bounds[each] < least ? each : lowest;
        least = bounds[each] < least ? bounds[each] : least;
    }
    return lowest;
}

/* The first of the blocks with the least that were looked at. */
struct best {
    int64_t least, block;
};

/* Whether something with this bound, at this place, may come before the best. */
static int may_win(int64_t bound, int64_t place, int64_t least, int64_t best_place) {
    return bound < least || (bound == least && bound != NEVER && place < best_place);
}

static void look_at_block(struct shape *s, int64_t block, struct best *best) {
    int64_t least = s->bounds[block] = least_of_block(s, block);
    if (may_win(least, block, best->least, best->block))
        *best = (struct best){least, block};
}

/* At its lowest block first, so that few others are left that may win. */
static void look_at_group(const struct columns *c, struct shape *s, int64_t group,
                          struct best *best) {
    int64_t first = group * GROUP, end = first + GROUP;
    end = end < blocks_of(c) ? end : blocks_of(c);
    look_at_block(s, lowest(s->bounds, first, end), best);
    for (int64_t block = first; block < end; block++)
        if (may_win(s->bounds[block], block, best->least, best->block))
            look_at_block(s, block, best);
    s->groups[group] = s->bounds[lowest(s->bounds, first, end)];
}

static int64_t first_with(const struct shape *s, int64_t block, int64_t total) {
    uint32_t left = s->fitting[block];
    while (total_of(s, block * BLOCK + __builtin_ctz(left)) != total)
        left &= left - 1;
    return block * BLOCK + __builtin_ctz(left);
}

int64_t least_node(const struct columns *c, struct shape *s, const int64_t *prices) {
    struct best best = {NEVER, 0};
    if (prices != s->prices)
        set_prices(c, s, prices);
    for (;;) {
        int64_t group = lowest(s->groups, 0, groups_of(c));
        if (!may_win(s->groups[group], group, best.least, best.block / GROUP))
            return best.least == NEVER ? -1 : first_with(s, best.block, best.least);
        look_at_group(c, s, group, &best);
    }
}
