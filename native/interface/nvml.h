/* The interface of NVML (libnvidia-ml.so.1), as far as the limiter, the simulated driver and its
 * nvidia-smi use it: numbers and layouts that compiled programs depend on. */
#ifndef INTERFACE_NVML_H
#define INTERFACE_NVML_H

#include <stddef.h>
#include <stdint.h>

#include "exports.h"

/* nvmlReturn_t. The prefix keeps them apart from CUDA's, which have other numbers for the same
 * reasons: the limiter includes both headers. */
enum {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_LIBRARY_NOT_FOUND = 12,
    NVML_GPU_IS_LOST = 15,
    NVML_LIB_RM_VERSION_MISMATCH = 18,
    NVML_MEMORY = 20,
    NVML_VERSION_MISMATCH = 25,
};

/* What a caller writes into the field `version` of a struct: NVML tells layouts by it. */
#define VERSION_OF(type, number) ((unsigned)(sizeof(type) | (number) << 24))

#define NO_INSTANCE 0xffffffffu /* of a process on a card that is not divided by MIG */

typedef struct handle *device_t; /* nvmlDevice_t */

struct pci_v1 {
    char bus_id[16];
    unsigned domain, bus, device, device_id;
};
struct pci_v2 {
    char bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id, reserved[4];
};
struct pci_v3 {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
struct pci_ext {
    unsigned version, domain, bus, device, device_id, subsystem_id, base_class, sub_class;
    char bus_id[32];
};

struct memory_v1 {
    unsigned long long total, free, used;
};
struct set_memory_limits { /* nvmlSetMemoryLimits_v1_t */
    const char *directory; /* of the cgroup */
    unsigned long long soft, hard; /* bytes */
};
struct get_memory_limits { /* nvmlGetMemoryLimits_v1_t */
    const char *directory;
    unsigned long long soft, hard, used;
};
struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct utilization {
    unsigned gpu, memory;
};
struct temperature {
    unsigned version, sensor;
    int celsius;
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
/* nvmlProcessDetail_v1_t */
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
struct process_sample {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder;
};

struct event_data {
    device_t device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

struct gpm_support {
    unsigned version, is_supported;
};
struct gpm_metric {
    unsigned id;
    int result;
    double value;
    const char *short_name, *long_name, *unit;
};
struct gpm_metrics {
    unsigned version, count;
    struct gpm_sample *first, *second;
    struct gpm_metric metrics[]; /* newer headers have room for more */
};

struct ecc_counts {
    unsigned long long l1, l2, device_memory, register_file;
};

struct field_value {
    unsigned id, scope;
    long long time_us, latency_us;
    unsigned type;
    int result;
    union {
        double d;
        unsigned ui;
        unsigned long long ull;
    } value;
};

/* nvidia-smi reads its process list through a private table of functions:
 * nvmlInternalGetExportTable returns the table with this id. Its layout is not documented. The
 * slots below were found by watching which ones nvidia-smi 535 and 550 call, with which arguments,
 * and what they then print. Slot 0 is the size of the table in bytes. */
#define PRIVATE_TABLE_ID                                                                \
    {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,                                    \
     0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4}

#define NEWEST_KNOWN_TABLE 555 /* the driver; of newer ones nothing is known */

enum {
    TABLE_PATH = 23, /* the connection between two cards */
    TABLE_LOG = 26,
    TABLE_COMPUTE = 213, /* processes that compute, that draw, and of MPS */
    TABLE_GRAPHICS,
    TABLE_MPS,
};

struct table_process {
    struct process_v2 process;
    unsigned long long reserved;
    char name[4096];
};

_Static_assert(sizeof(struct pci_v2) == 52, "pci_v2");
_Static_assert(sizeof(struct pci_v3) == 68, "pci_v3");
_Static_assert(sizeof(struct memory_v2) == 40, "memory_v2");
_Static_assert(sizeof(struct process_v1) == 16, "process_v1");
_Static_assert(sizeof(struct process_v2) == 24, "process_v2");
_Static_assert(sizeof(struct process_details) == 24, "process_details");
_Static_assert(sizeof(struct process_sample) == 32, "process_sample");
_Static_assert(sizeof(struct gpm_metric) == 40, "gpm_metric");
_Static_assert(offsetof(struct gpm_metrics, metrics) == 24, "gpm_metrics");
_Static_assert(sizeof(struct event_data) == 32, "event_data");
_Static_assert(sizeof(struct field_value) == 40, "field_value");
_Static_assert(offsetof(struct table_process, name) == 32, "table_process");
_Static_assert(sizeof(struct table_process) == 4128, "table_process");

#endif
