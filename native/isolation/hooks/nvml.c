/* NVML shows the share as the whole card, and of its processes the container's own. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define NVML_OK 0
#define INVALID_ARGUMENT 2
#define INSUFFICIENT_SIZE 7
#define VERSION_MISMATCH 25
#define NOT_AVAILABLE 0xffffffffu

typedef struct handle *device_t;

struct memory_v1 {
    unsigned long long total, free, used;
};
struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct process_v1 {
    unsigned pid;
    unsigned long long used;
};
struct process_v2 {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};
struct process_detail {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
    unsigned long long protected;
};
struct process_details {
    unsigned version, mode, count;
    struct process_detail *entries;
};
struct table_process {
    struct process_v2 process;
    unsigned long long reserved;
    char name[4096];
};
_Static_assert(sizeof(struct table_process) == 4128, "table_process");
_Static_assert(sizeof(struct process_details) == 24, "process_details");

int nvmlDeviceGetUUID(device_t device, char *uuid, unsigned size);

/* The card behind a handle; false with NVML's reason if it is none. */
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

/* Writes the container's processes with `write`. As NVML does it, too small an array learns the
 * size. */
static int list(device_t device, unsigned *count, void *entries,
                void (*write)(void *entries, unsigned place, const struct user *user)) {
    int card, problem;
    if (!count || (*count && !entries)) return INVALID_ARGUMENT;
    if (!find_card(device, &card, &problem)) return problem;
    struct user *users = calloc(MAX_SLOTS, sizeof *users);
    if (!users) return 20; /* memory */
    unsigned room = *count, found = (unsigned)limiter_users(card, users, MAX_SLOTS);
    *count = found;
    for (unsigned i = 0; i < found && found <= room; i++) write(entries, i, &users[i]);
    free(users);
    return found > room ? INSUFFICIENT_SIZE : NVML_OK;
}

static void write_v1(void *entries, unsigned place, const struct user *user) {
    ((struct process_v1 *)entries)[place] = (struct process_v1){user->pid, user->used};
}

static void write_v2(void *entries, unsigned place, const struct user *user) {
    ((struct process_v2 *)entries)[place] =
        (struct process_v2){user->pid, user->used, NOT_AVAILABLE, NOT_AVAILABLE};
}

static void write_detail(void *entries, unsigned place, const struct user *user) {
    ((struct process_detail *)entries)[place] =
        (struct process_detail){user->pid, user->used, NOT_AVAILABLE, NOT_AVAILABLE, 0};
}

static void write_table(void *entries, unsigned place, const struct user *user) {
    struct table_process *entry = (struct table_process *)entries + place;
    memset(entry, 0, sizeof *entry);
    write_v2(&entry->process, 0, user);
    strncpy(entry->name, user->name, sizeof entry->name - 1);
}

#define COMPUTE(function, writer)                                            \
    CALL(function, device_t device, unsigned *count, void *entries) {        \
        return limiter_is_on() ? list(device, count, entries, writer)        \
                               : REAL(function)(device, count, entries);     \
    }

/* Of programs that draw, and of MPS: the container has none that is counted. */
#define NONE(function)                                                       \
    CALL(function, device_t device, unsigned *count, void *entries) {        \
        int card, problem;                                                   \
        if (!limiter_is_on()) return REAL(function)(device, count, entries); \
        if (!count) return INVALID_ARGUMENT;                                 \
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
    if (!details) return INVALID_ARGUMENT;
    if (details->version != (sizeof *details | 1u << 24)) return VERSION_MISMATCH;
    if (details->mode == 0) return list(device, &details->count, details->entries, write_detail);
    details->count = 0;
    return NVML_OK;
}

/* nvidia-smi asks for its process list through a private table: a copy of it, with three functions
 * replaced. Numbers of slots were found by watching what it calls. */
static const unsigned char TABLE_ID[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                           0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
enum { TABLE_COMPUTE = 213, TABLE_GRAPHICS, TABLE_MPS, TABLE_SLOTS = 512 };

static int table_compute(device_t device, unsigned *count, void *entries) {
    return list(device, count, entries, write_table);
}

static int table_none(device_t device, unsigned *count) {
    (void)device;
    if (count) *count = 0;
    return NVML_OK;
}

CALL(nvmlInternalGetExportTable, const void **table, const void *id) {
    static const void *copy[TABLE_SLOTS];
    int result = REAL(nvmlInternalGetExportTable)(table, id);
    if (result != NVML_OK || !limiter_is_on() || memcmp(id, TABLE_ID, sizeof TABLE_ID) != 0)
        return result;
    /* The first slot is the table's size in bytes. */
    size_t size = (size_t)(uintptr_t)((const void *const *)*table)[0];
    if (size > sizeof copy || size <= TABLE_MPS * sizeof *copy) return result;
    memcpy(copy, *table, size);
    copy[TABLE_COMPUTE] = (const void *)(uintptr_t)table_compute;
    copy[TABLE_GRAPHICS] = copy[TABLE_MPS] = (const void *)(uintptr_t)table_none;
    *table = copy;
    return result;
}
