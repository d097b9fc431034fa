/* What the engine's Python side (src/gpupool/engine/kernel.py) shares with the compiled part.
 *
 * All arrays belong to NumPy. Nothing here allocates, keeps a pointer after a call, or knows more of
 * the cluster than these structures. Every function has a twin in Python that gives the same numbers.
 */
#ifndef GPUPOOL_ENGINE_H
#define GPUPOOL_ENGINE_H

#include <stdint.h>

/* Raise it with every change of a structure or of a function, here and in kernel.py. */
#define LAYOUT 16

#define EXPORTED __attribute__((visibility("default")))
#define NEVER INT64_MAX     /* the cost of a node that cannot take the pod */
#define WHOLE 1000          /* a card, in thousandths of it */
#define MOST_ROWS 64        /* cards of a node; kernel.py leaves larger nodes to NumPy */
#define MOST_UNTOUCHED 16   /* MOST_CARDS of scarcity.py */
#define CLASSES 64          /* of machines, MOST_MACHINES of scarcity.py */
#define USES_OF_CLASS ((MOST_UNTOUCHED + 1) * 2) /* entries of a table of prices; the first is 0 */
#define BULKS ((int64_t)1 << 22)
#define STEPS 100           /* of the costs of fgd */
#define KEPT 256            /* typical pods whose sizes are kept */
#define BLOCK 16            /* nodes that have one entry of `bounds`, and the bits of one `fitting` */

#define MIB_SHIFT 20        /* from bytes */
#define GROUP 16            /* blocks that have one entry of `groups` */

/* Rows of `free`: each node has at least these, and further ones for other resources. */
enum { CPU = 1, MEMORY = 2, WHOLE_FREE = 3, LARGEST_FREE = 4, LARGEST_PART = 7, FIRST_ROWS = 8 };

/* Columns of columns.py. In an array "by card" the cards of a node lie side by side (`card_at`), and
 * in `free` all that it has left (`free_of`).
 */
struct columns {
    int64_t size; /* a multiple of BLOCK */
    int64_t rows; /* of the arrays by card */
    int64_t resources; /* rows of `free` */
    int64_t *free;
    const int32_t *card_free;
    const int32_t *card_total;
    const int32_t *card_compute;
    const int32_t *machine;
    const int32_t *pods;
    const int64_t *cpu_total;
    const int64_t *memory_total;
    const int64_t *bulk;
    const int32_t *model;
    const uint8_t *present;
    const uint8_t *has_cards;
    uint16_t *seen; /* of every block a bit for each node that was judged; 0 between calls */
};

/* As `Place` of places.py. */
struct place {
    int64_t cards;
    int64_t cpu_milli;
    int64_t memory_mib;
};

/* Tables of residue_tables.py. */
struct residue {
    const int64_t *usable;
    const int64_t *worth;
    int64_t length; /* of both */
    const int64_t *first;
    int64_t totals; /* the length of `first` */
    int64_t only_total;
    int64_t counts_compute;
    double cards_for[2];
};

/* The typical pods of fgd.py. */
struct typical {
    int64_t count, models;
    const int64_t *cards, *memory, *cpu_milli, *weight;
    const int64_t *on_model; /* (count, models) */
    const int64_t *steps;    /* STEPS of them, rising: where a rise costs one more */
};

struct fgd_ask {
    int64_t cards, memory, cpu_milli;
};

/* A ShapeVerdict of verdict_cache.py. */
struct shape {
    int64_t least[FIRST_ROWS]; /* that must be free; whole cards and the largest share are in it */
    const int64_t *needs; /* (row, amount) of the others */
    int64_t need_count;
    const int64_t *shares; /* (units, cards, percent) */
    int64_t share_count;
    int64_t cards, memory, compute, cpu_milli, memory_bytes; /* the ask */
    const uint16_t *allowed; /* of every block a bit for each node */
    int64_t *costs;
    int32_t *uses;
    int64_t *bounds; /* of every block of nodes: no cost with its price in it is less */
    int64_t *groups; /* of every GROUP blocks: no bound is less */
    uint16_t *fitting; /* of every block a bit for each node; without it the cost is NEVER */
    uint64_t classes; /* of the nodes that had a cost since all were judged, as bits */
    const int64_t *prices; /* those that the bounds were made with; NULL: none. The first is 0 */
    const struct residue *residue; /* its policy; NULL: fgd */
    const struct typical *typical;
};

/* What the last node was worth before the pod and would lose, and what its cards were like. Many
 * nodes are alike, above all the empty ones.
 */
struct memo {
    int64_t is_set, before, lost, spent, taken;
    int32_t free[MOST_ROWS], total[MOST_ROWS], compute[MOST_ROWS];
};

/* What typical pods take of a card of this size. Nearly all cards of a cluster are alike. */
struct sizes {
    int64_t total[KEPT], size[KEPT];
};

/* What is kept from node to node, for one shape. */
struct scratch {
    struct memo memo;
    struct sizes sizes;
};

void clear_sizes(struct sizes *);

void clear_bounds(const struct columns *, struct shape *);
void set_cost(struct shape *, int64_t node, int64_t cost, int32_t use);
void set_never(struct shape *, int64_t node);

/* The cost of the pod on a node that it fits on. */
int64_t fgd_cost(const struct columns *, const struct shape *, int64_t node, struct sizes *);
int64_t residue_cost(const struct columns *, const struct shape *, int64_t node, struct memo *);

/* The first node with the least cost and price; -1: no node fits. `prices` may be NULL. */
int64_t least_node(const struct columns *, struct shape *, const int64_t *prices);

/* Judges the nodes that a part of the change log lists; `count` below 0: all nodes. */
EXPORTED void gpupool_engine_judge(const struct columns *, struct shape *, const int64_t *log,
                                   int64_t count);

/* As `_least_lost` of residue.py, for a share of one card: the first card that loses the least. */
EXPORTED int64_t gpupool_engine_best_card(const struct columns *, const struct residue *,
                                          int64_t node, int64_t memory);

/* What is usable of all cards of a node; of their compute too, if that counts. */
int64_t residue_usable(const struct columns *, const struct residue *, int64_t node,
                       int64_t counts_compute);

static inline int has_bit(const uint16_t *blocks, int64_t node) {
    return blocks[(uint64_t)node / BLOCK] >> ((uint64_t)node % BLOCK) & 1;
}

static inline const int64_t *free_of(const struct columns *c, int64_t node) {
    return c->free + node * c->resources;
}

static inline int64_t card_at(const struct columns *c, int64_t node, int64_t card) {
    return node * c->rows + card;
}

static inline int64_t floor_div(int64_t value, int64_t by) {
    int64_t quotient = value / by;
    return quotient - (value % by != 0 && value < 0);
}

#endif
