#define _GNU_SOURCE
#include "limiter.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "limits.h"
#include "settings.h"

#define LOOK_NS 100000000ll /* how often the limit file is looked at, at most */

enum mode { UNKNOWN, ON, OFF };

/* Threads of this process, on one card: see accounts.h. Held for nanoseconds. */
static struct {
    _Atomic bool is_taken;
    char padding[63];
} turns[MAX_CARDS];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards mapping, limits, numbers */
static struct mapping mapping = {.fd = -1};
static struct limits limits;
static int numbers[MAX_CARDS]; /* of limits.cards, in the region */
static _Atomic int mode, own_slot = NO_SLOT;
static _Atomic int64_t looked_ns;
static _Atomic uint64_t most[MAX_CARDS]; /* in units, by number */
static _Atomic unsigned percent[MAX_CARDS];
static _Atomic bool has_percent;

extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
extern void *__dso_handle;

static void before_fork(void) {
    pthread_mutex_lock(&mutex);
}

static void in_parent(void) {
    pthread_mutex_unlock(&mutex);
}

/* What the parent holds stays the parent's. The child takes a slot of its own when it needs one,
 * and gives up its copy of the descriptor that says who is alive. */
static void in_child(void) {
    region_after_fork(&mapping);
    atomic_store(&own_slot, NO_SLOT);
    for (int card = 0; card < MAX_CARDS; card++) atomic_store(&turns[card].is_taken, false);
    pthread_mutex_init(&mutex, NULL);
}

/* pthread_atfork itself is an old symbol that new C libraries keep only for old programs. */
__attribute__((constructor)) static void watch_forks(void) {
    __register_atfork(before_fork, in_parent, in_child, __dso_handle);
}

static int64_t coarse_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* With the mutex held. */
static void apply_limits(void) {
    uint64_t new_most[MAX_CARDS] = {0};
    unsigned new_percent[MAX_CARDS] = {0};
    bool any = false;
    for (int i = 0; i < limits.count; i++) {
        int card = region_card(&mapping, limits.cards[i].uuid);
        numbers[i] = card;
        if (card < 0) continue;
        new_most[card] = limits.cards[i].bytes / UNIT;
        new_percent[card] = limits.cards[i].percent;
        any |= limits.cards[i].percent > 0 && limits.cards[i].percent < 100;
    }
    for (int card = 0; card < MAX_CARDS; card++) {
        atomic_store(&most[card], new_most[card]);
        atomic_store(&percent[card], new_percent[card]);
    }
    atomic_store(&has_percent, any);
}

static void complain(const char *path, const char *problem) {
    fprintf(stderr, "gpupool: %s: %s; this container may use no GPU memory\n", path, problem);
}

static void start(void) {
    bool changed;
    const struct settings *set = settings();
    enum limits_found found = limits_read(&limits, set->limits, &changed);
    if (found == LIMITS_UNLIMITED) {
        atomic_store(&mode, OFF);
        return;
    }
    if (found != LIMITS_GOOD)
        complain(set->limits, found == LIMITS_BAD ? "is no limit file" : "there are no limits");
    if (!region_open(&mapping, set->region)) complain(set->region, strerror(errno));
    else apply_limits();
    atomic_store(&looked_ns, coarse_ns());
    atomic_store(&mode, ON);
}

bool limiter_is_on(void) {
    int now = atomic_load_explicit(&mode, memory_order_acquire);
    if (__builtin_expect(now != UNKNOWN, 1)) return now == ON;
    settings();
    pthread_mutex_lock(&mutex);
    if (atomic_load(&mode) == UNKNOWN) start();
    pthread_mutex_unlock(&mutex);
    return atomic_load(&mode) == ON;
}

/* A process keeps the mode that it started in; `unlimited` later on means no limit, but counted. */
static void look_again(void) {
    bool changed;
    pthread_mutex_lock(&mutex);
    if (mapping.region) {
        enum limits_found found = limits_read(&limits, settings()->limits, &changed);
        if (changed && found == LIMITS_UNLIMITED)
            for (int card = 0; card < MAX_CARDS; card++) atomic_store(&most[card], MAX_UNITS);
        else if (changed)
            apply_limits();
    }
    atomic_store(&looked_ns, coarse_ns());
    pthread_mutex_unlock(&mutex);
}

