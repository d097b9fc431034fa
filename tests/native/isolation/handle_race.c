/* Threads create and release memory at the same time, so that the driver gives a handle that one
 * thread has just released to another one. At the end each thread holds one. Prints how many bytes
 * are held, and waits for the end of input. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define SIZE (2ull << 20)

typedef unsigned long long handle_t;

static int (*create)(handle_t *, size_t, const void *, unsigned long long);
static int (*release)(handle_t);
static int (*map)(handle_t, size_t, size_t, handle_t, unsigned long long);
static int (*unmap)(handle_t, size_t);
static handle_t addresses;
static int rounds, with_mappings;

static void *work(void *number) {
    static const int ON_CARD[8] = {1, 0, 1, 0};
    handle_t made = 0, place = addresses + (handle_t)(size_t)number * SIZE;
    for (int round = 0; round < rounds; round++) {
        if (create(&made, SIZE, ON_CARD, 0)) exit(1);
        if (with_mappings && map(place, SIZE, 0, made, 0)) exit(2);
        if (round == rounds - 1) break;
        if (release(made)) exit(3);
        if (with_mappings && unmap(place, SIZE)) exit(4);
    }
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library || count < 3) return 5;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*reserve)(handle_t *, size_t, size_t, handle_t, unsigned long long) =
        (int (*)(handle_t *, size_t, size_t, handle_t, unsigned long long))dlsym(
            library, "cuMemAddressReserve");
    create = (int (*)(handle_t *, size_t, const void *, unsigned long long))dlsym(library,
                                                                                 "cuMemCreate");
    release = (int (*)(handle_t))dlsym(library, "cuMemRelease");
    map = (int (*)(handle_t, size_t, size_t, handle_t, unsigned long long))dlsym(library,
                                                                                "cuMemMap");
    unmap = (int (*)(handle_t, size_t))dlsym(library, "cuMemUnmap");
    rounds = atoi(words[1]);
    with_mappings = atoi(words[2]);
    if (init(0) || reserve(&addresses, THREADS * SIZE, 0, 0, 0)) return 6;
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%llu\n", THREADS * SIZE);
    fflush(stdout);
    getchar();
    return 0;
}
