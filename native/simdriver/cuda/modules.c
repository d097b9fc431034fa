#define _GNU_SOURCE
#include "modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../handles.h"
#include "allocations.h"

#define GLOBAL_BYTES 4096 /* the size of every global variable: the real one is not known */

struct global {
    struct global *next;
    pointer_t pointer;
    const struct context *context; /* with which its memory is freed */
    char name[];
};

struct module {
    const struct context *context; /* NULL: a library */
    struct function *functions;
    struct global *globals;
};

static struct handles modules = HANDLES_OF(struct module);
static struct handles functions = HANDLES_OF(struct function);

bool is_function(const struct function *function) {
    return handle_is_live(&functions, function);
}

bool is_function_of(const struct function *function, const struct context *context) {
    if (!is_function(function)) return false;
    const struct context *owner = function->module->context;
    return !owner || owner == context;
}

static bool is_module(const struct module *module) {
    return handle_is_live(&modules, module);
}

static int load(struct module **made, const void *image, bool is_library) {
    WITH_CONTEXT(context);
    if (!made || !image) return INVALID_VALUE;
    *made = handle_new(&modules);
    if (!*made) return OUT_OF_MEMORY;
    (*made)->context = is_library ? NULL : context;
    return OK;
}

/* The functions from here to modules_end are called with the lock held. */
static void drop_globals(struct module *module, const struct context *context) {
    for (struct global **link = &module->globals; *link;) {
        struct global *global = *link;
        if (context && global->context != context) {
            link = &global->next;
            continue;
        }
        *link = global->next;
        release_locked(global->pointer, INTERNAL, 0);
        free(global);
    }
}

static bool unload(struct module *module) {
    if (!handle_end(&modules, module)) return false;
    for (struct function *next, *function = module->functions; function; function = next) {
        next = function->next;
        free(function->name);
        handle_end(&functions, function);
    }
    drop_globals(module, NULL);
    return true;
}

void modules_end(const struct context *context) {
    struct module *module;
    for (size_t cursor = 0; (module = handle_next(&modules, &cursor));) {
        if (module->context == context) unload(module);
        else drop_globals(module, context);
    }
}

static int unload_kind(struct module *module, bool is_library) {
    driver_lock();
    bool found = is_module(module) && !module->context == is_library && unload(module);
    driver_unlock();
    return found ? OK : INVALID_HANDLE;
}

CALL(cuModuleLoadData, struct module **module, const void *image) {
    return load(module, image, false);
}
ALSO(cuModuleLoadFatBinary, cuModuleLoadData);

CALL(cuModuleLoadDataEx, struct module **module, const void *image, unsigned count, int *options,
     void **values) {
    (void)count;
    (void)options;
    (void)values;
    return load(module, image, false);
}

CALL(cuModuleLoad, struct module **module, const char *path) {
    if (!path) return INVALID_VALUE;
    return access(path, R_OK) ? FILE_NOT_FOUND : load(module, path, false);
}

CALL(cuModuleUnload, struct module *module) {
    return unload_kind(module, false);
}

CALL(cuModuleGetLoadingMode, int *mode) {
    if (!mode) return INVALID_VALUE;
    *mode = 1; /* eager: functions are loaded with their module */
    return OK;
}

/* A function with the name busy_250us keeps the card busy for 250 microseconds. */
static uint64_t length_from(const char *name) {
    unsigned microseconds = 0;
    return sscanf(name, "busy_%uus", &microseconds) == 1 ? microseconds * 1000ull : 0;
}

/* The function of that name; a new one if the program did not ask for it before. With the lock
 * held. */
static struct function *function_of(struct module *module, const char *name) {
    struct function *function = module->functions;
    while (function && strcmp(function->name, name) != 0) function = function->next;
    if (function) return function;
    char *copy = strdup(name);
    function = copy ? handle_new(&functions) : NULL;
    if (!function) {
        free(copy);
        return NULL;
    }
    *function = (struct function){module, module->functions, length_from(name), copy};
    module->functions = function;
    return function;
}

CALL(cuModuleGetFunction, struct function **found, struct module *module, const char *name) {
    WITH_CONTEXT(context);
    (void)context;
    if (!found || !name || !*name) return INVALID_VALUE;
    driver_lock();
    bool is_loaded = is_module(module);
    struct function *function = is_loaded ? function_of(module, name) : NULL;
    driver_unlock();
    if (!function) return is_loaded ? OUT_OF_MEMORY : INVALID_HANDLE;
    *found = function;
    return OK;
}

