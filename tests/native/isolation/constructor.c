/* A thread opens a library whose constructor calls the driver. The first thread makes its first
 * call of the driver meanwhile, and the constructor goes on when that thread waits. Compiled twice:
 * as the program, which is linked with the driver, and with LIBRARY as the library. */
#ifdef LIBRARY

void in_constructor(void);

__attribute__((constructor)) static void constructor(void) {
    in_constructor();
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int nvmlInit_v2(void);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory);

static atomic_int is_in_constructor, is_calling;

/* The state of a thread is the letter behind its name, which is in brackets. */
static int first_thread_sleeps(void) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[length] = 0;
    char *state = strrchr(text, ')');
    return state && state[2] == 'S';
}

void in_constructor(void) {
    void *context;
    is_in_constructor = 1;
    while (!is_calling || !first_thread_sleeps()) usleep(1000);
    printf("constructor %d\n", cuDevicePrimaryCtxRetain(&context, 0));
}

static void *open_library(void *path) {
    if (!dlopen(path, RTLD_NOW)) puts(dlerror());
    return NULL;
}

/* The limiter has read its files afterwards, but has looked for no function of CUDA. */
static int start_limiter(void) {
    void *device;
    unsigned long long memory[3];
    return nvmlInit_v2() || nvmlDeviceGetHandleByIndex_v2(0, &device) ||
           nvmlDeviceGetMemoryInfo(device, memory);
}

int main(int count, char **words) {
    pthread_t thread;
    void *context;
    if (count < 2 || start_limiter() || cuInit(0)) return 1;
    pthread_create(&thread, NULL, open_library, words[1]);
    while (!is_in_constructor) usleep(1000);
    is_calling = 1;
    int result = cuDevicePrimaryCtxRetain(&context, 0);
    pthread_join(thread, NULL);
    printf("first thread %d\n", result);
    return 0;
}

#endif
