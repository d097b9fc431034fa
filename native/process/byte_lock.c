#define _GNU_SOURCE
#include "byte_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define LOWEST_NUMBER 900

/* Linux has them since 3.15; the headers of glibc 2.17, for which this is built, do not. */
#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif

static bool request(int fd, int command, short type, long long byte) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int result;
    do {
        result = fcntl(fd, command, &lock);
    } while (result < 0 && errno == EINTR);
    return result == 0;
}

/* Who holds the byte against a write lock of ours; l_type is F_UNLCK if nobody does. */
static bool ask(int fd, int command, long long byte, struct flock *lock) {
    *lock = (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, command, lock) == 0;
}

bool byte_lock_try(int fd, long long byte) {
    return request(fd, F_OFD_SETLK, F_WRLCK, byte);
}

bool byte_lock_wait(int fd, long long byte) {
    return request(fd, F_OFD_SETLKW, F_WRLCK, byte);
}

void byte_lock_drop(int fd, long long byte) {
    request(fd, F_OFD_SETLK, F_UNLCK, byte);
}

bool byte_lock_is_held(int fd, long long byte) {
    struct flock lock;
    return !ask(fd, F_OFD_GETLK, byte, &lock) || lock.l_type != F_UNLCK;
}

void owner_lock_take(int fd, long long byte) {
    request(fd, F_SETLK, F_WRLCK, byte);
}

uint32_t owner_lock_pid(int fd, long long byte) {
    struct flock lock;
    bool is_known = ask(fd, F_GETLK, byte, &lock) && lock.l_type != F_UNLCK && lock.l_pid > 0;
    return is_known ? (uint32_t)lock.l_pid : 0;
}

int open_at_high_number(const char *path, int flags) {
    int low = open(path, O_RDWR | O_CLOEXEC | flags, 0666);
    if (low < 0) return -1;
    int high = fcntl(low, F_DUPFD_CLOEXEC, LOWEST_NUMBER);
    if (high < 0) return low;
    close(low);
    return high;
}
