/* Preloaded before the limiter: the process is the first one of its container, whose /dev is that
 * of a container runtime, unless BARE_DEV is set: then it is that of a sandbox. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

pid_t getppid(void) {
    return 0;
}

int access(const char *path, int mode) {
    (void)mode;
    if (strcmp(path, "/dev/mqueue") == 0 && !getenv("BARE_DEV")) return 0;
    errno = ENOENT;
    return -1;
}
