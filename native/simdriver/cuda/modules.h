/* Modules and the functions in them. Any name is found: what a kernel does is not simulated. */
#ifndef SIMDRIVER_CUDA_MODULES_H
#define SIMDRIVER_CUDA_MODULES_H

#include "cuda.h"

struct module;

struct function {
    struct module *module;
    struct function *next;
    uint64_t length_ns; /* 0: as long as the node's kernels last */
    char name[];
};

#endif
