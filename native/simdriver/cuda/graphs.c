/* Graphs of kernels and allocations. Edges do not matter: nodes run as they were added.
 *
 * What a graph allocates is its card's when it is launched for the first time, and stays reserved
 * when the graph is gone, until it is trimmed: as the real driver does it.
 */
#include <stdlib.h>
#include <string.h>

#include "contexts.h"
#include "streams.h"

#define MAX_NODES 64
#define ON_A_DEVICE 1
#define NODE_KERNEL 0
#define NODE_ALLOCATES 10

enum attribute { USED_NOW, USED_MOST, RESERVED_NOW, RESERVED_MOST };

struct step {
    void *function; /* NULL: it allocates */
    int device;
    size_t size;
};

struct graph {
    int count;
    struct step nodes[MAX_NODES];
    bool has_memory; /* of a graph that can be launched */
};

struct alloc_parameters {
    int type, handles, location_type, location_id;
    char more[88];
    size_t size;
    pointer_t pointer;
};
_Static_assert(offsetof(struct alloc_parameters, size) == 104, "alloc_parameters");

struct node_parameters {
    int type, reserved[3];
    struct alloc_parameters alloc; /* or of a kernel: the function first */
};
_Static_assert(offsetof(struct node_parameters, alloc) == 16, "node_parameters");

static uint64_t used[MAX_CARDS], kept[MAX_CARDS];

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, struct stream *stream, void **parameters,
                   void **extra);

CALL(cuGraphCreate, struct graph **made, unsigned flags) {
    WITH_DRIVER(driver);
    if (!made || flags) return INVALID_VALUE;
    *made = calloc(1, sizeof **made);
    return *made ? OK : OUT_OF_MEMORY;
}

CALL(cuGraphDestroy, struct graph *graph) {
    WITH_DRIVER(driver);
    if (!graph) return INVALID_HANDLE;
    free(graph);
    return OK;
}

static int add(struct step **made, struct graph *graph, struct step node) {
    if (!made || !graph) return INVALID_VALUE;
    if (graph->count == MAX_NODES) return OUT_OF_MEMORY;
    *made = &graph->nodes[graph->count++];
    **made = node;
    return OK;
}

CALL(cuGraphAddKernelNode, struct step **made, struct graph *graph, const void *before,
     size_t count, void *const *parameters) {
    WITH_DRIVER(driver);
    (void)before;
    (void)count;
    if (!parameters || !*parameters) return INVALID_VALUE;
    return add(made, graph, (struct step){.function = *parameters});
}
ALSO(cuGraphAddKernelNode_v2, cuGraphAddKernelNode);

/* The address counts, and is never used: kernels do nothing. */
CALL(cuGraphAddMemAllocNode, struct step **made, struct graph *graph, const void *before,
     size_t count, struct alloc_parameters *parameters) {
    static pointer_t next = 1ull << 46;
    WITH_DRIVER(driver);
    (void)before;
    (void)count;
    if (!parameters || !parameters->size || parameters->location_type != ON_A_DEVICE)
        return INVALID_VALUE;
    if (parameters->location_id < 0 || parameters->location_id >= driver->card_count)
        return INVALID_DEVICE;
    size_t size = (parameters->size + 511) / 512 * 512;
    int result = add(made, graph, (struct step){.device = parameters->location_id, .size = size});
    if (result != OK) return result;
    parameters->pointer = next;
    next += size;
    return OK;
}

CALL(cuGraphAddNode_v2, struct step **made, struct graph *graph, const void *before,
     const void *edges, size_t count, struct node_parameters *parameters) {
    (void)edges;
    if (!parameters) return INVALID_VALUE;
    if (parameters->type == NODE_ALLOCATES)
        return cuGraphAddMemAllocNode(made, graph, before, count, &parameters->alloc);
    if (parameters->type != NODE_KERNEL) return NOT_SUPPORTED;
    return cuGraphAddKernelNode(made, graph, before, count, (void *const *)&parameters->alloc);
}
ALSO(cuGraphAddNode_v3, cuGraphAddNode_v2);

CALL(cuGraphAddNode, struct step **made, struct graph *graph, const void *before, size_t count,
     struct node_parameters *parameters) {
    return cuGraphAddNode_v2(made, graph, before, NULL, count, parameters);
}

CALL(cuGraphInstantiateWithFlags, struct graph **made, const struct graph *graph,
     unsigned long long flags) {
    WITH_DRIVER(driver);
    (void)flags;
    if (!made || !graph) return INVALID_VALUE;
    *made = malloc(sizeof **made);
    if (!*made) return OUT_OF_MEMORY;
    memcpy(*made, graph, sizeof *graph);
    return OK;
}

/* With the lock held. */
static bool reserve(const struct step *step) {
    uint64_t reused = step->size < kept[step->device] ? step->size : kept[step->device];
    if (step->size > reused && !take_memory(step->device, step->size - reused)) return false;
    kept[step->device] -= reused;
    used[step->device] += step->size;
    return true;
}

static void give_up(const struct graph *graph, int count) {
    for (int i = 0; i < count; i++) {
        used[graph->nodes[i].device] -= graph->nodes[i].size;
        kept[graph->nodes[i].device] += graph->nodes[i].size;
    }
}

static bool has_memory(struct graph *graph) {
    int done = 0;
    driver_lock();
    while (!graph->has_memory && done < graph->count && reserve(&graph->nodes[done])) done++;
    if (!graph->has_memory && done < graph->count) give_up(graph, done);
    else graph->has_memory = true;
    driver_unlock();
    return graph->has_memory;
}

CALL(cuGraphLaunch, struct graph *graph, struct stream *stream) {
    WITH_CONTEXT(context);
    (void)context;
    if (!graph) return INVALID_HANDLE;
    if (!has_memory(graph)) return OUT_OF_MEMORY;
    int result = OK;
    for (int i = 0; i < graph->count && result == OK; i++) {
        void *function = graph->nodes[i].function;
        if (function)
            result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    }
    return result;
}
ALSO(cuGraphLaunch_ptsz, cuGraphLaunch);

CALL(cuGraphExecDestroy, struct graph *graph) {
    WITH_DRIVER(driver);
    if (!graph) return INVALID_HANDLE;
    driver_lock();
    if (graph->has_memory) give_up(graph, graph->count);
    driver_unlock();
    free(graph);
    return OK;
}

CALL(cuDeviceGraphMemTrim, int device) {
    WITH_DEVICE(device);
    driver_lock();
    if (kept[device]) give_back_memory(device, kept[device]);
    kept[device] = 0;
    driver_unlock();
    return OK;
}

CALL(cuDeviceGetGraphMemAttribute, int device, enum attribute attribute, uint64_t *value) {
    WITH_DEVICE(device);
    if (!value) return INVALID_VALUE;
    driver_lock();
    *value = used[device];
    if (attribute == RESERVED_NOW || attribute == RESERVED_MOST) *value += kept[device];
    driver_unlock();
    return OK;
}
