/* The connections between cards: NVLink, PCIe, NUMA nodes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "links.h"

#define LEVEL_HOSTBRIDGE 30 /* nvmlGpuTopologyLevel_t */
#define P2P_OK 0
#define P2P_NOT_SUPPORTED 5
#define P2P_NVLINK 2

static int is_joined(const struct card *card, unsigned link) {
    return link < card->fixed.link_count && card->fixed.link_peer[link] != LINK_NONE;
}

int count_links(const struct card *from, const struct card *to) {
    int count = 0;
    for (unsigned link = 0; link < MAX_LINKS; link++) {
        unsigned peer = is_joined(from, link) ? from->fixed.link_peer[link] : LINK_NONE;
        count += peer == (unsigned)card_index(to) ||
                 (peer == LINK_SWITCH && to->fixed.link_peer[0] == LINK_SWITCH);
    }
    return count;
}

CALL(nvmlDeviceGetNvLinkState, device_t device, unsigned link, unsigned *is_active) {
    WITH_CARD(card, device);
    if (!card->fixed.link_count) return NVML_NOT_SUPPORTED;
    if (!is_active || link >= MAX_LINKS) return NVML_INVALID_ARGUMENT;
    if (link >= card->fixed.link_count) return NVML_NOT_SUPPORTED;
    *is_active = (unsigned)is_joined(card, link);
    return NVML_OK;
}

CALL(nvmlDeviceGetNvLinkVersion, device_t device, unsigned link, unsigned *version) {
    WITH_CARD(card, device);
    if (!version || link >= MAX_LINKS) return NVML_INVALID_ARGUMENT;
    if (link >= card->fixed.link_count) return NVML_NOT_SUPPORTED;
    *version = card->fixed.link_version;
    return NVML_OK;
}

CALL(nvmlDeviceGetNvLinkCapability, device_t device, unsigned link, unsigned what, unsigned *can) {
    WITH_CARD(card, device);
    if (!can || link >= MAX_LINKS || what > 5) return NVML_INVALID_ARGUMENT;
    if (link >= card->fixed.link_count) return NVML_NOT_SUPPORTED;
    *can = what <= 3; /* peer access, system memory, atomics */
    return NVML_OK;
}

CALL(nvmlDeviceGetNvLinkRemotePciInfo_v2, device_t device, unsigned link, struct pci_v3 *pci) {
    WITH_CARD(card, device);
    if (!pci || link >= MAX_LINKS) return NVML_INVALID_ARGUMENT;
    if (!is_joined(card, link)) return NVML_NOT_SUPPORTED;
    unsigned peer = card->fixed.link_peer[link];
    if (peer == LINK_SWITCH) {
        /* Of the switch, only its PCI address is simulated. */
        struct card_fixed bridge = {.pci_bus = 0xc0, .pci_device_id = 0x1af110de};
        describe_pci(&bridge, pci);
    } else if (peer < session_node()->state->card_count) {
        describe_pci(&session_node()->state->cards[peer].fixed, pci);
    } else {
        return NVML_NOT_SUPPORTED;
    }
    return NVML_OK;
}
ALSO(nvmlDeviceGetNvLinkRemotePciInfo, nvmlDeviceGetNvLinkRemotePciInfo_v2);

CALL(nvmlDeviceGetNvLinkRemoteDeviceType, device_t device, unsigned link, unsigned *type) {
    WITH_CARD(card, device);
    if (!type || link >= MAX_LINKS) return NVML_INVALID_ARGUMENT;
    if (!is_joined(card, link)) return NVML_NOT_SUPPORTED;
    *type = card->fixed.link_peer[link] == LINK_SWITCH ? 2 : 0;
    return NVML_OK;
}

CALL(nvmlDeviceGetNvLinkErrorCounter, device_t device, unsigned link, unsigned counter,
     unsigned long long *value) {
    WITH_CARD(card, device);
    if (!value || link >= MAX_LINKS || counter > 4) return NVML_INVALID_ARGUMENT;
    if (link >= card->fixed.link_count) return NVML_NOT_SUPPORTED;
    *value = 0;
    return NVML_OK;
}

CALL(nvmlDeviceGetTopologyCommonAncestor, device_t first, device_t second, unsigned *level) {
    WITH_CARD(one, first);
    WITH_CARD(other, second);
    if (!level || one == other) return NVML_INVALID_ARGUMENT;
    *level = one->fixed.numa_node == other->fixed.numa_node ? LEVEL_HOSTBRIDGE : 50;
    return NVML_OK;
}

CALL(nvmlDeviceGetTopologyNearestGpus, device_t device, unsigned level, unsigned *count,
     device_t *devices) {
    WITH_CARD(card, device);
    if (!count || (*count && !devices)) return NVML_INVALID_ARGUMENT;
    unsigned room = *count;
    *count = 0;
    for (int i = 0; level == LEVEL_HOSTBRIDGE && device_at(i); i++) {
        if (device_at(i) == device) continue;
        if (*count < room) devices[*count] = device_at(i);
        ++*count;
    }
    (void)card;
    return NVML_OK;
}

CALL(nvmlDeviceGetP2PStatus, device_t first, device_t second, unsigned what, unsigned *status) {
    WITH_CARD(one, first);
    WITH_CARD(other, second);
    if (!status || one == other) return NVML_INVALID_ARGUMENT;
    *status = what == P2P_NVLINK && !count_links(one, other) ? P2P_NOT_SUPPORTED : P2P_OK;
    return NVML_OK;
}

/* Every processor of the machine: the simulated cards have no affinity to some of them. */
static int all_processors(unsigned count, unsigned long *set) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (!set || !count) return NVML_INVALID_ARGUMENT;
    memset(set, 0, count * sizeof *set);
    for (long i = 0; i < online && i < (long)count * 64; i++) set[i / 64] |= 1ul << (i % 64);
    return NVML_OK;
}

CALL(nvmlDeviceGetCpuAffinity, device_t device, unsigned count, unsigned long *set) {
    WITH_CARD(card, device);
    (void)card;
    return all_processors(count, set);
}

CALL(nvmlDeviceGetCpuAffinityWithinScope, device_t device, unsigned count, unsigned long *set,
     unsigned scope) {
    (void)scope;
    return nvmlDeviceGetCpuAffinity(device, count, set);
}

CALL(nvmlDeviceGetMemoryAffinity, device_t device, unsigned count, unsigned long *set,
     unsigned scope) {
    WITH_CARD(card, device);
    (void)scope;
    if (!set || !count) return NVML_INVALID_ARGUMENT;
    memset(set, 0, count * sizeof *set);
    set[0] = 1ul << (card->fixed.numa_node % 64);
    return NVML_OK;
}
