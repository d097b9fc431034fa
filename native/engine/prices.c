/* What scarcity.py and cutting.py compute in loops: what is free by class of machine, how much is
 * to spare for each set of classes, and the worth of cuts.
 */
#include "engine.h"

#include <math.h>

/* How many pods find all that they need among what is left of a node. */
static int64_t places_on(const int64_t *left, const struct place *place) {
    if (left[WHOLE_FREE] < place->cards) /* nearly always, and divisions are slow */
        return 0;
    int64_t found = left[WHOLE_FREE] / place->cards;
    if (place->cpu_milli && left[CPU] / place->cpu_milli < found)
        found = left[CPU] / place->cpu_milli;
    if (place->memory_mib && (left[MEMORY] >> MIB_SHIFT) / place->memory_mib < found)
        found = (left[MEMORY] >> MIB_SHIFT) / place->memory_mib;
    return found;
}

/* As `free_of` of supply.py: `places` and `found` are (classes, sizes), `found` is zero. */
EXPORTED void gpupool_engine_free(const struct columns *c, const struct residue *r,
                                  const struct place *places, int64_t size_count, int64_t classes,
                                  int64_t *found) {
    for (int64_t node = 0; node < c->size; node++) {
        if (!c->present[node] || !c->has_cards[node] || c->machine[node] >= classes)
            continue;
        int64_t first = c->machine[node] * size_count;
        int64_t *here = found + first;
        here[0] += residue_usable(c, r, node, 0);
        for (int64_t each = 1; each < size_count; each++)
            here[each] += places_on(free_of(c, node), &places[first + each]);
    }
}

/* As `_to_spare` of scarcity.py: `coming`, `variance`, `spare` and `spread` are (sets, sizes). */
EXPORTED void gpupool_engine_to_spare(int64_t sets, int64_t sizes, const uint8_t *inside,
                                      const double *there_is, double *coming, double *variance,
                                      double *spare, double *spread) {
    for (int64_t at = 0; at < sets; at++) {
        const uint8_t *in = inside + at * sets;
        for (int64_t size = 0; size < sizes; size++) {
            double more = 0, back = 0, varies = 0;
            for (int64_t set = 0; set < sets; set++) {
                if (!in[set])
                    continue;
                double here = coming[set * sizes + size];
                more += here > 0 ? here : 0;
                back += here < 0 ? here : 0;
                varies += variance[set * sizes + size];
            }
            double there = there_is[at * sizes + size], left = there - more - back;
            spare[at * sizes + size] = left;
            spread[at * sizes + size] = sqrt(varies);
            double part = (there - back) / (more > 1e-9 ? more : 1e-9);
            part = part < 0 ? 0 : part > 1 ? 1 : part;
            for (int64_t set = 0; left < 0 && set < sets; set++) {
                if (in[set] && coming[set * sizes + size] > 0) {
                    coming[set * sizes + size] *= part;
                    variance[set * sizes + size] *= part;
                }
            }
        }
    }
}

static double in_thousandths(double likely) {
    return rint(likely * WHOLE) / WHOLE;
}

/* As `likely_of` of scarcity.py: `spare`, `spread` and `risks` are (sets, sizes), `found` is
 * (classes, sizes).
 */
EXPORTED void gpupool_engine_likely(int64_t sets, int64_t sizes, int64_t classes, const uint8_t *has,
                                    const double *spare, const double *spread, double *risks,
                                    double *found) {
    for (int64_t each = 0; each < sets * sizes; each++)
        risks[each] = spread[each] ? erfc(spare[each] / (sqrt(2) * spread[each])) / 2 : 0.0;
    for (int64_t class = 0; class < classes; class++) {
        double *here = found + class * sizes, none = 1;
        for (int64_t size = 0; size < sizes; size++)
            here[size] = 0;
        for (int64_t set = 0; set < sets; set++) {
            const double *risk = risks + set * sizes;
            if (!has[set * classes + class])
                continue;
            none *= 1 - risk[0];
            for (int64_t size = 1; size < sizes; size++)
                here[size] = risk[size] > here[size] ? risk[size] : here[size];
        }
        here[0] = 1 - none;
        for (int64_t size = 0; size < sizes; size++)
            here[size] = in_thousandths(here[size]);
    }
}

