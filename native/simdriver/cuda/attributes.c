/* The attributes of a device, by number (CUdevice_attribute). One that is not in the table is 0:
 * the device does not have the feature. */
#include "driver.h"

struct constant {
    int attribute, value;
};

static const struct constant CONSTANTS[] = {
    {1, 1024},        /* threads in a block */
    {2, 1024}, {3, 1024}, {4, 64},
    {5, 0x7fffffff},  /* grid */
    {6, 65535}, {7, 65535},
    {8, 49152},       /* shared memory of a block */
    {9, 65536},       /* constant memory */
    {10, 32},         /* warp */
    {11, 0x7fffffff}, /* pitch */
    {12, 65536},      /* registers of a block */
    {14, 512},        /* alignment of textures */
    {15, 1}, {19, 1},
    {21, 131072}, {22, 131072}, {23, 65536}, {24, 16384}, {25, 16384}, {26, 16384},
    {27, 32768}, {28, 32768}, {29, 2048},
    {30, 512},        /* alignment of surfaces */
    {31, 1},          /* concurrent kernels */
    {40, 2},          /* copy engines */
    {41, 1},          /* unified addresses */
    {42, 32768}, {43, 2048},
    {51, 32},
    {78, 1}, {79, 1}, {80, 1},
    {82, 65536},      /* registers of a multiprocessor */
    {83, 1},          /* managed memory */
    {87, 2}, {90, 1}, {91, 1},
    {95, 1},          /* cooperative launch */
    {99, 1},
    {102, 1},         /* virtual memory management */
    {106, 32},        /* blocks of a multiprocessor */
    {111, 1024},
    {115, 1},         /* memory pools */
    {119, 1},         /* handle types of memory pools: file descriptors */
    {122, 1}, {125, 1},
    {131, -1},        /* not a NUMA node of its own */
};

static int shared_per_multiprocessor(const struct card_fixed *fixed) {
    switch (fixed->compute_major * 10 + fixed->compute_minor) {
    case 90: return 228 * 1024;
    case 80: return 164 * 1024;
    case 86: case 89: return 100 * 1024;
    case 75: return 64 * 1024;
    default: return 96 * 1024;
    }
}

static int threads_per_multiprocessor(const struct card_fixed *fixed) {
    unsigned capability = fixed->compute_major * 10 + fixed->compute_minor;
    if (capability == 75) return 1024;
    return capability == 86 || capability == 89 ? 1536 : 2048;
}

static int attribute(const struct card *card, int number) {
    const struct card_fixed *fixed = &card->fixed;
    switch (number) {
    case 13: return (int)fixed->clock_graphics_mhz * 1000;
    case 16: return (int)fixed->multiprocessors;
    case 20: return (int)atomic_load(&card->live.compute_mode);
    case 32: return (int)atomic_load(&card->live.ecc_mode);
    case 33: return (int)fixed->pci_bus;
    case 34: return (int)fixed->pci_device;
    case 36: return (int)fixed->clock_memory_mhz * 1000;
    case 37: return (int)fixed->memory_bus_bits;
    case 38: return (int)fixed->l2_bytes;
    case 39: return threads_per_multiprocessor(fixed);
    case 50: return (int)fixed->pci_domain;
    case 75: return (int)fixed->compute_major;
    case 76: return (int)fixed->compute_minor;
    case 81: return shared_per_multiprocessor(fixed);
    case 97: return shared_per_multiprocessor(fixed) - 1024;
    case 120: return fixed->compute_major >= 9;
    case 134: return (int)fixed->numa_node;
    case 139: return (int)fixed->pci_device_id;
    case 140: return (int)fixed->pci_subsystem_id;
    default: break;
    }
    for (size_t i = 0; i < sizeof CONSTANTS / sizeof *CONSTANTS; i++)
        if (CONSTANTS[i].attribute == number) return CONSTANTS[i].value;
    return 0;
}

CALL(cuDeviceGetAttribute, int *value, int number, int device) {
    WITH_DEVICE(device);
    if (!value || number < 1 || number > 1000) return INVALID_VALUE;
    *value = attribute(card_at(device), number);
    return OK;
}
