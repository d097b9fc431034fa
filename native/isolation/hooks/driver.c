#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <string.h>

#include "../../interface/nvml.h"
#include "../core/settings.h"
#include "lookup.h"

#define HOOK(name) extern int name(void);
#define PLAIN(name)
#define FIRST_OF_NVML
#include "functions.inc"
#undef HOOK
#undef PLAIN

#define HOOK(name) [ID_##name] = {#name, name},
#define PLAIN(name) [ID_##name] = {#name, NULL},
static const struct {
    const char *name;
    int (*hook)(void);
} TABLE[FUNCTIONS] = {
#include "functions.inc"
};

/* A mark: an object in which dlsym finds this symbol leads to the limiter before the driver. */
API const char gpupool_limiter[] = "1";
API extern const char gpupool_limiter[];

static _Atomic(void *) reals[FUNCTIONS];

/* The two libraries of the driver. `asked` is the handle of which a program last asked for a
 * function, `opened` the one that was opened here. They are atomic and not guarded by a mutex: the
 * code below takes the dynamic loader's lock, and a thread that runs a constructor comes here with
 * that lock held. Such a thread would wait for the mutex, and its owner for the loader's lock. */
static struct library {
    const char *name;
    enum function_id first, end;
    _Atomic(void *) asked, opened;
} libraries[] = {{"libcuda.so.1", 0, NVML_BEGIN, NULL, NULL},
                 {"libnvidia-ml.so.1", NVML_BEGIN, FUNCTIONS, NULL, NULL}};

static struct library *library_of(enum function_id id) {
    return &libraries[id >= NVML_BEGIN];
}

static void *hook_of(enum function_id id) {
    return (void *)(uintptr_t)TABLE[id].hook;
}

static int no_cuda_function(void) {
    return NOT_SUPPORTED;
}

static int no_nvml_function(void) {
    return NVML_NOT_SUPPORTED;
}

/* Our own hook, which the search may find as well, is not the driver's function: returning it would
 * call the hook from itself for ever. */
static void *in_library(void *handle, enum function_id id) {
    void *found = handle || handle == RTLD_NEXT ? real_dlsym(handle, TABLE[id].name) : NULL;
    return found == hook_of(id) ? NULL : found;
}

static void *open_driver(struct library *library) {
    const char *path = library->first ? settings()->nvml : settings()->cuda;
    void *handle = atomic_load(&library->opened);
    if (!handle && *path) handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) handle = dlopen(library->name, RTLD_LAZY | RTLD_NOLOAD);
    atomic_store(&library->opened, handle);
    return handle;
}

/* A program that is linked with the driver has it in the global scope, behind the limiter
 * (RTLD_NEXT). That scope is searched last: it may hold another driver than the one that the
 * program asked. */
static void *search(enum function_id id) {
    struct library *library = library_of(id);
    void *found = in_library(atomic_load(&library->asked), id);
    if (!found) found = in_library(open_driver(library), id);
    if (!found) found = in_library(RTLD_NEXT, id);
    return found;
}

void *real_function(enum function_id id) {
    void *found = atomic_load_explicit(&reals[id], memory_order_acquire);
    if (__builtin_expect(found != NULL, 1)) return found;
    struct library *library = library_of(id);
    found = search(id);
    /* Before any library is known, a function may be missing only because the driver is not loaded
     * yet: then the answer is not kept. */
    bool is_final = found || atomic_load(&library->asked) || atomic_load(&library->opened);
    if (!found) found = (void *)(uintptr_t)(id < NVML_BEGIN ? no_cuda_function : no_nvml_function);
    if (is_final) atomic_store(&reals[id], found);
    return found;
}

int hook_id(const char *name) {
    if (strncmp(name, "cu", 2) != 0 && strncmp(name, "nvml", 4) != 0) return NO_HOOK;
    for (int id = 0; id < FUNCTIONS; id++)
        if (TABLE[id].hook && strcmp(name, TABLE[id].name) == 0) return id;
    return NO_HOOK;
}

/* Calls go to the driver behind this handle from now on: a program that has loaded a second driver,
 * in a linker namespace of its own, means that one. */
static void switch_driver(int id, void *handle, void *found) {
    Dl_info object;
    struct library *library = library_of((enum function_id)id);
    if (atomic_load(&reals[id]) == found) return;
    if (atomic_exchange(&library->asked, handle) != handle) {
        for (int i = (int)library->first; i < (int)library->end; i++) atomic_store(&reals[i], NULL);
        /* One more reference: the program may close its handle, and hooks still call the driver. */
        if (dladdr(found, &object) && object.dli_fname)
            dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    }
    atomic_store(&reals[id], found);
}

void *hook_for(int id, void *handle, void *found) {
    if (!found || found == hook_of((enum function_id)id) || !limiter_is_on()) return found;
    if (real_dlsym(handle, "gpupool_limiter")) return found;
    switch_driver(id, handle, found);
    return hook_of((enum function_id)id);
}

/* Both the address and the name must match: a driver may use one function for several names. */
void *hook_for_address(const char *name, void *found) {
    size_t length = strlen(name);
    for (int id = 0; id < NVML_BEGIN; id++) {
        const char *known = TABLE[id].name;
        if (!TABLE[id].hook || strncmp(known, name, length) != 0) continue;
        if (known[length] && known[length] != '_') continue;
        if (real_function((enum function_id)id) == found) return hook_of((enum function_id)id);
    }
    return found;
}
