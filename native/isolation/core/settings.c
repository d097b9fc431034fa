#define _GNU_SOURCE
#include "settings.h"

#include <dlfcn.h>
#include <pthread.h>
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

static void read_config(void) {
    Dl_info library;
    char path[PATH_MAX], line[PATH_MAX + 32];
    if (!dladdr((void *)(uintptr_t)settings, &library) || !library.dli_fname) return;
    const char *slash = strrchr(library.dli_fname, '/');
    if (!slash) return;
    int length = (int)(slash - library.dli_fname) + 1;
    snprintf(path, sizeof path, "%.*s" CONFIG_NAME, length, library.dli_fname);
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

const struct settings *settings(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_config);
    return &found;
}
