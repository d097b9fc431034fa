/* Which cards there are, and the fixed properties of each. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "session.h"

static int return_handle(device_t found, device_t *device) {
    struct card *card;
    if (!found) return NVML_NOT_FOUND;
    int result = find_card(found, &card);
    if (result == NVML_OK) *device = found;
    return result;
}

CALL(nvmlDeviceGetCount_v2, unsigned *count) {
    if (!session_node()) return NVML_UNINITIALIZED;
    if (!count) return NVML_INVALID_ARGUMENT;
    *count = (unsigned)session_node()->visible_count;
    return NVML_OK;
}
ALSO(nvmlDeviceGetCount, nvmlDeviceGetCount_v2);

CALL(nvmlDeviceGetHandleByIndex_v2, unsigned index, device_t *device) {
    if (!session_node()) return NVML_UNINITIALIZED;
    if (!device || index >= (unsigned)session_node()->visible_count) return NVML_INVALID_ARGUMENT;
    return return_handle(device_at((int)index), device);
}
ALSO(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2);

static int by_text(const char *text, device_t *device, const char *(*of)(const struct card *)) {
    if (!session_node()) return NVML_UNINITIALIZED;
    if (!text || !device) return NVML_INVALID_ARGUMENT;
    struct node *node = session_node();
    for (int i = 0; i < node->visible_count; i++)
        if (strcasecmp(of(&node->state->cards[node->visible[i]]), text) == 0)
            return return_handle(device_at(i), device);
    return NVML_NOT_FOUND;
}

static const char *uuid_of(const struct card *card) {
    return card->fixed.uuid;
}

static const char *serial_of(const struct card *card) {
    return card->fixed.serial;
}

CALL(nvmlDeviceGetHandleByUUID, const char *uuid, device_t *device) {
    return by_text(uuid, device, uuid_of);
}

CALL(nvmlDeviceGetHandleBySerial, const char *serial, device_t *device) {
    return by_text(serial, device, serial_of);
}

CALL(nvmlDeviceGetHandleByPciBusId_v2, const char *text, device_t *device) {
    unsigned domain = 0, bus, slot, function = 0;
    if (!session_node()) return NVML_UNINITIALIZED;
    if (!text || !device) return NVML_INVALID_ARGUMENT;
    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        if (sscanf(text, "%x:%x.%x", &bus, &slot, &function) < 2) return NVML_INVALID_ARGUMENT;
    }
    struct node *node = session_node();
    for (int i = 0; i < node->visible_count; i++) {
        const struct card_fixed *fixed = &node->state->cards[node->visible[i]].fixed;
        if (fixed->pci_domain == domain && fixed->pci_bus == bus && fixed->pci_device == slot)
            return return_handle(device_at(i), device);
    }
    return NVML_NOT_FOUND;
}
ALSO(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2);

#define TEXT(function, expression)                                           \
    CALL(function, device_t device, char *text, unsigned size) {             \
        WITH_CARD(card, device);                                             \
        return copy_text(text, size, expression);                            \
    }

TEXT(nvmlDeviceGetName, card->fixed.name)
TEXT(nvmlDeviceGetUUID, card->fixed.uuid)
TEXT(nvmlDeviceGetSerial, card->fixed.serial)
TEXT(nvmlDeviceGetVbiosVersion, card->fixed.vbios)
TEXT(nvmlDeviceGetBoardPartNumber, card->fixed.part_number)
TEXT(nvmlDeviceGetInforomImageVersion, "G503.0201.00.03")

GETTER(nvmlDeviceGetIndex, unsigned, (unsigned)visible_index(device))
GETTER(nvmlDeviceGetMinorNumber, unsigned, card->fixed.minor_number)
GETTER(nvmlDeviceGetBoardId, unsigned, card->fixed.pci_device << 8)
GETTER(nvmlDeviceGetBrand, unsigned, card->fixed.brand)
GETTER(nvmlDeviceGetArchitecture, unsigned, card->fixed.architecture)
GETTER(nvmlDeviceGetNumGpuCores, unsigned, card->fixed.cores)
GETTER(nvmlDeviceGetMemoryBusWidth, unsigned, card->fixed.memory_bus_bits)
GETTER(nvmlDeviceGetMultiGpuBoard, unsigned, 0)
GETTER(nvmlDeviceGetBusType, unsigned, 2) /* PCIe */
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, card->fixed.pcie_generation)
GETTER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, card->fixed.pcie_generation)
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, card->fixed.pcie_generation)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, card->fixed.pcie_width)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, card->fixed.pcie_width)
GETTER(nvmlDeviceGetPcieReplayCounter, unsigned, 0)

