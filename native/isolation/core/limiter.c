#define _GNU_SOURCE
#include "limiter.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../../process/at_fork.h"
#include "limit_file.h"
#include "settings.h"

#define REREAD_NS 100000000ll /* the limit file is checked for changes at most this often */

enum mode { UNKNOWN, ON, OFF };

/* Spin locks: the threads of this process take turns at changing a card's account (accounts.h). A
 * spin lock, because it is held for nanoseconds, and because the child of a fork can simply reset
 * it. */
static struct {
    _Atomic bool is_taken;
    char padding[63];
} turns[MAX_CARDS];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the next four */
static struct mapping mapping = {.fd = -1};
static struct limits limits;
static int numbers[MAX_CARDS]; /* by index in limits.cards: the number in the region */
static _Atomic int own_slot = NO_SLOT;

static _Atomic int mode;
static _Atomic int64_t reread_ns; /* when the limit file was checked last */
static _Atomic uint64_t limit_granules[MAX_CARDS]; /* by number in the region */
static _Atomic unsigned percent[MAX_CARDS];        /* by number in the region */
static _Atomic bool has_percent;

/* Fork: the mutex is held while the process is copied, so that the child does not get a mutex that
 * is locked by a thread which does not exist in the child, or half-changed tables. */
static void before_fork(void) {
    pthread_mutex_lock(&mutex);
}

static void in_parent(void) {
    pthread_mutex_unlock(&mutex);
}

/* The parent keeps its slot and what is counted there. The child claims a slot of its own when it
 * first needs one. It closes its copy of the descriptor with the slot's lock, or the parent would
 * look alive until the child's death.
 *
 * The spin locks are reset: a thread that held one is not in the child. No account is half changed
 * by that: the child never uses the parent's account. */
static void in_child(void) {
    region_after_fork(&mapping);
    atomic_store(&own_slot, NO_SLOT);
    for (int card = 0; card < MAX_CARDS; card++) atomic_store(&turns[card].is_taken, false);
    pthread_mutex_init(&mutex, NULL);
}

__attribute__((constructor)) static void register_fork_handlers(void) {
    at_fork(before_fork, in_parent, in_child);
}

/* The coarse clock is read without a system call and is exact to some milliseconds. */
static int64_t coarse_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* With the mutex held. */
static void apply_limits(void) {
    uint64_t new_limit[MAX_CARDS] = {0};
    unsigned new_percent[MAX_CARDS] = {0};
    bool any = false;
    for (int i = 0; i < limits.count; i++) {
        int card = region_card(&mapping, limits.cards[i].uuid);
        numbers[i] = card;
        if (card < 0) continue;
        new_limit[card] = limits.cards[i].bytes / GRANULE;
        new_percent[card] = limits.cards[i].percent;
        any |= limits.cards[i].percent > 0 && limits.cards[i].percent < 100;
    }
    for (int card = 0; card < MAX_CARDS; card++) {
        atomic_store(&limit_granules[card], new_limit[card]);
        atomic_store(&percent[card], new_percent[card]);
    }
    atomic_store(&has_percent, any);
}

static void report_problem(const char *path, const char *problem) {
    fprintf(stderr, "gpupool: %s: %s; this container may use no GPU memory\n", path, problem);
}

static enum limits_found read_limits(const struct settings *set, bool *changed) {
    struct place place = {set->limits_mount, set->root};
    return limits_read(&limits, set->limits, &place, changed);
}

/* With the mutex held. False: there is no limit. */
static bool read_first_limits(const struct settings *set) {
    bool changed;
    enum limits_found found = read_limits(set, &changed);
    if (found == LIMITS_UNLIMITED) return false;
    if (found == LIMITS_BAD) report_problem(set->limits, "is no limit file");
    if (found == LIMITS_MISSING) report_problem(set->limits, "there are no limits");
    if (found == LIMITS_FOREIGN) report_problem(set->limits, limits.problem);
    /* Without a region all limits stay 0: nothing can be counted, so nothing is given. */
    if (!region_open(&mapping, set->region)) report_problem(set->region, strerror(errno));
    else apply_limits();
    return true;
}

/* With the mutex held. */
static void start(void) {
    const struct settings *set = settings();
    bool is_limited = true;
    /* Then there is no region: settings that are not the node's do not say where it is, nor where
     * the limit file is. */
    if (set->problem) report_problem(set->source, set->problem);
    else is_limited = read_first_limits(set);
    atomic_store(&reread_ns, coarse_ns());
    atomic_store(&mode, is_limited ? ON : OFF);
}

