/* Memory that is allocated at an address, and memory of other interfaces. */
#include "charges.h"

#define PITCH 512u

int cuMemFree_v2(pointer_t pointer);

CALL(cuMemAlloc_v2, pointer_t *pointer, size_t size) {
    int device;
    if (!limiter_is_on() || !pointer || !size || !current_device(&device))
        return REAL(cuMemAlloc_v2)(pointer, size);
    int card = card_of(device);
    if (!reserve(card, size)) return OUT_OF_MEMORY;
    int result = REAL(cuMemAlloc_v2)(pointer, size);
    return record_charge(result, POINTER, *pointer, card, size);
}

/* Managed memory may be moved to the host, and may be larger than the card. It is counted in
 * full. */
CALL(cuMemAllocManaged, pointer_t *pointer, size_t size, unsigned flags) {
    int device;
    if (!limiter_is_on() || !pointer || !size || !current_device(&device))
        return REAL(cuMemAllocManaged)(pointer, size, flags);
    int card = card_of(device);
    if (!reserve(card, size)) return OUT_OF_MEMORY;
    int result = REAL(cuMemAllocManaged)(pointer, size, flags);
    return record_charge(result, POINTER, *pointer, card, size);
}

/* The driver chooses the length of a row. A guess is reserved before the call and corrected
 * after. */
CALL(cuMemAllocPitch_v2, pointer_t *pointer, size_t *pitch, size_t width, size_t height,
     unsigned element) {
    int device;
    size_t guess, row = width + (PITCH - 1) - (width + PITCH - 1) % PITCH;
    if (!limiter_is_on() || !pointer || !pitch || !width || !height || !current_device(&device))
        return REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    int card = card_of(device);
    if (__builtin_mul_overflow(row, height, &guess) || !reserve(card, guess)) return OUT_OF_MEMORY;
    int result = REAL(cuMemAllocPitch_v2)(pointer, pitch, width, height, element);
    size_t size = result == OK ? counted_bytes(*pitch * height) : guess;
    if (size > guess && !reserve(card, size - guess)) {
        REAL(cuMemFree_v2)(*pointer);
        limiter_give(card, guess);
        return OUT_OF_MEMORY;
    }
    if (size < guess) limiter_give(card, guess - size);
    return record_charge(result, POINTER, *pointer, card, size);
}

/* The interface with 32-bit addresses is not hooked further but refused: no program uses it any
 * more. */
CALL(cuMemAlloc, unsigned *pointer, unsigned size) {
    return limiter_is_on() ? NOT_SUPPORTED : REAL(cuMemAlloc)(pointer, size);
}

CALL(cuMemAllocPitch, unsigned *pointer, unsigned *pitch, unsigned width, unsigned height,
     unsigned element) {
    return limiter_is_on() ? NOT_SUPPORTED
                           : REAL(cuMemAllocPitch)(pointer, pitch, width, height, element);
}

CALL(cuMemFree_v2, pointer_t pointer) {
    struct entry entry;
    bool is_known = discharge_begin(POINTER, pointer, &entry);
    return discharge_end(REAL(cuMemFree_v2)(pointer), is_known, &entry);
}

CALL(cuMemFreeAsync, pointer_t pointer, stream_t stream) {
    struct entry entry;
    bool is_known = discharge_begin(POINTER, pointer, &entry);
    return discharge_end(REAL(cuMemFreeAsync)(pointer, stream), is_known, &entry);
}

CALL(cuMemFreeAsync_ptsz, pointer_t pointer, stream_t stream) {
    struct entry entry;
    bool is_known = discharge_begin(POINTER, pointer, &entry);
    return discharge_end(REAL(cuMemFreeAsync_ptsz)(pointer, stream), is_known, &entry);
}

/* Memory that the process allocated through another interface (Vulkan, OpenGL), which is not
 * hooked. */
CALL(cuImportExternalMemory, external_t *made, const struct external_memory *memory) {
    int device;
    if (!limiter_is_on() || !made || !memory || !current_device(&device))
        return REAL(cuImportExternalMemory)(made, memory);
    int card = card_of(device);
    if (!reserve(card, memory->size)) return OUT_OF_MEMORY;
    int result = REAL(cuImportExternalMemory)(made, memory);
    return record_charge(result, EXTERNAL, (uint64_t)(uintptr_t)*made, card, memory->size);
}

CALL(cuDestroyExternalMemory, external_t external) {
    struct entry entry;
    bool is_known = discharge_begin(EXTERNAL, (uint64_t)(uintptr_t)external, &entry);
    return discharge_end(REAL(cuDestroyExternalMemory)(external), is_known, &entry);
}
