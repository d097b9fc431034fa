#define _GNU_SOURCE
#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNTS "/proc/self/mountinfo"
#define NO_MOUNT (-1)
#define END (-1)
#define UNKNOWN "/proc does not say on which mount it is"
#define OVER \
    "something else is mounted over it (see volumeMounts and terminationMessagePath of the pod)"

/* Reads a file byte by byte. A line has no largest length: a pod can make one as long as it likes,
 * and what did not fit into a buffer would be a mount that is not seen. */
struct reader {
    int fd;
    bool has_failed;
    ssize_t length, next;
    char buffer[1024];
};

struct mount {
    long id, parent;
    bool is_below, is_root; /* whether it is at the directory or below it; at the root or not */
    bool is_read_only;
};

static ssize_t read_again(int fd, char *buffer, size_t room) {
    ssize_t length;
    do {
        length = read(fd, buffer, room);
    } while (length < 0 && errno == EINTR);
    return length;
}

static int next_byte(struct reader *reader) {
    if (reader->next == reader->length) {
        reader->next = 0;
        reader->length = read_again(reader->fd, reader->buffer, sizeof reader->buffer);
        if (reader->length <= 0) {
            reader->has_failed |= reader->length < 0;
            reader->length = 0;
            return END;
        }
    }
    return (unsigned char)reader->buffer[reader->next++];
}

/* Reads up to the next space; returns the byte that ends the field. */
static int skip_field(struct reader *reader) {
    int byte;
    do {
        byte = next_byte(reader);
    } while (byte != ' ' && byte != '\n' && byte != END);
    return byte;
}

static void skip_line(struct reader *reader) {
    int byte;
    do {
        byte = next_byte(reader);
    } while (byte != '\n' && byte != END);
}

/* Compares a path that is read byte by byte with one that is known. */
struct comparison {
    const char *rest; /* of the known path */
    bool is_equal, is_longer;
};

static void compare(struct comparison *with, int byte) {
    if (*with->rest) with->is_equal &= byte == (unsigned char)*with->rest++;
    else if (!with->is_longer) with->is_equal &= byte == '/', with->is_longer = true;
}

static bool read_number(struct reader *reader, long *number) {
    int byte;
    *number = 0;
    while ((byte = next_byte(reader)) >= '0' && byte <= '9') *number = *number * 10 + (byte - '0');
    return byte == ' ';
}

/* A line: id, id of the parent, device, root, mount point, options (`ro` or `rw` first), more.
 * False at the end, and if a line is not understood. */
static bool read_mount(struct reader *reader, const struct place *place, struct mount *mount) {
    struct comparison directory = {place->directory, true, false}, root = {place->root, true, false};
    int byte = next_byte(reader);
    if (byte == END) return false;
    reader->next--; /* it is in the buffer */
    if (!read_number(reader, &mount->id) || !read_number(reader, &mount->parent)) {
        reader->has_failed = true;
        return false;
    }
    for (int field = 0; field < 2; field++) skip_field(reader);
    while ((byte = next_byte(reader)) != ' ' && byte != '\n' && byte != END) {
        compare(&directory, byte);
        compare(&root, byte);
    }
    mount->is_below = directory.is_equal && !*directory.rest;
    mount->is_root = root.is_equal && !*root.rest && !root.is_longer;
    mount->is_read_only = next_byte(reader) == 'r' && next_byte(reader) == 'o';
    skip_line(reader);
    return true;
}

/* How many mounts are at the directory or below it; `found` is the last one. -1: the list cannot be
 * read. */
static int find_mounts(const struct place *place, struct mount *found) {
    struct reader reader = {.fd = open(MOUNTS, O_RDONLY | O_CLOEXEC)};
    struct mount mount;
    int count = 0;
    if (reader.fd < 0) return -1;
    while (read_mount(&reader, place, &mount))
        if (mount.is_below) count++, *found = mount;
    close(reader.fd);
    return reader.has_failed ? -1 : count;
}

/* Whether the mount is directly on the one at the root. */
static bool is_on_root(const struct place *place, const struct mount *found) {
    struct reader reader = {.fd = open(MOUNTS, O_RDONLY | O_CLOEXEC)};
    struct mount mount;
    bool is_on = false;
    if (reader.fd < 0) return false;
    while (read_mount(&reader, place, &mount))
        is_on |= mount.is_root && mount.id == found->parent;
    close(reader.fd);
    return is_on && !reader.has_failed;
}

/* Linux says it since 3.15, as it has the locks that counting needs (byte_lock.h). */
static long mount_of(int fd) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    int info = open(path, O_RDONLY | O_CLOEXEC);
    if (info < 0) return NO_MOUNT;
    ssize_t length = read_again(info, text, sizeof text - 1);
    close(info);
    text[length > 0 ? length : 0] = 0;
    const char *id = strstr(text, "mnt_id:");
    return id ? strtol(id + strlen("mnt_id:"), NULL, 10) : NO_MOUNT;
}

const char *mount_problem(int fd, const struct place *place) {
    struct mount found = {0};
    int count = find_mounts(place, &found);
    if (count < 0) return MOUNTS " cannot be read";
    if (count == 0) return "the volume of the limit file is not mounted there";
    if (count > 1) return OVER;
    if (!found.is_read_only) return "its mount can be written";
    if (!is_on_root(place, &found)) return "it is mounted inside another volume";
    long id = mount_of(fd);
    if (id == NO_MOUNT) return UNKNOWN;
    return id == found.id ? NULL : "it is not on the mount of the limit file";
}

const char *other_mount_problem(int fd, const char *directory) {
    int place = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place < 0) return "its directory cannot be opened";
    long id = mount_of(place);
    close(place);
    if (id == NO_MOUNT) return UNKNOWN;
    return id == mount_of(fd) ? NULL : OVER;
}
