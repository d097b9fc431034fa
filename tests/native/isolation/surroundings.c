/* What stands around a program besides the limiter. Compiled as
 *   PROGRAM      an ordinary program: memory, threads, dlopen, also in a constructor
 *   nothing      a library to preload that wraps functions of the loader, as profilers do */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef PROGRAM

#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

static double (*cosine)(double);

__attribute__((constructor)) static void open_early(void) {
    void *library = dlopen("libm.so.6", RTLD_NOW);
    if (library) cosine = (double (*)(double))dlsym(library, "cos");
}

static void *work(void *text) {
    return strdup(text);
}

int main(int count, char **words, char **variables) {
    pthread_t thread;
    void *text = NULL;
    pid_t child;
    int status = 1;
    if (count > 1) return puts("child"), 0;
    char *again[] = {words[0], "child", NULL};
    if (posix_spawn(&child, words[0], NULL, NULL, again, variables)) return 1;
    waitpid(child, &status, 0);
    pthread_create(&thread, NULL, work, "thread");
    pthread_join(thread, &text);
    printf("%s %d %d %d\n", (char *)text, cosine ? (int)cosine(0) : -1, status,
           dlsym(RTLD_DEFAULT, "no such function") == NULL);
    free(text);
    return 0;
}

#else

void *dlopen(const char *path, int flags) {
    static void *(*real)(const char *, int);
    if (!real) real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return real(path, flags);
}

void *dlvsym(void *restrict handle, const char *restrict name, const char *restrict version) {
    static void *(*real)(void *, const char *, const char *);
    if (!real) real = (void *(*)(void *, const char *, const char *))dlsym(RTLD_NEXT, "dlvsym");
    return real(handle, name, version);
}

int dlclose(void *handle) {
    static int (*real)(void *);
    if (!real) real = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
    return real(handle);
}

void *malloc(size_t size) {
    static void *(*real)(size_t);
    if (!real) real = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    return real(size);
}

#endif
