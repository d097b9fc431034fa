/* What NVML tells programs: the container's share looks like the whole card, and only the processes
 * of the container are listed. */
#include <stdlib.h>
#include <string.h>

#include "../../interface/nvml.h"
#include "driver.h"

int nvmlDeviceGetUUID(device_t device, char *uuid, unsigned size);

/* The card of a handle; false, and NVML's error in `problem`, if the handle is not valid. */
static bool find_card(device_t device, int *card, int *problem) {
    char uuid[96];
    *problem = REAL(nvmlDeviceGetUUID)(device, uuid, sizeof uuid);
    if (*problem == NVML_OK) *card = limiter_card(uuid);
    return *problem == NVML_OK;
}

CALL(nvmlDeviceGetMemoryInfo, device_t device, struct memory_v1 *memory) {
    int card, problem, result = REAL(nvmlDeviceGetMemoryInfo)(device, memory);
    if (result != NVML_OK || !limiter_is_on()) return result;
    if (!find_card(device, &card, &problem)) return problem;
    uint64_t total = limiter_total(card), used = limiter_used(card);
    *memory = (struct memory_v1){total, total > used ? total - used : 0, used};
    return result;
}

CALL(nvmlDeviceGetMemoryInfo_v2, device_t device, struct memory_v2 *memory) {
    int card, problem, result = REAL(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    if (result != NVML_OK || !limiter_is_on()) return result;
    if (!find_card(device, &card, &problem)) return problem;
    uint64_t total = limiter_total(card), used = limiter_used(card);
    *memory = (struct memory_v2){memory->version, total, 0, total > used ? total - used : 0, used};
    return result;
}

/* Fills the caller's array, whose length is in `count`. As in NVML, if it is too short, nothing is
 * written and `count` becomes the length that is needed. */
static int list_processes(device_t device, unsigned *count, void *entries,
                void (*write)(void *entries, unsigned place, const struct user *user)) {
    int card, problem;
    if (!count || (*count && !entries)) return NVML_INVALID_ARGUMENT;
    if (!find_card(device, &card, &problem)) return problem;
    struct user *users = calloc(MAX_SLOTS, sizeof *users);
    if (!users) return NVML_MEMORY;
    unsigned room = *count, found = (unsigned)limiter_users(card, users, MAX_SLOTS);
    *count = found;
    for (unsigned i = 0; i < found && found <= room; i++) write(entries, i, &users[i]);
    free(users);
    return found > room ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}

static void write_v1(void *entries, unsigned place, const struct user *user) {
    ((struct process_v1 *)entries)[place] = (struct process_v1){user->pid, user->used};
}

static void write_v2(void *entries, unsigned place, const struct user *user) {
    ((struct process_v2 *)entries)[place] =
        (struct process_v2){user->pid, user->used, NO_INSTANCE, NO_INSTANCE};
}

static void write_detail(void *entries, unsigned place, const struct user *user) {
    ((struct process_detail *)entries)[place] =
        (struct process_detail){user->pid, user->used, NO_INSTANCE, NO_INSTANCE, 0};
}

static void write_table(void *entries, unsigned place, const struct user *user) {
    struct table_process *entry = (struct table_process *)entries + place;
    memset(entry, 0, sizeof *entry);
    write_v2(&entry->process, 0, user);
    strncpy(entry->name, user->name, NAME_SIZE - 1);
}

#define COMPUTE(function, writer)                                            \
    CALL(function, device_t device, unsigned *count, void *entries) {        \
        return limiter_is_on() ? list_processes(device, count, entries, writer) \
                               : REAL(function)(device, count, entries);     \
    }

/* Processes that use graphics or MPS are not counted, so that none are listed. */
#define NONE(function)                                                       \
    CALL(function, device_t device, unsigned *count, void *entries) {        \
        int card, problem;                                                   \
        if (!limiter_is_on()) return REAL(function)(device, count, entries); \
        if (!count) return NVML_INVALID_ARGUMENT;                                 \
        if (!find_card(device, &card, &problem)) return problem;             \
        *count = 0;                                                          \
        return NVML_OK;                                                      \
    }

COMPUTE(nvmlDeviceGetComputeRunningProcesses, write_v1)
COMPUTE(nvmlDeviceGetComputeRunningProcesses_v2, write_v2)
COMPUTE(nvmlDeviceGetComputeRunningProcesses_v3, write_v2)
NONE(nvmlDeviceGetGraphicsRunningProcesses)
NONE(nvmlDeviceGetGraphicsRunningProcesses_v2)
NONE(nvmlDeviceGetGraphicsRunningProcesses_v3)
NONE(nvmlDeviceGetMPSComputeRunningProcesses)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v3)

