#include "limits.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../process/byte_lock.h"
#include "cgroup.h"

static int seen(const struct sim_state *state) {
    int count = (int)atomic_load(&state->limits_seen);
    return count < MAX_LIMITS ? count : MAX_LIMITS;
}

static bool has_limit(const struct limit *limit, int card) {
    return atomic_load(&limit->is_set) &&
           (atomic_load(&limit->hard[card]) != NO_LIMIT || atomic_load(&limit->soft[card]));
}

/* The nearest limited ancestor; NULL: there is none. */
static const struct limit *nearest(const struct sim_state *state, const char *place, int card) {
    const struct limit *found = NULL;
    for (int i = 0; i < seen(state); i++) {
        const struct limit *limit = &state->limits[i];
        if (!has_limit(limit, card) || !is_under(place, limit)) continue;
        if (!found || strlen(limit->place) > strlen(found->place)) found = limit;
    }
    return found;
}

static bool has_any(const struct sim_state *state, int card) {
    for (int i = 0; i < seen(state); i++)
        if (has_limit(&state->limits[i], card)) return true;
    return false;
}

static uint64_t used_under(const struct sim_state *state, const struct limit *limit, int card) {
    int slots = (int)atomic_load(&state->slots_seen);
    uint64_t sum = 0;
    for (int slot = 0; slot < slots && slot < MAX_SLOTS; slot++) {
        uint64_t used = atomic_load(&state->used[card][slot]);
        if (!used || !is_under(state->slots[slot].place, limit)) continue;
        if (nearest(state, state->slots[slot].place, card) != limit) continue;
        uint64_t managed = atomic_load(&state->managed[card][slot]);
        sum += used > managed ? used - managed : 0;
    }
    return sum;
}

bool limit_allows(const struct sim_state *state, const char *place, int card, uint64_t bytes) {
    if (!state->has_limits || !seen(state)) return true;
    if (strcmp(place, PLACE_UNKNOWN) == 0) return !has_any(state, card);
    const struct limit *limit = nearest(state, place, card);
    if (!limit) return true;
    uint64_t hard = atomic_load(&limit->hard[card]), used = used_under(state, limit, card);
    return used <= hard && bytes <= hard - used;
}

static struct limit *entry_of(struct sim_state *state, const char *place) {
    for (int i = 0; i < seen(state); i++) {
        struct limit *limit = &state->limits[i];
        if (!atomic_load(&limit->is_set)) continue;
        if (place[0] == '#' ? is_under(place, limit) : strcmp(limit->place, place) == 0)
            return limit;
    }
    return NULL;
}

bool limit_at(const struct sim_state *state, const char *place, int card,
              struct limit_values *values) {
    const struct limit *limit = entry_of((struct sim_state *)state, place);
    if (!limit || !has_limit(limit, card)) return false;
    values->soft = atomic_load(&limit->soft[card]);
    values->hard = atomic_load(&limit->hard[card]);
    values->used = used_under(state, limit, card);
    return true;
}

/* The functions from here on are called with the lock held. */
static struct limit *new_entry(struct sim_state *state, const char *place, uint64_t cgroup) {
    int number = 0;
    while (number < MAX_LIMITS && atomic_load(&state->limits[number].is_set)) number++;
    if (number == MAX_LIMITS) return NULL;
    struct limit *limit = &state->limits[number];
    snprintf(limit->place, sizeof limit->place, "%s", place);
    limit->cgroup = cgroup;
    for (int card = 0; card < MAX_CARDS; card++) {
        atomic_store(&limit->soft[card], 0);
        atomic_store(&limit->hard[card], NO_LIMIT);
    }
    atomic_store(&limit->is_set, 1);
    if (number >= seen(state)) atomic_store(&state->limits_seen, (uint32_t)number + 1);
    return limit;
}

static void clear(struct limit *limit, int card) {
    atomic_store(&limit->hard[card], NO_LIMIT);
    atomic_store(&limit->soft[card], 0);
    for (int other = 0; other < MAX_CARDS; other++)
        if (has_limit(limit, other)) return;
    atomic_store(&limit->is_set, 0);
}

static bool change(struct sim_state *state, const char *place, uint64_t cgroup, int card,
                   uint64_t soft, uint64_t hard) {
    struct limit *limit = entry_of(state, place);
    if (!soft && hard == NO_LIMIT) {
        if (limit) clear(limit, card);
        return true;
    }
    if (!limit) limit = new_entry(state, place, cgroup);
    if (!limit) return false;
    limit->cgroup = cgroup;
    atomic_store(&limit->soft[card], soft);
    atomic_store(&limit->hard[card], hard);
    return true;
}

bool limit_set(struct node *node, const char *place, uint64_t cgroup, int card, uint64_t soft,
               uint64_t hard) {
    if (!byte_lock_wait(node->fd, LOCK_LIMITS)) return false;
    bool is_done = change(node->state, place, cgroup, card, soft, hard);
    byte_lock_drop(node->fd, LOCK_LIMITS);
    return is_done;
}

static bool is_gone(const struct limit *limit, const char *mount) {
    char path[PATH_MAX + PLACE_BYTES];
    struct stat status;
    int written = snprintf(path, sizeof path, "%s%s", mount, limit->place);
    return written >= (int)sizeof path || stat(path, &status) || status.st_ino != limit->cgroup;
}

void limits_drop_removed(struct node *node, const char *mount) {
    struct sim_state *state = node->state;
    if (!byte_lock_wait(node->fd, LOCK_LIMITS)) return;
    for (int i = 0; i < seen(state); i++) {
        struct limit *limit = &state->limits[i];
        if (!atomic_load(&limit->is_set) || !limit->cgroup || !is_gone(limit, mount)) continue;
        for (int card = 0; card < MAX_CARDS; card++) clear(limit, card);
    }
    byte_lock_drop(node->fd, LOCK_LIMITS);
}
