#define _GNU_SOURCE
#include "beside.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

bool path_beside_library(char *path, const char *name) {
    Dl_info library;
    *path = 0;
    if (!dladdr((void *)(uintptr_t)path_beside_library, &library) || !library.dli_fname)
        return false;
    const char *slash = strrchr(library.dli_fname, '/');
    int directory = slash ? (int)(slash - library.dli_fname) + 1 : 0;
    int length = snprintf(path, PATH_MAX, "%.*s%s", directory, library.dli_fname, name);
    if (length > 0 && length < PATH_MAX) return true;
    *path = 0;
    return false;
}
