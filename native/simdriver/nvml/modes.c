/* What administrators read and set: modes, limits, errors of the memory. */
#include "session.h"

/* Any user may set them: the simulated node belongs to the one who started it. */
#define SETTER(function, field, highest)                        \
    API int function(device_t device, unsigned value);          \
    API int function(device_t device, unsigned value) {         \
        WITH_CARD(card, device);                                \
        if (value > (highest)) return INVALID_ARGUMENT;         \
        atomic_store(&card->live.field, value);                 \
        return OK;                                              \
    }

GETTER(nvmlDeviceGetPersistenceMode, unsigned, atomic_load(&card->live.persistence_mode))
SETTER(nvmlDeviceSetPersistenceMode, persistence_mode, 1)
GETTER(nvmlDeviceGetComputeMode, unsigned, atomic_load(&card->live.compute_mode))
SETTER(nvmlDeviceSetComputeMode, compute_mode, 3)
GETTER(nvmlDeviceGetDisplayMode, unsigned, 0)
GETTER(nvmlDeviceGetDisplayActive, unsigned, 0)
GETTER(nvmlDeviceGetAccountingMode, unsigned, 0)
GETTER(nvmlDeviceGetVirtualizationMode, unsigned, 0)
GETTER(nvmlDeviceGetMaxMigDeviceCount, unsigned, card->fixed.mig_instances)
GETTER(nvmlDeviceIsMigDeviceHandle, unsigned, 0)

API int nvmlDeviceValidateInforom(device_t device);
API int nvmlDeviceValidateInforom(device_t device) {
    WITH_CARD(card, device);
    (void)card;
    return OK;
}

static int two(unsigned *first, unsigned *second, unsigned value) {
    if (!first || !second) return INVALID_ARGUMENT;
    *first = *second = value;
    return OK;
}

API int nvmlDeviceGetMigMode(device_t device, unsigned *now, unsigned *pending);
API int nvmlDeviceGetMigMode(device_t device, unsigned *now, unsigned *pending) {
    WITH_CARD(card, device);
    return card->fixed.has_mig ? two(now, pending, 0) : NOT_SUPPORTED;
}

API int nvmlDeviceGetMigDeviceHandleByIndex(device_t device, unsigned index, device_t *instance);
API int nvmlDeviceGetMigDeviceHandleByIndex(device_t device, unsigned index, device_t *instance) {
    WITH_CARD(card, device);
    (void)index;
    if (!instance) return INVALID_ARGUMENT;
    return card->fixed.has_mig ? NOT_FOUND : NOT_SUPPORTED;
}

API int nvmlDeviceGetEccMode(device_t device, unsigned *now, unsigned *pending);
API int nvmlDeviceGetEccMode(device_t device, unsigned *now, unsigned *pending) {
    WITH_CARD(card, device);
    if (!card->fixed.has_ecc) return NOT_SUPPORTED;
    return two(now, pending, atomic_load(&card->live.ecc_mode));
}

GETTER(nvmlDeviceGetPowerManagementMode, unsigned, 1)
GETTER(nvmlDeviceGetPowerManagementLimit, unsigned, atomic_load(&card->live.power_limit_mw))
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned, atomic_load(&card->live.power_limit_mw))
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, card->fixed.power_limit_mw)

API int nvmlDeviceGetPowerManagementLimitConstraints(device_t device, unsigned *low,
                                                     unsigned *high);
API int nvmlDeviceGetPowerManagementLimitConstraints(device_t device, unsigned *low,
                                                     unsigned *high) {
    WITH_CARD(card, device);
    if (!low || !high) return INVALID_ARGUMENT;
    *low = card->fixed.power_min_mw;
    *high = card->fixed.power_max_mw;
    return OK;
}

