/* Arrays. Their size is computed from their shape. */
#include "charges.h"

/* Flags of arrays without memory: cuMemCreate makes it, and it is counted there. */
#define SPARSE 0x40u
#define DEFERRED 0x80u

/* Formats of one and of two bytes. All others count as four bytes, the most that a channel
 * takes. */
static size_t bytes_per_channel(int format) {
    switch (format) {
    case 1: case 8:
        return 1;
    case 2: case 9: case 16:
        return 2;
    default:
        return 4;
    }
}

static size_t at_least_one(size_t size) {
    return size ? size : 1;
}

/* SIZE_MAX if the size does not fit into size_t: no reservation of that size succeeds. */
static size_t array_bytes(const struct array_3d_shape *shape) {
    size_t bytes = at_least_one(shape->channels) * bytes_per_channel(shape->format);
    if (shape->flags & (SPARSE | DEFERRED)) return 0;
    if (__builtin_mul_overflow(bytes, at_least_one(shape->width), &bytes) ||
        __builtin_mul_overflow(bytes, at_least_one(shape->height), &bytes) ||
        __builtin_mul_overflow(bytes, at_least_one(shape->depth), &bytes))
        return SIZE_MAX;
    return bytes;
}

#define CREATE(bytes, call)                                                      \
    do {                                                                         \
        int device;                                                              \
        if (!limiter_is_on() || !made || !shape || !current_device(&device)) return call; \
        int card = card_of(device);                                              \
        size_t size = bytes;                                                     \
        if (!reserve(card, size)) return OUT_OF_MEMORY;                         \
        int result = call;                                                       \
        return record_charge(result, ARRAY, (uint64_t)(uintptr_t)*made, card, size);   \
    } while (0)

CALL(cuArrayCreate_v2, array_t *made, const struct array_shape *shape) {
    CREATE(array_bytes(&(struct array_3d_shape){shape->width, shape->height, 1, shape->format,
                                                shape->channels, 0}),
           REAL(cuArrayCreate_v2)(made, shape));
}

CALL(cuArray3DCreate_v2, array_t *made, const struct array_3d_shape *shape) {
    CREATE(array_bytes(shape), REAL(cuArray3DCreate_v2)(made, shape));
}

static size_t mipmap_bytes(const struct array_3d_shape *shape, unsigned levels) {
    struct array_3d_shape level = *shape;
    size_t sum = 0;
    for (unsigned i = 0; i < levels && i < 64; i++) {
        if (__builtin_add_overflow(sum, array_bytes(&level), &sum)) return SIZE_MAX;
        level.width /= 2;
        level.height /= 2;
        if (!(level.flags & 1)) level.depth /= 2; /* the number of layers stays the same */
    }
    return sum;
}

CALL(cuMipmappedArrayCreate, array_t *made, const struct array_3d_shape *shape, unsigned levels) {
    CREATE(mipmap_bytes(shape, levels), REAL(cuMipmappedArrayCreate)(made, shape, levels));
}

CALL(cuArrayDestroy, array_t array) {
    struct entry entry;
    bool is_known = discharge_begin(ARRAY, (uint64_t)(uintptr_t)array, &entry);
    return discharge_end(REAL(cuArrayDestroy)(array), is_known, &entry);
}

CALL(cuMipmappedArrayDestroy, array_t array) {
    struct entry entry;
    bool is_known = discharge_begin(ARRAY, (uint64_t)(uintptr_t)array, &entry);
    return discharge_end(REAL(cuMipmappedArrayDestroy)(array), is_known, &entry);
}

/* The interface with 32-bit sizes is not hooked further but refused: no program uses it any
 * more. */
CALL(cuArrayCreate, array_t *made, const void *shape) {
    return limiter_is_on() ? NOT_SUPPORTED : REAL(cuArrayCreate)(made, shape);
}

CALL(cuArray3DCreate, array_t *made, const void *shape) {
    return limiter_is_on() ? NOT_SUPPORTED : REAL(cuArray3DCreate)(made, shape);
}
