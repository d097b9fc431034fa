#define _GNU_SOURCE
#include "limit_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_TEXT 8192
#define MIB (1024ull * 1024)
#define MAX_MIB (1ull << 22)

static bool parse_number(char **text, unsigned long long most, unsigned long long *value) {
    char *end;
    if (!isdigit((unsigned char)**text)) return false;
    errno = 0;
    *value = strtoull(*text, &end, 10);
    *text = end;
    return !errno && *value <= most;
}

static bool parse_line(char *line, struct limit *limit) {
    unsigned long long mib, percent;
    char *rest = strchr(line, ' ');
    if (!rest || rest == line || rest - line >= UUID_SIZE) return false;
    *rest++ = 0;
    if (!parse_number(&rest, MAX_MIB, &mib) || *rest++ != ' ') return false;
    if (!parse_number(&rest, 100, &percent) || *rest) return false;
    memset(limit, 0, sizeof *limit);
    strcpy(limit->uuid, line);
    limit->bytes = mib * MIB;
    limit->percent = (unsigned)percent;
    return true;
}

/* One invalid line makes the whole file invalid: a file that was cut short must not give more than
 * it should. */
static enum limits_found parse(struct limits *limits, char *text) {
    char *rest, *line = strtok_r(text, "\n", &rest);
    if (line && strcmp(line, "unlimited") == 0) return LIMITS_UNLIMITED;
    for (; line; line = strtok_r(NULL, "\n", &rest)) {
        if (limits->count == MAX_CARDS || !parse_line(line, &limits->cards[limits->count])) {
            limits->count = 0;
            return LIMITS_BAD;
        }
        limits->count++;
    }
    return limits->count ? LIMITS_GOOD : LIMITS_MISSING;
}

static enum limits_found read_text(struct limits *limits, int fd) {
    char text[MAX_TEXT + 1];
    size_t length = 0;
    ssize_t part;
    limits->count = 0;
    while (length < MAX_TEXT && (part = read(fd, text + length, MAX_TEXT - length)) > 0)
        length += (size_t)part;
    text[length] = 0;
    return length == MAX_TEXT ? LIMITS_BAD : parse(limits, text);
}

enum limits_found limits_read(struct limits *limits, const char *path, const struct place *place,
                              bool *changed) {
    struct stat status = {0};
    *changed = false;
    if (stat(path, &status)) memset(&status, 0, sizeof status);
    uint64_t stamp[5] = {status.st_dev, status.st_ino, (uint64_t)status.st_size,
                         (uint64_t)status.st_mtim.tv_sec, (uint64_t)status.st_mtim.tv_nsec};
    if (memcmp(stamp, limits->stamp, sizeof stamp) == 0 && stamp[1])
        return limits->count ? LIMITS_GOOD : LIMITS_MISSING;
    *changed = true;
    memcpy(limits->stamp, stamp, sizeof stamp);
    limits->count = 0;
    /* O_NONBLOCK: until it is checked, it may be anything, also a pipe that nobody writes. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return LIMITS_MISSING;
    limits->problem = *place->directory ? mount_problem(fd, place) : NULL;
    enum limits_found found = limits->problem ? LIMITS_FOREIGN : read_text(limits, fd);
    close(fd);
    return found;
}
