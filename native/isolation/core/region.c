#define _GNU_SOURCE
#include "region.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../process/byte_lock.h"

/* O_NOFOLLOW: the directory is writable for programs of the container. */
static int open_region(const char *path) {
    return open_at_high_number(path, O_CREAT | O_NOFOLLOW);
}

/* Makes a region of an empty file; checks any other file. With LOCK_SETUP held. */
static bool initialise_or_check(int fd) {
    struct {
        char magic[8];
        uint32_t version, size;
    } head = {REGION_MAGIC, REGION_VERSION, sizeof(struct region)}, found;
    struct stat status;
    if (fstat(fd, &status)) return false;
    /* The head is written last. A file without one was left by a process that died before; nobody
     * has used it, so that it can be initialised again. */
    if (pread(fd, &found, sizeof found, 0) != sizeof found || !found.magic[0]) {
        fchmod(fd, 0666); /* for all users of the container, whatever the umask is */
        return ftruncate(fd, sizeof(struct region)) == 0 &&
               pwrite(fd, &head, sizeof head, 0) == sizeof head;
    }
    return memcmp(&head, &found, sizeof head) == 0 &&
           status.st_size == (off_t)sizeof(struct region);
}

/* Opens the file a second time for the mapping. A mapping keeps its open file description alive in
 * every child of a fork: made from the descriptor with the locks, it would keep the locks, too. */
static void *map(const char *path, const struct stat *wanted) {
    struct stat status;
    void *memory = MAP_FAILED;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return memory;
    if (!fstat(fd, &status) && status.st_ino == wanted->st_ino && status.st_dev == wanted->st_dev)
        memory = mmap(NULL, sizeof(struct region), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory;
}

bool region_open(struct mapping *mapping, const char *path) {
    struct stat status;
    int fd = open_region(path);
    if (fd < 0) return false;
    /* A kernel without these locks (gVisor) says EINVAL, which would tell nobody what is missing. */
    if (!byte_lock_wait(fd, LOCK_SETUP)) {
        close(fd);
        errno = ENOLCK;
        return false;
    }
    bool is_good = initialise_or_check(fd) && !fstat(fd, &status);
    byte_lock_drop(fd, LOCK_SETUP);
    void *memory = is_good ? map(path, &status) : MAP_FAILED;
    if (memory == MAP_FAILED) {
        close(fd);
        return false;
    }
    strncpy(mapping->path, path, sizeof mapping->path - 1);
    mapping->region = memory;
    mapping->fd = fd;
    mapping->device = status.st_dev;
    mapping->inode = status.st_ino;
    return true;
}

/* Whether the descriptor is still one of the mapped file. */
static bool is_still_ours(const struct mapping *mapping) {
    struct stat status;
    return mapping->fd >= 0 && !fstat(mapping->fd, &status) &&
           status.st_dev == mapping->device && status.st_ino == mapping->inode;
}

int region_descriptor(struct mapping *mapping, bool *is_new) {
    *is_new = false;
    if (is_still_ours(mapping)) return mapping->fd;
    /* Not closed first: the number may belong to a file of the program by now. */
    mapping->fd = open_region(mapping->path);
    if (is_still_ours(mapping)) {
        *is_new = true;
        return mapping->fd;
    }
    /* The file was removed, and the path may lead to another one: its locks say nothing about the
     * region that is mapped. */
    if (mapping->fd >= 0) close(mapping->fd);
    return mapping->fd = -1;
}

void region_after_fork(struct mapping *mapping) {
    if (mapping->region && is_still_ours(mapping)) close(mapping->fd);
    mapping->fd = -1;
}

static int known_card(const struct region *region, const char *uuid) {
    uint32_t count = atomic_load(&region->card_count);
    for (uint32_t card = 0; card < count && card < MAX_CARDS; card++)
        if (strncmp(region->cards[card].uuid, uuid, UUID_SIZE) == 0) return (int)card;
    return -1;
}

int region_card(struct mapping *mapping, const char *uuid) {
    bool is_new;
    struct region *region = mapping->region;
    int card = known_card(region, uuid);
    if (card >= 0) return card;
    int fd = region_descriptor(mapping, &is_new);
    if (fd < 0 || !byte_lock_wait(fd, LOCK_SETUP)) return -1;
    card = known_card(region, uuid);
    uint32_t count = atomic_load(&region->card_count);
    if (card < 0 && count < MAX_CARDS) {
        /* The entry first, then the count: readers take no lock and trust the count. */
        strncpy(region->cards[count].uuid, uuid, UUID_SIZE - 1);
        atomic_store(&region->card_count, count + 1);
        card = (int)count;
    }
    byte_lock_drop(fd, LOCK_SETUP);
    return card;
}
