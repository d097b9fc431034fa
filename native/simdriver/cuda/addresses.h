/* Addresses of this process at which simulated memory of cards is mapped.
 *
 * Addresses that became free last are given out first. Programs then meet the reuse of addresses as
 * soon as they can with the real driver. With the driver's lock held.
 */
#ifndef SIMDRIVER_CUDA_ADDRESSES_H
#define SIMDRIVER_CUDA_ADDRESSES_H

#include <stddef.h>

/* Addresses at which nothing can be read or written yet; NULL: there are none. */
void *addresses_take(size_t size, size_t alignment);

/* Gives them back, and whatever is mapped there. */
void addresses_give(void *start, size_t size);

#endif
