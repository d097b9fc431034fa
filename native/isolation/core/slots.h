/* Which processes of the container use cards. A process that does has a slot in the region.
 *
 * Alive is who holds the lock on his slot's byte: an open-file-description lock, which the kernel
 * drops with the last descriptor, at the latest when the process dies, however it comes. Pids say
 * little: they are used again, and differ between namespaces. One case needs them: a program that
 * closes all its descriptors, as daemons do. It counts as alive for those in its pid namespace
 * while its pid has the same start time and still maps the region. (A process that has called exec
 * has neither the descriptor nor the map, and its memory is free.)
 */
#ifndef ISOLATION_SLOTS_H
#define ISOLATION_SLOTS_H

#include "region.h"

#define NO_SLOT (-1)

/* Takes a free slot for this process; NO_SLOT if there is none. */
int slot_claim(struct mapping *mapping);

/* Gives back what dead processes held. `own` is this process' slot, or NO_SLOT. Two threads must
 * not call it at the same time: they share a descriptor, and so its locks. */
void slots_reap(struct mapping *mapping, int own);

/* The pid of the slot's process as this process sees it; 0 if it is out of sight or dead. */
uint32_t slot_visible_pid(const struct mapping *mapping, int slot);

#endif
