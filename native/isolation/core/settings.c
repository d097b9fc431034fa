#define _GNU_SOURCE
#include "settings.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_NAME "limiter.conf"
#define MIB (1024u * 1024u)

static struct settings found = {
    .limits = "/etc/gpupool/limits",
    .region = "/run/gpupool/region-1",
};

static void set(const char *name, const char *value) {
    struct {
        const char *name;
        char *target;
    } const PATHS[] = {{"limits", found.limits},
                       {"region", found.region},
                       {"cuda", found.cuda},
                       {"nvml", found.nvml}};
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++)
        if (strcmp(name, PATHS[i].name) == 0) snprintf(PATHS[i].target, PATH_MAX, "%s", value);
    if (strcmp(name, "context_mib") == 0) found.context_bytes = strtoull(value, NULL, 10) * MIB;
}

static void read_config(const char *path) {
    char line[PATH_MAX + 32];
    FILE *file = fopen(path, "re");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        char *value = strchr(line, '=');
        if (!value) continue;
        *value = 0;
        set(line, value + 1);
    }
    fclose(file);
}

static void find_config(char *path) {
    Dl_info library;
    *path = 0;
    if (!dladdr((void *)(uintptr_t)settings, &library) || !library.dli_fname) return;
    const char *slash = strrchr(library.dli_fname, '/');
    int length = slash ? (int)(slash - library.dli_fname) + 1 : 0;
    snprintf(path, PATH_MAX, "%.*s" CONFIG_NAME, length, library.dli_fname);
}

/* The loader's lock is taken first, and never within our own: it may be held by somebody who comes
 * here from a constructor. */
const struct settings *settings(void) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static _Atomic bool is_read;
    char path[PATH_MAX];
    if (atomic_load(&is_read)) return &found;
    find_config(path);
    pthread_mutex_lock(&mutex);
    if (!atomic_load(&is_read)) read_config(path);
    atomic_store(&is_read, true);
    pthread_mutex_unlock(&mutex);
    return &found;
}
