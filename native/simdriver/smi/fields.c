#include "fields.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cards.h"

#define READ(function) static int function(device_t card, char *text, unsigned size)

/* A field whose value is one number that a function of NVML returns. */
#define NUMBER(function, call, pattern, expression)             \
    READ(function) {                                            \
        unsigned value = 0;                                     \
        int result = nvml.call;                                 \
        snprintf(text, size, pattern, expression);              \
        return result;                                          \
    }
#define TEXT(function, call) \
    READ(function) { return nvml.call(card, text, size); }
#define SWITCH(function, call, yes, no) NUMBER(function, call, "%s", value ? (yes) : (no))

TEXT(name, nvmlDeviceGetName)
TEXT(uuid, nvmlDeviceGetUUID)
TEXT(serial, nvmlDeviceGetSerial)
TEXT(vbios, nvmlDeviceGetVbiosVersion)
NUMBER(index_of, nvmlDeviceGetIndex(card, &value), "%u", value)
SWITCH(persistence, nvmlDeviceGetPersistenceMode(card, &value), "Enabled", "Disabled")
SWITCH(display_mode, nvmlDeviceGetDisplayMode(card, &value), "Enabled", "Disabled")
SWITCH(display_active, nvmlDeviceGetDisplayActive(card, &value), "Enabled", "Disabled")
NUMBER(state, nvmlDeviceGetPerformanceState(card, &value), "P%u", value)
NUMBER(fan, nvmlDeviceGetFanSpeed(card, &value), "%u", value)
NUMBER(temperature, nvmlDeviceGetTemperature(card, 0, &value), "%u", value)
NUMBER(power, nvmlDeviceGetPowerUsage(card, &value), "%.2f", value / 1000.0)
NUMBER(power_limit, nvmlDeviceGetPowerManagementLimit(card, &value), "%.2f", value / 1000.0)
NUMBER(power_enforced, nvmlDeviceGetEnforcedPowerLimit(card, &value), "%.2f", value / 1000.0)
NUMBER(power_default, nvmlDeviceGetPowerManagementDefaultLimit(card, &value), "%.2f",
       value / 1000.0)
NUMBER(clock_graphics, nvmlDeviceGetClockInfo(card, 0, &value), "%u", value)
NUMBER(clock_sm, nvmlDeviceGetClockInfo(card, 1, &value), "%u", value)
NUMBER(clock_memory, nvmlDeviceGetClockInfo(card, 2, &value), "%u", value)
NUMBER(clock_graphics_most, nvmlDeviceGetMaxClockInfo(card, 0, &value), "%u", value)
NUMBER(clock_sm_most, nvmlDeviceGetMaxClockInfo(card, 1, &value), "%u", value)
NUMBER(clock_memory_most, nvmlDeviceGetMaxClockInfo(card, 2, &value), "%u", value)
NUMBER(generation, nvmlDeviceGetCurrPcieLinkGeneration(card, &value), "%u", value)
NUMBER(generation_most, nvmlDeviceGetMaxPcieLinkGeneration(card, &value), "%u", value)
NUMBER(width, nvmlDeviceGetCurrPcieLinkWidth(card, &value), "%u", value)
NUMBER(width_most, nvmlDeviceGetMaxPcieLinkWidth(card, &value), "%u", value)
NUMBER(minor, nvmlDeviceGetMinorNumber(card, &value), "%u", value)

READ(timestamp) {
    time_t seconds = time(NULL);
    (void)card;
    size_t length = strftime(text, size, "%Y/%m/%d %H:%M:%S.000", localtime(&seconds));
    return length ? NVML_OK : NVML_MEMORY;
}

READ(driver_version) {
    (void)card;
    return nvml.nvmlSystemGetDriverVersion(text, size);
}

READ(count) {
    unsigned value = 0;
    (void)card;
    int result = nvml.nvmlDeviceGetCount_v2(&value);
    snprintf(text, size, "%u", value);
    return result;
}

READ(compute_capability) {
    int major = 0, lesser = 0;
    int result = nvml.nvmlDeviceGetCudaComputeCapability(card, &major, &lesser);
    snprintf(text, size, "%d.%d", major, lesser);
    return result;
}

