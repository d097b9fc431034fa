/* What administrators read and set: modes, power limits, memory errors. */
#include "session.h"

/* Any user may set them (real cards need root): whoever started the simulated node owns it. */
#define SETTER(function, field, highest)                        \
    CALL(function, device_t device, unsigned value) {           \
        WITH_CARD(card, device);                                \
        if (value > (highest)) return NVML_INVALID_ARGUMENT;         \
        atomic_store(&card->live.field, value);                 \
        return NVML_OK;                                              \
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

CALL(nvmlDeviceValidateInforom, device_t device) {
    WITH_CARD(card, device);
    (void)card;
    return NVML_OK;
}

static int two(unsigned *first, unsigned *second, unsigned value) {
    if (!first || !second) return NVML_INVALID_ARGUMENT;
    *first = *second = value;
    return NVML_OK;
}

CALL(nvmlDeviceGetMigMode, device_t device, unsigned *now, unsigned *pending) {
    WITH_CARD(card, device);
    /* 2: the mode is on; the driver divides no card, so there are no instances. */
    return card->fixed.has_mig ? two(now, pending, card->fixed.has_mig == 2) : NVML_NOT_SUPPORTED;
}

CALL(nvmlDeviceGetMigDeviceHandleByIndex, device_t device, unsigned index, device_t *instance) {
    WITH_CARD(card, device);
    (void)index;
    if (!instance) return NVML_INVALID_ARGUMENT;
    return card->fixed.has_mig ? NVML_NOT_FOUND : NVML_NOT_SUPPORTED;
}

CALL(nvmlDeviceGetEccMode, device_t device, unsigned *now, unsigned *pending) {
    WITH_CARD(card, device);
    if (!card->fixed.has_ecc) return NVML_NOT_SUPPORTED;
    return two(now, pending, atomic_load(&card->live.ecc_mode));
}

GETTER(nvmlDeviceGetPowerManagementMode, unsigned, 1)
GETTER(nvmlDeviceGetPowerManagementLimit, unsigned, atomic_load(&card->live.power_limit_mw))
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned, atomic_load(&card->live.power_limit_mw))
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, card->fixed.power_limit_mw)

CALL(nvmlDeviceGetPowerManagementLimitConstraints, device_t device, unsigned *low, unsigned *high) {
    WITH_CARD(card, device);
    if (!low || !high) return NVML_INVALID_ARGUMENT;
    *low = card->fixed.power_min_mw;
    *high = card->fixed.power_max_mw;
    return NVML_OK;
}

CALL(nvmlDeviceSetPowerManagementLimit, device_t device, unsigned limit) {
    WITH_CARD(card, device);
    if (limit < card->fixed.power_min_mw || limit > card->fixed.power_max_mw)
        return NVML_INVALID_ARGUMENT;
    atomic_store(&card->live.power_limit_mw, limit);
    return NVML_OK;
}

/* kind: 0 corrected, 1 uncorrected. since: 0 the last reset of the driver, 1 the whole life of the
 * card. */
static int errors(device_t device, unsigned kind, unsigned since, unsigned long long *count) {
    WITH_CARD(card, device);
    if (!card->fixed.has_ecc || !atomic_load(&card->live.ecc_mode)) return NVML_NOT_SUPPORTED;
    if (!count || kind > 1 || since > 1) return NVML_INVALID_ARGUMENT;
    const _Atomic uint64_t *counters[2][2] = {
        {&card->fault.ecc_corrected_volatile, &card->fault.ecc_corrected_aggregate},
        {&card->fault.ecc_uncorrected_volatile, &card->fault.ecc_uncorrected_aggregate},
    };
    *count = atomic_load(counters[kind][since]);
    return NVML_OK;
}

CALL(nvmlDeviceGetTotalEccErrors, device_t device, unsigned kind, unsigned since,
     unsigned long long *count) {
    return errors(device, kind, since, count);
}

CALL(nvmlDeviceGetMemoryErrorCounter, device_t device, unsigned kind, unsigned since,
     unsigned place, unsigned long long *count) {
    int result = errors(device, kind, since, count);
    /* 2 is device memory, the only place where errors are simulated. */
    if (result == NVML_OK && place != 2) *count = 0;
    return result;
}

CALL(nvmlDeviceGetDetailedEccErrors, device_t device, unsigned kind, unsigned since,
     struct ecc_counts *counts) {
    if (!counts) return NVML_INVALID_ARGUMENT;
    *counts = (struct ecc_counts){0};
    return errors(device, kind, since, &counts->device_memory);
}

CALL(nvmlDeviceGetRetiredPages, device_t device, unsigned cause, unsigned *count,
     unsigned long long *addresses) {
    WITH_CARD(card, device);
    (void)addresses;
    if (!count || cause > 1) return NVML_INVALID_ARGUMENT;
    *count = 0;
    return card->fixed.architecture < 7 ? NVML_OK : NVML_NOT_SUPPORTED;
}

CALL(nvmlDeviceGetRetiredPagesPendingStatus, device_t device, unsigned *is_pending) {
    WITH_CARD(card, device);
    if (!is_pending) return NVML_INVALID_ARGUMENT;
    *is_pending = 0;
    return card->fixed.architecture < 7 ? NVML_OK : NVML_NOT_SUPPORTED;
}

CALL(nvmlDeviceGetRemappedRows, device_t device, unsigned *corrected, unsigned *uncorrected,
     unsigned *is_pending, unsigned *has_failed) {
    WITH_CARD(card, device);
    if (!corrected || !uncorrected || !is_pending || !has_failed) return NVML_INVALID_ARGUMENT;
    if (card->fixed.architecture < 7) return NVML_NOT_SUPPORTED; /* pages before Ampere */
    *corrected = *is_pending = *has_failed = 0;
    *uncorrected = (unsigned)atomic_load(&card->fault.retired_pages);
    return NVML_OK;
}
