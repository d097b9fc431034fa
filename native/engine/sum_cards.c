/* What is free of all cards of a node together. */
#include "engine.h"

#define ALL_PERCENT 100

/* As `write_cards` of node_state.py: a card is untouched if all of its memory and compute is free. */
EXPORTED void gpupool_engine_sum_cards(const struct columns *c, int64_t node) {
    int64_t untouched = 0, largest = 0, part = 0;
    for (int64_t card = 0; card < c->rows; card++) {
        int64_t at = card_at(c, node, card), free = c->card_free[at];
        int is_untouched = free == c->card_total[at] && c->card_compute[at] == ALL_PERCENT;
        untouched += is_untouched;
        part = !is_untouched && free > part ? free : part;
        largest = free > largest ? free : largest;
    }
    int64_t *sums = c->free + node * c->resources;
    sums[WHOLE_FREE] = untouched;
    sums[LARGEST_FREE] = largest;
    sums[LARGEST_PART] = part;
}
