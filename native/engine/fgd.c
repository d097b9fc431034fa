/* The policy `fgd`: as `rises_of` and `_percents` of fgd.py. The steps of its scale of costs are made
 * there, because the exponential function is NumPy's.
 */
#include "engine.h"

#define MOST_MEMORY ((int64_t)1 << 48) /* more fits on no card, and this can be multiplied */

/* Cards of a node that are alike. Most nodes have one or two kinds; cards without anything free
 * have none, because they serve nobody.
 */
struct kind {
    int64_t milli, total, count;
    int64_t taken; /* how many of them the pod takes whole */
    int64_t fewer; /* what is free of one that the pod has a share of; -1: it does not fit */
};

struct found {
    int64_t low, roomy; /* free on cards that are too full for a pod, and how many would do */
};

static int64_t ceil_div(int64_t value, int64_t by) {
    return (value + by - 1) / by;
}

/* As `free_milli` of free_cards.py. */
static int64_t free_milli(const struct columns *c, int64_t at) {
    int64_t memory = (int64_t)c->card_free[at] * WHOLE / c->card_total[at];
    int64_t compute = (int64_t)c->card_compute[at] * (WHOLE / 100);
    return memory < compute ? memory : compute;
}

/* `where`: the kind of each card, -1: none. Returns how many kinds there are. */
static int64_t kinds_of(const struct columns *c, const struct fgd_ask *ask, int64_t node,
                        struct kind *kinds, int64_t *where) {
    int64_t count = 0, whole = 0;
    for (int64_t card = 0; card < c->rows; card++) {
        int64_t milli = free_milli(c, card_at(c, node, card)), kind = 0;
        int64_t total = c->card_total[card_at(c, node, card)];
        while (kind < count && (kinds[kind].milli != milli || kinds[kind].total != total))
            kind++;
        where[card] = milli ? kind : -1;
        if (!milli)
            continue;
        if (kind == count) {
            int64_t share = ask->memory ? ceil_div(ask->memory * WHOLE, total) : 0;
            kinds[count++] = (struct kind){milli, total, 0, 0, share > milli ? -1 : milli - share};
        }
        kinds[kind].count++;
        /* Of whole cards the first are taken. */
        kinds[kind].taken += milli == WHOLE && ++whole <= ask->cards;
    }
    return count;
}

static int64_t size_on(const struct typical *t, int64_t each, int64_t total, struct sizes *kept) {
    if (!t->memory[each])
        return WHOLE;
    if (each >= KEPT)
        return ceil_div(t->memory[each] * WHOLE, total);
    if (kept->total[each] != total) {
        kept->total[each] = total;
        kept->size[each] = ceil_div(t->memory[each] * WHOLE, total);
    }
    return kept->size[each];
}

/* `by` cards with so much free. */
static void count_cards(struct found *found, int64_t milli, int64_t size, int64_t by) {
    if (milli < size)
        found->low += by * milli;
    else
        found->roomy += by;
}

static void rises_on(const struct columns *c, const struct typical *t, const struct fgd_ask *ask,
                     int64_t node, int64_t *rises, int64_t step, struct sizes *kept) {
    struct kind kinds[MOST_ROWS];
    int64_t where[MOST_ROWS], size[MOST_ROWS], rest[MOST_ROWS], rise[MOST_ROWS];
    int64_t count = kinds_of(c, ask, node, kinds, where), choices = ask->memory ? count : 1;
    int64_t cpu = free_of(c, node)[CPU], sum = 0, taken = 0;
    int64_t model = c->model[node] < t->models ? c->model[node] : t->models - 1;
    for (int64_t kind = 0; kind < count; kind++) {
        sum += kinds[kind].count * kinds[kind].milli;
        taken += kinds[kind].taken * WHOLE;
    }
    rise[0] = 0;
    rest[0] = sum - taken;
    for (int64_t kind = 0; ask->memory && kind < count; kind++) {
        rise[kind] = 0;
        rest[kind] = sum - kinds[kind].milli + kinds[kind].fewer;
    }
    for (int64_t each = 0; each < t->count; each++) {
        int64_t weight = t->weight[each], cards = t->cards[each];
        int64_t may = cards > 0 && t->on_model[each * t->models + model];
        int64_t then = may && cpu - ask->cpu_milli >= t->cpu_milli[each];
        may = may && cpu >= t->cpu_milli[each];
        struct found now = {0, 0};
        for (int64_t kind = 0; may && kind < count; kind++) {
            size[kind] = size_on(t, each, kinds[kind].total, kept);
            count_cards(&now, kinds[kind].milli, size[kind], kinds[kind].count);
        }
        int64_t before = may && now.roomy >= cards ? now.low : sum;
        for (int64_t choice = 0; choice < choices; choice++) {
            struct found after = now;
            if (then && ask->memory) {
                count_cards(&after, kinds[choice].milli, size[choice], -1);
                count_cards(&after, kinds[choice].fewer, size[choice], 1);
            }
            for (int64_t kind = 0; then && !ask->memory && kind < count; kind++)
                count_cards(&after, WHOLE, size[kind], -kinds[kind].taken);
            int64_t unused = then && after.roomy >= cards ? after.low : rest[choice];
            rise[choice] += weight * (unused - before);
        }
    }
    if (!ask->memory)
        rises[0] = rise[0];
    for (int64_t card = 0; ask->memory && card < c->rows; card++) {
        int64_t kind = where[card];
        rises[card * step] = kind < 0 || kinds[kind].fewer < 0 ? NEVER : rise[kind];
    }
}

void clear_sizes(struct sizes *kept) {
    for (int64_t each = 0; each < KEPT; each++)
        kept->total[each] = 0;
}

/* How many steps the rise is below, as a number below 0. */
static int64_t percents(const struct typical *t, int64_t rise) {
    int64_t low = 0, high = STEPS;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (t->steps[middle] <= rise)
            low = middle + 1;
        else
            high = middle;
    }
    return low - STEPS;
}

int64_t fgd_cost(const struct columns *c, const struct shape *s, int64_t node,
                 struct sizes *kept) {
    int64_t memory = s->memory < MOST_MEMORY ? s->memory : MOST_MEMORY, least = NEVER;
    struct fgd_ask ask = {s->cards, memory, s->cpu_milli};
    int64_t rises[MOST_ROWS], choices = ask.memory ? c->rows : 1;
    rises_on(c, s->typical, &ask, node, rises, 1, kept);
    for (int64_t each = 0; each < choices; each++)
        least = rises[each] < least ? rises[each] : least;
    return least == NEVER ? 0 : percents(s->typical, least);
}

/* `rises`: (cards, count) for a share, NEVER where it does not fit; else (1, count). */
EXPORTED void gpupool_engine_fgd(const struct columns *c, const struct typical *t, int64_t cards,
                                 int64_t memory, int64_t cpu_milli, const int64_t *nodes,
                                 int64_t count, int64_t *rises) {
    struct fgd_ask ask = {cards, memory, cpu_milli};
    struct sizes kept;
    clear_sizes(&kept);
    for (int64_t each = 0; each < count; each++)
        rises_on(c, t, &ask, nodes[each], rises + each, count, &kept);
}
