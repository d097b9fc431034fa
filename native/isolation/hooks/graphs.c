/* A node that allocates is refused if it alone is too large. What a launch reserved is counted
 * right after it, and if that is over the limit, then nothing more is given, not even a launch,
 * until it is trimmed: so the limit can be passed by one launch, and no further. */
#include "graphs.h"

#include <pthread.h>

#include "charges.h"
#include "share.h"

#define MAX_DEVICES 64
#define RESERVED_NOW 2 /* attribute */
#define NODE_ALLOCATES 10

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t held[MAX_DEVICES];
static _Atomic bool is_possible;

int cuDeviceGraphMemTrim(int device);

void graphs_may_allocate(void) {
    if (!atomic_load_explicit(&is_possible, memory_order_relaxed)) atomic_store(&is_possible, true);
}

void graphs_after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
    for (int i = 0; i < MAX_DEVICES; i++) held[i] = 0;
}

static void settle(int device) {
    uint64_t reserved;
    if (device >= MAX_DEVICES) return;
    pthread_mutex_lock(&mutex);
    if (REAL(cuDeviceGetGraphMemAttribute)(device, RESERVED_NOW, &reserved) == OK) {
        reserved = (reserved + UNIT - 1) / UNIT * UNIT;
        int card = card_of(device);
        if (reserved > held[device]) limiter_take_anyway(card, reserved - held[device]);
        else limiter_give(card, held[device] - reserved);
        held[device] = reserved;
    }
    pthread_mutex_unlock(&mutex);
}

void graphs_trim(int card) {
    for (int device = 0; device < MAX_DEVICES && atomic_load(&is_possible); device++) {
        if (!held[device] || card_of(device) != card) continue;
        REAL(cuDeviceGraphMemTrim)(device);
        settle(device);
    }
}

CALL(cuDeviceGraphMemTrim, int device) {
    int result = REAL(cuDeviceGraphMemTrim)(device);
    if (result == OK && limiter_is_on() && atomic_load(&is_possible)) settle(device);
    return result;
}

static bool fits(const struct alloc_node *node) {
    if (!limiter_is_on() || !node || node->properties.location.type != ON_DEVICE) return true;
    int card = card_of(node->properties.location.id);
    if (!has_room(card, node->size)) return false;
    limiter_give(card, node->size);
    graphs_may_allocate();
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

static bool is_over(int card) {
    return !limiter_take(card, 1) || (limiter_give(card, 1), false);
}

#define LAUNCH(function, is_per_thread)                                                         \
    do {                                                                                        \
        int device;                                                                             \
        struct launch launch;                                                                   \
        if (!limiter_is_on() || !current_device(&device)) return REAL(function)(graph, stream); \
        bool is_counted = atomic_load(&is_possible);                                            \
        if (is_counted && is_over(card_of(device))) {                                           \
            graphs_trim(card_of(device));                                                       \
            if (is_over(card_of(device))) return OUT_OF_MEMORY;                                 \
        }                                                                                       \
        share_begin(&launch, device, graph, stream, is_per_thread);                             \
        int result = REAL(function)(graph, stream);                                             \
        share_end(&launch);                                                                     \
        if (is_counted) settle(device);                                                         \
        return result;                                                                          \
    } while (0)

CALL(cuGraphLaunch, graph_exec_t graph, stream_t stream) {
    LAUNCH(cuGraphLaunch, false);
}

CALL(cuGraphLaunch_ptsz, graph_exec_t graph, stream_t stream) {
    LAUNCH(cuGraphLaunch_ptsz, true);
}
