/* Memory that another interface made, Vulkan or OpenGL. Here there is none, so that what is
 * imported has no memory of the card behind it. */
#include <stdlib.h>

#include "driver.h"

#define OPAQUE_FD 1

/* As far as it is read. */
struct description {
    int type;
    void *handle[2];
    unsigned long long size;
};

struct external {
    unsigned long long size;
};

CALL(cuImportExternalMemory, struct external **made, const struct description *description) {
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
