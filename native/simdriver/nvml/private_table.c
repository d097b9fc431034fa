/* The private table that nvidia-smi reads its process list from; see interface/nvml.h. Slots that
 * are not written here return "not supported", which nvidia-smi accepts. */
#include <stdlib.h>
#include <string.h>

#include "links.h"
#include "processes.h"

#define SLOTS 320

static int not_supported(void) {
    return NVML_NOT_SUPPORTED;
}

static int write_log(void) {
    return NVML_OK;
}

/* The connection between the cards at two bus ids. 2 is a PCIe host bridge; 4 + n are n NVLinks. */
static int path_between(const char *first, const char *second, unsigned *path) {
    device_t one_device, other_device;
    if (!path) return NVML_INVALID_ARGUMENT;
    int result = nvmlDeviceGetHandleByPciBusId_v2(first, &one_device);
    if (result == NVML_OK) result = nvmlDeviceGetHandleByPciBusId_v2(second, &other_device);
    if (result != NVML_OK) return result;
    WITH_CARD(one, one_device);
    WITH_CARD(other, other_device);
    int links = count_links(one, other);
    *path = links ? 4 + (unsigned)links : 2;
    return NVML_OK;
}

static void write_entry(void *entries, unsigned place, const struct card_process *process) {
    struct table_process *entry = (struct table_process *)entries + place;
    const struct slot *slot = &session_node()->state->slots[process->slot];
    memset(entry, 0, sizeof *entry);
    entry->process = (struct process_v2){process->pid, process->used, NO_INSTANCE, NO_INSTANCE};
    strncpy(entry->name, slot->name, sizeof slot->name - 1);
}

static int compute_processes(device_t device, unsigned *count, void *entries) {
    return fill_processes(device, count, entries, write_entry);
}

static int no_processes(device_t device, unsigned *count) {
    WITH_CARD(card, device);
    (void)card;
    if (count) *count = 0;
    return NVML_OK;
}

/* Of newer drivers it is not known which slot does what: a wrong one could be worse than none. */
static bool is_known_driver(void) {
    const struct sim_state *state = gate_state();
    return !state || atoi(state->driver_version) <= NEWEST_KNOWN_TABLE;
}

CALL(nvmlInternalGetExportTable, const void **table, const void *id) {
    static const unsigned char KNOWN_ID[16] = PRIVATE_TABLE_ID;
    static const void *slots[SLOTS];
    if (!table || !id) return NVML_INVALID_ARGUMENT;
    if (memcmp(id, KNOWN_ID, sizeof KNOWN_ID) != 0 || !is_known_driver()) return NVML_NOT_FOUND;
    for (int i = 1; i < SLOTS; i++) slots[i] = (const void *)(uintptr_t)not_supported;
    slots[TABLE_PATH] = (const void *)(uintptr_t)path_between;
    slots[TABLE_LOG] = (const void *)(uintptr_t)write_log;
    slots[TABLE_COMPUTE] = (const void *)(uintptr_t)compute_processes;
    slots[TABLE_GRAPHICS] = slots[TABLE_MPS] = (const void *)(uintptr_t)no_processes;
    slots[0] = (const void *)sizeof slots;
    *table = slots;
    return NVML_OK;
}
