/* Our dlsym stands in front of the C library's: programs look up functions of the driver in the
 * library that they have opened, where they would find the driver's own.
 *
 * Only names of hooked functions, asked of a certain library, are treated here. For everything else
 * the C library's dlsym is called as a tail call, a jump that keeps the return address: for
 * RTLD_NEXT and RTLD_DEFAULT it looks at the return address to find out which object asks. If it
 * saw ours, a program would get symbols from the wrong place. RTLD_NEXT and RTLD_DEFAULT need no
 * treatment where the limiter is loaded first: they find the hooks by themselves. */
#define _GNU_SOURCE
#include "lookup.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "driver.h"

typedef void *(*dlsym_t)(void *, const char *);

/* gcc before 15 does not know the attribute. It is only used for sanitizers, and makes a tail call
 * of its own accord when it optimises. */
#if __has_attribute(musttail)
#define TAIL_CALL __attribute__((musttail)) return
#else
#define TAIL_CALL return
#endif

/* dlsym of the C library, which cannot be found by dlsym. It is in libdl before glibc 2.34 and in
 * libc since then, with another symbol version on x86_64 and aarch64. */
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
    if (id == NO_HOOK) TAIL_CALL real(handle, name);
    return hook_for(id, handle, real(handle, name));
}

CALL(cuGetProcAddress_v2, const char *name, void **function, int version, uint64_t flags,
     int *status) {
    int result = REAL(cuGetProcAddress_v2)(name, function, version, flags, status);
    if (result == OK && name && function && *function && limiter_is_on())
        *function = hook_for_address(name, *function);
    return result;
}

CALL(cuGetProcAddress, const char *name, void **function, int version, uint64_t flags) {
    int result = REAL(cuGetProcAddress)(name, function, version, flags);
    if (result == OK && name && function && *function && limiter_is_on())
        *function = hook_for_address(name, *function);
    return result;
}
