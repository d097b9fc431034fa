/* Green contexts: parts of a card's processors. Only what they mean for the primary context is
 * simulated: each retains it until it is destroyed. */
#include "../handles.h"
#include "contexts.h"

struct green {
    int device;
    struct context *primary;
};

static struct handles greens = HANDLES_OF(struct green);

CALL_OF(cuDevicePrimaryCtxRetain, struct context **context, int device);
CALL_OF(cuDevicePrimaryCtxRelease_v2, int device);

CALL(cuGreenCtxCreate, struct green **made, void *resources, int device, unsigned flags) {
    WITH_DEVICE(device);
    if (!made || !resources || flags > 1) return INVALID_VALUE;
    struct green *green = handle_new(&greens);
    if (!green) return OUT_OF_MEMORY;
    int result = cuDevicePrimaryCtxRetain(&green->primary, device);
    if (result != OK) {
        handle_end(&greens, green);
        return result;
    }
    green->device = device;
    *made = green;
    return OK;
}

CALL(cuGreenCtxDestroy, struct green *green) {
    WITH_DRIVER(driver);
    if (!handle_is_live(&greens, green)) return INVALID_CONTEXT;
    int device = green->device;
    if (!handle_end(&greens, green)) return INVALID_CONTEXT;
    return cuDevicePrimaryCtxRelease_v2(device);
}

CALL(cuCtxFromGreenCtx, struct context **context, struct green *green) {
    WITH_DRIVER(driver);
    if (!context) return INVALID_VALUE;
    if (!handle_is_live(&greens, green)) return INVALID_CONTEXT;
    *context = green->primary;
    return OK;
}
