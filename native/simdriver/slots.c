#define _GNU_SOURCE
#include "slots.h"

#include <unistd.h>

#include "../process/byte_lock.h"
#include "../process/identity.h"
#include "cgroup.h"
#include "limits.h"

/* For a slot whose lock is free. */
static bool is_running_here(const struct node *node, int slot) {
    const struct slot *entry = &node->state->slots[slot];
    return is_running_with_map(atomic_load(&entry->pid), atomic_load(&entry->start_time),
                               atomic_load(&entry->namespace), node->state);
}

/* The same for libcuda, which knows its own slot: another slot with the own pid, whose lock is
 * free, is from before the last exec of this process. libnvidia-ml must not conclude that: the slot
 * may be the one of libcuda in this process, after the program has closed all descriptors. */
static bool is_another_running_here(const struct node *node, int slot) {
    bool is_own_pid = atomic_load(&node->state->slots[slot].pid) == (uint32_t)getpid();
    return !is_own_pid && is_running_here(node, slot);
}

/* With the slot's lock held. The pid is cleared last: it marks the slot as free. */
static void clear_slot(struct sim_state *state, int slot) {
    for (int card = 0; card < MAX_CARDS; card++) {
        atomic_store(&state->used[card][slot], 0);
        atomic_store(&state->managed[card][slot], 0);
        for (int i = 0; i < BUCKETS; i++) atomic_store(&state->slots[slot].busy[card][i], 0);
    }
    atomic_store(&state->slots[slot].contexts, 0);
    atomic_store(&state->slots[slot].pid, 0);
}

/* With the slot's lock held. The pid is written last: from then on others read the entry. */
static void fill_slot(struct node *node, int slot) {
    struct sim_state *state = node->state;
    struct slot *entry = &state->slots[slot];
    read_own_place(node->path, entry->place);
    read_own_program(entry->name, sizeof entry->name);
    atomic_store(&entry->start_time, process_start_time((uint32_t)getpid()));
    atomic_store(&entry->namespace, own_namespace());
    atomic_store(&entry->pid, (uint32_t)getpid());
    uint32_t seen = atomic_load(&state->slots_seen);
    while (seen < (uint32_t)slot + 1 &&
           !atomic_compare_exchange_weak(&state->slots_seen, &seen, (uint32_t)slot + 1)) {
    }
}

int slot_claim(struct node *node) {
    for (int slot = 0; slot < MAX_SLOTS; slot++) {
        if (!byte_lock_try(node->fd, LOCK_SLOT + slot)) continue;
        if (is_another_running_here(node, slot)) {
            byte_lock_drop(node->fd, LOCK_SLOT + slot);
            continue;
        }
        clear_slot(node->state, slot);
        fill_slot(node, slot);
        owner_lock_take(node->fd, LOCK_OWNER + slot);
        return slot;
    }
    return NO_SLOT;
}

void slots_reap(struct node *node, int own) {
    struct sim_state *state = node->state;
    bool (*is_alive)(const struct node *, int) =
        own == NO_SLOT ? is_running_here : is_another_running_here;
    int seen = (int)atomic_load(&state->slots_seen);
    for (int slot = 0; slot < seen && slot < MAX_SLOTS; slot++) {
        /* The own slot must be left out: a description does not conflict with its own lock, so the
         * slot would seem to be free. */
        if (slot == own || !atomic_load(&state->slots[slot].pid)) continue;
        /* Asking first is cheaper than locking, and does not disturb a process that claims a
         * slot. */
        if (byte_lock_is_held(node->fd, LOCK_SLOT + slot) || is_alive(node, slot)) continue;
        if (!byte_lock_try(node->fd, LOCK_SLOT + slot)) continue;
        /* Asked again under the lock: another process may have claimed the slot in between. */
        if (!is_alive(node, slot)) clear_slot(state, slot);
        byte_lock_drop(node->fd, LOCK_SLOT + slot);
    }
}

uint32_t slot_visible_pid(const struct node *node, int slot) {
    const struct slot *entry = &node->state->slots[slot];
    uint32_t pid = atomic_load(&entry->pid);
    if (!pid || atomic_load(&entry->namespace) == own_namespace()) return pid;
    return owner_lock_pid(node->fd, LOCK_OWNER + slot);
}

uint64_t card_used(const struct sim_state *state, int card) {
    int seen = (int)atomic_load(&state->slots_seen);
    uint64_t sum = atomic_load(&state->cards[card].fault.outside_bytes);
    for (int slot = 0; slot < seen && slot < MAX_SLOTS; slot++)
        sum += atomic_load(&state->used[card][slot]);
    return sum;
}

static bool fits(const struct sim_state *state, int slot, int card, uint64_t bytes,
                 bool is_managed) {
    uint64_t total = state->cards[card].fixed.memory_bytes, used = card_used(state, card);
    if (used > total || bytes > total - used) return false; /* used + bytes could overflow */
    return is_managed || limit_allows(state, state->slots[slot].place, card, bytes);
}

bool use_add(struct node *node, int slot, int card, uint64_t bytes, bool is_managed) {
    if (!byte_lock_wait(node->fd, LOCK_CARD + card)) return false;
    bool is_room = fits(node->state, slot, card, bytes, is_managed);
    if (!is_room) {
        /* Lock order: the lock of the card, then those of slots. Nobody takes them in the other
         * order: a claim does not touch the locks of cards, and reap only tries, it never waits. */
        slots_reap(node, slot);
        is_room = fits(node->state, slot, card, bytes, is_managed);
    }
    if (is_room) {
        atomic_fetch_add(&node->state->used[card][slot], bytes);
        /* Second, so that a limit counts too much in between, never too little. */
        if (is_managed) atomic_fetch_add(&node->state->managed[card][slot], bytes);
    }
    byte_lock_drop(node->fd, LOCK_CARD + card);
    return is_room;
}

void use_subtract(struct node *node, int slot, int card, uint64_t bytes, bool is_managed) {
    if (is_managed) atomic_fetch_sub(&node->state->managed[card][slot], bytes);
    atomic_fetch_sub(&node->state->used[card][slot], bytes);
}
