/* The interface of the CUDA driver (libcuda.so.1), as far as the limiter and the simulated driver
 * use it: numbers and layouts that compiled programs depend on.
 *
 * A subset of our own, so that the build needs no CUDA toolkit. Structs may end before the real
 * ones do, where nothing behind is read: they are only used through pointers that programs pass in,
 * never allocated or copied back.
 */
#ifndef INTERFACE_CUDA_H
#define INTERFACE_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "exports.h"

/* CUresult */
enum {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    DEVICE_UNAVAILABLE = 46,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    ECC_UNCORRECTABLE = 214,
    UNSUPPORTED_LIMIT = 215,
    FILE_NOT_FOUND = 301,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    PRIMARY_CONTEXT_ACTIVE = 708,
    CONTEXT_IS_DESTROYED = 709,
    HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOST_MEMORY_NOT_REGISTERED = 713,
    LAUNCH_FAILED = 719,
    NOT_SUPPORTED = 801,
    SYSTEM_DRIVER_MISMATCH = 803,
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

struct uuid {
    unsigned char bytes[16];
};

enum { LOCATION_NONE, LOCATION_DEVICE, LOCATION_HOST }; /* CUmemLocationType */
enum { PINNED = 1, MANAGED_POOL };                      /* CUmemAllocationType */

struct location {
    int type, id;
};

/* CUmemAllocationProp, of cuMemCreate */
struct physical_properties {
    int type, handle_types;
    struct location location;
};

/* CUmemPoolProps, of cuMemPoolCreate */
struct pool_properties {
    int type, handle_types;
    struct location location;
};

/* CUmemPool_attribute */
enum {
    POOL_RELEASE_THRESHOLD = 4,
    POOL_RESERVED_NOW,
    POOL_RESERVED_HIGHEST,
    POOL_USED_NOW,
    POOL_USED_HIGHEST,
};

/* CUDA_ARRAY_DESCRIPTOR */
struct array_shape {
    size_t width, height;
    int format;
    unsigned channels;
};

/* CUDA_ARRAY3D_DESCRIPTOR */
struct array_3d_shape {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};

/* CUDA_MEM_ALLOC_NODE_PARAMS */
struct alloc_node {
    struct pool_properties properties;
    char more_properties[72];
    const void *access;
    size_t access_count, size;
    pointer_t pointer;
};

enum { NODE_KERNEL = 0, NODE_ALLOCATES = 10 }; /* CUgraphNodeType */

/* CUgraphNodeParams: a union, of which `alloc` is valid when `type` is NODE_ALLOCATES. The
 * parameters of a kernel begin at the same place, with its function. */
struct node_parameters {
    int type, reserved[3];
    struct alloc_node alloc;
};

/* CUgraphMem_attribute */
enum { GRAPH_USED_NOW, GRAPH_USED_HIGHEST, GRAPH_RESERVED_NOW, GRAPH_RESERVED_HIGHEST };

/* CUDA_EXTERNAL_MEMORY_HANDLE_DESC */
struct external_memory {
    int type;
    void *handle[2];
    unsigned long long size;
    unsigned flags, reserved[16];
};

/* CUlaunchConfig */
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
