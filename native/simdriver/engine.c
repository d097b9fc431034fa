#include "engine.h"

#include "../process/clock.h"

#define MAX_QUEUED_NS SECOND_NS
/* The longest queue and the longest kernel together must be shorter than all buckets, or a kernel's
 * end would overwrite the bucket of its beginning. */
#define MAX_KERNEL_NS (SECOND_NS / 2)
#define SHOWN_BUCKETS (SECOND_NS / BUCKET_NS)

_Static_assert(MAX_QUEUED_NS + MAX_KERNEL_NS < BUCKETS * BUCKET_NS, "engine: buckets");

static void add_to_bucket(_Atomic uint64_t *busy, uint64_t span, uint64_t length) {
    _Atomic uint64_t *bucket = &busy[span % BUCKETS];
    uint64_t old = atomic_load(bucket), new;
    do {
        uint64_t before = old >> 32 == (uint32_t)span ? (uint32_t)old : 0;
        new = (span << 32) | (before + length);
    } while (!atomic_compare_exchange_weak(bucket, &old, new));
}

static void add_busy(_Atomic uint64_t *busy, uint64_t from, uint64_t until) {
    while (from < until) {
        uint64_t span = from / BUCKET_NS, end = (span + 1) * BUCKET_NS;
        if (end > until) end = until;
        add_to_bucket(busy, span, end - from);
        from = end;
    }
}

uint64_t engine_run(struct sim_state *state, int card, int slot, uint64_t length) {
    struct card_live *live = &state->cards[card].live;
    if (length > MAX_KERNEL_NS) length = MAX_KERNEL_NS;
    uint64_t free_at = atomic_load(&live->engine_free_ns), start, now;
    do {
        now = now_ns();
        /* More than anybody may queue: the value is older than the last boot, when the clock began
         * at 0 again. */
        if (free_at > now + 2 * MAX_QUEUED_NS) start = now;
        else start = free_at > now ? free_at : now;
        if (start > now + MAX_QUEUED_NS) {
            sleep_until_ns(start - MAX_QUEUED_NS);
            free_at = atomic_load(&live->engine_free_ns);
            continue;
        }
        if (atomic_compare_exchange_weak(&live->engine_free_ns, &free_at, start + length)) break;
    } while (1);
    add_busy(live->busy, start, start + length);
    atomic_fetch_add(&live->worked_ns, length);
    if (slot >= 0) add_busy(state->slots[slot].busy[card], start, start + length);
    return start + length;
}

unsigned busy_percent(const _Atomic uint64_t *busy) {
    uint64_t span = now_ns() / BUCKET_NS, sum = 0;
    for (uint64_t back = 1; back <= SHOWN_BUCKETS; back++) {
        uint64_t entry = atomic_load(&busy[(span - back) % BUCKETS]);
        if (entry >> 32 == (uint32_t)(span - back)) sum += (uint32_t)entry;
    }
    uint64_t percent = sum * 100 / (SHOWN_BUCKETS * BUCKET_NS);
    return percent > 100 ? 100 : (unsigned)percent;
}

int busy_since(const _Atomic uint64_t *busy, uint64_t since) {
    for (int i = 0; i < BUCKETS; i++) {
        uint64_t entry = atomic_load(&busy[i]);
        /* A span is named by its low half. Those of the future are queued kernels. */
        if ((uint32_t)entry && entry >> 32 >= (uint32_t)(since / BUCKET_NS)) return 1;
    }
    return 0;
}

unsigned card_percent(const struct card *card) {
    unsigned inside = busy_percent(card->live.busy);
    unsigned outside = atomic_load(&card->fault.outside_percent);
    return inside + outside > 100 ? 100 : inside + outside;
}
