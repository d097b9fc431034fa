/* A decision in one call: the nodes that changed are judged, the best is found, and its best card. */
#include "engine.h"

/* Whether the pod asks for a share of one card and nothing else, so that the kernel can choose the
 * card. Then as `_is_one_share` of residue.py.
 */
static int is_one_share(const struct shape *s) {
    const struct residue *r = s->residue;
    if (!r || s->share_count != 1 || s->least[WHOLE_FREE])
        return 0;
    return s->cards == 1 && !s->compute && !r->counts_compute && s->memory < r->totals;
}

/* `log` and `count` as for `judge`, `prices` may be NULL. -1: no node fits; else the node times
 * MOST_ROWS + 1, and its card plus 1, or 0 if others choose the cards.
 */
EXPORTED int64_t gpupool_engine_choose(const struct columns *c, struct shape *s, const int64_t *log,
                                       int64_t count, const int64_t *prices) {
    gpupool_engine_judge(c, s, log, count);
    int64_t node = least_node(c, s, prices);
    if (node < 0)
        return -1;
    int64_t card = is_one_share(s) ? gpupool_engine_best_card(c, s->residue, node, s->memory) : -1;
    return node * (MOST_ROWS + 1) + card + 1;
}
