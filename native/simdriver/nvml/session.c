#define _GNU_SOURCE
#include "session.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct handle {
    int card;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct node node = {.fd = -1};
static _Atomic int users;
static struct handle handles[MAX_CARDS];

extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
extern void *__dso_handle;

static void before_fork(void) {
    pthread_mutex_lock(&mutex);
}

static void after_fork(void) {
    pthread_mutex_unlock(&mutex);
}

static void in_child(void) {
    pthread_mutex_unlock(&mutex);
    node_after_fork(&node);
}

/* pthread_atfork itself is an old symbol that new C libraries keep only for old programs. */
__attribute__((constructor)) static void watch_forks(void) {
    __register_atfork(before_fork, after_fork, in_child, __dso_handle);
}

struct node *session_node(void) {
    return atomic_load(&users) ? &node : NULL;
}

static int open_node(void) {
    switch (node_open(&node)) {
    case NODE_FOUND:
        break;
    case NODE_REFUSED:
        return LIB_RM_VERSION_MISMATCH;
    case NODE_MISSING:
    case NODE_HIDDEN:
        return DRIVER_NOT_LOADED;
    }
    for (int i = 0; i < node.visible_count; i++) handles[i].card = node.visible[i];
    return OK;
}

API int nvmlInitWithFlags(unsigned flags);
API int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&mutex);
    int result = atomic_load(&users) ? OK : open_node();
    if (result == OK) atomic_fetch_add(&users, 1);
    pthread_mutex_unlock(&mutex);
    return result;
}

API int nvmlInit_v2(void);
API int nvmlInit_v2(void) {
    return nvmlInitWithFlags(0);
}
ALSO(nvmlInit, nvmlInit_v2);

API int nvmlShutdown(void);
API int nvmlShutdown(void) {
    pthread_mutex_lock(&mutex);
    int result = atomic_load(&users) ? OK : UNINITIALIZED;
    if (result == OK) atomic_fetch_sub(&users, 1);
    pthread_mutex_unlock(&mutex);
    return result;
}

int find_card(device_t device, struct card **card) {
    if (!session_node()) return UNINITIALIZED;
    int index = visible_index(device);
    if (index < 0) return INVALID_ARGUMENT;
    *card = &node.state->cards[handles[index].card];
    return atomic_load(&(*card)->fault.is_lost) ? GPU_IS_LOST : OK;
}

int card_index(const struct card *card) {
    return (int)(card - node.state->cards);
}

int visible_index(device_t device) {
    for (int i = 0; i < node.visible_count; i++)
        if (device == &handles[i]) return i;
    return -1;
}

device_t device_at(int index) {
    return index >= 0 && index < node.visible_count ? &handles[index] : NULL;
}

device_t device_of(const struct card *card) {
    for (int i = 0; i < node.visible_count; i++)
        if (handles[i].card == card_index(card)) return &handles[i];
    return NULL;
}

int copy_text(char *target, unsigned size, const char *text) {
    if (!target) return INVALID_ARGUMENT;
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(target, text);
    return OK;
}
