#define _GNU_SOURCE
#include "cgroup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CGROUP2_MAGIC 0x63677270
/* The kernel's own numbers. */
#define INITIAL_USER_NAMESPACE 0xeffffffdull
#define INITIAL_CGROUP_NAMESPACE 0xeffffffbull
#define CONTAINERS "/containers/"
#define STATE_NAME "/state"
#define DELETED "//deleted"
#define LINE_BYTES (2 * PATH_MAX + 512)

/* "…/containers/POD/CONTAINER/state" -> "containers:/POD/CONTAINER". A link that was removed since
 * is still the container's: the kernel adds "//deleted" to its path. */
static bool container_place(const char *file, char place[PLACE_BYTES]) {
    size_t length = strlen(file), ending = strlen(STATE_NAME), end = strlen(DELETED);
    if (length > end && strcmp(file + length - end, DELETED) == 0) length -= end;
    if (length <= ending || strncmp(file + length - ending, STATE_NAME, ending) != 0) return false;
    const char *found = NULL;
    for (const char *at = file; (at = strstr(at, CONTAINERS)); at++) found = at;
    if (!found) return false;
    const char *names = found + strlen(CONTAINERS) - 1; /* with the slash */
    int size = (int)(file + length - ending - names);
    const char *second = size > 1 ? memchr(names + 1, '/', (size_t)size - 1) : NULL;
    if (!second || second == names + 1 || second == names + size - 1) return false;
    int written = snprintf(place, PLACE_BYTES, "containers:%.*s", size, names);
    return written > 0 && written < PLACE_BYTES;
}

/* The number of the mount that the file is on. O_PATH: closing another descriptor of the state file
 * would drop the POSIX locks that this process has on it. */
static int mount_of(const char *file) {
    char path[48], line[128];
    int fd = open(file, O_PATH | O_CLOEXEC), number = -1;
    if (fd < 0) return -1;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *info = fopen(path, "re");
    while (info && fgets(line, sizeof line, info))
        if (sscanf(line, "mnt_id: %d", &number) == 1) break;
    if (info) fclose(info);
    close(fd);
    return number;
}

static bool is_cgroup(const char *path, struct stat *status) {
    struct statfs system;
    return !stat(path, status) && S_ISDIR(status->st_mode) && !statfs(path, &system) &&
           system.f_type == CGROUP2_MAGIC;
}

/* One line of /proc/self/mountinfo, as far as it is used. */
struct mount_line {
    int number;
    char root[PATH_MAX]; /* the path, within its file system, of what is mounted */
    char point[PATH_MAX];
    char system[32];
};

static bool read_line(FILE *mounts, char *text, struct mount_line *line) {
    while (fgets(text, LINE_BYTES, mounts)) {
        const char *rest = strstr(text, " - ");
        if (sscanf(text, "%d %*d %*s %4095s %4095s", &line->number, line->root, line->point) == 3 &&
            rest && sscanf(rest, " - %31s", line->system) == 1)
            return true;
    }
    return false;
}

/* The first line that is wanted; false: there is none, or nobody knows. */
static bool find_line(bool (*is_wanted)(const struct mount_line *, int), int wanted,
                      struct mount_line *line) {
    char *text = malloc(LINE_BYTES);
    FILE *mounts = text ? fopen("/proc/self/mountinfo", "re") : NULL;
    bool is_found = false;
    while (mounts && !is_found && read_line(mounts, text, line)) is_found = is_wanted(line, wanted);
    if (mounts) fclose(mounts);
    free(text);
    return is_found;
}

static bool has_number(const struct mount_line *line, int number) {
    return line->number == number;
}

/* A mount that was made in the cgroup namespace of this process shows its root. */
static bool is_own_hierarchy(const struct mount_line *line, int unused) {
    (void)unused;
    return strcmp(line->system, "cgroup2") == 0 && strcmp(line->root, "/") == 0;
}

