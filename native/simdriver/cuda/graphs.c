/* Graphs of kernels and allocations. Edges are ignored: nodes run in the order in which they were
 * added.
 *
 * As in the real driver, the memory of a graph is taken from the card at its first launch and stays
 * reserved after the graph was destroyed, until cuDeviceGraphMemTrim.
 */
#include <string.h>

#include "../handles.h"
#include "contexts.h"
#include "modules.h"
#include "streams.h"

#define MAX_NODES 64
#define INSTANTIATE_FLAGS 15u

struct step {
    struct function *function; /* of a kernel; NULL: the node allocates */
    int device;
    size_t size;
    bool has_memory; /* in an executable graph: it was taken */
};

struct graph {
    int count;
    struct step nodes[MAX_NODES];
};

static struct handles graphs = HANDLES_OF(struct graph);
static struct handles executables = HANDLES_OF(struct graph);

/* By device: memory of graphs that can be launched, and memory that is kept for later ones. */
static uint64_t used[MAX_CARDS], kept[MAX_CARDS];

CALL_OF(cuLaunchKernel, struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
        unsigned by, unsigned bz, unsigned shared, struct stream *stream, void **parameters,
        void **extra);

CALL(cuGraphCreate, struct graph **made, unsigned flags) {
    WITH_DRIVER(driver);
    if (!made || flags) return INVALID_VALUE;
    *made = handle_new(&graphs);
    return *made ? OK : OUT_OF_MEMORY;
}

CALL(cuGraphDestroy, struct graph *graph) {
    WITH_DRIVER(driver);
    return handle_end(&graphs, graph) ? OK : INVALID_VALUE;
}

/* Whether the nodes on which another one depends are nodes of the graph. */
static bool are_nodes(const struct graph *graph, struct step *const *nodes, size_t count) {
    if (count && !nodes) return false;
    for (size_t i = 0; i < count; i++)
        if (nodes[i] < graph->nodes || nodes[i] >= graph->nodes + graph->count) return false;
    return true;
}

static int add(struct step **made, struct graph *graph, struct step *const *before, size_t count,
               struct step node) {
    if (!made || !handle_is_live(&graphs, graph) || !are_nodes(graph, before, count))
        return INVALID_VALUE;
    driver_lock();
    bool is_room = graph->count < MAX_NODES;
    if (is_room) {
        *made = &graph->nodes[graph->count++];
        **made = node;
    }
    driver_unlock();
    return is_room ? OK : OUT_OF_MEMORY;
}

CALL(cuGraphAddKernelNode, struct step **made, struct graph *graph,
     struct step *const *before, size_t count, void *const *parameters) {
    WITH_DRIVER(driver);
    if (!parameters) return INVALID_VALUE;
    if (!is_function(*parameters)) return INVALID_HANDLE;
    return add(made, graph, before, count, (struct step){.function = *parameters});
}
ALSO(cuGraphAddKernelNode_v2, cuGraphAddKernelNode);

/* The address is unique, and nothing is mapped there: simulated kernels do not access memory. */
CALL(cuGraphAddMemAllocNode, struct step **made, struct graph *graph,
     struct step *const *before, size_t count, struct alloc_node *parameters) {
    static _Atomic pointer_t next = 1ull << 46;
    WITH_DRIVER(driver);
    if (!parameters || !parameters->size || parameters->properties.location.type != LOCATION_DEVICE)
        return INVALID_VALUE;
    int device = parameters->properties.location.id;
    if (device < 0 || device >= driver->card_count) return INVALID_DEVICE;
    size_t size = (parameters->size + 511) / 512 * 512;
    int result = add(made, graph, before, count, (struct step){.device = device, .size = size});
    if (result == OK) parameters->pointer = atomic_fetch_add(&next, size);
    return result;
}