READ(compute_mode) {
    const char *mode = name_of_compute_mode(card);
    snprintf(text, size, "%s", strcmp(mode, "E. Process") == 0 ? "Exclusive_Process" : mode);
    return NVML_OK;
}

#define MEMORY_FIELD(function, part)                                                    \
    READ(function) {                                                                    \
        struct memory_v2 memory = {.version = VERSION_OF(struct memory_v2, 2)};         \
        int result = nvml.nvmlDeviceGetMemoryInfo_v2(card, &memory);                    \
        snprintf(text, size, "%llu", memory.part / MIB);                                \
        return result;                                                                  \
    }
MEMORY_FIELD(memory_total, total)
MEMORY_FIELD(memory_used, used)
MEMORY_FIELD(memory_free, free)
MEMORY_FIELD(memory_reserved, reserved)

#define RATE_FIELD(function, part)                                          \
    READ(function) {                                                        \
        struct utilization rates = {0, 0};                                  \
        int result = nvml.nvmlDeviceGetUtilizationRates(card, &rates);      \
        snprintf(text, size, "%u", rates.part);                             \
        return result;                                                      \
    }
RATE_FIELD(rate_gpu, gpu)
RATE_FIELD(rate_memory, memory)

#define PCI_FIELD(function, pattern, part)                          \
    READ(function) {                                                \
        struct pci_v3 pci = {0};                                    \
        int result = nvml.nvmlDeviceGetPciInfo_v3(card, &pci);      \
        snprintf(text, size, pattern, pci.part);                    \
        return result;                                              \
    }
PCI_FIELD(bus_id, "%s", bus_id)
PCI_FIELD(pci_domain, "0x%04X", domain)
PCI_FIELD(pci_bus, "0x%02X", bus)
PCI_FIELD(pci_device, "0x%02X", device)
PCI_FIELD(pci_device_id, "0x%08X", device_id)
PCI_FIELD(pci_subsystem_id, "0x%08X", subsystem_id)

#define ERRORS_FIELD(function, kind, since)                                             \
    READ(function) {                                                                    \
        unsigned long long errors = 0;                                                  \
        int result = nvml.nvmlDeviceGetTotalEccErrors(card, kind, since, &errors);      \
        snprintf(text, size, "%llu", errors);                                           \
        return result;                                                                  \
    }
ERRORS_FIELD(corrected_now, 0, 0)
ERRORS_FIELD(corrected_ever, 0, 1)
ERRORS_FIELD(uncorrected_now, 1, 0)
ERRORS_FIELD(uncorrected_ever, 1, 1)

#define MODES_FIELD(function, call, which)                          \
    READ(function) {                                                \
        unsigned modes[2] = {0, 0};                                 \
        int result = nvml.call(card, &modes[0], &modes[1]);         \
        snprintf(text, size, "%s", modes[which] ? "Enabled" : "Disabled"); \
        return result;                                              \
    }
MODES_FIELD(ecc_now, nvmlDeviceGetEccMode, 0)
MODES_FIELD(ecc_pending, nvmlDeviceGetEccMode, 1)
MODES_FIELD(mig_now, nvmlDeviceGetMigMode, 0)
MODES_FIELD(mig_pending, nvmlDeviceGetMigMode, 1)

#define LIMIT_FIELD(function, which)                                                            \
    READ(function) {                                                                            \
        unsigned limits[2] = {0, 0};                                                            \
        int result =                                                                            \
            nvml.nvmlDeviceGetPowerManagementLimitConstraints(card, &limits[0], &limits[1]);    \
        snprintf(text, size, "%.2f", limits[which] / 1000.0);                                   \
        return result;                                                                          \
    }
LIMIT_FIELD(power_least, 0)
LIMIT_FIELD(power_most, 1)

