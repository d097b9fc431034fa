/* Finds the cards that a command is about, and their processes. */
#ifndef SIMDRIVER_SMI_CARDS_H
#define SIMDRIVER_SMI_CARDS_H

#include "library.h"

#define MAX_SHOWN 64
#define MAX_PROCESSES 512
#define MIB (1ull << 20)

/* Finds all cards, or those of a list of indexes, UUIDs and bus ids. Returns how many. -1: an error
 * was printed to stdout, and *code is the exit code of the program. */
int cards_find(const char *list, device_t *cards, int *code);

int processes_find(device_t card, struct process_v2 *processes);
void process_name(unsigned pid, char *name, unsigned size);

const char *name_of_compute_mode(device_t card);

#endif
