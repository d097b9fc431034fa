/* Which nodes a shape of pods fits on and what they cost: as `_judge` of verdicts.py. */
#include "engine.h"

#define WITH_CARDS ((int64_t)1 << 55)
#define MOST_PODS ((int64_t)1 << 20)
#define PERCENT 100
#define AT_ONCE 64 /* nodes that are fetched before the first of them is judged */

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
    if (cards == 1 && !percent) /* its units are in `least` */
        return 1;
    for (int64_t card = 0; card < c->rows; card++)
        found += c->card_free[card_at(c, node, card)] >= units &&
                 c->card_compute[card_at(c, node, card)] >= percent;
    return found >= cards;
}

/* Most nodes lack something, and no processor guesses what. So all rows are compared: one that is
 * short has a difference below 0, and so has what is joined with it.
 */
static inline int lacks(const struct shape *s, const int64_t *free) {
    int64_t joined = 0;
    for (int64_t row = 0; row < FIRST_ROWS; row++)
        joined |= free[row] - s->least[row];
    return joined < 0;
}

/* Whether an allowed node has room. */
static inline int fits(const struct columns *c, const struct shape *s, int64_t node) {
    const int64_t *free = free_of(c, node);
    if (lacks(s, free))
        return 0;
    for (int64_t each = 0; each < s->need_count; each++)
        if (free[s->needs[2 * each]] < s->needs[2 * each + 1])
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
    const int64_t *free = free_of(c, node);
    int64_t cpu = used_percent(free[CPU], c->cpu_total[node]);
    int64_t memory = used_percent(free[MEMORY] >> MIB_SHIFT, c->memory_total[node]);
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
    const int64_t *free = free_of(c, node);
    int32_t untouched = free[WHOLE_FREE] < MOST_UNTOUCHED ? (int32_t)free[WHOLE_FREE] : MOST_UNTOUCHED;
    int32_t use = (c->machine[node] * (MOST_UNTOUCHED + 1) + untouched) * 2 + 1;
    return use + (!s->memory || free[LARGEST_PART] < s->memory);
}

static void clear_scratch(const struct shape *s, struct scratch *scratch) {
    scratch->memo.is_set = 0;
    if (!s->residue)
        clear_sizes(&scratch->sizes);
}

/* Both let the processor load what will be read: one after the other, each would be waited for. */
static void fetch_free(const struct columns *c, const struct shape *s, int64_t node) {
    __builtin_prefetch(s->allowed + node / BLOCK);
    __builtin_prefetch(free_of(c, node));
    __builtin_prefetch(s->fitting + node / BLOCK);
}

static void fetch_cards(const struct columns *c, const struct shape *s, int64_t node) {
    __builtin_prefetch(c->card_free + card_at(c, node, 0));
    __builtin_prefetch(c->bulk + node);
    __builtin_prefetch(c->machine + node);
    __builtin_prefetch(s->costs + node, 1);
    __builtin_prefetch(s->uses + node, 1);
}

/* Takes the next nodes of the log, each once; returns how many. */
static int64_t next_nodes(const struct columns *c, const struct shape *s, const int64_t **log,
                          const int64_t *end, int64_t *nodes) {
    int64_t found = 0;
    for (; *log < end && found < AT_ONCE; (*log)++) {
        uint64_t node = (uint64_t)**log, bit = 1u << node % BLOCK;
        if (c->seen[node / BLOCK] & bit)
            continue;
        c->seen[node / BLOCK] |= (uint16_t)bit;
        fetch_free(c, s, (int64_t)node);
        nodes[found++] = (int64_t)node;
    }
    return found;
}

/* Of these nodes those that the pod fits on, in place; the others get the cost NEVER. */
static int64_t fitting_nodes(const struct columns *c, struct shape *s, int64_t *nodes,
                             int64_t count) {
    int64_t found = 0;
    for (int64_t at = 0; at < count; at++) {
        int64_t node = nodes[at];
        if (has_bit(s->allowed, node) && fits(c, s, node)) {
            fetch_cards(c, s, node);
            nodes[found++] = node;
        } else if (has_bit(s->fitting, node)) {
            set_never(s, node);
        }
    }
    return found;
}

/* A node may be in the log several times. */
static void judge_changed(const struct columns *c, struct shape *s, const int64_t *log,
                          int64_t count) {
    const int64_t *first = log, *end = log + count;
    int64_t nodes[AT_ONCE];
    struct scratch scratch;
    clear_scratch(s, &scratch);
    while (log < end) {
        int64_t found = next_nodes(c, s, &log, end, nodes);
        found = fitting_nodes(c, s, nodes, found);
        for (int64_t at = 0; at < found; at++)
            set_cost(s, nodes[at], cost_of(c, s, nodes[at], &scratch), use_of(c, s, nodes[at]));
    }
    for (; first < end; first++)
        c->seen[(uint64_t)*first / BLOCK] = 0;
}

static uint32_t fitting_of(const struct columns *c, const struct shape *s, int64_t block) {
    uint32_t found = 0;
    for (uint32_t left = s->allowed[block]; left; left &= left - 1) {
        int node = __builtin_ctz(left);
        found |= (uint32_t)fits(c, s, block * BLOCK + node) << node;
    }
    return found;
}

static void judge_all(const struct columns *c, struct shape *s) {
    struct scratch scratch;
    clear_scratch(s, &scratch);
    s->classes = 0;
    clear_bounds(c, s);
    for (int64_t block = 0; block < c->size / BLOCK; block++) {
        uint32_t now = fitting_of(c, s, block);
        for (uint32_t left = s->fitting[block] & ~now; left; left &= left - 1)
            set_never(s, block * BLOCK + __builtin_ctz(left));
        for (; now; now &= now - 1) {
            int64_t node = block * BLOCK + __builtin_ctz(now);
            set_cost(s, node, cost_of(c, s, node, &scratch), use_of(c, s, node));
        }
    }
}

/* A log that is longer than the cluster lists nodes repeatedly: all of them are not more work. */
EXPORTED void gpupool_engine_judge(const struct columns *c, struct shape *s, const int64_t *log,
                                   int64_t count) {
    if (count < 0 || count > c->size)
        judge_all(c, s);
    else if (count)
        judge_changed(c, s, log, count);
}