static const struct field FIELDS[] = {
    {"timestamp", NULL, NULL, timestamp},
    {"driver_version", NULL, NULL, driver_version},
    {"count", NULL, NULL, count},
    {"name", "gpu_name", NULL, name},
    {"index", NULL, NULL, index_of},
    {"uuid", "gpu_uuid", NULL, uuid},
    {"serial", "gpu_serial", NULL, serial},
    {"minor_number", NULL, NULL, minor},
    {"vbios_version", NULL, NULL, vbios},
    {"pci.bus_id", "gpu_bus_id", NULL, bus_id},
    {"pci.domain", NULL, NULL, pci_domain},
    {"pci.bus", NULL, NULL, pci_bus},
    {"pci.device", NULL, NULL, pci_device},
    {"pci.device_id", NULL, NULL, pci_device_id},
    {"pci.sub_device_id", NULL, NULL, pci_subsystem_id},
    {"pcie.link.gen.current", "pcie.link.gen.gpucurrent", NULL, generation},
    {"pcie.link.gen.max", "pcie.link.gen.gpumax", NULL, generation_most},
    {"pcie.link.width.current", NULL, NULL, width},
    {"pcie.link.width.max", NULL, NULL, width_most},
    {"persistence_mode", NULL, NULL, persistence},
    {"display_mode", NULL, NULL, display_mode},
    {"display_active", NULL, NULL, display_active},
    {"compute_mode", NULL, NULL, compute_mode},
    {"compute_cap", NULL, NULL, compute_capability},
    {"pstate", NULL, NULL, state},
    {"fan.speed", NULL, "%", fan},
    {"memory.total", NULL, "MiB", memory_total},
    {"memory.reserved", NULL, "MiB", memory_reserved},
    {"memory.used", NULL, "MiB", memory_used},
    {"memory.free", NULL, "MiB", memory_free},
    {"utilization.gpu", NULL, "%", rate_gpu},
    {"utilization.memory", NULL, "%", rate_memory},
    {"temperature.gpu", NULL, NULL, temperature},
    {"power.draw", "power.draw.instant", "W", power},
    {"power.limit", NULL, "W", power_limit},
    {"enforced.power.limit", NULL, "W", power_enforced},
    {"power.default_limit", NULL, "W", power_default},
    {"power.min_limit", NULL, "W", power_least},
    {"power.max_limit", NULL, "W", power_most},
    {"clocks.current.graphics", "clocks.gr", "MHz", clock_graphics},
    {"clocks.current.sm", "clocks.sm", "MHz", clock_sm},
    {"clocks.current.memory", "clocks.mem", "MHz", clock_memory},
    {"clocks.max.graphics", "clocks.max.gr", "MHz", clock_graphics_most},
    {"clocks.max.sm", NULL, "MHz", clock_sm_most},
    {"clocks.max.memory", "clocks.max.mem", "MHz", clock_memory_most},
    {"ecc.mode.current", NULL, NULL, ecc_now},
    {"ecc.mode.pending", NULL, NULL, ecc_pending},
    {"mig.mode.current", NULL, NULL, mig_now},
    {"mig.mode.pending", NULL, NULL, mig_pending},
    {"ecc.errors.corrected.volatile.total", NULL, NULL, corrected_now},
    {"ecc.errors.corrected.aggregate.total", NULL, NULL, corrected_ever},
    {"ecc.errors.uncorrected.volatile.total", NULL, NULL, uncorrected_now},
    {"ecc.errors.uncorrected.aggregate.total", NULL, NULL, uncorrected_ever},
};

const struct field *field_by_name(const char *wanted) {
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
        const char *alias = FIELDS[i].alias;
        if (strcmp(FIELDS[i].name, wanted) == 0 || (alias && strcmp(alias, wanted) == 0))
            return &FIELDS[i];
    }
    return NULL;
}

void field_text(const struct field *field, device_t card, int has_unit, char *text, unsigned size) {
    int result = field->read(card, text, size);
    if (result == NVML_NOT_SUPPORTED) snprintf(text, size, "[N/A]");
    else if (result == NVML_GPU_IS_LOST) snprintf(text, size, "[GPU is lost]");
    else if (result != NVML_OK) snprintf(text, size, "[Unknown Error]");
    else if (has_unit && field->unit) {
        size_t length = strlen(text);
        snprintf(text + length, size - length, " %s", field->unit);
    }
}
