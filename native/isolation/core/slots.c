#define _GNU_SOURCE
#include "slots.h"

#include <unistd.h>

#include "../../process/byte_lock.h"
#include "../../process/identity.h"
#include "accounts.h"

/* For a slot whose lock is free. */
static bool is_running_here(const struct mapping *mapping, const struct slot *slot) {
    uint32_t pid = atomic_load(&slot->pid);
    /* A slot with our own pid that is not our slot: this process had it before its last exec, or in
     * a copy of this library that was unloaded. */
    if (pid == (uint32_t)getpid()) return false;
    return is_running_with_map(pid, atomic_load(&slot->start_time),
                               atomic_load(&slot->namespace), mapping->region);
}

/* With the slot's lock held. The pid is cleared last: it marks the slot as free, and a process that
 * is killed before is found and cleared again. */
static void clear_slot(struct region *region, int slot) {
    for (int card = 0; card < MAX_CARDS; card++) account_clear(region, slot, card);
    atomic_store(&region->slots[slot].pid, 0);
}

/* With the slot's lock held. The pid is written last: from then on others read the entry. */
static void fill_slot(struct region *region, int slot) {
    struct slot *entry = &region->slots[slot];
    read_own_program(entry->name, sizeof entry->name);
    atomic_store(&entry->start_time, process_start_time((uint32_t)getpid()));
    atomic_store(&entry->namespace, own_namespace());
    atomic_store(&entry->pid, (uint32_t)getpid());
    uint32_t seen = atomic_load(&region->slots_seen);
    while (seen < (uint32_t)slot + 1 &&
           !atomic_compare_exchange_weak(&region->slots_seen, &seen, (uint32_t)slot + 1)) {
    }
}

int slot_claim(struct mapping *mapping) {
    bool is_new;
    int fd = region_descriptor(mapping, &is_new);
    for (int slot = 0; fd >= 0 && slot < MAX_SLOTS; slot++) {
        if (!byte_lock_try(fd, LOCK_SLOT + slot)) continue;
        if (is_running_here(mapping, &mapping->region->slots[slot])) {
            byte_lock_drop(fd, LOCK_SLOT + slot);
            continue;
        }
        clear_slot(mapping->region, slot);
        fill_slot(mapping->region, slot);
        owner_lock_take(fd, LOCK_OWNER + slot);
        return slot;
    }
    return NO_SLOT;
}

void slots_reap(struct mapping *mapping, int own) {
    bool is_new;
    struct region *region = mapping->region;
    int fd = region_descriptor(mapping, &is_new), seen = (int)atomic_load(&region->slots_seen);
    if (fd < 0) return;
    if (is_new && own != NO_SLOT) byte_lock_try(fd, LOCK_SLOT + own);
    for (int slot = 0; slot < seen && slot < MAX_SLOTS; slot++) {
        struct slot *entry = &region->slots[slot];
        /* The own slot must be left out: a description does not conflict with its own lock, so the
         * slot would seem to be free. */
        if (slot == own || !atomic_load(&entry->pid)) continue;
        /* Asking first is cheaper than locking, and does not disturb a process that claims a
         * slot. */
        if (byte_lock_is_held(fd, LOCK_SLOT + slot) || is_running_here(mapping, entry)) continue;
        if (!byte_lock_try(fd, LOCK_SLOT + slot)) continue;
        /* Asked again under the lock: another process may have claimed the slot in between. */
        if (!is_running_here(mapping, entry)) clear_slot(region, slot);
        byte_lock_drop(fd, LOCK_SLOT + slot);
    }
}

uint32_t slot_visible_pid(const struct mapping *mapping, int slot) {
    const struct slot *entry = &mapping->region->slots[slot];
    uint32_t pid = atomic_load(&entry->pid);
    if (!pid || atomic_load(&entry->namespace) == own_namespace()) return pid;
    return owner_lock_pid(mapping->fd, LOCK_OWNER + slot);
}
