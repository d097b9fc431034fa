/* A kernel without open-file-description locks, as gVisor is: fcntl knows no such command. Only for
 * the limiter's file: the simulated driver needs these locks itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_COMMAND 36 /* F_OFD_GETLK */
#define LAST_COMMAND 38

static int is_of_the_limiter(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    return strstr(path, "/region-1") != NULL;
}

int fcntl(int fd, int command, ...) {
    va_list words;
    va_start(words, command);
    void *word = va_arg(words, void *);
    va_end(words);
    if (command < FIRST_COMMAND || command > LAST_COMMAND || !is_of_the_limiter(fd))
        return (int)syscall(SYS_fcntl, fd, command, word);
    errno = EINVAL;
    return -1;
}
