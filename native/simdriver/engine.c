#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <time.h>

#define SECOND 1000000000ull
#define MAX_QUEUED_NS SECOND
#define MAX_KERNEL_NS (SECOND / 2) /* with what is queued, less than all buckets together */
#define SHOWN_BUCKETS (SECOND / BUCKET_NS)

uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_nsec;
}

void sleep_until_ns(uint64_t time) {
    if (!time || time <= now_ns()) return;
    struct timespec until = {(time_t)(time / SECOND), (long)(time % SECOND)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static void add_to_bucket(_Atomic uint64_t *busy, uint64_t stretch, uint64_t length) {
    _Atomic uint64_t *bucket = &busy[stretch % BUCKETS];
    uint64_t old = atomic_load(bucket), new;
    do {
        uint64_t before = old >> 32 == (uint32_t)stretch ? (uint32_t)old : 0;
        new = (stretch << 32) | (before + length);
    } while (!atomic_compare_exchange_weak(bucket, &old, new));
}

static void add_busy(_Atomic uint64_t *busy, uint64_t from, uint64_t until) {
    while (from < until) {
        uint64_t stretch = from / BUCKET_NS, end = (stretch + 1) * BUCKET_NS;
        if (end > until) end = until;
        add_to_bucket(busy, stretch, end - from);
        from = end;
    }
}

uint64_t engine_run(struct sim_state *state, int card, int slot, uint64_t length) {
    struct card_live *live = &state->cards[card].live;
    if (length > MAX_KERNEL_NS) length = MAX_KERNEL_NS;
    uint64_t free_at = atomic_load(&live->engine_free_ns), start, now;
    do {
        now = now_ns();
        /* Longer than anybody may queue: left from before the machine started again. */
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
    if (slot >= 0) add_busy(state->slots[slot].busy[card], start, start + length);
    return start + length;
}

unsigned busy_percent(const _Atomic uint64_t *busy) {
    uint64_t stretch = now_ns() / BUCKET_NS, sum = 0;
    for (uint64_t back = 1; back <= SHOWN_BUCKETS; back++) {
        uint64_t entry = atomic_load(&busy[(stretch - back) % BUCKETS]);
        if (entry >> 32 == (uint32_t)(stretch - back)) sum += (uint32_t)entry;
    }
    uint64_t percent = sum * 100 / (SHOWN_BUCKETS * BUCKET_NS);
    return percent > 100 ? 100 : (unsigned)percent;
}

unsigned card_percent(const struct card *card) {
    unsigned inside = busy_percent(card->live.busy);
    unsigned outside = atomic_load(&card->fault.outside_percent);
    return inside + outside > 100 ? 100 : inside + outside;
}