API int nvmlDeviceSetPowerManagementLimit(device_t device, unsigned limit);
API int nvmlDeviceSetPowerManagementLimit(device_t device, unsigned limit) {
    WITH_CARD(card, device);
    if (limit < card->fixed.power_min_mw || limit > card->fixed.power_max_mw)
        return INVALID_ARGUMENT;
    atomic_store(&card->live.power_limit_mw, limit);
    return OK;
}

/* kind: 0 corrected, 1 not; since: 0 the last reset, 1 the card's making. */
static int errors(device_t device, unsigned kind, unsigned since, unsigned long long *count) {
    WITH_CARD(card, device);
    if (!card->fixed.has_ecc || !atomic_load(&card->live.ecc_mode)) return NOT_SUPPORTED;
    if (!count || kind > 1 || since > 1) return INVALID_ARGUMENT;
    const _Atomic uint64_t *counters[2][2] = {
        {&card->fault.ecc_corrected_volatile, &card->fault.ecc_corrected_aggregate},
        {&card->fault.ecc_uncorrected_volatile, &card->fault.ecc_uncorrected_aggregate},
    };
    *count = atomic_load(counters[kind][since]);
    return OK;
}

API int nvmlDeviceGetTotalEccErrors(device_t device, unsigned kind, unsigned since,
                                    unsigned long long *count);
API int nvmlDeviceGetTotalEccErrors(device_t device, unsigned kind, unsigned since,
                                    unsigned long long *count) {
    return errors(device, kind, since, count);
}

API int nvmlDeviceGetMemoryErrorCounter(device_t device, unsigned kind, unsigned since,
                                        unsigned place, unsigned long long *count);
API int nvmlDeviceGetMemoryErrorCounter(device_t device, unsigned kind, unsigned since,
                                        unsigned place, unsigned long long *count) {
    int result = errors(device, kind, since, count);
    if (result == OK && place != 2) *count = 0; /* 2: the card's memory, where ours happen */
    return result;
}

API int nvmlDeviceGetDetailedEccErrors(device_t device, unsigned kind, unsigned since,
                                       struct ecc_counts *counts);
API int nvmlDeviceGetDetailedEccErrors(device_t device, unsigned kind, unsigned since,
                                       struct ecc_counts *counts) {
    if (!counts) return INVALID_ARGUMENT;
    *counts = (struct ecc_counts){0};
    return errors(device, kind, since, &counts->device_memory);
}

API int nvmlDeviceGetRetiredPages(device_t device, unsigned cause, unsigned *count,
                                  unsigned long long *addresses);
API int nvmlDeviceGetRetiredPages(device_t device, unsigned cause, unsigned *count,
                                  unsigned long long *addresses) {
    WITH_CARD(card, device);
    (void)addresses;
    if (!count || cause > 1) return INVALID_ARGUMENT;
    *count = 0;
    return card->fixed.architecture < 7 ? OK : NOT_SUPPORTED;
}

API int nvmlDeviceGetRetiredPagesPendingStatus(device_t device, unsigned *is_pending);
API int nvmlDeviceGetRetiredPagesPendingStatus(device_t device, unsigned *is_pending) {
    WITH_CARD(card, device);
    if (!is_pending) return INVALID_ARGUMENT;
    *is_pending = 0;
    return card->fixed.architecture < 7 ? OK : NOT_SUPPORTED;
}

API int nvmlDeviceGetRemappedRows(device_t device, unsigned *corrected, unsigned *uncorrected,
                                  unsigned *is_pending, unsigned *has_failed);
API int nvmlDeviceGetRemappedRows(device_t device, unsigned *corrected, unsigned *uncorrected,
                                  unsigned *is_pending, unsigned *has_failed) {
    WITH_CARD(card, device);
    if (!corrected || !uncorrected || !is_pending || !has_failed) return INVALID_ARGUMENT;
    if (card->fixed.architecture < 7) return NOT_SUPPORTED; /* before Ampere: pages */
    *corrected = *is_pending = *has_failed = 0;
    *uncorrected = (unsigned)atomic_load(&card->fault.retired_pages);
    return OK;
}
