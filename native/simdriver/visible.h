/* Which cards a process sees, according to two variables of its environment. */
#ifndef SIMDRIVER_VISIBLE_H
#define SIMDRIVER_VISIBLE_H

#include "layout.h"

/* NVIDIA_VISIBLE_DEVICES: the cards that NVIDIA's container runtime would have given to the
 * container. "all" or no variable, "none", or a list of indexes and UUIDs. The cards keep the
 * node's order. Returns their number. */
int visible_in_container(const struct sim_state *state, const char *list, int count, int *cards);

/* CUDA_VISIBLE_DEVICES: a list of indexes, UUIDs and beginnings of UUIDs, in the order in which the
 * program is to see the cards. An item that is not known ends the list; a card that is named twice
 * hides all cards. `cards` holds the `count` cards of the container and is replaced by the result.
 * Returns their number. */
int visible_to_cuda(const struct sim_state *state, const char *list, int count, int *cards);

#endif
