/* The processes that hold a card, as far as this process can see them. */
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

#endif
