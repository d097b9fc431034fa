#define _GNU_SOURCE
#include "slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../../process/identity.h"
#include "accounts.h"

/* Who may not look is told that it does: rather too much in use than too little. */
static bool maps_region(const struct mapping *mapping, uint32_t pid) {
    char path[32], line[4352], wanted[64];
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    snprintf(wanted, sizeof wanted, " %02x:%02x %llu ", major(mapping->device),
             minor(mapping->device), (unsigned long long)mapping->inode);
    FILE *file = fopen(path, "re");
    if (!file) return errno != ENOENT;
    bool is_found = false;
    while (!is_found && fgets(line, sizeof line, file)) is_found = strstr(line, wanted) != NULL;
    fclose(file);
    return is_found;
}

/* Without the lock on its slot. */
static bool is_running_here(const struct mapping *mapping, const struct slot *slot) {
    uint32_t pid = atomic_load(&slot->pid);
    /* This process itself, in the life before its last exec or in a library that is unloaded. */
    if (!pid || pid == (uint32_t)getpid()) return false;
    return atomic_load(&slot->namespace) == own_namespace() &&
           process_start_time(pid) == atomic_load(&slot->start_time) && maps_region(mapping, pid);
}

/* With the slot's lock held. */
static void wipe(struct region *region, int slot) {
    for (int card = 0; card < MAX_CARDS; card++) account_clear(region, slot, card);
    atomic_store(&region->slots[slot].pid, 0);
}

static void read_own_name(char *name, size_t size) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    size_t known = length > 0 ? (size_t)length : 0;
    path[known] = 0;
    /* The end says more than the beginning. */
    size_t cut = known >= size ? known - size + 1 : 0;
    memcpy(name, path + cut, known - cut + 1);
}

static void introduce(struct region *region, int slot) {
    struct slot *entry = &region->slots[slot];
    read_own_name(entry->name, sizeof entry->name);
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
        if (!lock_try(fd, LOCK_SLOT + slot)) continue;
        if (is_running_here(mapping, &mapping->region->slots[slot])) {
            lock_drop(fd, LOCK_SLOT + slot);
            continue;
        }
        wipe(mapping->region, slot);
        introduce(mapping->region, slot);
        struct flock owner = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_OWNER + slot, .l_len = 1};
        fcntl(fd, F_SETLK, &owner);
        return slot;
    }
    return NO_SLOT;
}

void slots_reap(struct mapping *mapping, int own) {
    bool is_new;
    struct region *region = mapping->region;
    int fd = region_descriptor(mapping, &is_new), seen = (int)atomic_load(&region->slots_seen);
    if (fd < 0) return;
    if (is_new && own != NO_SLOT) lock_try(fd, LOCK_SLOT + own);
    for (int slot = 0; slot < seen && slot < MAX_SLOTS; slot++) {
        struct slot *entry = &region->slots[slot];
        /* Its own lock does not stand in a description's way: it would seem free. */
        if (slot == own || !atomic_load(&entry->pid)) continue;
        if (lock_is_held(fd, LOCK_SLOT + slot)) continue;
        if (is_running_here(mapping, entry) || !lock_try(fd, LOCK_SLOT + slot)) continue;
        if (!is_running_here(mapping, entry)) wipe(region, slot);
        lock_drop(fd, LOCK_SLOT + slot);
    }
}

uint32_t slot_visible_pid(const struct mapping *mapping, int slot) {
    const struct slot *entry = &mapping->region->slots[slot];
    uint32_t pid = atomic_load(&entry->pid);
    if (!pid || atomic_load(&entry->namespace) == own_namespace()) return pid;
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_OWNER + slot, .l_len = 1};
    if (fcntl(mapping->fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK || lock.l_pid <= 0)
        return 0;
    return (uint32_t)lock.l_pid;
}