CALL(nvmlDeviceGetRunningProcessDetailList, device_t device, struct process_details *details) {
    if (!limiter_is_on()) return REAL(nvmlDeviceGetRunningProcessDetailList)(device, details);
    if (!details) return NVML_INVALID_ARGUMENT;
    if (details->version != (sizeof *details | 1u << 24)) return NVML_VERSION_MISMATCH;
    if (details->mode == 0)
        return list_processes(device, &details->count, details->entries, write_detail);
    details->count = 0;
    return NVML_OK;
}

/* nvidia-smi reads its process list through a private table (interface/nvml.h). It gets a copy of
 * the driver's table with three functions replaced. Which slots these are is known up to a certain
 * driver. Of a newer one, every function of the copy returns "not supported": a wrong one replaced
 * could end the program, and the right one left could list the processes of other pods. Other
 * tables are not given at all, for the same reason. */
enum { MAX_TABLE_SLOTS = 512 };

int nvmlSystemGetDriverVersion(char *version, unsigned size);

static int table_compute(device_t device, unsigned *count, void *entries) {
    return list_processes(device, count, entries, write_table);
}

static int table_none(device_t device, unsigned *count) {
    (void)device;
    if (count) *count = 0;
    return NVML_OK;
}

static int table_refuse(void) {
    return NVML_NOT_SUPPORTED;
}

static bool is_known_table(size_t slots) {
    char version[96] = "";
    if (slots <= TABLE_MPS || slots > MAX_TABLE_SLOTS) return false;
    if (REAL(nvmlSystemGetDriverVersion)(version, sizeof version) != NVML_OK) return false;
    int major = atoi(version);
    return major > 0 && major <= NEWEST_KNOWN_TABLE;
}

static const void *table_slot(size_t slot, const void *own, bool is_known) {
    if (!is_known) return (const void *)(uintptr_t)table_refuse;
    if (slot == TABLE_COMPUTE) return (const void *)(uintptr_t)table_compute;
    if (slot == TABLE_GRAPHICS || slot == TABLE_MPS) return (const void *)(uintptr_t)table_none;
    return own;
}

CALL(nvmlInternalGetExportTable, const void **table, const void *id) {
    static const unsigned char KNOWN_ID[16] = PRIVATE_TABLE_ID;
    static const void *copy[MAX_TABLE_SLOTS];
    if (!limiter_is_on()) return REAL(nvmlInternalGetExportTable)(table, id);
    if (!table || !id) return NVML_INVALID_ARGUMENT;
    if (memcmp(id, KNOWN_ID, sizeof KNOWN_ID) != 0) return NVML_NOT_FOUND;
    int result = REAL(nvmlInternalGetExportTable)(table, id);
    if (result != NVML_OK) return result;
    const void *const *own = *table;
    size_t size = (size_t)(uintptr_t)own[0], slots = size / sizeof *copy;
    bool is_known = is_known_table(slots);
    if (slots > MAX_TABLE_SLOTS) slots = MAX_TABLE_SLOTS;
    /* Another thread may read the copy. It gets the same values as before. */
    copy[0] = (const void *)(uintptr_t)(slots * sizeof *copy);
    for (size_t slot = 1; slot < slots; slot++) copy[slot] = table_slot(slot, own[slot], is_known);
    *table = copy;
    return result;
}
