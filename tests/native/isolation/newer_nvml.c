/* NVML of a driver (VERSION) whose private table has functions that nobody knows: each returns its
 * own slot number, which is no error of NVML. */
#include <stdint.h>
#include <stdio.h>

#define SLOTS 320

static int reveal(void) {
    return 213;
}

int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    return snprintf(version, size, "%s", VERSION) < 0;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size) {
    (void)device;
    return snprintf(uuid, size, "GPU-0") < 0;
}

int nvmlInternalGetExportTable(const void **table, const void *id) {
    static const void *slots[SLOTS];
    (void)id;
    slots[0] = (const void *)sizeof slots;
    for (int i = 1; i < SLOTS; i++) slots[i] = (const void *)(uintptr_t)reveal;
    *table = slots;
    return 0;
}
