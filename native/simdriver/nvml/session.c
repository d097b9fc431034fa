#define _GNU_SOURCE
#include "session.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../process/at_fork.h"

struct handle {
    int card;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct node node = {.fd = -1};
static _Atomic int users; /* calls of nvmlInit without their nvmlShutdown */
static struct handle handles[MAX_CARDS];

/* The mutex is held during fork, so that the child does not inherit it locked by a thread that the
 * child does not have. */
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

__attribute__((constructor)) static void register_fork_handlers(void) {
    at_fork(before_fork, after_fork, in_child);
}

struct node *session_node(void) {
    return atomic_load(&users) ? &node : NULL;
}

static int open_node(void) {
    switch (node_open(&node)) {
    case NODE_FOUND:
        break;
    case NODE_REFUSED:
        return NVML_LIB_RM_VERSION_MISMATCH;
    case NODE_MISSING:
    case NODE_HIDDEN:
        return NVML_DRIVER_NOT_LOADED;
    }
    for (int i = 0; i < node.visible_count; i++) handles[i].card = node.visible[i];
    return NVML_OK;
}

struct sim_state *gate_state(void) {
    if (atomic_load(&users)) return node.state;
    pthread_mutex_lock(&mutex);
    bool is_found = atomic_load(&users) || open_node() == NVML_OK;
    pthread_mutex_unlock(&mutex);
    return is_found ? node.state : NULL;
}

CALL(nvmlInitWithFlags, unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&mutex);
    int result = atomic_load(&users) ? NVML_OK : open_node();
    if (result == NVML_OK) atomic_fetch_add(&users, 1);
    pthread_mutex_unlock(&mutex);
    return result;
}

CALL(nvmlInit_v2, void) {
    return nvmlInitWithFlags(0);
}
ALSO(nvmlInit, nvmlInit_v2);

CALL(nvmlShutdown, void) {
    pthread_mutex_lock(&mutex);
    int result = atomic_load(&users) ? NVML_OK : NVML_UNINITIALIZED;
    if (result == NVML_OK && atomic_fetch_sub(&users, 1) == 1) events_end();
    pthread_mutex_unlock(&mutex);
    return result;
}

int find_card(device_t device, struct card **card) {
    if (!session_node()) return NVML_UNINITIALIZED;
    int index = visible_index(device);
    if (index < 0) return NVML_INVALID_ARGUMENT;
    *card = &node.state->cards[handles[index].card];
    return atomic_load(&(*card)->fault.is_lost) ? NVML_GPU_IS_LOST : NVML_OK;
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
    if (!target) return NVML_INVALID_ARGUMENT;
    if (strlen(text) >= size) return NVML_INSUFFICIENT_SIZE;
    strcpy(target, text);
    return NVML_OK;
}
