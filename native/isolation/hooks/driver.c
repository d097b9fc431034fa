/* Which driver hooks call, and its functions.
 *
 * A process may have several: the node's, one from the image (cuda-compat), the same again in a
 * linker namespace of its own. Functions of two drivers must never be mixed: a context of one means
 * nothing to the other. So all functions of a driver are looked up at once, and a program that asks
 * another driver for a function switches all hooks to that one.
 *
 * Nothing here is guarded by a mutex: the code takes the dynamic loader's lock, and a thread that
 * runs a constructor comes here with that lock held. Such a thread would wait for the mutex, and
 * its owner for the loader's lock. Two threads may look up the same driver side by side; both get
 * the same functions. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../../interface/nvml.h"
#include "../core/settings.h"
#include "lookup.h"
#include "objects.h"

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

/* One loaded library of a driver. It stays in memory, and so does this. */
struct driver {
    void *handle;
    struct driver *next;
    _Atomic(void *) functions[FUNCTIONS];
};

static struct library {
    const char *file, *name; /* which programs open, and how all versions of it begin */
    enum function_id first, end, probe; /* probe: a function that every driver has, and no hook */
    _Atomic(struct driver *) current, all;
} libraries[] = {
    {"libcuda.so.1", "libcuda.so", 0, NVML_BEGIN, ID_cuDeviceGetCount, NULL, NULL},
    {"libnvidia-ml.so.1", "libnvidia-ml.so", NVML_BEGIN, FUNCTIONS, ID_nvmlDeviceGetUUID, NULL,
     NULL}};

static struct library *library_of(enum function_id id) {
    return &libraries[id >= NVML_BEGIN];
}

const char *function_name(enum function_id id) {
    return TABLE[id].name;
}

void *hook_of(enum function_id id) {
    return (void *)(uintptr_t)TABLE[id].hook;
}

static int no_cuda_function(void) {
    return NOT_SUPPORTED;
}

static int no_nvml_function(void) {
    return NVML_NOT_SUPPORTED;
}

static void *missing(enum function_id id) {
    return (void *)(uintptr_t)(id < NVML_BEGIN ? no_cuda_function : no_nvml_function);
}

/* Our own hook, which the search may find as well, is not the driver's function: returning it would
 * call the hook from itself for ever. */
static struct driver *read_driver(const struct library *library, void *handle) {
    struct driver *driver = calloc(1, sizeof *driver);
    if (!driver) return NULL;
    driver->handle = handle;
    for (enum function_id id = library->first; id < library->end; id++) {
        void *found = real_dlsym(handle, TABLE[id].name);
        bool is_own = found && found != hook_of(id);
        atomic_store(&driver->functions[id], is_own ? found : missing(id));
    }
    return driver;
}

static struct driver *driver_in(struct library *library, const struct link_map *object) {
    void *handle = keep_loaded(object);
    struct driver *driver = atomic_load(&library->all);
    if (!handle) return NULL;
    for (; driver; driver = driver->next)
        if (driver->handle == handle) return driver;
    driver = read_driver(library, handle);
    if (!driver) return NULL;
    driver->next = atomic_load(&library->all);
    while (!atomic_compare_exchange_weak(&library->all, &driver->next, driver)) {
    }
    return driver;
}

/* The driver to which the handle leads: that of a stand-in leads to the driver behind it. */
static struct driver *driver_behind(struct library *library, void *handle) {
    void *found = handle ? real_dlsym(handle, TABLE[library->probe].name) : NULL;
    struct link_map *object = found ? object_at(found) : NULL;
    return object && is_named(object, library->name) ? driver_in(library, object) : NULL;
}

/* A driver that the program or one of its libraries is linked with: in the global scope, or known
 * to the loader by its name. */
static struct driver *loaded_driver(struct library *library) {
    struct driver *found = driver_behind(library, RTLD_NEXT);
    if (found) return found;
    return driver_behind(library, dlopen(library->file, RTLD_LAZY | RTLD_NOLOAD));
}

/* The node's driver comes last: if the program has loaded one from its image, it means that. */
static struct driver *find_driver(struct library *library) {
    const char *path = library->first ? settings()->nvml : settings()->cuda;
    struct driver *none = NULL, *found = loaded_driver(library);
    if (!found && *path)
        found = driver_behind(library, dlopen(path, RTLD_LAZY | RTLD_LOCAL));
    /* A program that has asked a driver in the meantime has chosen that one. */
    return !found || atomic_compare_exchange_strong(&library->current, &none, found) ? found : none;
}

void *real_function(enum function_id id) {
    struct library *library = library_of(id);
    struct driver *driver = atomic_load_explicit(&library->current, memory_order_acquire);
    if (__builtin_expect(driver == NULL, 0)) driver = find_driver(library);
    if (__builtin_expect(driver == NULL, 0)) return missing(id);
    return atomic_load_explicit(&driver->functions[id], memory_order_relaxed);
}

void learn_function(enum function_id id, void *found) {
    void *none = missing(id);
    struct driver *driver = atomic_load(&library_of(id)->current);
    if (driver) atomic_compare_exchange_strong(&driver->functions[id], &none, found);
}

/* Not strcmp: see lookup.c. */
EARLY static bool is_same(const char *one, const char *other) {
    while (*one && *one == *other) one++, other++;
    return *one == *other;
}

EARLY int hook_id(const char *name) {
    bool is_cuda = name[0] == 'c' && name[1] == 'u', is_nvml = name[0] == 'n' && name[1] == 'v';
    if (!is_cuda && !is_nvml) return NO_HOOK;
    for (int id = 0; id < FUNCTIONS; id++)
        if (TABLE[id].hook && is_same(name, TABLE[id].name)) return id;
    return NO_HOOK;
}

/* A driver that looks for a function asks its inner driver (WSL2) and must get that one's own: its
 * own functions are called by our hooks, and would call these again without end. */
static bool is_driver_at(const struct library *library, const void *address) {
    const struct link_map *object = object_at(address);
    return object && is_named(object, library->name);
}

static void switch_to(struct library *library, struct driver *asked) {
    if (asked) atomic_store(&library->current, asked);
}

/* A function in any other object than a driver is left alone. It belongs to a library that stands
 * in front of the driver, as TensorFlow's does, and gets our hooks when it asks the driver. A
 * stand-in leads to our hook, and to the driver behind it for all other functions. */
void *hook_for(int number, void *handle, void *found, const void *caller) {
    enum function_id id = (enum function_id)number;
    struct library *library = library_of(id);
    struct driver *current = atomic_load(&library->current);
    if (!found || !limiter_is_on()) return found;
    if (found == hook_of(id)) {
        switch_to(library, driver_behind(library, handle));
        return found;
    }
    if (!is_driver_at(library, found) || is_driver_at(library, caller)) return found;
    if (!current || atomic_load(&current->functions[id]) != found)
        switch_to(library, driver_in(library, object_at(found)));
    return hook_of(id);
}

/* Code that is before the limiter finds the hook by itself, and code behind it finds the driver. */
void *hook_for_next(int number, const void *caller) {
    enum function_id id = (enum function_id)number;
    struct library *library = library_of(id);
    struct link_map *object = object_at(caller);
    if (!object || !limiter_is_on() || is_named(object, library->name)) return NULL;
    if (!is_behind_limiter(object)) return NULL;
    return atomic_load(&library->current) || loaded_driver(library) ? hook_of(id) : NULL;
}
