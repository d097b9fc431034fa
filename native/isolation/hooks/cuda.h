/* The interface of the CUDA driver as far as it is looked at: numbers and layouts that programs are
 * built on. */
#ifndef ISOLATION_CUDA_H
#define ISOLATION_CUDA_H

#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

enum {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_SUPPORTED = 801,
};

typedef unsigned long long pointer_t; /* CUdeviceptr */
typedef struct context *context_t;
typedef struct stream *stream_t;
typedef struct pool *memory_pool_t;
typedef struct array *array_t;
typedef struct event *event_t;
typedef struct function *function_t;
typedef struct graph *graph_t;
typedef struct graph_exec *graph_exec_t;
typedef struct graph_node *graph_node_t;
typedef struct green_context *green_context_t;
typedef struct external *external_t;
typedef unsigned long long physical_t; /* CUmemGenericAllocationHandle */

enum { ON_DEVICE = 1 };

struct location {
    int type, id;
};

/* Of cuMemCreate; of the rest only the address counts. */
struct physical_properties {
    int type, handle_types;
    struct location location;
};

/* Of cuMemPoolCreate; the same. */
struct pool_properties {
    int type, handle_types;
    struct location location;
};

struct array_shape {
    size_t width, height;
    int format;
    unsigned channels;
};

struct array_3d_shape {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};

struct alloc_node {
    struct pool_properties properties;
    char more_properties[72];
    const void *access;
    size_t access_count, size;
    pointer_t pointer;
};

struct node_parameters {
    int type, reserved[3];
    struct alloc_node alloc;
};

struct external_memory {
    int type;
    void *handle[2];
    unsigned long long size;
    unsigned flags, reserved[16];
};

struct launch_config {
    unsigned grid[3], block[3], shared;
    stream_t stream;
    void *attributes;
    unsigned attribute_count;
};

_Static_assert(sizeof(struct array_shape) == 24, "array_shape");
_Static_assert(sizeof(struct array_3d_shape) == 40, "array_3d_shape");
_Static_assert(offsetof(struct alloc_node, size) == 104, "alloc_node");
_Static_assert(offsetof(struct node_parameters, alloc) == 16, "node_parameters");
_Static_assert(offsetof(struct external_memory, size) == 24, "external_memory");
_Static_assert(sizeof(struct launch_config) == 56, "launch_config");

#endif