/* With the lock held. */
static struct global *global_of(struct module *module, const char *name) {
    struct global *global = module->globals;
    while (global && strcmp(global->name, name) != 0) global = global->next;
    return global;
}

static int make_global(struct module *module, struct context *context, const char *name) {
    struct global *global = malloc(sizeof *global + strlen(name) + 1);
    if (!global) return OUT_OF_MEMORY;
    int result =
        allocate(context, context->device, INTERNAL, GLOBAL_BYTES, NULL, &global->pointer);
    if (result != OK) {
        free(global);
        return result;
    }
    global->context = context;
    strcpy(global->name, name);
    driver_lock();
    global->next = module->globals;
    module->globals = global;
    driver_unlock();
    return OK;
}

CALL(cuModuleGetGlobal_v2, pointer_t *pointer, size_t *size, struct module *module,
     const char *name) {
    WITH_CONTEXT(context);
    if (!name) return INVALID_VALUE;
    if (!is_module(module)) return INVALID_HANDLE;
    driver_lock();
    const struct global *global = global_of(module, name);
    driver_unlock();
    if (!global) {
        int result = make_global(module, context, name);
        if (result != OK) return result;
        global = global_of(module, name);
    }
    if (pointer) *pointer = global->pointer;
    if (size) *size = GLOBAL_BYTES;
    return OK;
}

/* Libraries and kernels are modules and functions that do not belong to a context. Here they are
 * the same structs. */
CALL(cuLibraryLoadData, struct module **library, const void *code, int *options, void **values,
     unsigned count, int *library_options, void **library_values, unsigned library_count) {
    (void)options, (void)values, (void)count;
    (void)library_options, (void)library_values, (void)library_count;
    return load(library, code, true);
}

CALL(cuLibraryUnload, struct module *library) {
    return unload_kind(library, true);
}

CALL(cuLibraryGetModule, struct module **module, struct module *library) {
    if (!module) return INVALID_VALUE;
    if (!is_module(library)) return INVALID_HANDLE;
    *module = library;
    return OK;
}

CALL(cuLibraryGetKernel, struct function **kernel, struct module *library, const char *name) {
    return cuModuleGetFunction(kernel, library, name);
}

CALL(cuKernelGetFunction, struct function **function, struct function *kernel) {
    if (!function) return INVALID_VALUE;
    if (!is_function(kernel)) return INVALID_HANDLE;
    *function = kernel;
    return OK;
}

CALL(cuFuncGetModule, struct module **module, struct function *function) {
    if (!module) return INVALID_VALUE;
    if (!is_function(function)) return INVALID_HANDLE;
    *module = function->module;
    return OK;
}

CALL(cuFuncGetName, const char **name, struct function *function) {
    if (!name) return INVALID_VALUE;
    if (!is_function(function)) return INVALID_HANDLE;
    *name = function->name;
    return OK;
}
ALSO(cuKernelGetName, cuFuncGetName);

/* CUfunction_attribute, by number: threads of a block, then sizes, registers and versions. */
static int function_attribute(int *value, int attribute) {
    static const int VALUES[] = {1024, 0, 0, 0, 32, 70, 70, 0, 49152, -1};
    if (!value || attribute < 0) return INVALID_VALUE;
    *value = attribute < (int)(sizeof VALUES / sizeof *VALUES) ? VALUES[attribute] : 0;
    return OK;
}

CALL(cuFuncGetAttribute, int *value, int attribute, struct function *function) {
    return is_function(function) ? function_attribute(value, attribute) : INVALID_HANDLE;
}

CALL(cuKernelGetAttribute, int *value, int attribute, struct function *kernel, int device) {
    (void)device;
    return is_function(kernel) ? function_attribute(value, attribute) : INVALID_HANDLE;
}

CALL(cuFuncSetAttribute, struct function *function, int attribute, int value) {
    (void)value;
    if (!is_function(function)) return INVALID_HANDLE;
    return attribute >= 0 ? OK : INVALID_VALUE;
}

CALL(cuFuncSetCacheConfig, struct function *function, int config) {
    (void)config;
    return is_function(function) ? OK : INVALID_HANDLE;
}
ALSO(cuFuncSetSharedMemConfig, cuFuncSetCacheConfig);

CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, struct function *function,
     int size, size_t shared) {
    (void)shared;
    if (!blocks || size <= 0 || size > 1024) return INVALID_VALUE;
    if (!is_function(function)) return INVALID_HANDLE;
    *blocks = 2048 / size;
    return OK;
}

CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *blocks, struct function *function,
     int size, size_t shared, unsigned flags) {
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, size, shared);
}
