/* Modules and their functions. A module has a function of every name: what kernels do is not
 * simulated. */
#ifndef SIMDRIVER_CUDA_MODULES_H
#define SIMDRIVER_CUDA_MODULES_H

#include <stdbool.h>

#include "driver.h"

struct module;

struct function {
    struct module *module;
    struct function *next;
    uint64_t length_ns; /* 0: the node's kernel_ns */
    char *name;
};

/* Whether the handle is that of a function whose module is loaded. */
bool is_function(const struct function *function);

/* Whether the function can be launched in the context: it was loaded there, or with a library, which
 * belongs to no context. */
bool is_function_of(const struct function *function, const struct context *context);

/* Unloads the modules of the context. With the lock held, before the context's memory is freed. */
void modules_end(const struct context *context);

#endif
