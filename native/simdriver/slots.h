/* How much memory of each card each process holds, correct even when processes are killed at any
 * instruction.
 *
 * A process that uses CUDA has a slot in the state, and in it, for each card, the number of bytes
 * that it holds. There is no second record: the memory in use of a card is the sum over all slots,
 * so no total can differ from its parts after a crash.
 *
 * A process is alive while it holds the lock on its slot's byte (process/byte_lock.h). A daemon
 * that has closed all its descriptors has lost the lock; processes in the same pid namespace still
 * recognise it by pid, start time and mapping (process/identity.h). The slot of a dead process is
 * cleared by whoever looks next ("reap").
 *
 * To add to the use of a card, a process holds the lock of the card, also one of these locks.
 * Between taking and dropping it there are only a sum and one store, so a process that is killed
 * there leaves nothing half done, and the kernel drops the lock. To subtract, no lock is needed: it
 * can only make the sum smaller.
 *
 * Readers in the same pid namespace take a process' pid from its slot. For others the process also
 * holds a POSIX lock, which tells them its pid in their own namespace.
 */
#ifndef SIMDRIVER_SLOTS_H
#define SIMDRIVER_SLOTS_H

#include <stdbool.h>

#include "node.h"

#define NO_SLOT (-1)

/* Takes a free slot for this process; NO_SLOT if all are taken. */
int slot_claim(struct node *node);

/* Clears the slots of dead processes, and so gives back their memory. `own` is the slot that this
 * library claimed; NO_SLOT for libnvidia-ml, which claims none. */
void slots_reap(struct node *node, int own);

/* The pid of the slot's process as this process sees it; 0 if it cannot be seen from here. */
uint32_t slot_visible_pid(const struct node *node, int slot);

/* Bytes of a card in use, including those that the fault injector says are held by programs outside
 * of the simulation. */
uint64_t card_used(const struct sim_state *state, int card);

/* Adds to the slot's use of the card; false if the card has not that much memory left, or the
 * process' cgroup has a limit (limits.h), which managed memory does not count for. Threads of one
 * process must not call it at the same time: they share an open file description, and its locks do
 * not keep them apart. */
bool use_add(struct node *node, int slot, int card, uint64_t bytes, bool is_managed);
void use_subtract(struct node *node, int slot, int card, uint64_t bytes, bool is_managed);

#endif
