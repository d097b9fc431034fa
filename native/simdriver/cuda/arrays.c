/* Arrays: only their memory is simulated, not their content. */
#include <stdlib.h>

#include "allocations.h"

struct array {
    pointer_t memory;
    struct array_3d_shape shape;
};

/* Bytes of one channel; 0 for block-compressed formats, which are not simulated. */
static size_t format_bytes(int format) {
    switch (format) {
    case 1: case 8: return 1;
    case 2: case 9: case 16: return 2;
    case 3: case 10: case 32: return 4;
    default: return 0;
    }
}

/* The bytes of all levels: each has half the width and height of the one before. */
static size_t all_levels(size_t bytes, unsigned levels) {
    size_t sum = bytes;
    for (unsigned i = 1; i < levels && bytes >= 4; i++) sum += bytes /= 4;
    return sum;
}

static int create(struct array **made, const struct array_3d_shape *shape, unsigned levels) {
    WITH_CONTEXT(context);
    size_t element = format_bytes(shape->format) * shape->channels;
    if (!made || !shape->width || !element) return INVALID_VALUE;
    size_t rows = shape->height ? shape->height : 1, layers = shape->depth ? shape->depth : 1;
    if (shape->width > 1u << 20 || rows > 1u << 20 || layers > 1u << 16) return INVALID_VALUE;
    struct array *array = calloc(1, sizeof *array);
    if (!array) return OUT_OF_MEMORY;
    array->shape = *shape;
    int result = allocate(context, context->device, ON_DEVICE,
                          all_levels(shape->width * rows * layers * element, levels), NULL,
                          &array->memory);
    if (result == OK) *made = array;
    else free(array);
    return result;
}

CALL(cuArrayCreate_v2, struct array **made, const struct array_shape *shape) {
    if (!shape) return INVALID_VALUE;
    struct array_3d_shape full = {.width = shape->width, .height = shape->height,
                                  .format = shape->format, .channels = shape->channels};
    return create(made, &full, 1);
}

CALL(cuArray3DCreate_v2, struct array **made, const struct array_3d_shape *shape) {
    return shape ? create(made, shape, 1) : INVALID_VALUE;
}

CALL(cuArray3DGetDescriptor_v2, struct array_3d_shape *shape, struct array *array) {
    WITH_DRIVER(driver);
    if (!shape || !array) return INVALID_HANDLE;
    *shape = array->shape;
    return OK;
}

CALL(cuArrayDestroy, struct array *array) {
    WITH_DRIVER(driver);
    if (!array) return INVALID_HANDLE;
    int result = release(array->memory, ON_DEVICE, 0);
    if (result == OK) free(array);
    return result;
}

CALL(cuMipmappedArrayCreate, struct array **made, const struct array_3d_shape *shape,
     unsigned levels) {
    return shape && levels ? create(made, shape, levels) : INVALID_VALUE;
}
ALSO(cuMipmappedArrayDestroy, cuArrayDestroy);
