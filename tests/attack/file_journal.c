/* Preloaded: notes everything that a program does to the files of one directory, in order.
 *
 * FILE_JOURNAL names the journal, FILE_JOURNAL_OF the directory. One record for each operation:
 *
 *     char     operation   c made, w written, t cut or grown, s flushed, d directory flushed,
 *                          r renamed, u deleted
 *     uint16   length of the path below the directory
 *     uint64   offset of what is written, or the new size
 *     uint64   length of the data (for a rename: of the new path)
 *     then the path and the data
 *
 * An operation is noted after it was done, so that only what happened is in the journal. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char directory[4096];
static int journal = -1;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("FILE_JOURNAL"), *of = getenv("FILE_JOURNAL_OF");
    if (!path || !of)
        return;
    snprintf(directory, sizeof directory, "%s", of);
    journal = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* The path below the directory, "" for the directory itself, NULL for any other. */
static const char *below(const char *path) {
    size_t length = strlen(directory);
    if (journal < 0 || strncmp(path, directory, length))
        return NULL;
    return path[length] == '/' ? path + length + 1 : path[length] ? NULL : "";
}

static const char *path_of(int fd, char *path, size_t size) {
    char link[64];
    if (journal < 0)
        return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, size - 1);
    if (length < 0)
        return NULL;
    path[length] = 0;
    return below(path);
}

static void note(char operation, const char *path, uint64_t offset, const void *data, uint64_t length) {
    struct __attribute__((packed)) {
        char operation;
        uint16_t path_length;
        uint64_t offset, length;
    } head = {operation, (uint16_t)strlen(path), offset, length};
    struct iovec parts[] = {
        {&head, sizeof head}, {(void *)path, head.path_length}, {(void *)data, data ? length : 0}};
    if (writev(journal, parts, 3) < 0)
        abort();
}

static int opened(int at, const char *path, int flags, mode_t mode) {
    const char *name = below(path);
    if (!name || !(flags & (O_CREAT | O_TRUNC)))
        return (int)syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat before;
    int is_new = stat(path, &before) != 0;
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 0 && is_new)
        note('c', name, 0, NULL, 0);
    else if (fd >= 0 && flags & O_TRUNC)
        note('t', name, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return fd;
}

#define OPEN(name, ...)                                                                            \
    int name(__VA_ARGS__ const char *path, int flags, ...) {                                       \
        va_list words;                                                                             \
        va_start(words, flags);                                                                    \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(words, mode_t) : 0;                   \
        va_end(words);                                                                             \
        return opened(AT_FDCWD, path, flags, mode);                                                \
    }
OPEN(open)
OPEN(open64)

static ssize_t written(int fd, const void *data, size_t length, off_t offset, int is_placed) {
    char path[4096];
    const char *name = path_of(fd, path, sizeof path);
    if (!name)
        return is_placed ? syscall(SYS_pwrite64, fd, data, length, offset)
                         : syscall(SYS_write, fd, data, length);
    pthread_mutex_lock(&lock);
    struct stat before;
    if (!is_placed)
        offset = fcntl(fd, F_GETFL) & O_APPEND && !fstat(fd, &before) ? before.st_size
                                                                      : lseek(fd, 0, SEEK_CUR);
    ssize_t done = is_placed ? syscall(SYS_pwrite64, fd, data, length, offset)
                             : syscall(SYS_write, fd, data, length);
    if (done > 0)
        note('w', name, (uint64_t)offset, data, (uint64_t)done);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t write(int fd, const void *data, size_t length) { return written(fd, data, length, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return written(fd, data, length, offset, 1);
}
ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) {
    return written(fd, data, length, offset, 1);
}

static int done_to(int fd, char operation, long result, off_t size) {
    char path[4096];
    const char *name = path_of(fd, path, sizeof path);
    if (name && !result)
        note(*name ? operation : 'd', name, (uint64_t)size, NULL, 0);
    pthread_mutex_unlock(&lock);
    return (int)result;
}

#define LOCKED(call) (pthread_mutex_lock(&lock), (call))
int fsync(int fd) { return done_to(fd, 's', LOCKED(syscall(SYS_fsync, fd)), 0); }
int fdatasync(int fd) { return done_to(fd, 's', LOCKED(syscall(SYS_fdatasync, fd)), 0); }
int ftruncate(int fd, off_t size) {
    return done_to(fd, 't', LOCKED(syscall(SYS_ftruncate, fd, size)), size);
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

int rename(const char *from, const char *to) {
    const char *name = below(from), *other = below(to);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (!result && name && other)
        note('r', name, 0, other, strlen(other));
    pthread_mutex_unlock(&lock);
    return result;
}

int unlink(const char *path) {
    const char *name = below(path);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (!result && name)
        note('u', name, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
