/* Every piece of memory that the program got from this driver.
 *
 * Memory of a card is memory of the process that is mapped but not filled: copies carry real data,
 * and what was never written costs nothing. A card's memory is charged in pieces of 512 bytes.
 */
#ifndef SIMDRIVER_CUDA_ALLOCATIONS_H
#define SIMDRIVER_CUDA_ALLOCATIONS_H

#include "driver.h"

enum kind { ON_DEVICE, MANAGED, ON_HOST, REGISTERED, RESERVED };

struct pool;

struct allocation {
    pointer_t base; /* 0: a free entry */
    size_t size;    /* as asked for */
    size_t charged; /* of the card's memory */
    size_t mapped;
    int device;
    enum kind kind;
    const struct context *context;
    struct pool *pool;
};

/* Each takes the driver's lock itself. */
int allocate(const struct context *context, int device, enum kind kind, size_t size,
             struct pool *pool, pointer_t *pointer);
int release(pointer_t pointer, enum kind kind);
int remember(const struct allocation *allocation); /* memory that is the caller's own */
int forget(pointer_t base, enum kind kind, struct allocation *forgotten);

/* The allocation around an address, copied; false if there is none. */
bool find_allocation(pointer_t pointer, struct allocation *found);

/* Is all of this memory that the driver gave out? */
bool is_ours(pointer_t pointer, size_t size);

/* With the lock held: everything that was made in the context. */
void allocations_drop(const struct context *context);

#endif
