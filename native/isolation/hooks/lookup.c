/* Only names that are hooked, asked of a certain library, are looked at. Everything else leaves by
 * a jump, with the caller's return address: RTLD_NEXT and RTLD_DEFAULT depend on who asks, and both
 * find our functions by themselves where we are loaded first. */
#define _GNU_SOURCE
#include "lookup.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "driver.h"

typedef void *(*dlsym_t)(void *, const char *);

/* The C library's, whichever of its files and versions has it. */
static dlsym_t libc_dlsym(void) {
    static const char *const FILES[] = {"libc.so.6", "libdl.so.2"};
    static const char *const VERSIONS[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    static _Atomic(void *) known;
    void *found = atomic_load_explicit(&known, memory_order_acquire);
    for (size_t file = 0; !found && file < 2; file++) {
        void *handle = dlopen(FILES[file], RTLD_LAZY | RTLD_NOLOAD);
        for (size_t i = 0; handle && !found && i < 3; i++)
            found = dlvsym(handle, "dlsym", VERSIONS[i]);
    }
    atomic_store_explicit(&known, found, memory_order_release);
    return (dlsym_t)(uintptr_t)found;
}

void *real_dlsym(void *handle, const char *name) {
    return libc_dlsym()(handle, name);
}

API void *dlsym(void *handle, const char *name) {
    dlsym_t real = libc_dlsym();
    int id = handle == RTLD_NEXT || handle == RTLD_DEFAULT ? NO_HOOK : hook_id(name);
    if (id == NO_HOOK) __attribute__((musttail)) return real(handle, name);
    return routed(id, handle, real(handle, name));
}

CALL(cuGetProcAddress_v2, const char *name, void **function, int version, uint64_t flags,
     int *status) {
    int result = REAL(cuGetProcAddress_v2)(name, function, version, flags, status);
    if (result == OK && name && function && *function && limiter_is_on())
        *function = routed_address(name, *function);
    return result;
}

CALL(cuGetProcAddress, const char *name, void **function, int version, uint64_t flags) {
    int result = REAL(cuGetProcAddress)(name, function, version, flags);
    if (result == OK && name && function && *function && limiter_is_on())
        *function = routed_address(name, *function);
    return result;
}
