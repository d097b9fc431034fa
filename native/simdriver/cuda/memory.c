/* Memory of cards and of the host: allocate, free, query. */
#include <stdlib.h>
#include <string.h>

#include "../limits.h"
#include "../slots.h"
#include "allocations.h"
#include "contexts.h"

#define PITCH 512u
#define HOST_FLAGS 7u      /* portable, with a device pointer, write-combined */
#define REGISTER_FLAGS 15u /* portable, with a device pointer, of a device, read-only */

CALL(cuMemAlloc_v2, pointer_t *pointer, size_t size) {
    WITH_CONTEXT(context);
    return allocate(context, context->device, ON_DEVICE, size, NULL, pointer);
}

CALL(cuMemAllocPitch_v2, pointer_t *pointer, size_t *pitch, size_t width, size_t height,
     unsigned element) {
    WITH_CONTEXT(context);
    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return INVALID_VALUE;
    if (width > SIZE_MAX / 4) return OUT_OF_MEMORY;
    size_t row = (width + PITCH - 1) / PITCH * PITCH;
    if (height > SIZE_MAX / 2 / row) return OUT_OF_MEMORY;
    int result = allocate(context, context->device, ON_DEVICE, row * height, NULL, pointer);
    if (result == OK) *pitch = row;
    return result;
}

CALL(cuMemAllocManaged, pointer_t *pointer, size_t size, unsigned flags) {
    WITH_CONTEXT(context);
    if (flags != 1 && flags != 2) return INVALID_VALUE;
    return allocate(context, context->device, MANAGED, size, NULL, pointer);
}

CALL(cuMemFree_v2, pointer_t pointer) {
    WITH_CONTEXT(context);
    if (!pointer) return OK;
    context_wait(context);
    return release(pointer, ON_DEVICE, 0);
}

CALL(cuMemGetInfo_v2, size_t *unused, size_t *total) {
    WITH_CONTEXT(context);
    if (!unused || !total) return INVALID_VALUE;
    struct driver *driver = driver_now();
    slots_reap(&driver->node, driver->slot);
    *total = card_at(context->device)->fixed.memory_bytes;
    struct sim_state *state = driver->node.state;
    int card = driver->cards[context->device];
    size_t used = card_used(state, card);
    *unused = used < *total ? *total - used : 0;
    /* With a limit on its own cgroup, a program sees the limit. One that only an ancestor has is
     * enforced, and not shown. */
    struct limit_values limit;
    if (!limit_at(state, state->slots[driver->slot].place, card, &limit)) return OK;
    if (limit.hard < *total) *total = limit.hard;
    size_t left = limit.used < *total ? *total - limit.used : 0;
    if (left < *unused) *unused = left;
    return OK;
}

CALL(cuMemGetAddressRange_v2, pointer_t *base, size_t *size, pointer_t pointer) {
    struct allocation found;
    WITH_CONTEXT(context);
    (void)context;
    if (!find_allocation(pointer, &found)) return NOT_FOUND;
    if (base) *base = found.base;
    if (size) *size = found.size;
    return OK;
}

static int host_memory(void **memory, size_t size) {
    pointer_t pointer;
    WITH_CONTEXT(context);
    if (!memory) return INVALID_VALUE;
    int result = allocate(context, context->device, ON_HOST, size, NULL, &pointer);
    if (result == OK) *memory = (void *)(uintptr_t)pointer;
    return result;
}

CALL(cuMemAllocHost_v2, void **memory, size_t size) {
    return host_memory(memory, size);
}

CALL(cuMemHostAlloc, void **memory, size_t size, unsigned flags) {
    return flags > HOST_FLAGS ? INVALID_VALUE : host_memory(memory, size);
}

CALL(cuMemFreeHost, void *memory) {
    WITH_DRIVER(driver);
    return release((pointer_t)(uintptr_t)memory, ON_HOST, 0);
}

