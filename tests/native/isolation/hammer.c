/* Allocates and frees memory of the first device, of many sizes, until it is killed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long pointer_t;

int main(void) {
    void *context, *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return 1;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
    int (*use)(void *) = (int (*)(void *))dlsym(library, "cuCtxSetCurrent");
    int (*take)(pointer_t *, size_t) =
        (int (*)(pointer_t *, size_t))dlsym(library, "cuMemAlloc_v2");
    int (*give)(pointer_t) = (int (*)(pointer_t))dlsym(library, "cuMemFree_v2");
    if (init(0) || retain(&context, 0) || use(context)) return 1;
    pointer_t held[32] = {0};
    for (unsigned long round = 0;; round++) {
        int place = rand() % 32;
        if (held[place] && give(held[place])) return 1;
        held[place] = 0;
        take(&held[place], (size_t)(rand() % 100000) * 1024);
        if (round == 100) {
            puts("hammering");
            fflush(stdout);
        }
    }
}
