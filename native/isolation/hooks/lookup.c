/* Our dlsym stands in front of the C library's: programs look up functions of the driver in the
 * library that they have opened, where they would find the driver's own.
 *
 * Only names of hooked functions, asked of a certain library or of what is behind the asking one,
 * are treated here. For everything else the C library's dlsym is called as a tail call, a jump that
 * keeps the return address: for RTLD_NEXT and RTLD_DEFAULT it looks at the return address to find
 * out which object asks. If it saw ours, a program would get symbols from the wrong place.
 * RTLD_DEFAULT needs no treatment: whoever got this dlsym by the loader's search finds the hooks by
 * the same search.
 *
 * Every program of the container comes through here, also before any constructor has run: the
 * sanitizers call dlsym while they prepare themselves, and the functions that they replace, dlopen
 * and strcmp among them, do not work yet. So this file and hook_id call as little as possible, and
 * are marked EARLY. */
#define _GNU_SOURCE
#include "lookup.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "driver.h"
#include "objects.h"

typedef void *(*dlsym_t)(void *, const char *);

/* gcc before 15 does not know the attribute. It is only used for sanitizers, and makes a tail call
 * of its own accord when it optimises. */
#if __has_attribute(musttail)
#define TAIL_CALL __attribute__((musttail)) return
#else
#define TAIL_CALL return
#endif

/* What is behind the limiter, by version: the C library's dlsym is in libdl before glibc 2.34 and in
 * libc since then, with another version on x86_64 and aarch64. */
EARLY static void *next_dlsym(void) {
    static const char *const VERSIONS[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    void *found = NULL;
    for (size_t i = 0; !found && i < sizeof VERSIONS / sizeof *VERSIONS; i++)
        found = dlvsym(RTLD_NEXT, "dlsym", VERSIONS[i]);
    return found;
}

/* dlsym of the C library, which cannot be found by dlsym, and not with dlopen: other libraries
 * replace dlopen by a function of their own, which calls dlsym first thing. One that replaces dlvsym
 * comes back here while this thread is looking. Then, and where nothing is behind the limiter
 * (RTLD_LOCAL), the C library's tables are read. */
EARLY static dlsym_t libc_dlsym(void) {
    static _Atomic(void *) known;
    static _Atomic(pthread_t) looking;
    void *found = atomic_load_explicit(&known, memory_order_acquire);
    if (__builtin_expect(found != NULL, 1)) return (dlsym_t)(uintptr_t)found;
    if (atomic_exchange(&looking, pthread_self()) != pthread_self()) found = next_dlsym();
    if (!found) found = in_c_library("dlsym");
    atomic_store_explicit(&known, found, memory_order_release);
    return (dlsym_t)(uintptr_t)found;
}

void *real_dlsym(void *handle, const char *name) {
    return libc_dlsym()(handle, name);
}

EARLY API void *dlsym(void *handle, const char *name) {
    dlsym_t real = libc_dlsym();
    int id = handle == RTLD_DEFAULT ? NO_HOOK : hook_id(name);
    if (id == NO_HOOK) TAIL_CALL real(handle, name);
    const void *caller = __builtin_return_address(0);
    bool is_next = handle == RTLD_NEXT;
    void *hook = is_next ? hook_for_next(id, caller)
                         : hook_for(id, handle, real(handle, name), caller);
    if (!hook && is_next) TAIL_CALL real(handle, name);
    if (hook) dlerror(); /* what was not found on the way is no error of the program's */
    return hook;
}
