/* What CUDA tells programs about memory: the container's share looks like the whole card. The
 * driver is called first, so that errors are its own. */
#include "devices.h"
#include "pools.h"

static size_t smaller(size_t one, size_t other) {
    return one < other ? one : other;
}

CALL(cuMemGetInfo_v2, size_t *unused, size_t *total) {
    int device, result = REAL(cuMemGetInfo_v2)(unused, total);
    if (result != OK || !limiter_is_on() || !current_device(&device)) return result;
    int card = card_of(device);
    pools_settle(); /* pools may have given memory back to the card */
    size_t whole = limiter_total(card), used = limiter_used(card);
    *total = smaller(*total, whole);
    *unused = smaller(*unused, whole > used ? whole - used : 0);
    return result;
}

CALL(cuDeviceTotalMem_v2, size_t *total, int device) {
    int result = REAL(cuDeviceTotalMem_v2)(total, device);
    if (result == OK && limiter_is_on()) *total = smaller(*total, limiter_total(card_of(device)));
    return result;
}

/* The interface with 32-bit sizes: larger figures are cut to the largest that fits. */
CALL(cuMemGetInfo, unsigned *unused, unsigned *total) {
    size_t both[2];
    if (!limiter_is_on() || !unused || !total) return REAL(cuMemGetInfo)(unused, total);
    int result = cuMemGetInfo_v2(&both[0], &both[1]);
    if (result == OK) {
        *unused = (unsigned)smaller(both[0], UINT32_MAX);
        *total = (unsigned)smaller(both[1], UINT32_MAX);
    }
    return result;
}

CALL(cuDeviceTotalMem, unsigned *total, int device) {
    size_t whole;
    if (!limiter_is_on() || !total) return REAL(cuDeviceTotalMem)(total, device);
    int result = cuDeviceTotalMem_v2(&whole, device);
    if (result == OK) *total = (unsigned)smaller(whole, UINT32_MAX);
    return result;
}
