/* A driver that does nothing, as fast as possible: what is measured on it is the limiter. */
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define API __attribute__((visibility("default"))) int
typedef unsigned long long pointer_t;

static _Atomic pointer_t next;

API cuInit(unsigned flags) {
    return (int)flags;
}

API cuDeviceGetCount(int *count) {
    *count = 1;
    return 0;
}

API cuDeviceGetUuid(unsigned char *uuid, int device) {
    memset(uuid, device, 16);
    return 0;
}

API cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = &next + device;
    return 0;
}

API cuCtxSetCurrent(void *context) {
    return !context;
}

/* A few addresses, again and again: as a driver does when memory is freed and taken again. */
API cuMemAlloc_v2(pointer_t *pointer, size_t size) {
    *pointer = (1ull << 40) + (atomic_fetch_add(&next, 1) % 16 << 21);
    return !size;
}

API cuMemFree_v2(pointer_t pointer) {
    return !pointer;
}

API cuEventCreate(void **event, unsigned flags) {
    *event = &next;
    return (int)flags;
}

API cuEventRecord(void *event, void *stream) {
    (void)stream;
    return !event;
}

API cuEventQuery(void *event) {
    return !event;
}

API cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    *milliseconds = 0;
    return !start || !end;
}

API cuStreamIsCapturing(void *stream, int *status) {
    (void)stream;
    return *status = 0;
}

API cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
    (void)shared, (void)stream, (void)parameters, (void)extra;
    return (int)(next & 1);
}
