#define _GNU_SOURCE
#include "node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../process/beside.h"
#include "../process/byte_lock.h"
#include "visible.h"

#define STATE_VARIABLE "GPUPOOL_SIM_STATE"
#define CARDS_VARIABLE "NVIDIA_VISIBLE_DEVICES"
#define CONFIG_NAME "simdriver.conf"

#define TEXT_OF(number) #number
#define NUMBER_AS_TEXT(number) TEXT_OF(number)
#define VERSION_TEXT "version " NUMBER_AS_TEXT(SIM_VERSION)

/* Once: every call before cuInit or nvmlInit asks for the node. */
static bool has_complained(void) {
    static _Atomic bool has;
    return atomic_exchange(&has, true);
}

static void refuse(const char *path, const char *wanted, unsigned long long found) {
    if (has_complained()) return;
    fprintf(stderr, "gpupool: simulated driver: %s: wanted %s, found %llu\n", path, wanted, found);
}

/* Reads the line "state=PATH" of the configuration file; PATH may be relative to that file. */
static bool read_config(char *path) {
    char config[PATH_MAX], line[PATH_MAX];
    if (!path_beside_library(config, CONFIG_NAME)) return false;
    FILE *file = fopen(config, "re");
    if (!file) return false;
    int directory = (int)(strlen(config) - strlen(CONFIG_NAME));
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        if (strncmp(line, "state=", 6) != 0) continue;
        const char *value = line + 6;
        int prefix = value[0] == '/' ? 0 : directory;
        int written = snprintf(path, PATH_MAX, "%.*s%s", prefix, config, value);
        found = written > 0 && written < PATH_MAX;
    }
    fclose(file);
    return found;
}

static bool find_path(char *path) {
    const char *value = getenv(STATE_VARIABLE);
    if (!value || !*value) return read_config(path);
    return snprintf(path, PATH_MAX, "%s", value) < PATH_MAX;
}

static bool is_valid(const char *path, const struct sim_state *state, off_t size) {
    if (memcmp(state->magic, SIM_MAGIC, sizeof SIM_MAGIC) != 0) {
        if (!has_complained())
            fprintf(stderr, "gpupool: simulated driver: %s: not the state of one\n", path);
        return false;
    }
    if (state->version != SIM_VERSION) {
        refuse(path, VERSION_TEXT, state->version);
        return false;
    }
    if (size != (off_t)sizeof *state || state->size != sizeof *state) {
        refuse(path, "the size of " VERSION_TEXT, (unsigned long long)size);
        return false;
    }
    if (state->card_count > MAX_CARDS) {
        refuse(path, "at most 16 cards", state->card_count);
        return false;
    }
    return true;
}

static enum node_found map_state(struct node *node) {
    struct stat status;
    int fd = open_at_high_number(node->path, 0);
    if (fd < 0) return NODE_MISSING;
    if (fstat(fd, &status) || status.st_size < (off_t)offsetof(struct sim_state, cards)) {
        refuse(node->path, "the size of " VERSION_TEXT, (unsigned long long)status.st_size);
        close(fd);
        return NODE_REFUSED;
    }
    /* Not more than the file has: reading a page behind its end would kill the program (SIGBUS). */
    size_t size = (size_t)status.st_size < sizeof *node->state ? (size_t)status.st_size
                                                               : sizeof *node->state;
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        close(fd);
        return NODE_MISSING;
    }
    if (!is_valid(node->path, mapped, status.st_size)) {
        munmap(mapped, size);
        close(fd);
        return NODE_REFUSED;
    }
    /* Locks need a description of their own. The mapping keeps the one it was made from, and a
     * forked child inherits the mapping: the parent's locks would outlive the parent. */
    node->fd = open_at_high_number(node->path, 0);
    if (node->fd < 0) {
        munmap(mapped, size);
        close(fd);
        return NODE_MISSING;
    }
    node->state = mapped;
    node->map_fd = fd;
    return NODE_FOUND;
}

static bool is_same_file(int fd, const char *path) {
    struct stat opened, named;
    return !fstat(fd, &opened) && !stat(path, &named) && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

enum node_found node_open(struct node *node) {
    char path[PATH_MAX];
    const char *wanted = getenv(CARDS_VARIABLE);
    if (wanted && (!*wanted || strcmp(wanted, "void") == 0)) return NODE_HIDDEN;
    if (!find_path(path)) return NODE_MISSING;
    /* While it is the same file, its descriptors stay open: closing any descriptor of a file drops
     * all POSIX locks that the process has on it, also those of the other library (libcuda or
     * libnvidia-ml) in this process. */
    if (!node->state || strcmp(path, node->path) != 0 || !is_same_file(node->map_fd, path)) {
        if (node->state) {
            munmap(node->state, sizeof *node->state);
            close(node->map_fd);
            close(node->fd);
            node->state = NULL;
        }
        strcpy(node->path, path);
        enum node_found found = map_state(node);
        if (found != NODE_FOUND) return found;
    }
    int cards = (int)node->state->card_count;
    node->visible_count = visible_in_container(node->state, wanted, cards, node->visible);
    return NODE_FOUND;
}

void node_after_fork(struct node *node) {
    if (!node->state) return;
    close(node->fd);
    node->fd = open_at_high_number(node->path, 0);
}
