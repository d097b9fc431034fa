/* Which processes of the container use cards. Such a process has a slot in the region.
 *
 * A process is alive while it holds the lock on its slot's byte (process/byte_lock.h). Pids alone
 * prove nothing: the kernel uses them again, and they differ between namespaces. One case needs
 * them: a daemon that has closed all its descriptors has lost the lock. For processes in its pid
 * namespace it still counts as alive while its pid has the same start time and maps the region
 * (process/identity.h). A process that has called exec has neither the descriptor nor the mapping,
 * and the driver has freed its memory.
 */
#ifndef ISOLATION_SLOTS_H
#define ISOLATION_SLOTS_H

#include "region.h"

#define NO_SLOT (-1)

/* Takes a free slot for this process; NO_SLOT if there is none. */
int slot_claim(struct mapping *mapping);

/* Clears the slots of dead processes, and so gives back what they held. `own` is this process'
 * slot, or NO_SLOT. Two threads must not call it at the same time: they share an open file
 * description, and its locks do not keep them apart. */
void slots_reap(struct mapping *mapping, int own);

/* The pid of the slot's process as this process sees it; 0 if it cannot be seen from here, or is
 * dead. */
uint32_t slot_visible_pid(const struct mapping *mapping, int slot);

#endif
