/* Eight processes allocate at the same moment, again and again. Each wants a third of the card, so
 * that in each round exactly three must succeed. Prints the number of rounds with more, and with
 * fewer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 8
#define ROUNDS 8000
#define FIT 3
#define PIECE (5200ull << 20)

struct shared {
    _Atomic int arrived, got, over, under, failed;
};

static void meet(struct shared *shared, int *meeting) {
    int wanted = ++*meeting * PROCESSES;
    atomic_fetch_add(&shared->arrived, 1);
    while (atomic_load(&shared->arrived) < wanted && !atomic_load(&shared->failed)) sched_yield();
}

static int run(struct shared *shared, int number) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    if (!library) return 1;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
    int (*set)(void *) = (int (*)(void *))dlsym(library, "cuCtxSetCurrent");
    int (*take)(unsigned long long *, size_t) =
        (int (*)(unsigned long long *, size_t))dlsym(library, "cuMemAlloc_v2");
    int (*give)(unsigned long long) = (int (*)(unsigned long long))dlsym(library, "cuMemFree_v2");
    if (init(0) || retain(&context, 0) || set(context)) return 1;
    for (int round = 0, meeting = 0; round < ROUNDS; round++) {
        unsigned long long pointer = 0;
        meet(shared, &meeting);
        int result = take(&pointer, PIECE);
        if (result == 0) atomic_fetch_add(&shared->got, 1);
        else if (result != 2) return 1;
        meet(shared, &meeting);
        if (number == 0) {
            int got = atomic_exchange(&shared->got, 0);
            atomic_fetch_add(&shared->over, got > FIT);
            atomic_fetch_add(&shared->under, got < FIT);
        }
        if (pointer) give(pointer);
    }
    return 0;
}

int main(void) {
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int number = 0; number < PROCESSES; number++) {
        if (fork()) continue;
        int result = run(shared, number);
        if (result) atomic_store(&shared->failed, 1);
        _exit(result);
    }
    while (wait(NULL) > 0) {
    }
    printf("%d over, %d under, %d failed\n", shared->over, shared->under, shared->failed);
    return 0;
}
