/* Who holds how much memory of which card, right even when processes die at any instruction.
 *
 * A process that uses CUDA has a slot, and in it, for each card, the bytes that it holds: the only
 * record there is. What a card has in use is the sum over the slots, so no second figure can drift
 * away from it.
 *
 * Alive is who holds the lock on his slot's byte: an open-file-description lock, which the kernel
 * drops when the last descriptor goes, and that is at the latest the process' death, however it
 * comes. It works without root, and between containers, whose pids mean nothing to one another.
 * A pid says nothing here: every container has a process 1. Robust mutexes are no way either: the
 * kernel tells their owners by thread id, and two namespaces have the same ones, so the death of
 * one thread could release what another holds. (A process that closes all its descriptors, as
 * daemons do, is recognised by those who share its pid namespace: by its pid and start time, and
 * because it has the state mapped.)
 *
 * To add to a card's use one holds the card's lock, also of this kind: no dead process can hold it,
 * and it protects a sum and one store, so nothing is half done when it is dropped.
 *
 * Whose pid is it? Readers in the same namespace take it from the slot. For others the process also
 * holds a POSIX lock on a second byte: F_GETLK translates its holder's pid for whoever asks.
 */
#ifndef SIMDRIVER_SLOTS_H
#define SIMDRIVER_SLOTS_H

#include <stdbool.h>

#include "node.h"

#define NO_SLOT (-1)

/* Takes a free slot for this process; NO_SLOT if all are taken. */
int slot_claim(struct node *node);

/* Gives back what dead processes held. `own` is this library's slot, or NO_SLOT. */
void slots_reap(struct node *node, int own);

/* The pid of the slot's process as this process sees it; 0 if it is out of sight. */
uint32_t slot_visible_pid(const struct node *node, int slot);

/* Bytes of a card in use, with those that are held outside of the simulation. */
uint64_t card_used(const struct sim_state *state, int card);

/* Adds to the slot's use of the card; false if the card has not so much left. Threads of one
 * process must not call it at the same time. */
bool use_add(struct node *node, int slot, int card, uint64_t bytes);
void use_subtract(struct node *node, int slot, int card, uint64_t bytes);

#endif
