#include "processes.h"

#include <time.h>

#include "../engine.h"
#include "../slots.h"

int list_processes(const struct card *card, struct card_process *processes) {
    struct node *node = session_node();
    struct sim_state *state = node->state;
    int index = card_index(card), count = 0;
    slots_reap(node, NO_SLOT);
    int seen = (int)atomic_load(&state->slots_seen);
    for (int slot = 0; slot < seen && slot < MAX_SLOTS; slot++) {
        uint64_t used = atomic_load(&state->used[index][slot]);
        if (!used && !(atomic_load(&state->slots[slot].contexts) >> index & 1)) continue;
        /* Without a pid there is nothing to show: it is in a container out of sight. */
        uint32_t pid = slot_visible_pid(node, slot);
        if (pid) processes[count++] = (struct card_process){pid, slot, used};
    }
    return count;
}

/* Fills entries of either layout. As NVML does it, too small an array learns the size. */
static int fill(device_t device, unsigned *count, void *entries, int is_first_layout) {
    struct card_process found[MAX_SLOTS];
    WITH_CARD(card, device);
    if (!count || (*count && !entries)) return INVALID_ARGUMENT;
    unsigned room = *count;
    *count = (unsigned)list_processes(card, found);
    if (*count > room) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++) {
        struct process_v1 *first = (struct process_v1 *)entries + i;
        struct process_v2 *second = (struct process_v2 *)entries + i;
        if (is_first_layout) *first = (struct process_v1){found[i].pid, found[i].used};
        else *second = (struct process_v2){found[i].pid, found[i].used, ~0u, ~0u};
    }
    return OK;
}

API int nvmlDeviceGetComputeRunningProcesses(device_t device, unsigned *count,
                                             struct process_v1 *entries);
API int nvmlDeviceGetComputeRunningProcesses(device_t device, unsigned *count,
                                             struct process_v1 *entries) {
    return fill(device, count, entries, 1);
}

API int nvmlDeviceGetComputeRunningProcesses_v2(device_t device, unsigned *count,
                                                struct process_v2 *entries);
API int nvmlDeviceGetComputeRunningProcesses_v2(device_t device, unsigned *count,
                                                struct process_v2 *entries) {
    return fill(device, count, entries, 0);
}
ALSO(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses_v2);

/* No program draws, and there is no MPS. */
API int nvmlDeviceGetGraphicsRunningProcesses(device_t device, unsigned *count, void *entries);
API int nvmlDeviceGetGraphicsRunningProcesses(device_t device, unsigned *count, void *entries) {
    WITH_CARD(card, device);
    (void)card;
    (void)entries;
    if (!count) return INVALID_ARGUMENT;
    *count = 0;
    return OK;
}
ALSO(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses);
ALSO(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses);
ALSO(nvmlDeviceGetMPSComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses);
ALSO(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses);
ALSO(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses);

API int nvmlDeviceGetProcessUtilization(device_t device, struct process_sample *samples,
                                        unsigned *count, unsigned long long since_us);
API int nvmlDeviceGetProcessUtilization(device_t device, struct process_sample *samples,
                                        unsigned *count, unsigned long long since_us) {
    struct card_process found[MAX_SLOTS];
    WITH_CARD(card, device);
    if (!count) return INVALID_ARGUMENT;
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    uint64_t now_us = (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
    unsigned room = *count;
    *count = since_us >= now_us ? 0 : (unsigned)list_processes(card, found);
    if (!*count) return NOT_FOUND;
    if (!samples || room < *count) return INSUFFICIENT_SIZE;
    const struct sim_state *state = session_node()->state;
    for (unsigned i = 0; i < *count; i++) {
        unsigned busy = busy_percent(state->slots[found[i].slot].busy[card_index(card)]);
        samples[i] = (struct process_sample){found[i].pid, now_us, busy, busy / 2, 0, 0};
    }
    return OK;
}
