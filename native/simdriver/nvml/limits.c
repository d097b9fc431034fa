/* Memory limits of cgroups, since driver 615: set by root, read by everybody. */
#define _GNU_SOURCE
#include "../limits.h"

#include <pthread.h>
#include <string.h>

#include "../cgroup.h"
#include "../slots.h"
#include "session.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Where the hierarchy is mounted: the directory without the place in it. */
static void drop_removed(struct node *node, const char *directory, const char *place) {
    char mount[PATH_MAX];
    size_t whole = strlen(directory), end = strcmp(place, "/") == 0 ? 0 : strlen(place);
    while (whole && directory[whole - 1] == '/') whole--;
    if (whole < end || whole - end >= sizeof mount ||
        strncmp(directory + whole - end, place, end) != 0)
        return; /* a path with links in it: the next one will do */
    memcpy(mount, directory, whole - end);
    mount[whole - end] = 0;
    limits_drop_removed(node, mount);
}

/* NVML_OK, and the place that the directory stands for. */
static int find_place(struct node *node, const char *directory, char *place, uint64_t *cgroup) {
    if (!directory) return NVML_INVALID_ARGUMENT;
    if (!node->state->has_limits) return NVML_NOT_SUPPORTED;
    if (!place_of_directory(directory, node->path, place, cgroup)) return NVML_NOT_FOUND;
    pthread_mutex_lock(&mutex); /* threads share a description, and its locks */
    if (*cgroup) drop_removed(node, directory, place);
    pthread_mutex_unlock(&mutex);
    return NVML_OK;
}

CALL(nvmlDeviceSetMemoryLimits_v1, device_t device, struct set_memory_limits *limits) {
    WITH_CARD(card, device);
    struct node *node = session_node();
    char place[PLACE_BYTES];
    uint64_t cgroup;
    if (!limits || limits->soft > limits->hard) return NVML_INVALID_ARGUMENT;
    if (!is_administrator()) return NVML_NO_PERMISSION;
    int problem = find_place(node, limits->directory, place, &cgroup);
    if (problem) return problem;
    pthread_mutex_lock(&mutex);
    bool is_set = limit_set(node, place, cgroup, card_index(card), limits->soft, limits->hard);
    pthread_mutex_unlock(&mutex);
    return is_set ? NVML_OK : NVML_MEMORY;
}

/* Without a limit the answer is the one of a driver that keeps its own table: "not supported". */
CALL(nvmlDeviceGetMemoryLimits_v1, device_t device, struct get_memory_limits *limits) {
    WITH_CARD(card, device);
    struct node *node = session_node();
    char place[PLACE_BYTES];
    uint64_t cgroup;
    struct limit_values values;
    if (!limits) return NVML_INVALID_ARGUMENT;
    int problem = find_place(node, limits->directory, place, &cgroup);
    if (problem) return problem;
    slots_reap(node, NO_SLOT);
    if (!limit_at(node->state, place, card_index(card), &values)) return NVML_NOT_SUPPORTED;
    limits->soft = values.soft;
    limits->hard = values.hard;
    limits->used = values.used;
    return NVML_OK;
}
