/* A driver that passes all calls on to an inner one (INNER), which it opens itself, as the libcuda
 * of WSL2 does. With EARLY it looks up all functions when it is loaded, otherwise each one when it
 * is first called. Its cuGetProcAddress returns addresses that are not those of the exported
 * functions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef long (*call_t)(long, long, long, long, long, long);

static call_t inner(const char *name) {
    static void *library;
    if (!library) library = dlopen(INNER, RTLD_NOW | RTLD_LOCAL);
    return library ? (call_t)dlsym(library, name) : NULL;
}

#define PASS_ON(name)                                                       \
    static call_t found_##name;                                             \
    static long pass_##name(long a, long b, long c, long d, long e, long f) { \
        if (!found_##name) found_##name = inner(#name);                     \
        return found_##name(a, b, c, d, e, f);                              \
    }                                                                       \
    long name(long a, long b, long c, long d, long e, long f) {             \
        return pass_##name(a, b, c, d, e, f);                               \
    }
#define ALL(DO)                                                                             \
    DO(cuInit) DO(cuDeviceGetCount) DO(cuDeviceGetUuid) DO(cuCtxGetDevice) DO(cuCtxGetCurrent) \
    DO(cuCtxSetCurrent) DO(cuDevicePrimaryCtxRetain) DO(cuMemGetInfo_v2) DO(cuMemAlloc_v2)     \
    DO(cuMemFree_v2) DO(cuDeviceTotalMem_v2)
ALL(PASS_ON)

#ifdef EARLY
__attribute__((constructor)) static void look_up_all(void) {
#define LOOK_UP(name) found_##name = inner(#name);
    ALL(LOOK_UP)
}
#endif

/* A version of cuMemAlloc that is newer than the limiter. */
long cuMemAlloc_v9(long a, long b, long c, long d, long e, long f) {
    return pass_cuMemAlloc_v2(a, b, c, d, e, f);
}

#define NEWEST 99000

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                        int *status) {
    (void)flags;
    *function = NULL;
#define FIND(known) \
    if (strncmp(#known, name, strlen(name)) == 0 && strcspn(#known, "_") == strlen(name)) \
        *function = (void *)pass_##known;
    ALL(FIND)
    if (strcmp(name, "cuMemAlloc") == 0 && version >= NEWEST) *function = (void *)cuMemAlloc_v9;
    if (strcmp(name, "cuGetProcAddress") == 0) *function = (void *)cuGetProcAddress_v2;
    if (status) *status = *function ? 0 : 1;
    return *function ? 0 : 500;
}
