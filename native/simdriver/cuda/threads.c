#define _GNU_SOURCE
#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver.h"

#define DEPTH 16

struct thread {
    int id; /* 0: the entry is free */
    int depth;
    struct level {
        struct context *context;
        uint64_t context_id; /* a later context may get the place of one that was destroyed */
    } stack[DEPTH];
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

/* With the mutex held. */
static struct level *top_of(struct thread *thread) {
    return thread && thread->depth ? &thread->stack[thread->depth - 1] : NULL;
}

int thread_context(struct context **context) {
    int result = INVALID_CONTEXT;
    pthread_mutex_lock(&mutex);
    const struct level *top = top_of(own(false));
    if (top) {
        *context = top->context;
        bool is_alive = top->context->is_alive && top->context->id == top->context_id;
        result = is_alive ? OK : CONTEXT_IS_DESTROYED;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

struct context *thread_top(void) {
    pthread_mutex_lock(&mutex);
    const struct level *top = top_of(own(false));
    struct context *context = top ? top->context : NULL;
    pthread_mutex_unlock(&mutex);
    return context;
}

bool thread_push(struct context *context) {
    pthread_mutex_lock(&mutex);
    struct thread *thread = own(true);
    bool is_room = thread && thread->depth < DEPTH;
    if (is_room) thread->stack[thread->depth++] = (struct level){context, context->id};
    pthread_mutex_unlock(&mutex);
    return is_room;
}

struct context *thread_pop(void) {
    pthread_mutex_lock(&mutex);
    struct thread *thread = own(false);
    const struct level *top = top_of(thread);
    struct context *context = top ? top->context : NULL;
    if (top) thread->depth--;
    pthread_mutex_unlock(&mutex);
    return context;
}

bool thread_replace_top(struct context *context) {
    thread_pop();
    return !context || thread_push(context);
}
