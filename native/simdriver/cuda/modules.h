/* Modules and their functions. A module has a function of every name: what kernels do is not
 * simulated. */
#ifndef SIMDRIVER_CUDA_MODULES_H
#define SIMDRIVER_CUDA_MODULES_H

#include "../../interface/cuda.h"

struct module;

struct function {
    struct module *module;
    struct function *next;
    uint64_t length_ns; /* 0: the node's kernel_ns */
    char name[];
};

#endif
