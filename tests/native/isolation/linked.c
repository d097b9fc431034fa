/* A library that is linked with the driver, as libraries of applications are. With BY_NEXT it asks
 * the loader for the driver's functions, which come behind itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

typedef unsigned long long pointer_t;
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemGetInfo_v2(size_t *unused, size_t *total);
int cuMemAlloc_v2(pointer_t *pointer, size_t size);

#ifdef BY_NEXT
#define cuMemGetInfo_v2 ((int (*)(size_t *, size_t *))dlsym(RTLD_NEXT, "cuMemGetInfo_v2"))
#define cuMemAlloc_v2 ((int (*)(pointer_t *, size_t))dlsym(RTLD_NEXT, "cuMemAlloc_v2"))
#endif

int linked(void) {
    void *context;
    size_t unused, total;
    pointer_t pointer;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    if (cuMemGetInfo_v2(&unused, &total)) return 1;
    printf("%zu %d\n", total >> 20, cuMemAlloc_v2(&pointer, 4000ull << 20));
    fflush(stdout); /* in another linker namespace, nobody else does it */
    return 0;
}
