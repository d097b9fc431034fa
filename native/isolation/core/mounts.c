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

struct found {
    int count; /* mounts at the directory or below it */
    long id;   /* of the last one */
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

/* Reads one field: whether it is the path of the directory, or of something below it. */
static bool is_below(struct reader *reader, const char *directory) {
    bool is_same = true, has_left = false;
    for (int byte; (byte = next_byte(reader)) != ' ' && byte != '\n' && byte != END;) {
        if (*directory) is_same = (byte == (unsigned char)*directory++) && is_same;
        else if (!has_left) is_same = (byte == '/') && is_same, has_left = true;
    }
    return is_same && !*directory;
}

/* A line: id, id of the parent, device, root, mount point, options (`ro` or `rw` first), more. */
static bool read_line(struct reader *reader, const char *directory, struct found *found) {
    int byte;
    long id = 0;
    while ((byte = next_byte(reader)) >= '0' && byte <= '9') id = id * 10 + (byte - '0');
    if (byte != ' ') {
        reader->has_failed |= byte != END;
        return false;
    }
    for (int field = 0; field < 3; field++) skip_field(reader);
    if (is_below(reader, directory)) {
        found->count++;
        found->id = id;
        found->is_read_only = next_byte(reader) == 'r' && next_byte(reader) == 'o';
    }
    skip_line(reader);
    return true;
}

static bool find_mounts(const char *directory, struct found *found) {
    struct reader reader = {.fd = open(MOUNTS, O_RDONLY | O_CLOEXEC)};
    if (reader.fd < 0) return false;
    while (read_line(&reader, directory, found)) continue;
    close(reader.fd);
    return !reader.has_failed;
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

const char *mount_problem(int fd, const char *directory) {
    struct found found = {0};
    if (!find_mounts(directory, &found)) return MOUNTS " cannot be read";
    if (!found.count) return "the volume of the limit file is not mounted there";
    if (found.count > 1) return OVER;
    if (!found.is_read_only) return "its mount can be written";
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
