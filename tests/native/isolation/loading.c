/* Loads and unloads the driver in unusual ways, and calls it. Prints like bypass.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long pointer_t;

static struct {
    int (*init)(unsigned), (*retain)(void **, int), (*use)(void *);
    int (*info)(size_t *, size_t *), (*alloc)(pointer_t *, size_t);
} driver;

/* As the manual says: only dlerror tells whether dlsym has failed. */
static void *find(void *library, const char *name) {
    dlerror();
    void *found = dlsym(library, name);
    const char *problem = dlerror();
    if (problem) puts(problem);
    return found;
}

static void look_up(void *library) {
    *(void **)&driver.init = find(library, "cuInit");
    *(void **)&driver.retain = find(library, "cuDevicePrimaryCtxRetain");
    *(void **)&driver.use = find(library, "cuCtxSetCurrent");
    *(void **)&driver.info = find(library, "cuMemGetInfo_v2");
    *(void **)&driver.alloc = find(library, "cuMemAlloc_v2");
}

static int report(void) {
    void *context;
    size_t unused, total;
    pointer_t pointer;
    int problem = driver.init(0);
    if (!problem) problem = driver.retain(&context, 0);
    if (!problem) problem = driver.use(context);
    if (!problem) problem = driver.info(&unused, &total);
    if (problem) return printf("error %d\n", problem), 1;
    printf("%zu %d\n", total >> 20, driver.alloc(&pointer, 4000ull << 20));
    return 0;
}

/* The handle that was asked is closed. The program keeps the driver with another one. */
static int after_close(void *asked, void *kept) {
    if (!asked || !kept) return puts(dlerror()), 1;
    look_up(asked);
    dlclose(asked);
    return report();
}

/* Asks the first driver, then the second, then the first again for one function each. */
static int in_turns(void *one, void *other) {
    if (!one || !other) return puts(dlerror()), 1;
    look_up(one);
    look_up(other);
    int result = report();
    look_up(one);
    return result ? result : report();
}

/* By cuGetProcAddress, with the version of CUDA that is given. */
static int by_asking(void *library, int version) {
    int (*ask)(const char *, void **, int, unsigned long long, int *);
    static const char *const NAMES[] = {"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
                                        "cuMemGetInfo", "cuMemAlloc"};
    *(void **)&ask = dlsym(library, "cuGetProcAddress_v2");
    for (int i = 0; i < 5; i++) {
        int status, problem = ask(NAMES[i], &((void **)&driver)[i], version, 0, &status);
        if (problem) return printf("%s %d %d\n", NAMES[i], problem, status), 0;
    }
    return report();
}

int main(int count, char **words) {
    const char *way = words[1];
    if (count < 3) return 1;
    void *library = dlopen(words[2], RTLD_NOW);
    if (!library) return puts(dlerror()), 1;
    if (strcmp(way, "open") == 0) return look_up(library), report();
    if (strcmp(way, "missing") == 0) return find(library, "cuMemAllocAsync") != NULL;
    if (strcmp(way, "close") == 0)
        return after_close(dlopen(words[3], RTLD_NOW), library);
    if (strcmp(way, "close-namespace") == 0)
        return after_close(dlmopen(LM_ID_NEWLM, words[2], RTLD_NOW), library);
    if (strcmp(way, "turns") == 0) return in_turns(library, dlopen(words[3], RTLD_NOW));
    if (strcmp(way, "ask") == 0) return by_asking(library, atoi(words[3]));
    return 1;
}
