#include "processes.h"

#include <time.h>

#include "../../process/clock.h"
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
        /* NVML shows pids only: a process in a container that cannot be seen is left out. */
        uint32_t pid = slot_visible_pid(node, slot);
        if (pid) processes[count++] = (struct card_process){pid, slot, used};
    }
    return count;
}

int fill_processes(device_t device, unsigned *count, void *entries, write_process_t *write) {
    struct card_process found[MAX_SLOTS];
    WITH_CARD(card, device);
    if (!count || (*count && !entries)) return NVML_INVALID_ARGUMENT;
    unsigned room = *count;
    *count = (unsigned)list_processes(card, found);
    if (*count > room) return NVML_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++) write(entries, i, &found[i]);
    return NVML_OK;
}

static void write_v1(void *entries, unsigned place, const struct card_process *process) {
    ((struct process_v1 *)entries)[place] = (struct process_v1){process->pid, process->used};
}

static void write_v2(void *entries, unsigned place, const struct card_process *process) {
    ((struct process_v2 *)entries)[place] =
        (struct process_v2){process->pid, process->used, NO_INSTANCE, NO_INSTANCE};
}

CALL(nvmlDeviceGetComputeRunningProcesses, device_t device, unsigned *count,
     struct process_v1 *entries) {
    return fill_processes(device, count, entries, write_v1);
}

CALL(nvmlDeviceGetComputeRunningProcesses_v2, device_t device, unsigned *count,
     struct process_v2 *entries) {
    return fill_processes(device, count, entries, write_v2);
}
ALSO(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses_v2);

/* Graphics and MPS are not simulated: there are no such processes. */
CALL(nvmlDeviceGetGraphicsRunningProcesses, device_t device, unsigned *count, void *entries) {
    WITH_CARD(card, device);
    (void)card;
    (void)entries;
    if (!count) return NVML_INVALID_ARGUMENT;
    *count = 0;
    return NVML_OK;
}
ALSO(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses);
ALSO(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses);
ALSO(nvmlDeviceGetMPSComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses);
ALSO(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses);
ALSO(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses);

CALL(nvmlDeviceGetProcessUtilization, device_t device, struct process_sample *samples,
     unsigned *count, unsigned long long since_us) {
    struct card_process found[MAX_SLOTS];
    WITH_CARD(card, device);
    if (!count) return NVML_INVALID_ARGUMENT;
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    uint64_t now_us = (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
    unsigned room = *count;
    *count = since_us >= now_us ? 0 : (unsigned)list_processes(card, found);
    if (!*count) return NVML_NOT_FOUND;
    if (!samples || room < *count) return NVML_INSUFFICIENT_SIZE;
    const struct sim_state *state = session_node()->state;
    uint64_t ago_ns = (now_us - since_us) * 1000, now = now_ns();
    uint64_t since_ns = ago_ns < now ? now - ago_ns : 0;
    for (unsigned i = 0; i < *count; i++) {
        const _Atomic uint64_t *spans = state->slots[found[i].slot].busy[card_index(card)];
        unsigned busy = busy_percent(spans);
        /* The percentage is that of the last second. Whoever asks less often must not miss work. */
        if (!busy && busy_since(spans, since_ns)) busy = 1;
        samples[i] = (struct process_sample){found[i].pid, now_us, busy, busy / 2, 0, 0};
    }
    return NVML_OK;
}
