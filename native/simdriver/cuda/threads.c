#define _GNU_SOURCE
#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH 16

struct thread {
    int id; /* 0: the entry is free */
    int depth;
    struct context *stack[DEPTH];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct thread *table;
static size_t capacity; /* a power of two */
static size_t taken;

static struct thread *place_of(struct thread *in, size_t size, int id) {
    for (size_t i = (size_t)id * 2654435761u;; i++) {
        struct thread *thread = &in[i & (size - 1)];
        if (thread->id == id || !thread->id) return thread;
    }
}

static bool has_ended(int id) {
    return syscall(SYS_tgkill, getpid(), id, 0) < 0 && errno == ESRCH;
}

/* Copies the table without the threads that have ended, into a larger one if most have not. */
static bool make_room(void) {
    size_t alive = 0;
    for (size_t i = 0; i < capacity; i++) alive += table[i].id && !has_ended(table[i].id);
    size_t size = capacity ? capacity : 64;
    while (size < alive * 4) size *= 2;
    struct thread *new = calloc(size, sizeof *new);
    if (!new) return false;
    taken = 0;
    for (size_t i = 0; i < capacity; i++) {
        if (!table[i].id || has_ended(table[i].id)) continue;
        *place_of(new, size, table[i].id) = table[i];
        taken++;
    }
    free(table);
    table = new;
    capacity = size;
    return true;
}

/* The calling thread's entry; NULL if there is none and none is needed. With the mutex held. */
static struct thread *own(bool is_needed) {
    int id = (int)syscall(SYS_gettid);
    if (!capacity && !is_needed) return NULL;
    if (is_needed && taken * 2 >= capacity && !make_room()) return NULL;
    struct thread *thread = place_of(table, capacity, id);
    if (!thread->id) {
        if (!is_needed) return NULL;
        thread->id = id;
        taken++;
    }
    return thread;
}

struct context *thread_context(void) {
    pthread_mutex_lock(&mutex);
    struct thread *thread = own(false);
    struct context *context = thread && thread->depth ? thread->stack[thread->depth - 1] : NULL;
    pthread_mutex_unlock(&mutex);
    return context;
}

bool thread_push(struct context *context) {
    pthread_mutex_lock(&mutex);
    struct thread *thread = own(true);
    bool is_room = thread && thread->depth < DEPTH;
    if (is_room) thread->stack[thread->depth++] = context;
    pthread_mutex_unlock(&mutex);
    return is_room;
}

struct context *thread_pop(void) {
    pthread_mutex_lock(&mutex);
    struct thread *thread = own(false);
    struct context *context = thread && thread->depth ? thread->stack[--thread->depth] : NULL;
    pthread_mutex_unlock(&mutex);
    return context;
}

bool thread_replace_top(struct context *context) {
    thread_pop();
    return !context || thread_push(context);
}

void threads_forget(const struct context *context) {
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < capacity; i++) {
        struct thread *thread = &table[i];
        int kept = 0;
        for (int level = 0; level < thread->depth; level++)
            if (thread->stack[level] != context) thread->stack[kept++] = thread->stack[level];
        thread->depth = kept;
    }
    pthread_mutex_unlock(&mutex);
}
