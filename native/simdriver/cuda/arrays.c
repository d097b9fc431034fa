/* Arrays: only their memory is simulated, not their content. */
#include "../handles.h"
#include "allocations.h"
#include "contexts.h"

#define LAYERED 1u

struct array {
    const struct context *context;
    bool is_mipmapped;
    pointer_t memory;
    struct array_3d_shape shape;
};

static struct handles arrays = HANDLES_OF(struct array);

/* The memory is freed with the context. */
void arrays_end(const struct context *context) {
    struct array *array;
    for (size_t cursor = 0; (array = handle_next(&arrays, &cursor));)
        if (array->context == context) handle_end(&arrays, array);
}

/* Bytes of one channel; 0 for block-compressed formats, which are not simulated. */
static size_t format_bytes(int format) {
    switch (format) {
    case 1: case 8: return 1;
    case 2: case 9: case 16: return 2;
    case 3: case 10: case 32: return 4;
    default: return 0;
    }
}

static size_t half(size_t length) {
    return length > 1 ? length / 2 : 1;
}

/* The bytes of all levels: each has half the width, height and depth of the one before. The number
 * of layers stays the same. */
static size_t all_levels(size_t element, size_t width, size_t rows, size_t depth, bool has_layers,
                         unsigned levels) {
    size_t sum = 0;
    for (unsigned i = 0; i < levels && i < 64; i++) {
        sum += element * width * rows * depth;
        width = half(width);
        rows = half(rows);
        if (!has_layers) depth = half(depth);
    }
    return sum;
}

static int create(struct array **made, const struct array_3d_shape *shape, unsigned levels,
                  bool is_mipmapped) {
    WITH_CONTEXT(context);
    size_t element = format_bytes(shape->format) * shape->channels;
    if (!made || !shape->width || !element) return INVALID_VALUE;
    size_t rows = shape->height ? shape->height : 1, layers = shape->depth ? shape->depth : 1;
    if (shape->width > 1u << 20 || rows > 1u << 20 || layers > 1u << 16) return INVALID_VALUE;
    pointer_t memory;
    int result = allocate(context, context->device, INTERNAL,
                          all_levels(element, shape->width, rows, layers,
                                     shape->flags & LAYERED, levels),
                          NULL, &memory);
    if (result != OK) return result;
    struct array *array = handle_new(&arrays);
    if (!array) {
        release(memory, INTERNAL, 0);
        return OUT_OF_MEMORY;
    }
    *array = (struct array){context, is_mipmapped, memory, *shape};
    *made = array;
    return OK;
}

CALL(cuArrayCreate_v2, struct array **made, const struct array_shape *shape) {
    if (!shape) return INVALID_VALUE;
    struct array_3d_shape full = {.width = shape->width, .height = shape->height,
                                  .format = shape->format, .channels = shape->channels};
    return create(made, &full, 1, false);
}

CALL(cuArray3DCreate_v2, struct array **made, const struct array_3d_shape *shape) {
    return shape ? create(made, shape, 1, false) : INVALID_VALUE;
}

CALL(cuArray3DGetDescriptor_v2, struct array_3d_shape *shape, struct array *array) {
    WITH_DRIVER(driver);
    if (!shape) return INVALID_VALUE;
    if (!handle_is_live(&arrays, array)) return INVALID_HANDLE;
    *shape = array->shape;
    return OK;
}

static int destroy(struct array *array, bool is_mipmapped) {
    driver_lock();
    bool found = handle_is_live(&arrays, array) && array->is_mipmapped == is_mipmapped;
    if (found) {
        release_locked(array->memory, INTERNAL, 0);
        handle_end(&arrays, array);
    }
    driver_unlock();
    return found ? OK : INVALID_HANDLE;
}

CALL(cuArrayDestroy, struct array *array) {
    return destroy(array, false);
}

CALL(cuMipmappedArrayCreate, struct array **made, const struct array_3d_shape *shape,
     unsigned levels) {
    return shape && levels ? create(made, shape, levels, true) : INVALID_VALUE;
}

CALL(cuMipmappedArrayDestroy, struct array *array) {
    return destroy(array, true);
}
