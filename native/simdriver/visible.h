/* Which cards a process sees, from the lists in its environment. */
#ifndef SIMDRIVER_VISIBLE_H
#define SIMDRIVER_VISIBLE_H

#include "layout.h"

/* NVIDIA_VISIBLE_DEVICES: what a container runtime would have given: "all" (or no variable),
 * "none", or indexes and UUIDs. The cards keep the node's order. Returns how many. */
int visible_in_container(const struct sim_state *state, const char *list, int count, int *cards);

/* CUDA_VISIBLE_DEVICES: indexes and (beginnings of) UUIDs, in the order of the list; what is not
 * known ends it, a card that is named twice hides all. `cards` holds the `count` that the container
 * sees, and is replaced. */
int visible_to_cuda(const struct sim_state *state, const char *list, int count, int *cards);

#endif
