#include "settings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../process/beside.h"
#include "mounts.h"

#define CONFIG_NAME "limiter.conf"
#define MIB (1024u * 1024u)

static struct settings found = {
    .limits = "/etc/gpupool/limits",
    .limits_mount = "/etc/gpupool",
    .root = "/",
    .region = "/run/gpupool/region-1",
};

static void set(const char *name, const char *value) {
    struct {
        const char *name;
        char *target;
    } const PATHS[] = {{"limits", found.limits},
                       {"limits_mount", found.limits_mount},
                       {"root", found.root},
                       {"region", found.region},
                       {"cuda", found.cuda},
                       {"nvml", found.nvml}};
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++)
        if (strcmp(name, PATHS[i].name) == 0) snprintf(PATHS[i].target, PATH_MAX, "%s", value);
    if (strcmp(name, "context_mib") == 0) found.context_bytes = strtoull(value, NULL, 10) * MIB;
}

static void read_config(const char *path, const char *directory) {
    char line[PATH_MAX + 32];
    FILE *file = fopen(path, "re");
    if (!file) return;
    snprintf(found.source, sizeof found.source, "%s", path);
    found.problem = other_mount_problem(fileno(file), directory);
    while (!found.problem && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        char *value = strchr(line, '=');
        if (!value) continue;
        *value = 0;
        set(line, value + 1);
    }
    fclose(file);
}

/* Lock order: the dynamic loader's lock, then our mutex. path_beside_library takes the loader's
 * lock, so it is called before the mutex is locked. In the other order, two threads could wait for
 * one another for ever: one that runs a constructor holds the loader's lock and waits for the mutex
 * here. */
const struct settings *settings(void) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static _Atomic bool is_read;
    char path[PATH_MAX], directory[PATH_MAX];
    if (atomic_load(&is_read)) return &found;
    path_beside_library(path, CONFIG_NAME);
    path_beside_library(directory, ".");
    pthread_mutex_lock(&mutex);
    if (!atomic_load(&is_read)) read_config(path, directory);
    atomic_store(&is_read, true);
    pthread_mutex_unlock(&mutex);
    return &found;
}