CALL(cuGraphAddNode_v2, struct step **made, struct graph *graph, struct step *const *before,
     const void *edges, size_t count, struct node_parameters *parameters) {
    (void)edges;
    if (!parameters) return INVALID_VALUE;
    if (parameters->type == NODE_ALLOCATES)
        return cuGraphAddMemAllocNode(made, graph, before, count, &parameters->alloc);
    if (parameters->type != NODE_KERNEL) return NOT_SUPPORTED;
    return cuGraphAddKernelNode(made, graph, before, count, (void *const *)&parameters->alloc);
}
ALSO(cuGraphAddNode_v3, cuGraphAddNode_v2);

CALL(cuGraphAddNode, struct step **made, struct graph *graph, struct step *const *before,
     size_t count, struct node_parameters *parameters) {
    return cuGraphAddNode_v2(made, graph, before, NULL, count, parameters);
}

CALL(cuGraphInstantiateWithFlags, struct graph **made, const struct graph *graph,
     unsigned long long flags) {
    WITH_DRIVER(driver);
    if (!made || flags > INSTANTIATE_FLAGS || !handle_is_live(&graphs, graph)) return INVALID_VALUE;
    *made = handle_new(&executables);
    if (!*made) return OUT_OF_MEMORY;
    memcpy(*made, graph, sizeof *graph);
    return OK;
}

/* With the lock held. */
static bool reserve_node(struct step *step) {
    if (step->has_memory) return true;
    uint64_t reused = step->size < kept[step->device] ? step->size : kept[step->device];
    if (step->size > reused && !take_memory(step->device, step->size - reused)) return false;
    kept[step->device] -= reused;
    used[step->device] += step->size;
    step->has_memory = true;
    return true;
}

static void give_up(struct step *step) {
    if (!step->has_memory) return;
    used[step->device] -= step->size;
    kept[step->device] += step->size;
    step->has_memory = false;
}

static void give_up_all(struct graph *graph) {
    for (int i = 0; i < graph->count; i++) give_up(&graph->nodes[i]);
}

/* Takes the memory of all nodes, or of none. */
static bool reserve_all(struct graph *graph) {
    int done = 0;
    driver_lock();
    while (done < graph->count && reserve_node(&graph->nodes[done])) done++;
    bool has_all = done == graph->count;
    if (!has_all) give_up_all(graph);
    driver_unlock();
    return has_all;
}

CALL(cuGraphLaunch, struct graph *graph, struct stream *stream) {
    WITH_CONTEXT(context);
    if (!handle_is_live(&executables, graph)) return INVALID_VALUE;
    if (!is_stream_of(stream, context)) return INVALID_HANDLE;
    if (!reserve_all(graph)) return OUT_OF_MEMORY;
    int result = OK;
    for (int i = 0; i < graph->count && result == OK; i++) {
        struct function *function = graph->nodes[i].function;
        if (function)
            result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    }
    return result;
}
ALSO(cuGraphLaunch_ptsz, cuGraphLaunch);

CALL(cuGraphExecDestroy, struct graph *graph) {
    WITH_DRIVER(driver);
    driver_lock();
    bool found = handle_is_live(&executables, graph);
    if (found) {
        give_up_all(graph);
        handle_end(&executables, graph);
    }
    driver_unlock();
    return found ? OK : INVALID_VALUE;
}

static void trim(int device) {
    give_back_memory(device, kept[device]);
    kept[device] = 0;
}

void graphs_end(int device) {
    struct graph *graph;
    for (size_t cursor = 0; (graph = handle_next(&executables, &cursor));)
        for (int i = 0; i < graph->count; i++)
            if (graph->nodes[i].device == device) give_up(&graph->nodes[i]);
    trim(device);
}

CALL(cuDeviceGraphMemTrim, int device) {
    WITH_DEVICE(device);
    driver_lock();
    trim(device);
    driver_unlock();
    return OK;
}

CALL(cuDeviceGetGraphMemAttribute, int device, int attribute, uint64_t *value) {
    WITH_DEVICE(device);
    if (!value || attribute < GRAPH_USED_NOW || attribute > GRAPH_RESERVED_HIGHEST)
        return INVALID_VALUE;
    driver_lock();
    *value = used[device];
    if (attribute == GRAPH_RESERVED_NOW || attribute == GRAPH_RESERVED_HIGHEST)
        *value += kept[device];
    driver_unlock();
    return OK;
}
