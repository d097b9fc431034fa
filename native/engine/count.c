/* What a pod that comes or goes changes of a node: as `_count` of node_state.py. */
#include "engine.h"

#define ALL_PERCENT 100
#define MOST ((int64_t)1 << 62) /* as in columns.py */

/* A card is untouched if all of its memory and compute is free. */
static void sum_cards(const struct columns *c, int64_t node, int64_t *free) {
    int64_t untouched = 0, largest = 0, part = 0;
    for (int64_t card = 0; card < c->rows; card++) {
        int64_t at = card_at(c, node, card), here = c->card_free[at];
        int is_untouched = here == c->card_total[at] && c->card_compute[at] == ALL_PERCENT;
        untouched += is_untouched;
        part = !is_untouched && here > part ? here : part;
        largest = here > largest ? here : largest;
    }
    free[WHOLE_FREE] = untouched;
    free[LARGEST_FREE] = largest;
    free[LARGEST_PART] = part;
}

/* Sums up the cards, and takes the amounts, (row, amount), from what is free, or gives them back if
 * `sign` is below 0. Returns whether it did: where nothing is free, more may be held than there is,
 * and only those who add up all pods know how much.
 */
EXPORTED int64_t gpupool_engine_count(const struct columns *c, int64_t node, const int64_t *amounts,
                                      int64_t count, int64_t sign) {
    int64_t *free = c->free + node * c->resources;
    sum_cards(c, node, free);
    for (int64_t each = 0; each < count; each++) {
        int64_t before = free[amounts[2 * each]], amount = amounts[2 * each + 1];
        if (before <= 0 || before >= MOST || amount < 0 || amount >= MOST)
            return 0;
        int64_t left = before - sign * amount; /* both are below 2**62 */
        if (left < 0 || left >= MOST)
            return 0;
    }
    for (int64_t each = 0; each < count; each++)
        free[amounts[2 * each]] -= sign * amounts[2 * each + 1];
    return 1;
}