static void look_sometimes(void) {
    if (coarse_ns() - atomic_load_explicit(&looked_ns, memory_order_relaxed) > LOOK_NS)
        look_again();
}

static int slot_now(void) {
    int slot = atomic_load_explicit(&own_slot, memory_order_acquire);
    if (__builtin_expect(slot != NO_SLOT, 1)) return slot;
    pthread_mutex_lock(&mutex);
    slot = atomic_load(&own_slot);
    if (slot == NO_SLOT && mapping.region) {
        slot = slot_claim(&mapping);
        atomic_store(&own_slot, slot);
    }
    pthread_mutex_unlock(&mutex);
    return slot;
}

static void turn_begin(int card) {
    _Atomic bool *is_taken = &turns[card].is_taken;
    for (int tries = 0; atomic_exchange_explicit(is_taken, true, memory_order_acquire);)
        if (++tries % 64 == 0) sched_yield();
}

static void turn_end(int card) {
    atomic_store_explicit(&turns[card].is_taken, false, memory_order_release);
}

static bool change(int card, int64_t units, uint64_t limit) {
    int slot = slot_now();
    if (slot == NO_SLOT) return false;
    turn_begin(card);
    bool is_done = account_change(mapping.region, slot, card, units, limit);
    turn_end(card);
    return is_done;
}

static void reap(void) {
    pthread_mutex_lock(&mutex);
    if (mapping.region) slots_reap(&mapping, atomic_load(&own_slot));
    pthread_mutex_unlock(&mutex);
}

bool limiter_take(int card, uint64_t bytes) {
    if (card < 0 || bytes > MAX_UNITS * UNIT) return false;
    look_sometimes();
    int64_t units = (int64_t)units_of(bytes);
    if (change(card, units, atomic_load_explicit(&most[card], memory_order_relaxed))) return true;
    /* Before saying no: what the dead held, and a limit that has just grown. */
    reap();
    look_again();
    return change(card, units, atomic_load(&most[card]));
}

void limiter_take_anyway(int card, uint64_t bytes) {
    if (card >= 0 && bytes) change(card, (int64_t)units_of(bytes), NO_LIMIT);
}

void limiter_give(int card, uint64_t bytes) {
    if (card >= 0 && bytes) change(card, -(int64_t)units_of(bytes), 0);
}

int limiter_card(const char *uuid) {
    int card = NO_CARD;
    if (!limiter_is_on()) return NO_CARD;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < limits.count && mapping.region; i++)
        if (strcmp(limits.cards[i].uuid, uuid) == 0) card = numbers[i];
    pthread_mutex_unlock(&mutex);
    return card;
}

uint64_t limiter_used(int card) {
    return card < 0 ? 0 : card_units(mapping.region, card) * UNIT;
}

uint64_t limiter_total(int card) {
    if (card < 0) return 0;
    look_sometimes();
    reap();
    uint64_t limit = atomic_load(&most[card]) * UNIT, used = limiter_used(card);
    return used > limit ? used : limit;
}

unsigned limiter_percent(int card) {
    return card < 0 ? 0 : atomic_load_explicit(&percent[card], memory_order_relaxed);
}

bool limiter_has_percent(void) {
    return atomic_load_explicit(&has_percent, memory_order_relaxed);
}

void limiter_set_context(int card, bool is_there) {
    int slot = slot_now();
    if (card < 0 || slot == NO_SLOT) return;
    atomic_store(&mapping.region->slots[slot].accounts[card].has_context, is_there);
}

int limiter_users(int card, struct user *users, int room) {
    int count = 0;
    if (card < 0) return 0;
    reap();
    struct region *region = mapping.region;
    int seen = (int)atomic_load(&region->slots_seen);
    for (int slot = 0; slot < seen && slot < MAX_SLOTS; slot++) {
        uint64_t used = slot_units(region, slot, card) * UNIT;
        if (!used && !atomic_load(&region->slots[slot].accounts[card].has_context)) continue;
        uint32_t pid = slot_visible_pid(&mapping, slot);
        if (!pid) continue;
        if (count < room) users[count] = (struct user){pid, used, region->slots[slot].name};
        count++;
    }
    return count;
}

struct region *limiter_region(void) {
    return mapping.region;
}
