#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <string.h>

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

/* Any object that has it stands in front of a driver as we do. */
API const char gpupool_limiter[] = "1";
API extern const char gpupool_limiter[];

static _Atomic(void *) reals[FUNCTIONS];

/* A driver's library: what a program has asked for a function last, or what is opened here. Without
 * a mutex: the loader's lock is taken here, and who comes from a constructor holds it already. */
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
    return 3; /* the same in NVML's numbers */
}

static void *in_library(void *handle, enum function_id id) {
    void *found = handle || handle == RTLD_NEXT ? real_dlsym(handle, TABLE[id].name) : NULL;
    return found == hook_of(id) ? NULL : found;
}

static void *opened(struct library *library) {
    const char *path = library->first ? settings()->nvml : settings()->cuda;
    void *handle = atomic_load(&library->opened);
    if (!handle && *path) handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) handle = dlopen(library->name, RTLD_LAZY | RTLD_NOLOAD);
    atomic_store(&library->opened, handle);
    return handle;
}

/* A program that links the driver itself has it in the global scope, behind us; that scope is asked
 * last, because it can belong to another driver than the one asked for. */
static void *search(enum function_id id) {
    struct library *library = library_of(id);
    void *found = in_library(atomic_load(&library->asked), id);
    if (!found) found = in_library(opened(library), id);
    if (!found) found = in_library(RTLD_NEXT, id);
    return found;
}

void *real_function(enum function_id id) {
    void *found = atomic_load_explicit(&reals[id], memory_order_acquire);
    if (__builtin_expect(found != NULL, 1)) return found;
    struct library *library = library_of(id);
    found = search(id);
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

/* From now on the functions of the driver behind this handle are called: a program that loads a
 * second one, in a namespace of its own, means that one. */
static void use(int id, void *handle, void *found) {
    Dl_info object;
    struct library *library = library_of((enum function_id)id);
    if (atomic_load(&reals[id]) == found) return;
    if (atomic_exchange(&library->asked, handle) != handle) {
        for (int i = (int)library->first; i < (int)library->end; i++) atomic_store(&reals[i], NULL);
        /* Should the program close it: we still call it. */
        if (dladdr(found, &object) && object.dli_fname)
            dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    }
    atomic_store(&reals[id], found);
}

void *routed(int id, void *handle, void *found) {
    if (!found || found == hook_of((enum function_id)id) || !limiter_is_on()) return found;
    if (real_dlsym(handle, "gpupool_limiter")) return found;
    use(id, handle, found);
    return hook_of((enum function_id)id);
}

/* Both the address and the name must fit: a driver may have one function for several names. */
void *routed_address(const char *name, void *found) {
    size_t length = strlen(name);
    for (int id = 0; id < NVML_BEGIN; id++) {
        const char *known = TABLE[id].name;
        if (!TABLE[id].hook || strncmp(known, name, length) != 0) continue;
        if (known[length] && known[length] != '_') continue;
        if (real_function((enum function_id)id) == found) return hook_of((enum function_id)id);
    }
    return found;
}
