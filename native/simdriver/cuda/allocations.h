/* The table of all memory that the program got from this driver.
 *
 * Simulated memory of a card is memory of the process, mapped without being filled: copies move
 * real data, and pages that were never written take no memory of the machine. The use of a card is
 * counted in granules of 512 bytes, as the limiter does.
 */
#ifndef SIMDRIVER_CUDA_ALLOCATIONS_H
#define SIMDRIVER_CUDA_ALLOCATIONS_H

#include "driver.h"

enum kind {
    ON_DEVICE,
    INTERNAL, /* of arrays and modules: the program cannot free it by its address */
    MANAGED,
    ON_HOST,
    REGISTERED, /* host memory of the program */
    RESERVED,   /* addresses without memory */
};

struct pool;

struct allocation {
    pointer_t base; /* 0: the entry is free */
    size_t size;    /* as the program asked for it */
    size_t charged; /* bytes of the card's memory that it counts for */
    size_t mapped;  /* bytes of address space; 0: not mapped by the driver */
    int device;
    enum kind kind;
    const struct context *context;
    struct pool *pool;
};

/* These functions take the driver's lock themselves. */
int allocate(const struct context *context, int device, enum kind kind, size_t size,
             struct pool *pool, pointer_t *pointer);
/* Memory of a pool is free at the time `free_ns`, other memory at once. */
int release(pointer_t pointer, enum kind kind, uint64_t free_ns);
int release_locked(pointer_t pointer, enum kind kind, uint64_t free_ns); /* with the lock held */
int remember(const struct allocation *allocation); /* memory that `allocate` did not make */
int forget(pointer_t base, enum kind kind, struct allocation *forgotten);

/* Copies the allocation that contains the address; false if there is none. */
bool find_allocation(pointer_t pointer, struct allocation *found);

/* Whether all of this memory belongs to one allocation. */
bool is_ours(pointer_t pointer, size_t size);

/* Frees all memory that was allocated in the context. With the lock held. */
void allocations_drop(const struct context *context);

#endif
