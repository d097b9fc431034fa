#define _GNU_SOURCE
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t own_namespace(void) {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) ? 0 : (uint64_t)status.st_ino;
}

uint64_t process_start_time(uint32_t pid) {
    char path[32], text[1024], state;
    unsigned long long ticks = 0;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) return 0;
    text[length] = 0;
    /* The second column is the program's name in brackets. It may contain brackets and blanks, so
     * the columns are counted from the last bracket. */
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1,
                        " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
                        " %*s %llu",
                        &state, &ticks) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : ticks;
}

/* One line of /proc/<pid>/maps, as far as it is used. */
struct map_line {
    unsigned long start, end;
    char device[24];
    unsigned long long inode;
};

static bool read_map_line(FILE *maps, struct map_line *line) {
    char text[PATH_MAX + 128];
    while (fgets(text, sizeof text, maps))
        if (sscanf(text, "%lx-%lx %*s %*s %23s %llu", &line->start, &line->end, line->device,
                   &line->inode) == 4)
            return true;
    return false;
}

static bool read_own_map(const void *address, struct map_line *found) {
    FILE *maps = fopen("/proc/self/maps", "re");
    bool is_found = false;
    while (maps && !is_found && read_map_line(maps, found))
        is_found = (unsigned long)(uintptr_t)address >= found->start &&
                   (unsigned long)(uintptr_t)address < found->end;
    if (maps) fclose(maps);
    return is_found;
}

/* Two lines of maps are compared, not a line with the result of stat: some file systems (btrfs,
 * overlayfs) show one device in maps and another in stat. */
static bool has_mapped(uint32_t pid, const void *address) {
    char path[32];
    struct map_line own, other;
    if (!read_own_map(address, &own)) return true;
    snprintf(path, sizeof path, "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps) return errno != ENOENT;
    bool is_found = false;
    while (!is_found && read_map_line(maps, &other))
        is_found = other.inode == own.inode && strcmp(other.device, own.device) == 0;
    fclose(maps);
    return is_found;
}

bool is_running_with_map(uint32_t pid, uint64_t start_time, uint64_t namespace,
                         const void *address) {
    return pid && namespace == own_namespace() && process_start_time(pid) == start_time &&
           has_mapped(pid, address);
}

void read_own_program(char *path, size_t size) {
    char whole[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", whole, sizeof whole - 1);
    size_t known = length > 0 ? (size_t)length : 0;
    whole[known] = 0;
    size_t cut = known >= size ? known - size + 1 : 0;
    memcpy(path, whole + cut, known - cut + 1);
}
