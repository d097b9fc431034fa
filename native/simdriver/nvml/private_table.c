/* The one private table that nvidia-smi asks for. Slots were found by watching which it calls, with
 * what, and what it prints then; the others answer that they are not supported, which it accepts. */
#include <stddef.h>
#include <string.h>

#include "links.h"
#include "processes.h"

#define SLOTS 320
#define SLOT_PATH 23
#define SLOT_LOG 26
#define SLOT_COMPUTE 213
#define SLOT_GRAPHICS 214
#define SLOT_MPS 215

static const unsigned char TABLE_ID[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                           0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};

struct table_process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
    unsigned long long reserved;
    char name[4096];
};
_Static_assert(offsetof(struct table_process, name) == 32, "table_process");
_Static_assert(sizeof(struct table_process) == 4128, "table_process");

static int not_supported(void) {
    return NOT_SUPPORTED;
}

static int write_log(void) {
    return OK;
}

/* Between two bus ids: 2 a host bridge, 4 and more so many NVLinks. */
static int path_between(const char *first, const char *second, unsigned *path) {
    device_t one_device, other_device;
    if (!path) return INVALID_ARGUMENT;
    int result = nvmlDeviceGetHandleByPciBusId_v2(first, &one_device);
    if (result == OK) result = nvmlDeviceGetHandleByPciBusId_v2(second, &other_device);
    if (result != OK) return result;
    WITH_CARD(one, one_device);
    WITH_CARD(other, other_device);
    int links = count_links(one, other);
    *path = links ? 4 + (unsigned)links : 2;
    return OK;
}

static int compute_processes(device_t device, unsigned *count, struct table_process *entries) {
    struct card_process found[MAX_SLOTS];
    WITH_CARD(card, device);
    if (!count || (*count && !entries)) return INVALID_ARGUMENT;
    unsigned room = *count;
    *count = (unsigned)list_processes(card, found);
    if (*count > room) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++) {
        entries[i] = (struct table_process){.pid = found[i].pid, .used = found[i].used,
                                            .gpu_instance = ~0u, .compute_instance = ~0u};
        strncpy(entries[i].name, session_node()->state->slots[found[i].slot].name,
                sizeof session_node()->state->slots[0].name - 1);
    }
    return OK;
}

static int no_processes(device_t device, unsigned *count) {
    WITH_CARD(card, device);
    (void)card;
    if (count) *count = 0;
    return OK;
}

API int nvmlInternalGetExportTable(const void **table, const void *id);
API int nvmlInternalGetExportTable(const void **table, const void *id) {
    static const void *slots[SLOTS];
    if (!table || !id) return INVALID_ARGUMENT;
    if (memcmp(id, TABLE_ID, sizeof TABLE_ID) != 0) return NOT_FOUND;
    for (int i = 1; i < SLOTS; i++) slots[i] = (const void *)(uintptr_t)not_supported;
    slots[SLOT_PATH] = (const void *)(uintptr_t)path_between;
    slots[SLOT_LOG] = (const void *)(uintptr_t)write_log;
    slots[SLOT_COMPUTE] = (const void *)(uintptr_t)compute_processes;
    slots[SLOT_GRAPHICS] = slots[SLOT_MPS] = (const void *)(uintptr_t)no_processes;
    slots[0] = (const void *)sizeof slots;
    *table = slots;
    return OK;
}
