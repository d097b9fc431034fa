/* cuGetProcAddress: how most clients find functions. */
#include "driver.h"
#include "entries.h"

#define FLAG_PER_THREAD 2

CALL_OF(cuDriverGetVersion, int *version);

CALL(cuGetProcAddress_v2, const char *name, void **function, int version, uint64_t flags,
     int *status) {
    int newest;
    if (!name || !function) return INVALID_VALUE;
    /* A driver does not have functions that are newer than itself. */
    if (cuDriverGetVersion(&newest) == OK && version > newest) version = newest;
    enum lookup found = find_entry(name, version, flags & FLAG_PER_THREAD, function);
    if (status) *status = (int)found;
    return found == FOUND ? OK : NOT_FOUND;
}

CALL(cuGetProcAddress, const char *name, void **function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

/* Private tables of the CUDA runtime library: deliberately not simulated. */
CALL(cuGetExportTable, const void **table, const void *id) {
    if (!table || !id) return INVALID_VALUE;
    *table = NULL;
    return NOT_FOUND;
}
