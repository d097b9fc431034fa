/* The interface of NVML as far as it is simulated: numbers and layouts that clients are built on. */
#ifndef SIMDRIVER_NVML_H
#define SIMDRIVER_NVML_H

#include <stdint.h>

#define API __attribute__((visibility("default")))

enum {
    OK = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    TIMEOUT = 10,
    GPU_IS_LOST = 15,
    LIB_RM_VERSION_MISMATCH = 18,
    MEMORY = 20,
    VERSION_MISMATCH = 25,
};

#define VERSION_OF(type, number) ((unsigned)(sizeof(type) | (number) << 24))

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

_Static_assert(sizeof(struct pci_v2) == 52, "pci_v2");
_Static_assert(sizeof(struct pci_v3) == 68, "pci_v3");
_Static_assert(sizeof(struct memory_v2) == 40, "memory_v2");
_Static_assert(sizeof(struct process_v1) == 16, "process_v1");
_Static_assert(sizeof(struct process_v2) == 24, "process_v2");
_Static_assert(sizeof(struct process_sample) == 32, "process_sample");
_Static_assert(sizeof(struct event_data) == 32, "event_data");
_Static_assert(sizeof(struct field_value) == 40, "field_value");

#endif
