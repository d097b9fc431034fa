/* cuGetProcAddress: a program asks for a name without version ("cuMemAlloc"), and gets the function
 * that its version of CUDA means (cuMemAlloc_v2). It gets our hook in place of a hooked function.
 *
 * Which one the driver chose shows by its address, which is that of the exported function. If it is
 * no such address, the name and the version decide, as they do in the driver. A version of a hooked
 * function that is newer than the limiter is refused: its arguments are not known, so that it can
 * be neither counted nor passed on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "driver.h"

#define FLAG_PER_THREAD 2 /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
#define SYMBOL_NOT_FOUND 1
#define NONE FUNCTIONS

/* The version of CUDA from which on a name means this function; 0 for all that are not listed. */
static int first_version(enum function_id id) {
    switch ((int)id) {
    case ID_cuMemAlloc_v2: case ID_cuMemAllocPitch_v2: case ID_cuMemFree_v2:
    case ID_cuMemGetInfo_v2: case ID_cuDeviceTotalMem_v2: case ID_cuCtxCreate_v2:
    case ID_cuArrayCreate_v2: case ID_cuArray3DCreate_v2: return 3020;
    case ID_cuCtxDestroy_v2: return 4000;
    case ID_cuDevicePrimaryCtxRelease_v2: case ID_cuDevicePrimaryCtxReset_v2: return 11000;
    case ID_cuCtxCreate_v3: return 11040;
    case ID_cuGetProcAddress_v2: return 12000;
    case ID_cuGraphAddNode_v2: return 12030;
    case ID_cuCtxCreate_v4: return 12050;
    case ID_cuGraphAddNode_v3: return 13040;
    default: return 0;
    }
}

/* Whether `full` is the name, or the name with a suffix: _v2, _ptsz. */
static bool is_form_of(const char *full, const char *name) {
    size_t length = strlen(name);
    return strncmp(full, name, length) == 0 && (!full[length] || full[length] == '_');
}

static bool is_per_thread(enum function_id id) {
    return strstr(function_name(id), "_ptsz") != NULL;
}

static bool is_hooked_form(enum function_id id, const char *name) {
    return hook_of(id) && is_form_of(function_name(id), name);
}

/* Both the address and the name must match: a driver may use one function for several names. */
static enum function_id by_address(const char *name, const void *found) {
    for (enum function_id id = 0; id < NVML_BEGIN; id++)
        if (is_hooked_form(id, name) && real_function(id) == found) return id;
    return NONE;
}

static enum function_id by_version(const char *name, int version, bool wants_per_thread) {
    enum function_id best = NONE;
    for (enum function_id id = 0; id < NVML_BEGIN; id++) {
        if (!is_hooked_form(id, name) || first_version(id) > version) continue;
        if (is_per_thread(id) && !wants_per_thread) continue;
        if (best == NONE || first_version(id) > first_version(best) ||
            (is_per_thread(id) && !is_per_thread(best)))
            best = id;
    }
    return best;
}

static bool is_any_form_hooked(const char *name) {
    for (enum function_id id = 0; id < NVML_BEGIN; id++)
        if (is_hooked_form(id, name)) return true;
    return false;
}

/* Whether this is an exported form of the function for which there is no hook. */
static bool is_unknown_form(const char *name, const void *found) {
    Dl_info symbol;
    return dladdr(found, &symbol) && symbol.dli_saddr == found && symbol.dli_sname &&
           is_form_of(symbol.dli_sname, name);
}

/* Puts the hook in place of what the driver found; false if the program must not get that. */
static bool replace(const char *name, void **function, int version, uint64_t flags) {
    if (!is_any_form_hooked(name)) return true;
    enum function_id id = by_address(name, *function);
    if (id == NONE && !is_unknown_form(name, *function))
        id = by_version(name, version, flags & FLAG_PER_THREAD);
    if (id != NONE) learn_function(id, *function);
    *function = id == NONE ? NULL : hook_of(id);
    return id != NONE;
}

CALL(cuGetProcAddress_v2, const char *name, void **function, int version, uint64_t flags,
     int *status) {
    int result = REAL(cuGetProcAddress_v2)(name, function, version, flags, status);
    if (result != OK || !name || !function || !*function || !limiter_is_on()) return result;
    if (replace(name, function, version, flags)) return result;
    if (status) *status = SYMBOL_NOT_FOUND;
    return NOT_FOUND;
}

CALL(cuGetProcAddress, const char *name, void **function, int version, uint64_t flags) {
    int result = REAL(cuGetProcAddress)(name, function, version, flags);
    if (result != OK || !name || !function || !*function || !limiter_is_on()) return result;
    return replace(name, function, version, flags) ? result : NOT_FOUND;
}
