/* The processes that use a card and whose pid this process can see. */
#ifndef SIMDRIVER_NVML_PROCESSES_H
#define SIMDRIVER_NVML_PROCESSES_H

#include "session.h"

struct card_process {
    uint32_t pid;
    int slot;
    uint64_t used;
};

/* Returns how many; at most MAX_SLOTS. */
int list_processes(const struct card *card, struct card_process *processes);

/* Writes the process into an array of one of NVML's layouts. */
typedef void write_process_t(void *entries, unsigned place, const struct card_process *process);

/* Fills the caller's array, whose length is in `count`. If it is too short, nothing is written,
 * `count` becomes the length that is needed, and the result is NVML_INSUFFICIENT_SIZE. */
int fill_processes(device_t device, unsigned *count, void *entries, write_process_t *write);

#endif
