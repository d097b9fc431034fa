/* Ends a container that was promised a card and has none, before its program begins.
 *
 * Container runtimes go on without whoever should have put the card in. A program would then run
 * for hours on the processor, and nobody would know. So the agent, which knows by which way cards
 * get into containers of its node, says in a variable which device must be there:
 *
 *     GPUPOOL_CARD_CHECK=/dev/nvidiactl:/dev/dxg node gpu-1, way runtime-class
 *
 * One of the devices is enough. Only the first process of a container is checked: it has a parent
 * outside, which the kernel shows as 0. Programs that it starts may have a /dev of their own, as
 * sandboxes make one, and a PID namespace, in which they are the first, too. They are not checked:
 * whoever has passed empties the variable for all that it starts. And nobody is refused whose /dev
 * is not the container's: where the first process is static, nobody has emptied it. A user who
 * wants no check sets the variable to nothing. */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VARIABLE "GPUPOOL_CARD_CHECK"
#define MESSAGE_FILE "/dev/termination-log" /* mounted by the kubelet, which shows its text */
#define MOST_DEVICES 8
#define SHOWN 256 /* characters of each part */
#define REFUSED 78 /* EX_CONFIG */

static bool is_device(const char *path, size_t length) {
    char name[PATH_MAX];
    struct stat found;
    if (length >= sizeof name) return false;
    memcpy(name, path, length);
    name[length] = 0;
    return stat(name, &found) == 0 && S_ISCHR(found.st_mode);
}

static bool any_is_there(const char *paths, const char *end) {
    for (int count = 0; paths < end && count < MOST_DEVICES; count++) {
        size_t length = strcspn(paths, ": ");
        if (is_device(paths, length)) return true;
        paths += length + 1;
    }
    return false;
}

static int shown(const char *begin, const char *end) {
    return end - begin < SHOWN ? (int)(end - begin) : SHOWN;
}

static void refuse(const char *devices, const char *end) {
    const char *words = *end ? end + 1 : "node and way are not known";
    char text[1024];
    snprintf(text, sizeof text,
             "the card that this container was promised did not get into it: %.*s; wanted %.*s, "
             "found none. `gpupool doctor --canary` checks the node",
             shown(words, words + strlen(words)), words, shown(devices, end), devices);
    dprintf(STDERR_FILENO, "gpupool: %s\n", text);
    int file = open(MESSAGE_FILE, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file >= 0) dprintf(file, "%s", text);
    _exit(REFUSED);
}

/* Container runtimes mount these into the /dev that they make; sandboxes inside do not. */
static bool is_dev_of_container(void) {
    return access(MESSAGE_FILE, F_OK) == 0 || access("/dev/mqueue", F_OK) == 0;
}

__attribute__((constructor)) static void check_promised_card(void) {
    char *devices = getenv(VARIABLE);
    if (!devices || *devices != '/' || getppid() != 0) return;
    const char *end = devices + strcspn(devices, " ");
    if (!any_is_there(devices, end) && is_dev_of_container()) refuse(devices, end);
    *devices = 0; /* in place: some shells do not read `environ`, but the array under it */
}
