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
 * the driver's table with three functions replaced. */
enum { MAX_TABLE_SLOTS = 512 };

static int table_compute(device_t device, unsigned *count, void *entries) {
    return list_processes(device, count, entries, write_table);
}

static int table_none(device_t device, unsigned *count) {
    (void)device;
    if (count) *count = 0;
    return NVML_OK;
}

CALL(nvmlInternalGetExportTable, const void **table, const void *id) {
    static const unsigned char KNOWN_ID[16] = PRIVATE_TABLE_ID;
    static const void *copy[MAX_TABLE_SLOTS];
    int result = REAL(nvmlInternalGetExportTable)(table, id);
    if (result != NVML_OK || !limiter_is_on() || memcmp(id, KNOWN_ID, sizeof KNOWN_ID) != 0)
        return result;
    size_t size = (size_t)(uintptr_t)((const void *const *)*table)[0];
    if (size > sizeof copy || size <= TABLE_MPS * sizeof *copy) return result;
    memcpy(copy, *table, size);
    copy[TABLE_COMPUTE] = (const void *)(uintptr_t)table_compute;
    copy[TABLE_GRAPHICS] = copy[TABLE_MPS] = (const void *)(uintptr_t)table_none;
    *table = copy;
    return result;
}
