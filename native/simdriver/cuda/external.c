/* Memory that was allocated through another interface, Vulkan or OpenGL. Those are not simulated:
 * an import succeeds, and takes no memory of the card. */
#include "../handles.h"
#include "contexts.h"

#define OPAQUE_FD 1

struct external {
    const struct context *context;
};

static struct handles externals = HANDLES_OF(struct external);

void external_end(const struct context *context) {
    struct external *external;
    for (size_t cursor = 0; (external = handle_next(&externals, &cursor));)
        if (external->context == context) handle_end(&externals, external);
}

CALL(cuImportExternalMemory, struct external **made, const struct external_memory *description) {
    WITH_CONTEXT(context);
    if (!made || !description || !description->size || description->type != OPAQUE_FD)
        return INVALID_VALUE;
    struct external *external = handle_new(&externals);
    if (!external) return OUT_OF_MEMORY;
    external->context = context;
    *made = external;
    return OK;
}

CALL(cuDestroyExternalMemory, struct external *external) {
    WITH_DRIVER(driver);
    return handle_end(&externals, external) ? OK : INVALID_HANDLE;
}