bool limiter_is_on(void) {
    int now = atomic_load_explicit(&mode, memory_order_acquire);
    if (__builtin_expect(now != UNKNOWN, 1)) return now == ON;
    settings(); /* takes the dynamic loader's lock, so it must be called without the mutex */
    pthread_mutex_lock(&mutex);
    if (atomic_load(&mode) == UNKNOWN) start();
    pthread_mutex_unlock(&mutex);
    return atomic_load(&mode) == ON;
}

/* A process keeps the mode in which it started. If the file later says `unlimited`, there is no
 * limit, but memory is still counted: the file may set a limit again. */
static void reread_limits(void) {
    bool changed;
    pthread_mutex_lock(&mutex);
    if (mapping.region) {
        const struct settings *set = settings();
        enum limits_found found = read_limits(set, &changed);
        if (changed && found == LIMITS_FOREIGN) report_problem(set->limits, limits.problem);
        if (changed && found == LIMITS_UNLIMITED)
            for (int card = 0; card < MAX_CARDS; card++)
                atomic_store(&limit_granules[card], MAX_GRANULES);
        else if (changed)
            apply_limits();
    }
    atomic_store(&reread_ns, coarse_ns());
    pthread_mutex_unlock(&mutex);
}

static void reread_limits_if_due(void) {
    if (coarse_ns() - atomic_load_explicit(&reread_ns, memory_order_relaxed) > REREAD_NS)
        reread_limits();
}

/* This process' slot, claimed at the first call; NO_SLOT if none can be claimed. */
static int claimed_slot(void) {
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

static bool change(int card, int64_t granules, uint64_t limit) {
    int slot = claimed_slot();
    if (slot == NO_SLOT) return false;
    turn_begin(card);
    bool is_done = account_change(mapping.region, slot, card, granules, limit);
    turn_end(card);
    return is_done;
}

static void reap(void) {
    pthread_mutex_lock(&mutex);
    if (mapping.region) slots_reap(&mapping, atomic_load(&own_slot));
    pthread_mutex_unlock(&mutex);
}

bool limiter_take(int card, uint64_t bytes) {
    if (card < 0 || bytes > MAX_GRANULES * GRANULE) return false;
    reread_limits_if_due();
    int64_t granules = (int64_t)granules_of(bytes);
    uint64_t limit = atomic_load_explicit(&limit_granules[card], memory_order_relaxed);
    if (change(card, granules, limit)) return true;
    /* Before a refusal: dead processes may still be counted, and the limit may just have grown. */
    reap();
    reread_limits();
    return change(card, granules, atomic_load(&limit_granules[card]));
}

void limiter_take_anyway(int card, uint64_t bytes) {
    if (card >= 0 && bytes) change(card, (int64_t)granules_of(bytes), NO_LIMIT);
}

bool limiter_is_over(int card) {
    if (card < 0) return false;
    reap();
    reread_limits();
    return card_granules(mapping.region, card) > atomic_load(&limit_granules[card]);
}

void limiter_give(int card, uint64_t bytes) {
    if (card >= 0 && bytes) change(card, -(int64_t)granules_of(bytes), 0);
}

static int find_card(const char *uuid) {
    int card = NO_CARD;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < limits.count && mapping.region; i++)
        if (strcmp(limits.cards[i].uuid, uuid) == 0) card = numbers[i];
    pthread_mutex_unlock(&mutex);
    return card;
}

int limiter_card(const char *uuid) {
    if (!limiter_is_on()) return NO_CARD;
    int card = find_card(uuid);
    if (card != NO_CARD) return card;
    reread_limits(); /* as before every refusal */
    return find_card(uuid);
}

uint64_t limiter_used(int card) {
    return card < 0 ? 0 : card_granules(mapping.region, card) * GRANULE;
}

uint64_t limiter_total(int card) {
    if (card < 0) return 0;
    reread_limits_if_due();
    reap();
    uint64_t limit = atomic_load(&limit_granules[card]) * GRANULE, used = limiter_used(card);
    return used > limit ? used : limit;
}

unsigned limiter_percent(int card) {
    return card < 0 ? 0 : atomic_load_explicit(&percent[card], memory_order_relaxed);
}

bool limiter_has_percent(void) {
    return atomic_load_explicit(&has_percent, memory_order_relaxed);
}

void limiter_set_context(int card, bool is_there) {
    int slot = claimed_slot();
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
        uint64_t used = slot_granules(region, slot, card) * GRANULE;
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
