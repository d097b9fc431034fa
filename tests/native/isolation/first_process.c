/* Preloaded before the limiter: the process is the first one of its container. */
#include <sys/types.h>

pid_t getppid(void) {
    return 0;
}
