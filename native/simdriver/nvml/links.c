/* How cards are joined: NVLink, PCIe, processors. */
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

API int nvmlDeviceGetNvLinkState(device_t device, unsigned link, unsigned *is_active);
API int nvmlDeviceGetNvLinkState(device_t device, unsigned link, unsigned *is_active) {
    WITH_CARD(card, device);
    if (!card->fixed.link_count) return NOT_SUPPORTED;
    if (!is_active || link >= MAX_LINKS) return INVALID_ARGUMENT;
    if (link >= card->fixed.link_count) return NOT_SUPPORTED;
    *is_active = (unsigned)is_joined(card, link);
    return OK;
}

API int nvmlDeviceGetNvLinkVersion(device_t device, unsigned link, unsigned *version);
API int nvmlDeviceGetNvLinkVersion(device_t device, unsigned link, unsigned *version) {
    WITH_CARD(card, device);
    if (!version || link >= MAX_LINKS) return INVALID_ARGUMENT;
    if (link >= card->fixed.link_count) return NOT_SUPPORTED;
    *version = card->fixed.link_version;
    return OK;
}

API int nvmlDeviceGetNvLinkCapability(device_t device, unsigned link, unsigned what,
                                      unsigned *can);
API int nvmlDeviceGetNvLinkCapability(device_t device, unsigned link, unsigned what,
                                      unsigned *can) {
    WITH_CARD(card, device);
    if (!can || link >= MAX_LINKS || what > 5) return INVALID_ARGUMENT;
    if (link >= card->fixed.link_count) return NOT_SUPPORTED;
    *can = what <= 3; /* peer access, system memory, atomics */
    return OK;
}

API int nvmlDeviceGetNvLinkRemotePciInfo_v2(device_t device, unsigned link, struct pci_v3 *pci);
API int nvmlDeviceGetNvLinkRemotePciInfo_v2(device_t device, unsigned link, struct pci_v3 *pci) {
    WITH_CARD(card, device);
    if (!pci || link >= MAX_LINKS) return INVALID_ARGUMENT;
    if (!is_joined(card, link)) return NOT_SUPPORTED;
    unsigned peer = card->fixed.link_peer[link];
    if (peer == LINK_SWITCH) {
        /* A switch that is not simulated further than its address. */
        struct card_fixed bridge = {.pci_bus = 0xc0, .pci_device_id = 0x1af110de};
        describe_pci(&bridge, pci);
    } else if (peer < session_node()->state->card_count) {
        describe_pci(&session_node()->state->cards[peer].fixed, pci);
    } else {
        return NOT_SUPPORTED;
    }
    return OK;
}
ALSO(nvmlDeviceGetNvLinkRemotePciInfo, nvmlDeviceGetNvLinkRemotePciInfo_v2);

API int nvmlDeviceGetNvLinkRemoteDeviceType(device_t device, unsigned link, unsigned *type);
API int nvmlDeviceGetNvLinkRemoteDeviceType(device_t device, unsigned link, unsigned *type) {
    WITH_CARD(card, device);
    if (!type || link >= MAX_LINKS) return INVALID_ARGUMENT;
    if (!is_joined(card, link)) return NOT_SUPPORTED;
    *type = card->fixed.link_peer[link] == LINK_SWITCH ? 2 : 0;
    return OK;
}

API int nvmlDeviceGetNvLinkErrorCounter(device_t device, unsigned link, unsigned counter,
                                        unsigned long long *value);
API int nvmlDeviceGetNvLinkErrorCounter(device_t device, unsigned link, unsigned counter,
                                        unsigned long long *value) {
    WITH_CARD(card, device);
    if (!value || link >= MAX_LINKS || counter > 4) return INVALID_ARGUMENT;
    if (link >= card->fixed.link_count) return NOT_SUPPORTED;
    *value = 0;
    return OK;
}

API int nvmlDeviceGetTopologyCommonAncestor(device_t first, device_t second, unsigned *level);
API int nvmlDeviceGetTopologyCommonAncestor(device_t first, device_t second, unsigned *level) {
    WITH_CARD(one, first);
    WITH_CARD(other, second);
    if (!level || one == other) return INVALID_ARGUMENT;
    *level = one->fixed.numa_node == other->fixed.numa_node ? LEVEL_HOSTBRIDGE : 50;
    return OK;
}

API int nvmlDeviceGetTopologyNearestGpus(device_t device, unsigned level, unsigned *count,
                                         device_t *devices);
API int nvmlDeviceGetTopologyNearestGpus(device_t device, unsigned level, unsigned *count,
                                         device_t *devices) {
    WITH_CARD(card, device);
    if (!count || (*count && !devices)) return INVALID_ARGUMENT;
    unsigned room = *count;
    *count = 0;
    for (int i = 0; level == LEVEL_HOSTBRIDGE && device_at(i); i++) {
        if (device_at(i) == device) continue;
        if (*count < room) devices[*count] = device_at(i);
        ++*count;
    }
    (void)card;
    return OK;
}

API int nvmlDeviceGetP2PStatus(device_t first, device_t second, unsigned what, unsigned *status);
API int nvmlDeviceGetP2PStatus(device_t first, device_t second, unsigned what, unsigned *status) {
    WITH_CARD(one, first);
    WITH_CARD(other, second);
    if (!status || one == other) return INVALID_ARGUMENT;
    *status = what == P2P_NVLINK && !count_links(one, other) ? P2P_NOT_SUPPORTED : P2P_OK;
    return OK;
}

/* Every processor of the machine: the simulated one has no sides. */
static int all_processors(unsigned count, unsigned long *set) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (!set || !count) return INVALID_ARGUMENT;
    memset(set, 0, count * sizeof *set);
    for (long i = 0; i < online && i < (long)count * 64; i++) set[i / 64] |= 1ul << (i % 64);
    return OK;
}

API int nvmlDeviceGetCpuAffinity(device_t device, unsigned count, unsigned long *set);
API int nvmlDeviceGetCpuAffinity(device_t device, unsigned count, unsigned long *set) {
    WITH_CARD(card, device);
    (void)card;
    return all_processors(count, set);
}

API int nvmlDeviceGetCpuAffinityWithinScope(device_t device, unsigned count, unsigned long *set,
                                            unsigned scope);
API int nvmlDeviceGetCpuAffinityWithinScope(device_t device, unsigned count, unsigned long *set,
                                            unsigned scope) {
    (void)scope;
    return nvmlDeviceGetCpuAffinity(device, count, set);
}

API int nvmlDeviceGetMemoryAffinity(device_t device, unsigned count, unsigned long *set,
                                    unsigned scope);
API int nvmlDeviceGetMemoryAffinity(device_t device, unsigned count, unsigned long *set,
                                    unsigned scope) {
    WITH_CARD(card, device);
    (void)scope;
    if (!set || !count) return INVALID_ARGUMENT;
    memset(set, 0, count * sizeof *set);
    set[0] = 1ul << (card->fixed.numa_node % 64);
    return OK;
}
