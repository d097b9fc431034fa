#include "modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocations.h"
#include "driver.h"

#define GLOBAL_BYTES 4096 /* the size of every global variable: the real one is not known */

struct global {
    struct global *next;
    pointer_t pointer;
    char name[];
};

struct module {
    struct function *functions;
    struct global *globals;
};

static int load(struct module **made, const void *image) {
    WITH_CONTEXT(context);
    (void)context;
    if (!made || !image) return INVALID_VALUE;
    *made = calloc(1, sizeof **made);
    return *made ? OK : OUT_OF_MEMORY;
}

static void unload(struct module *module) {
    for (struct function *next, *function = module->functions; function; function = next) {
        next = function->next;
        free(function);
    }
    for (struct global *next, *global = module->globals; global; global = next) {
        next = global->next;
        release(global->pointer, ON_DEVICE, 0);
        free(global);
    }
    free(module);
}

CALL(cuModuleLoadData, struct module **module, const void *image) {
    return load(module, image);
}
ALSO(cuModuleLoadFatBinary, cuModuleLoadData);

CALL(cuModuleLoadDataEx, struct module **module, const void *image, unsigned count, int *options,
     void **values) {
    (void)count;
    (void)options;
    (void)values;
    return load(module, image);
}

CALL(cuModuleLoad, struct module **module, const char *path) {
    if (!path) return INVALID_VALUE;
    return access(path, R_OK) ? FILE_NOT_FOUND : load(module, path);
}

CALL(cuModuleUnload, struct module *module) {
    WITH_DRIVER(driver);
    if (!module) return INVALID_HANDLE;
    unload(module);
    return OK;
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

CALL(cuModuleGetFunction, struct function **found, struct module *module, const char *name) {
    WITH_CONTEXT(context);
    (void)context;
    if (!found || !module || !name || !*name) return INVALID_VALUE;
    struct function *function = malloc(sizeof *function + strlen(name) + 1);
    if (!function) return OUT_OF_MEMORY;
    function->module = module;
    function->length_ns = length_from(name);
    strcpy(function->name, name);
    driver_lock();
    function->next = module->functions;
    module->functions = function;
    driver_unlock();
    *found = function;
    return OK;
}

static struct global *find_global(struct module *module, const char *name) {
    for (struct global *global = module->globals; global; global = global->next)
        if (strcmp(global->name, name) == 0) return global;
    return NULL;
}

CALL(cuModuleGetGlobal_v2, pointer_t *pointer, size_t *size, struct module *module,
     const char *name) {
    WITH_CONTEXT(context);
    if (!module || !name) return INVALID_VALUE;
    struct global *global = find_global(module, name);
    if (!global) {
        global = malloc(sizeof *global + strlen(name) + 1);
        if (!global) return OUT_OF_MEMORY;
        int result =
            allocate(context, context->device, ON_DEVICE, GLOBAL_BYTES, NULL, &global->pointer);
        if (result != OK) {
            free(global);
            return result;
        }
        strcpy(global->name, name);
        global->next = module->globals;
        module->globals = global;
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
    return load(library, code);
}

CALL(cuLibraryUnload, struct module *library) {
    return cuModuleUnload(library);
}

CALL(cuLibraryGetModule, struct module **module, struct module *library) {
    if (!module || !library) return INVALID_VALUE;
    *module = library;
    return OK;
}

CALL(cuLibraryGetKernel, struct function **kernel, struct module *library, const char *name) {
    return cuModuleGetFunction(kernel, library, name);
}

CALL(cuKernelGetFunction, struct function **function, struct function *kernel) {
    if (!function || !kernel) return INVALID_VALUE;
    *function = kernel;
    return OK;
}

CALL(cuFuncGetModule, struct module **module, struct function *function) {
    if (!module || !function) return INVALID_VALUE;
    *module = function->module;
    return OK;
}

CALL(cuFuncGetName, const char **name, struct function *function) {
    if (!name || !function) return INVALID_VALUE;
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
    return function ? function_attribute(value, attribute) : INVALID_HANDLE;
}

CALL(cuKernelGetAttribute, int *value, int attribute, struct function *kernel, int device) {
    (void)device;
    return kernel ? function_attribute(value, attribute) : INVALID_HANDLE;
}

CALL(cuFuncSetAttribute, struct function *function, int attribute, int value) {
    (void)value;
    return function && attribute >= 0 ? OK : INVALID_VALUE;
}

CALL(cuFuncSetCacheConfig, struct function *function, int config) {
    (void)config;
    return function ? OK : INVALID_VALUE;
}
ALSO(cuFuncSetSharedMemConfig, cuFuncSetCacheConfig);

CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, struct function *function,
     int size, size_t shared) {
    (void)shared;
    if (!blocks || !function || size <= 0 || size > 1024) return INVALID_VALUE;
    *blocks = 2048 / size;
    return OK;
}

CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *blocks, struct function *function,
     int size, size_t shared, unsigned flags) {
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, size, shared);
}
