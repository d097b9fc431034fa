/* Memory that was allocated through another interface, Vulkan or OpenGL. Those are not simulated:
 * an import succeeds, and takes no memory of the card. */
#include <stdlib.h>

#include "driver.h"

#define OPAQUE_FD 1

struct external {
    unsigned long long size;
};

CALL(cuImportExternalMemory, struct external **made, const struct external_memory *description) {
    WITH_CONTEXT(context);
    (void)context;
    if (!made || !description || !description->size || description->type != OPAQUE_FD)
        return INVALID_VALUE;
    struct external *external = malloc(sizeof *external);
    if (!external) return OUT_OF_MEMORY;
    external->size = description->size;
    *made = external;
    return OK;
}

CALL(cuDestroyExternalMemory, struct external *external) {
    WITH_DRIVER(driver);
    if (!external) return INVALID_HANDLE;
    free(external);
    return OK;
}
