/* A node that allocates is refused if it alone does not fit. What a launch reserved is counted
 * right after the launch. If that has passed the limit, nothing more is given, not even another
 * launch, until the use is within the limit again. So a process can pass the limit by one launch,
 * not more. All other launches succeed, also when the share is full, or was made smaller than what
 * is in use: most graphs allocate nothing. */
#include "graphs.h"

#include <pthread.h>

#include "charges.h"
#include "pools.h"
#include "share.h"

#define MAX_DEVICES 64

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t charged[MAX_DEVICES]; /* bytes that are charged for graphs, by device */
static _Atomic bool has_passed[MAX_DEVICES]; /* by device: what graphs reserved was too much */
/* By card, a bit: graphs may hold memory of it. Programs without graphs that allocate pay nothing. */
static _Atomic uint32_t cards;

int cuDeviceGraphMemTrim(int device);

_Static_assert(MAX_CARDS <= 32, "graphs: cards");

void graphs_may_allocate(int card) {
    /* Read first: all threads share the cache line until one writes. */
    uint32_t bit = card < 0 ? 0 : 1u << card;
    if (bit & ~atomic_load_explicit(&cards, memory_order_relaxed)) atomic_fetch_or(&cards, bit);
}

/* The next device from this one on whose memory graphs may hold; -1: there is none. */
static int next_device(int device) {
    uint32_t with_memory = atomic_load(&cards);
    for (; with_memory && device < devices() && device < MAX_DEVICES; device++) {
        int card = card_of(device);
        if (card >= 0 && with_memory >> card & 1) return device;
    }
    return -1;
}

void graphs_after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
    for (int i = 0; i < MAX_DEVICES; i++) {
        charged[i] = 0;
        atomic_store(&has_passed[i], false);
    }
}

/* Makes the charge equal to what the driver has reserved. */
static void settle(int device) {
    uint64_t reserved;
    pthread_mutex_lock(&mutex);
    if (REAL(cuDeviceGetGraphMemAttribute)(device, GRAPH_RESERVED_NOW, &reserved) == OK) {
        reserved = counted_bytes(reserved);
        int card = card_of(device);
        if (reserved <= charged[device]) {
            limiter_give(card, charged[device] - reserved);
        } else if (!limiter_take(card, reserved - charged[device])) {
            limiter_take_anyway(card, reserved - charged[device]);
            atomic_store(&has_passed[device], true);
        }
        charged[device] = reserved;
    }
    pthread_mutex_unlock(&mutex);
}

void graphs_settle(void) {
    for (int device = -1; (device = next_device(device + 1)) >= 0;) settle(device);
}

void graphs_trim(int card) {
    for (int device = -1; (device = next_device(device + 1)) >= 0;) {
        if (card_of(device) != card) continue;
        int mode = capture_relax();
        REAL(cuDeviceGraphMemTrim)(device);
        capture_restore(mode);
        settle(device);
    }
}

CALL(cuDeviceGraphMemTrim, int device) {
    int result = REAL(cuDeviceGraphMemTrim)(device);
    if (result == OK && limiter_is_on()) graphs_settle();
    return result;
}

/* Reserves the memory and gives it back: the driver takes it at the launch, not now. */
static bool fits(const struct alloc_node *node) {
    if (!limiter_is_on() || !node || node->properties.location.type != LOCATION_DEVICE) return true;
    int card = card_of(node->properties.location.id);
    if (!reserve(card, node->size)) return false;
    limiter_give(card, node->size);
    graphs_may_allocate(card);
    return true;
}

static bool node_fits(const struct node_parameters *parameters) {
    return !parameters || parameters->type != NODE_ALLOCATES || fits(&parameters->alloc);
}

CALL(cuGraphAddMemAllocNode, graph_node_t *node, graph_t graph, const graph_node_t *before,
     size_t count, struct alloc_node *parameters) {
    if (!fits(parameters)) return OUT_OF_MEMORY;
    return REAL(cuGraphAddMemAllocNode)(node, graph, before, count, parameters);
}

CALL(cuGraphAddNode, graph_node_t *node, graph_t graph, const graph_node_t *before, size_t count,
     struct node_parameters *parameters) {
    if (!node_fits(parameters)) return OUT_OF_MEMORY;
    return REAL(cuGraphAddNode)(node, graph, before, count, parameters);
}

CALL(cuGraphAddNode_v2, graph_node_t *node, graph_t graph, const graph_node_t *before,
     const void *edges, size_t count, struct node_parameters *parameters) {
    if (!node_fits(parameters)) return OUT_OF_MEMORY;
    return REAL(cuGraphAddNode_v2)(node, graph, before, edges, count, parameters);
}

CALL(cuGraphAddNode_v3, graph_node_t *node, graph_t graph, const graph_node_t *before,
     const void *edges, size_t count, struct node_parameters *parameters) {
    if (!node_fits(parameters)) return OUT_OF_MEMORY;
    return REAL(cuGraphAddNode_v3)(node, graph, before, edges, count, parameters);
}

static bool is_within_limit(int card) {
    if (!limiter_is_over(card)) return true;
    pools_trim(card);
    graphs_trim(card);
    return !limiter_is_over(card);
}

/* A graph may hold memory of other devices than the one on which it is launched. */
static bool may_launch(void) {
    for (int device = -1; (device = next_device(device + 1)) >= 0;) {
        if (!atomic_load(&has_passed[device])) continue;
        if (!is_within_limit(card_of(device))) return false;
        atomic_store(&has_passed[device], false);
    }
    return true;
}

#define LAUNCH(function, is_per_thread)                                                  \
    do {                                                                                 \
        int device;                                                                      \
        struct launch launch = {.is_measured = false};                                   \
        if (!limiter_is_on()) return REAL(function)(graph, stream);                      \
        if (!may_launch()) return OUT_OF_MEMORY;                                         \
        if (current_device(&device))                                                     \
            share_begin(&launch, device, graph, stream, is_per_thread);                  \
        int result = REAL(function)(graph, stream);                                      \
        share_end(&launch);                                                              \
        graphs_settle();                                                                 \
        return result;                                                                   \
    } while (0)

CALL(cuGraphLaunch, graph_exec_t graph, stream_t stream) {
    LAUNCH(cuGraphLaunch, false);
}

CALL(cuGraphLaunch_ptsz, graph_exec_t graph, stream_t stream) {
    LAUNCH(cuGraphLaunch_ptsz, true);
}
