/* Devices and their properties. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

CALL(cuDeviceGetCount, int *count) {
    WITH_DRIVER(driver);
    if (!count) return INVALID_VALUE;
    *count = driver->card_count;
    return OK;
}

CALL(cuDeviceGet, int *device, int ordinal) {
    WITH_DEVICE(ordinal);
    if (!device) return INVALID_VALUE;
    *device = ordinal;
    return OK;
}

CALL(cuDeviceGetName, char *name, int size, int device) {
    WITH_DEVICE(device);
    if (!name || size <= 0) return INVALID_VALUE;
    snprintf(name, (size_t)size, "%s", card_at(device)->fixed.name);
    return OK;
}

CALL(cuDeviceTotalMem_v2, size_t *bytes, int device) {
    WITH_DEVICE(device);
    if (!bytes) return INVALID_VALUE;
    *bytes = card_at(device)->fixed.memory_bytes;
    return OK;
}

CALL(cuDeviceComputeCapability, int *major, int *minor, int device) {
    WITH_DEVICE(device);
    if (!major || !minor) return INVALID_VALUE;
    *major = (int)card_at(device)->fixed.compute_major;
    *minor = (int)card_at(device)->fixed.compute_minor;
    return OK;
}

static struct uuid uuid_of(const struct card *card) {
    struct uuid uuid = {{0}};
    int digits = 0;
    for (const char *text = card->fixed.uuid + 4; *text && digits < 32; text++) {
        if (*text == '-') continue;
        char digit[2] = {*text, 0};
        uuid.bytes[digits / 2] = (unsigned char)(uuid.bytes[digits / 2] << 4 |
                                                 (unsigned char)strtoul(digit, NULL, 16));
        digits++;
    }
    return uuid;
}

CALL(cuDeviceGetUuid, struct uuid *uuid, int device) {
    WITH_DEVICE(device);
    if (!uuid) return INVALID_VALUE;
    *uuid = uuid_of(card_at(device));
    return OK;
}
ALSO(cuDeviceGetUuid_v2, cuDeviceGetUuid);

CALL(cuDeviceGetPCIBusId, char *text, int size, int device) {
    WITH_DEVICE(device);
    const struct card_fixed *fixed = &card_at(device)->fixed;
    if (!text || size < 13) return INVALID_VALUE;
    snprintf(text, (size_t)size, "%04x:%02x:%02x.0", fixed->pci_domain, fixed->pci_bus,
             fixed->pci_device);
    return OK;
}

CALL(cuDeviceGetByPCIBusId, int *device, const char *text) {
    unsigned domain, bus, slot;
    WITH_DRIVER(driver);
    if (!device || !text || sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return INVALID_VALUE;
    for (int i = 0; i < driver->card_count; i++) {
        const struct card_fixed *fixed = &card_at(i)->fixed;
        if (fixed->pci_domain != domain || fixed->pci_bus != bus || fixed->pci_device != slot)
            continue;
        *device = i;
        return OK;
    }
    return INVALID_DEVICE;
}

CALL(cuDeviceCanAccessPeer, int *can, int device, int peer) {
    WITH_DEVICE(device);
    if (peer < 0 || peer >= driver->card_count) return INVALID_DEVICE;
    if (!can) return INVALID_VALUE;
    *can = device != peer;
    return OK;
}

CALL(cuDeviceGetP2PAttribute, int *value, int what, int device, int peer) {
    WITH_DEVICE(device);
    if (peer < 0 || peer >= driver->card_count || peer == device) return INVALID_DEVICE;
    if (!value || what < 1 || what > 4) return INVALID_VALUE;
    *value = what == 2; /* 2: access is supported; the rank is 0, and nothing else is supported */
    return OK;
}

CALL(cuDeviceGetProperties, int *properties, int device) {
    WITH_DEVICE(device);
    if (!properties) return INVALID_VALUE;
    const int values[] = {1024, 1024, 1024, 64, 0x7fffffff, 65535, 65535, 49152, 65536, 32,
                          0x7fffffff, 65536, (int)card_at(device)->fixed.clock_graphics_mhz * 1000,
                          512};
    memcpy(properties, values, sizeof values);
    return OK;
}
