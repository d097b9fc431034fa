#define _GNU_SOURCE
#include "region.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif

static int lock_byte(int fd, int command, short type, long long byte) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result;
    do {
        result = fcntl(fd, command, &lock);
    } while (result < 0 && errno == EINTR);
    return result;
}

bool lock_try(int fd, long long byte) {
    return lock_byte(fd, F_OFD_SETLK, F_WRLCK, byte) == 0;
}

void lock_wait(int fd, long long byte) {
    lock_byte(fd, F_OFD_SETLKW, F_WRLCK, byte);
}

void lock_drop(int fd, long long byte) {
    lock_byte(fd, F_OFD_SETLK, F_UNLCK, byte);
}

bool lock_is_held(int fd, long long byte) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/* High, so that programs which count on low numbers are left in peace. */
static int open_high(const char *path) {
    int low = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (low < 0) return -1;
    int high = fcntl(low, F_DUPFD_CLOEXEC, 900);
    if (high < 0) return low; /* the limit of open files is lower than that */
    close(low);
    return high;
}

/* With LOCK_SETUP held: an empty file becomes a region, another one is looked at. */
static bool prepare(int fd) {
    struct {
        char magic[8];
        uint32_t version, size;
    } head = {REGION_MAGIC, REGION_VERSION, sizeof(struct region)}, found;
    struct stat status;
    if (fstat(fd, &status)) return false;
    /* The head is written last: a file without one was left by somebody who died before. */
    if (pread(fd, &found, sizeof found, 0) != sizeof found || !found.magic[0]) {
        fchmod(fd, 0666); /* all users of the container, whatever the umask */
        return ftruncate(fd, sizeof(struct region)) == 0 &&
               pwrite(fd, &head, sizeof head, 0) == sizeof head;
    }
    return memcmp(&head, &found, sizeof head) == 0 &&
           status.st_size == (off_t)sizeof(struct region);
}

/* Through an open file of its own: a mapping keeps its file open, and with it the file's locks, in
 * every child of a fork. */
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
    int fd = open_high(path);
    if (fd < 0) return false;
    lock_wait(fd, LOCK_SETUP);
    bool is_good = prepare(fd) && !fstat(fd, &status);
    lock_drop(fd, LOCK_SETUP);
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

static bool is_still_ours(const struct mapping *mapping) {
    struct stat status;
    return mapping->fd >= 0 && !fstat(mapping->fd, &status) &&
           status.st_dev == mapping->device && status.st_ino == mapping->inode;
}

int region_descriptor(struct mapping *mapping, bool *is_new) {
    *is_new = false;
    if (is_still_ours(mapping)) return mapping->fd;
    mapping->fd = open_high(mapping->path);
    if (is_still_ours(mapping)) {
        *is_new = true;
        return mapping->fd;
    }
    /* Removed, or another one by now: that one is not what is mapped. */
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
    if (fd < 0) return -1;
    lock_wait(fd, LOCK_SETUP);
    card = known_card(region, uuid);
    uint32_t count = atomic_load(&region->card_count);
    if (card < 0 && count < MAX_CARDS) {
        strncpy(region->cards[count].uuid, uuid, UUID_SIZE - 1);
        atomic_store(&region->card_count, count + 1);
        card = (int)count;
    }
    lock_drop(fd, LOCK_SETUP);
    return card;
}