CALL(cuMemHostRegister_v2, void *memory, size_t size, unsigned flags) {
    WITH_CONTEXT(context);
    struct allocation found;
    if (!memory || !size || flags > REGISTER_FLAGS) return INVALID_VALUE;
    if (find_allocation((pointer_t)(uintptr_t)memory, &found))
        return found.kind == REGISTERED ? HOST_MEMORY_ALREADY_REGISTERED : INVALID_VALUE;
    struct allocation own = {.base = (pointer_t)(uintptr_t)memory, .size = size,
                             .device = context->device, .kind = REGISTERED, .context = context};
    return remember(&own);
}
ALSO(cuMemHostRegister, cuMemHostRegister_v2);

CALL(cuMemHostUnregister, void *memory) {
    struct allocation forgotten;
    WITH_DRIVER(driver);
    if (!memory) return INVALID_VALUE;
    int result = forget((pointer_t)(uintptr_t)memory, REGISTERED, &forgotten);
    return result == OK ? OK : HOST_MEMORY_NOT_REGISTERED;
}

CALL(cuMemHostGetDevicePointer_v2, pointer_t *pointer, void *memory, unsigned flags) {
    struct allocation found;
    WITH_CONTEXT(context);
    (void)context;
    if (!pointer || flags || !find_allocation((pointer_t)(uintptr_t)memory, &found))
        return INVALID_VALUE;
    *pointer = (pointer_t)(uintptr_t)memory;
    return OK;
}

CALL(cuMemHostGetFlags, unsigned *flags, void *memory) {
    struct allocation found;
    WITH_DRIVER(driver);
    if (!flags || !find_allocation((pointer_t)(uintptr_t)memory, &found)) return INVALID_VALUE;
    *flags = 0;
    return OK;
}

/* CUpointer_attribute, by number. Each value is written with the size of its own type. */
static int pointer_attribute(void *data, int attribute, pointer_t pointer,
                             const struct allocation *found) {
    bool is_host = found->kind == ON_HOST || found->kind == REGISTERED;
    switch (attribute) {
    case 1: /* context */
        memcpy(data, &found->context, sizeof found->context);
        return OK;
    case 2: /* memory type: host or device */
        *(unsigned *)data = is_host ? 1 : 2;
        return OK;
    case 3: /* device pointer */
    case 4: /* host pointer */
        if (attribute == 4 && (found->kind == ON_DEVICE || found->kind == INTERNAL))
            return INVALID_VALUE;
        memcpy(data, &pointer, sizeof pointer);
        return OK;
    case 7: /* id */
        memcpy(data, &found->base, sizeof found->base);
        return OK;
    case 8: /* managed */
        *(unsigned *)data = found->kind == MANAGED;
        return OK;
    case 9: /* device */
        *(int *)data = found->device;
        return OK;
    case 11: /* start */
        memcpy(data, &found->base, sizeof found->base);
        return OK;
    case 12: /* size */
        memcpy(data, &found->size, sizeof found->size);
        return OK;
    case 13: /* mapped */
        *(unsigned *)data = 1;
        return OK;
    case 6:  /* synchronous */
    case 10: /* IPC */
    case 14: /* handle types */
        *(unsigned *)data = 0;
        return OK;
    case 17: /* pool */
        memcpy(data, &found->pool, sizeof found->pool);
        return OK;
    default:
        return NOT_SUPPORTED;
    }
}

CALL(cuPointerGetAttribute, void *data, int attribute, pointer_t pointer) {
    struct allocation found;
    WITH_DRIVER(driver);
    if (!data || !find_allocation(pointer, &found)) return INVALID_VALUE;
    return pointer_attribute(data, attribute, pointer, &found);
}

CALL(cuPointerGetAttributes, unsigned count, int *attributes, void **data, pointer_t pointer) {
    struct allocation found;
    WITH_DRIVER(driver);
    if (!attributes || !data) return INVALID_VALUE;
    bool is_known = find_allocation(pointer, &found);
    for (unsigned i = 0; i < count; i++) {
        /* For memory that is not the driver's, the values are 0, and it is no error. */
        if (!is_known || pointer_attribute(data[i], attributes[i], pointer, &found) != OK)
            *(unsigned *)data[i] = 0;
    }
    return OK;
}

/* Accepted, without effect. */
CALL(cuMemAdvise, pointer_t pointer, size_t size, int advice, int device) {
    WITH_DRIVER(driver);
    (void)advice;
    (void)device;
    return is_ours(pointer, size) ? OK : INVALID_VALUE;
}
