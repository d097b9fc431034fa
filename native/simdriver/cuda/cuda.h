/* The interface of the CUDA driver as far as it is simulated: numbers and layouts that clients are
 * built on. */
#ifndef SIMDRIVER_CUDA_H
#define SIMDRIVER_CUDA_H

#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

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
    FILE_NOT_FOUND = 301,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    PRIMARY_CONTEXT_ACTIVE = 708,
    CONTEXT_IS_DESTROYED = 709,
    LAUNCH_FAILED = 719,
    NOT_SUPPORTED = 801,
    SYSTEM_DRIVER_MISMATCH = 803,
};

typedef unsigned long long pointer_t; /* CUdeviceptr */
typedef struct context *context_t;
typedef struct stream *stream_t;

struct uuid {
    unsigned char bytes[16];
};

/* The same under another of its names: most functions also exist for a per-thread default stream,
 * which this driver does not tell from the common one. */
#define ALSO(alias_name, function)            \
    extern __typeof__(function) alias_name    \
        __attribute__((alias(#function), visibility("default")))

/* A function that clients call, declared and begun. */
#define CALL(function, ...)         \
    API int function(__VA_ARGS__);  \
    API int function(__VA_ARGS__)

#endif
