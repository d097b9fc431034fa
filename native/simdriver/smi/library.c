#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <stddef.h>

struct library nvml;

static int not_supported(void) {
    return NVML_NOT_SUPPORTED;
}

static void *find(void *handle, const char *name) {
    void *function = dlsym(handle, name);
    return function ? function : (void *)(uintptr_t)not_supported;
}

int library_open(void) {
    void *handle = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!handle) return NVML_LIBRARY_NOT_FOUND;
#define X(name, parameters) nvml.name = (int (*) parameters)(uintptr_t)find(handle, #name);
    FUNCTIONS
#undef X
    nvml.nvmlErrorString = (const char *(*)(int))(uintptr_t)find(handle, "nvmlErrorString");
    return nvml.nvmlInit_v2();
}