static bool is_in_first_cgroup_namespace(void) {
    struct stat status;
    return !stat("/proc/self/ns/cgroup", &status) && status.st_ino == INITIAL_CGROUP_NAMESPACE;
}

static bool by_inode(const char *path, struct mount_line *line, char place[PLACE_BYTES]) {
    char directory[2 * PATH_MAX];
    struct stat status;
    if (!find_line(is_own_hierarchy, 0, line)) return false;
    int written = snprintf(directory, sizeof directory, "%s%s", line->point, path);
    if (written < 0 || written >= (int)sizeof directory) return false;
    if (!is_cgroup(directory, &status)) return false;
    snprintf(place, PLACE_BYTES, "#%llu", (unsigned long long)status.st_ino);
    return true;
}

static bool own_cgroup(struct mount_line *line, char place[PLACE_BYTES]) {
    char text[PATH_MAX + 16];
    FILE *file = fopen("/proc/self/cgroup", "re");
    const char *path = NULL;
    while (file && !path && fgets(text, sizeof text, file)) {
        text[strcspn(text, "\n")] = 0;
        if (strncmp(text, "0::/", 4) == 0) path = text + 3;
    }
    if (file) fclose(file);
    if (!path) return false;
    if (!is_in_first_cgroup_namespace()) return by_inode(path, line, place);
    return snprintf(place, PLACE_BYTES, "%s", path) < PLACE_BYTES;
}

static bool find_own_place(const char *state, struct mount_line *line, char place[PLACE_BYTES]) {
    int mount = mount_of(state);
    if (mount < 0 || !find_line(has_number, mount, line)) return false;
    return container_place(line->root, place) || own_cgroup(line, place);
}

void read_own_place(const char *state, char place[PLACE_BYTES]) {
    struct mount_line *line = malloc(sizeof *line); /* too large for a small stack of a thread */
    if (!line || !find_own_place(state, line, place)) snprintf(place, PLACE_BYTES, PLACE_UNKNOWN);
    free(line);
}

/* The part of the path below the mount of the hierarchy. */
static bool cgroup_place(const char *path, char place[PLACE_BYTES], uint64_t *cgroup) {
    struct stat status, above;
    char parent[PATH_MAX];
    if (!is_cgroup(path, &status)) return false;
    *cgroup = status.st_ino;
    strcpy(parent, path);
    const char *below = path + strlen(path);
    for (char *slash; (slash = strrchr(parent, '/')); below = path + (slash - parent)) {
        if (slash == parent) break;
        *slash = 0;
        if (!is_cgroup(parent, &above) || above.st_dev != status.st_dev) break;
    }
    return snprintf(place, PLACE_BYTES, "%s", *below ? below : "/") < PLACE_BYTES;
}

bool place_of_directory(const char *directory, const char *state, char place[PLACE_BYTES],
                        uint64_t *cgroup) {
    char path[PATH_MAX], file[PATH_MAX + sizeof STATE_NAME];
    struct stat own, linked;
    if (directory[0] != '/' || !realpath(directory, path)) return false;
    if (cgroup_place(path, place, cgroup)) return true;
    *cgroup = 0;
    int written = snprintf(file, sizeof file, "%s%s", path, STATE_NAME);
    return written < (int)sizeof file && !stat(file, &linked) && !stat(state, &own) && linked.st_ino == own.st_ino &&
           linked.st_dev == own.st_dev && container_place(file, place);
}

bool is_under(const char *place, const struct limit *limit) {
    if (place[0] == '#') return limit->cgroup && strtoull(place + 1, NULL, 10) == limit->cgroup;
    size_t length = strlen(limit->place);
    if (strncmp(place, limit->place, length) != 0) return false;
    return !place[length] || place[length] == '/' || strcmp(limit->place, "/") == 0;
}

bool is_administrator(void) {
    struct stat status;
    return geteuid() == 0 && !stat("/proc/self/ns/user", &status) &&
           status.st_ino == INITIAL_USER_NAMESPACE;
}
