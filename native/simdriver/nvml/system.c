/* Functions about the whole node: versions, names of processes, texts of errors. */
#include <stdio.h>
#include <string.h>

#include "session.h"

CALL(nvmlSystemGetDriverVersion, char *text, unsigned size) {
    struct node *node = session_node();
    return node ? copy_text(text, size, node->state->driver_version) : NVML_UNINITIALIZED;
}

CALL(nvmlSystemGetNVMLVersion, char *text, unsigned size) {
    char version[64];
    struct node *node = session_node();
    if (!node) return NVML_UNINITIALIZED;
    snprintf(version, sizeof version, "%u.%.32s", node->state->cuda_version / 1000,
             node->state->driver_version);
    return copy_text(text, size, version);
}

CALL(nvmlSystemGetCudaDriverVersion_v2, int *version) {
    const struct sim_state *state = gate_state(); /* may be called before nvmlInit */
    if (!version) return NVML_INVALID_ARGUMENT;
    if (!state) return NVML_LIBRARY_NOT_FOUND;
    *version = (int)state->cuda_version;
    return NVML_OK;
}
ALSO(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2);

CALL(nvmlSystemGetProcessName, unsigned pid, char *name, unsigned size) {
    char path[32], text[256];
    if (!session_node()) return NVML_UNINITIALIZED;
    if (!name || !size) return NVML_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (!file) return NVML_NOT_FOUND;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0; /* the first NUL ends the first argument, which is the program */
    snprintf(name, size, "%s", text);
    return NVML_OK;
}

CALL(nvmlUnitGetCount, unsigned *count) {
    if (!session_node()) return NVML_UNINITIALIZED;
    if (!count) return NVML_INVALID_ARGUMENT;
    *count = 0;
    return NVML_OK;
}

CALL(nvmlGetExcludedDeviceCount, unsigned *count) {
    return nvmlUnitGetCount(count);
}
ALSO(nvmlGetBlacklistDeviceCount, nvmlGetExcludedDeviceCount);

API const char *nvmlErrorString(int result);
API const char *nvmlErrorString(int result) {
    switch (result) {
    case NVML_OK: return "Success";
    case NVML_UNINITIALIZED: return "Uninitialized";
    case NVML_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_NOT_SUPPORTED: return "Not Supported";
    case NVML_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_NOT_FOUND: return "Not Found";
    case NVML_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_TIMEOUT: return "Timeout";
    case NVML_GPU_IS_LOST: return "GPU is lost";
    case NVML_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    case NVML_MEMORY: return "Insufficient Memory";
    case NVML_VERSION_MISMATCH: return "Argument version mismatch";
    /* Only by request; see gate.h. */
    case 5: return "Already Initialized";
    case 8: return "Insufficient External Power";
    case 11: return "Interrupt Request Issue";
    case 12: return "NVML Shared Library Not Found";
    case 13: return "Function Not Found";
    case 14: return "Corrupted infoROM";
    case 16: return "GPU requires reset";
    case 17: return "GPU access blocked by the operating system";
    case 19: return "In use by another client";
    case 21: return "No data";
    case 22: return "VGPU ECC not supported";
    case 23: return "Insufficient Resources";
    case 24: return "Frequency not supported";
    case 26: return "Deprecated";
    case 27: return "Not ready";
    case 28: return "GPU not found";
    case 29: return "Invalid state";
    case 30: return "Reset type not supported";
    default: return "Unknown Error";
    }
}

/* Each field has a result of its own. Only field 91, the number of NVLinks, is simulated. */
CALL(nvmlDeviceGetFieldValues, device_t device, int count, struct field_value *values) {
    WITH_CARD(card, device);
    if (!values || count < 0) return NVML_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        values[i].result = NVML_NOT_SUPPORTED;
        if (values[i].id != 91) continue;
        values[i].result = NVML_OK;
        values[i].type = 1; /* unsigned int */
        values[i].value.ui = card->fixed.link_count;
    }
    return NVML_OK;
}
