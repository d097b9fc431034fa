#define _GNU_SOURCE
#include "slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../process/identity.h"

static int lock_byte(int fd, int command, short type, long long byte) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result;
    do {
        result = fcntl(fd, command, &lock);
    } while (result < 0 && errno == EINTR);
    return result;
}

static bool is_locked(int fd, long long byte) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/* A process that became another program (exec) has the same pid, but not the state any more. One
 * that may not be looked at is taken to have it. */
static bool has_state_mapped(uint32_t pid, int fd) {
    char path[32], line[PATH_MAX + 128];
    struct stat status;
    unsigned long inode;
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps || fstat(fd, &status)) {
        if (maps) fclose(maps);
        return true;
    }
    bool found = false;
    while (!found && fgets(line, sizeof line, maps))
        found = sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode == status.st_ino;
    fclose(maps);
    return found;
}

static bool is_running_here(const struct node *node, int slot) {
    const struct slot *entry = &node->state->slots[slot];
    uint32_t pid = atomic_load(&entry->pid);
    return pid && atomic_load(&entry->namespace) == own_namespace() &&
           process_start_time(pid) == atomic_load(&entry->start_time) && has_state_mapped(pid, node->fd);
}

/* With the slot's lock held. */
static void wipe(struct sim_state *state, int slot) {
    for (int card = 0; card < MAX_CARDS; card++) {
        atomic_store(&state->used[card][slot], 0);
        for (int i = 0; i < BUCKETS; i++) atomic_store(&state->slots[slot].busy[card][i], 0);
    }
    atomic_store(&state->slots[slot].contexts, 0);
    atomic_store(&state->slots[slot].pid, 0);
}

static void read_own_name(char *name, size_t size) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    size_t known = length > 0 ? (size_t)length : 0;
    /* The end says more than the beginning. */
    size_t cut = known >= size ? known - size + 1 : 0;
    memcpy(name, path + cut, known - cut + 1);
}

static void introduce(struct sim_state *state, int slot, uint64_t namespace) {
    struct slot *entry = &state->slots[slot];
    read_own_name(entry->name, sizeof entry->name);
    atomic_store(&entry->start_time, process_start_time((uint32_t)getpid()));
    atomic_store(&entry->namespace, namespace);
    atomic_store(&entry->pid, (uint32_t)getpid());
    uint32_t seen = atomic_load(&state->slots_seen);
    while (seen < (uint32_t)slot + 1 &&
           !atomic_compare_exchange_weak(&state->slots_seen, &seen, (uint32_t)slot + 1)) {
    }
}

int slot_claim(struct node *node) {
    for (int slot = 0; slot < MAX_SLOTS; slot++) {
        if (lock_byte(node->fd, F_OFD_SETLK, F_WRLCK, LOCK_SLOT + slot) < 0) continue;
        if (is_running_here(node, slot)) {
            lock_byte(node->fd, F_OFD_SETLK, F_UNLCK, LOCK_SLOT + slot);
            continue;
        }
        wipe(node->state, slot);
        introduce(node->state, slot, own_namespace());
        lock_byte(node->fd, F_SETLK, F_WRLCK, LOCK_OWNER + slot);
        return slot;
    }
    return NO_SLOT;
}

void slots_reap(struct node *node, int own) {
    struct sim_state *state = node->state;
    int seen = (int)atomic_load(&state->slots_seen);
    if (seen > MAX_SLOTS) seen = MAX_SLOTS;
    for (int slot = 0; slot < seen; slot++) {
        struct slot *entry = &state->slots[slot];
        /* Its own lock does not stand in a description's way: it would seem free. */
        if (slot == own || !atomic_load(&entry->pid) || is_locked(node->fd, LOCK_SLOT + slot))
            continue;
        if (is_running_here(node, slot)) continue;
        if (lock_byte(node->fd, F_OFD_SETLK, F_WRLCK, LOCK_SLOT + slot) < 0) continue;
        if (!is_running_here(node, slot)) wipe(state, slot);
        lock_byte(node->fd, F_OFD_SETLK, F_UNLCK, LOCK_SLOT + slot);
    }
}

uint32_t slot_visible_pid(const struct node *node, int slot) {
    const struct slot *entry = &node->state->slots[slot];
    uint32_t pid = atomic_load(&entry->pid);
    if (!pid || atomic_load(&entry->namespace) == own_namespace()) return pid;
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_OWNER + slot, .l_len = 1};
    if (fcntl(node->fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK || lock.l_pid <= 0) return 0;
    return (uint32_t)lock.l_pid;
}

uint64_t card_used(const struct sim_state *state, int card) {
    int seen = (int)atomic_load(&state->slots_seen);
    uint64_t sum = atomic_load(&state->cards[card].fault.outside_bytes);
    for (int slot = 0; slot < seen && slot < MAX_SLOTS; slot++)
        sum += atomic_load(&state->used[card][slot]);
    return sum;
}

static bool fits(const struct sim_state *state, int card, uint64_t bytes) {
    uint64_t total = state->cards[card].fixed.memory_bytes, used = card_used(state, card);
    return used <= total && bytes <= total - used; /* not used + bytes: the sum can wrap */
}

bool use_add(struct node *node, int slot, int card, uint64_t bytes) {
    if (lock_byte(node->fd, F_OFD_SETLKW, F_WRLCK, LOCK_CARD + card) < 0) return false;
    bool is_room = fits(node->state, card, bytes);
    if (!is_room) {
        slots_reap(node, slot);
        is_room = fits(node->state, card, bytes);
    }
    if (is_room) atomic_fetch_add(&node->state->used[card][slot], bytes);
    lock_byte(node->fd, F_OFD_SETLK, F_UNLCK, LOCK_CARD + card);
    return is_room;
}

void use_subtract(struct node *node, int slot, int card, uint64_t bytes) {
    atomic_fetch_sub(&node->state->used[card][slot], bytes);
}
