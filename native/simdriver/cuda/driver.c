#define _GNU_SOURCE
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../process/at_fork.h"
#include "../slots.h"
#include "../visible.h"
#include "threads.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct driver driver = {.node.fd = -1, .slot = NO_SLOT};
static _Atomic bool is_ready, is_forked;

void driver_lock(void) {
    pthread_mutex_lock(&mutex);
}

void driver_unlock(void) {
    pthread_mutex_unlock(&mutex);
}

/* A context does not survive a fork: the child has none, and cannot create one. The parent keeps
 * its memory and its slot. The child closes its copy of the descriptor that holds the slot's lock:
 * or the slot would look alive after the parent's death.
 *
 * The mutex was locked before the fork, by the thread that is the child's only one: no other thread
 * was changing the tables then, and the child may unlock it. */
static void in_child(void) {
    pthread_mutex_unlock(&mutex);
    /* Also before cuInit: cuDriverGetVersion opens the node, too. With a shared description, parent
     * and child would both succeed in locking the same slot. */
    node_after_fork(&driver.node);
    if (!atomic_load(&is_ready)) return;
    driver.slot = NO_SLOT;
    atomic_store(&is_ready, false);
    atomic_store(&is_forked, true);
}

__attribute__((constructor)) static void register_fork_handlers(void) {
    at_fork(driver_lock, driver_unlock, in_child);
}

struct driver *driver_now(void) {
    return atomic_load(&is_ready) ? &driver : NULL;
}

struct sim_state *gate_state(void) {
    if (atomic_load(&is_ready)) return driver.node.state;
    driver_lock();
    bool is_found = node_open(&driver.node) == NODE_FOUND;
    driver_unlock();
    return is_found ? driver.node.state : NULL;
}

static int start(void) {
    switch (node_open(&driver.node)) {
    case NODE_FOUND:
        break;
    case NODE_REFUSED:
        return SYSTEM_DRIVER_MISMATCH;
    case NODE_MISSING:
    case NODE_HIDDEN:
        return NO_DEVICE;
    }
    struct node *node = &driver.node;
    memcpy(driver.cards, node->visible, sizeof driver.cards);
    driver.card_count = visible_to_cuda(node->state, getenv("CUDA_VISIBLE_DEVICES"),
                                        node->visible_count, driver.cards);
    if (!driver.card_count) return NO_DEVICE;
    driver.slot = slot_claim(node);
    return driver.slot == NO_SLOT ? OUT_OF_MEMORY : OK;
}

CALL(cuInit, unsigned flags) {
    if (flags) return INVALID_VALUE;
    if (atomic_load(&is_forked)) return NOT_INITIALIZED;
    driver_lock();
    int result = atomic_load(&is_ready) ? OK : start();
    if (result == OK) atomic_store(&is_ready, true);
    driver_unlock();
    return result;
}

/* May be called before cuInit. */
CALL(cuDriverGetVersion, int *version) {
    if (!version) return INVALID_VALUE;
    driver_lock();
    bool is_found = atomic_load(&is_ready) || node_open(&driver.node) == NODE_FOUND;
    if (is_found) *version = (int)driver.node.state->cuda_version;
    driver_unlock();
    return is_found ? OK : NO_DEVICE;
}

struct card *card_at(int device) {
    return &driver.node.state->cards[driver.cards[device]];
}

int device_health(int device) {
    const struct card_fault *fault = &card_at(device)->fault;
    if (atomic_load(&fault->is_lost)) return DEVICE_UNAVAILABLE;
    return atomic_load(&fault->is_poisoned) ? ECC_UNCORRECTABLE : OK;
}

int current_context(struct context **context) {
    if (!driver_now()) return NOT_INITIALIZED;
    int problem = thread_context(context);
    return problem ? problem : device_health((*context)->device);
}

bool take_memory(int device, uint64_t bytes) {
    return use_add(&driver.node, driver.slot, driver.cards[device], bytes, false);
}

void give_back_memory(int device, uint64_t bytes) {
    use_subtract(&driver.node, driver.slot, driver.cards[device], bytes, false);
}

bool take_managed(int device, uint64_t bytes) {
    return use_add(&driver.node, driver.slot, driver.cards[device], bytes, true);
}

void give_back_managed(int device, uint64_t bytes) {
    use_subtract(&driver.node, driver.slot, driver.cards[device], bytes, true);
}