#define LARGE 4
#define WORTHS (MOST_UNTOUCHED + 1)

static void worth_of_class(const double *likely, const int64_t *sizes, int64_t size_count,
                           int64_t cards, int64_t *found) {
    double single = likely[0] * WHOLE, worth[WORTHS] = {0}, most = (double)sizes[size_count - 1];
    for (int64_t untouched = 1; untouched < WORTHS; untouched++) {
        worth[untouched] = worth[untouched - 1] + single;
        for (int64_t at = 1; at < size_count; at++) {
            double large = LARGE * WHOLE * (0.5 + 0.5 * (double)sizes[at] / most) * likely[at];
            if (sizes[at] > untouched)
                continue;
            large = worth[untouched - sizes[at]] + (double)sizes[at] * (large > single ? large : single);
            worth[untouched] = large > worth[untouched] ? large : worth[untouched];
        }
    }
    for (int64_t at = 1; at < size_count; at++) {
        double size = (double)sizes[at], large = LARGE * WHOLE * (0.5 + 0.5 * size / most) * likely[at];
        large = large > single ? large : single;
        for (int64_t each = 0; each < sizes[at] && cards >= sizes[at]; each++) {
            double part = (double)each / size, partly = size * (single * part);
            partly += size * (large - single) * (part * part * part);
            worth[each] = partly > worth[each] ? partly : worth[each];
        }
    }
    for (int64_t each = 0; each < WORTHS; each++)
        found[each] = (int64_t)rint(worth[each]);
}

/* As `worth_of` of scarcity.py: `likely` is (classes, sizes), `found` (classes, WORTHS). */
EXPORTED void gpupool_engine_worth(const double *likely, const int64_t *sizes, int64_t size_count,
                                   const int64_t *cards, int64_t classes, int64_t *found) {
    for (int64_t each = 0; each < classes; each++)
        worth_of_class(likely + each * size_count, sizes, size_count, cards[each],
                       found + each * WORTHS);
}

/* As `prices_for` of scarcity.py: sets `table`, without its first entry. */
EXPORTED void gpupool_engine_table(const int64_t *worth, const int64_t *single, int64_t classes,
                                   int64_t cards, int64_t milli, int64_t *table) {
    for (int64_t each = 0; each < classes; each++) {
        int64_t part = milli * single[each] / WHOLE, rest = cards * single[each] - part;
        for (int64_t untouched = 0; untouched < WORTHS; untouched++) {
            int64_t left = untouched > cards ? untouched - cards : 0;
            const int64_t *here = worth + each * WORTHS;
            *++table = part * BULKS;
            *++table = (here[untouched] - here[left] - rest) * BULKS;
        }
    }
}

/* As `best` of `Cuts` in cutting.py. */
EXPORTED void gpupool_engine_best_cut(const int64_t *cuts, const double *values, int64_t count,
                                      int64_t steps, double nearly, double *worth, int64_t *taken,
                                      double *pattern) {
    worth[0] = 0;
    taken[0] = -1;
    for (int64_t length = 1; length <= steps; length++) {
        double best = worth[length - 1];
        int64_t last = -1;
        for (int64_t cut = 0; cut < count; cut++) {
            if (cuts[cut] > length)
                continue;
            double value = worth[length - cuts[cut]] + values[cut];
            if (value > best + nearly) {
                best = value;
                last = cut;
            }
        }
        worth[length] = best;
        taken[length] = last;
    }
    for (int64_t cut = 0; cut < count; cut++)
        pattern[cut] = 0;
    for (int64_t length = steps; length > 0;) {
        int64_t last = taken[length];
        if (last >= 0)
            pattern[last]++;
        length -= last >= 0 ? cuts[last] : 1;
    }
}