CALL(nvmlDeviceGetCudaComputeCapability, device_t device, int *major, int *minor) {
    WITH_CARD(card, device);
    if (!major || !minor) return NVML_INVALID_ARGUMENT;
    *major = (int)card->fixed.compute_major;
    *minor = (int)card->fixed.compute_minor;
    return NVML_OK;
}

CALL(nvmlDeviceGetPcieThroughput, device_t device, unsigned counter, unsigned *value) {
    WITH_CARD(card, device);
    (void)card;
    if (!value || counter > 1) return NVML_INVALID_ARGUMENT;
    *value = 0;
    return NVML_OK;
}

void describe_pci(const struct card_fixed *fixed, struct pci_v3 *pci) {
    memset(pci, 0, sizeof *pci);
    pci->domain = fixed->pci_domain;
    pci->bus = fixed->pci_bus;
    pci->device = fixed->pci_device;
    pci->device_id = fixed->pci_device_id;
    pci->subsystem_id = fixed->pci_subsystem_id;
    snprintf(pci->legacy_bus_id, sizeof pci->legacy_bus_id, "%04X:%02X:%02X.0",
             pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
    snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", pci->domain, pci->bus,
             pci->device);
}

CALL(nvmlDeviceGetPciInfo_v3, device_t device, struct pci_v3 *pci) {
    WITH_CARD(card, device);
    if (!pci) return NVML_INVALID_ARGUMENT;
    describe_pci(&card->fixed, pci);
    return NVML_OK;
}

CALL(nvmlDeviceGetPciInfo_v2, device_t device, struct pci_v2 *pci) {
    struct pci_v3 new;
    WITH_CARD(card, device);
    if (!pci) return NVML_INVALID_ARGUMENT;
    describe_pci(&card->fixed, &new);
    *pci = (struct pci_v2){.domain = new.domain, .bus = new.bus, .device = new.device,
                           .device_id = new.device_id, .subsystem_id = new.subsystem_id};
    memcpy(pci->bus_id, new.legacy_bus_id, sizeof pci->bus_id);
    return NVML_OK;
}

CALL(nvmlDeviceGetPciInfo, device_t device, struct pci_v1 *pci) {
    struct pci_v2 newer;
    int result = pci ? nvmlDeviceGetPciInfo_v2(device, &newer) : NVML_INVALID_ARGUMENT;
    if (result == NVML_OK) memcpy(pci, &newer, sizeof *pci);
    return result;
}

CALL(nvmlDeviceGetPciInfoExt, device_t device, struct pci_ext *pci) {
    struct pci_v3 plain;
    WITH_CARD(card, device);
    if (!pci) return NVML_INVALID_ARGUMENT;
    if (pci->version != VERSION_OF(struct pci_ext, 1)) return NVML_VERSION_MISMATCH;
    describe_pci(&card->fixed, &plain);
    *pci = (struct pci_ext){pci->version, plain.domain, plain.bus, plain.device, plain.device_id,
                            plain.subsystem_id, 3, 2, ""};
    memcpy(pci->bus_id, plain.bus_id, sizeof pci->bus_id);
    return NVML_OK;
}
