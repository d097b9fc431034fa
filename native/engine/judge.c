/* Which nodes a shape of pods fits on and what they cost: as `_judge` of verdicts.py. */
#include "engine.h"

#include <string.h>

#define WITH_CARDS ((int64_t)1 << 55)
#define MOST_PODS ((int64_t)1 << 20)
#define PERCENT 100
#define AT_ONCE 32 /* nodes that are fetched before the first of them is judged */

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

static void judge_node(const struct columns *c, struct shape *s, int64_t node,
                       struct scratch *scratch) {
    if (fits(c, s, node))
        set_cost(s, node, cost_of(c, s, node, scratch), use_of(c, s, node));
    else if (s->bounds[node / BLOCK] != NEVER) /* else no node of its block has a cost */
        set_never(s, node);
}

static void clear_scratch(const struct shape *s, struct scratch *scratch) {
    scratch->memo.is_set = 0;
    if (!s->residue)
        clear_sizes(&scratch->sizes);
}

/* Lets the processor load what `fits` reads: one after the other, each would be waited for. */
static void fetch(const struct columns *c, const struct shape *s, int64_t node) {
    __builtin_prefetch(s->allowed + node);
    __builtin_prefetch(c->whole_free + node);
    __builtin_prefetch(c->largest_free + node);
    __builtin_prefetch(c->free + c->size + node);
    __builtin_prefetch(c->free + 2 * c->size + node);
    __builtin_prefetch(c->card_free + card_at(c, node, 0));
    __builtin_prefetch(s->bounds + node / BLOCK);
}

/* Judges the nodes that a part of the change log lists; a node may be in it several times. */
EXPORTED void gpupool_engine_judge(struct columns *c, struct shape *s, const int64_t *nodes,
                                   int64_t count) {
    int64_t round = ++c->round, fetched[AT_ONCE];
    struct scratch scratch;
    clear_scratch(s, &scratch);
    for (int64_t each = 0; each < count;) {
        int64_t found = 0;
        for (; each < count && found < AT_ONCE; each++) {
            int64_t node = nodes[each];
            if (c->seen[node] == round)
                continue;
            c->seen[node] = round;
            fetch(c, s, node);
            fetched[found++] = node;
        }
        for (int64_t at = 0; at < found; at++)
            judge_node(c, s, fetched[at], &scratch);
    }
}

/* Judges all nodes. */
EXPORTED void gpupool_engine_judge_all(const struct columns *c, struct shape *s) {
    struct scratch scratch;
    clear_scratch(s, &scratch);
    s->classes = 0;
    for (int64_t block = 0; block < c->size / BLOCK; block++) {
        int64_t had = s->bounds[block] != NEVER;
        s->bounds[block] = NEVER;
        for (int64_t node = block * BLOCK; node < (block + 1) * BLOCK; node++) {
            if (fits(c, s, node))
                set_cost(s, node, cost_of(c, s, node, &scratch), use_of(c, s, node));
            else if (had)
                set_never(s, node);
        }
    }
}
