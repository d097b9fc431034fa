/* The node as a whole: versions, texts, names of processes. */
#include <stdio.h>
#include <string.h>

#include "session.h"

API int nvmlSystemGetDriverVersion(char *text, unsigned size);
API int nvmlSystemGetDriverVersion(char *text, unsigned size) {
    struct node *node = session_node();
    return node ? copy_text(text, size, node->state->driver_version) : UNINITIALIZED;
}

API int nvmlSystemGetNVMLVersion(char *text, unsigned size);
API int nvmlSystemGetNVMLVersion(char *text, unsigned size) {
    char version[64];
    struct node *node = session_node();
    if (!node) return UNINITIALIZED;
    snprintf(version, sizeof version, "%u.%.32s", node->state->cuda_version / 1000,
             node->state->driver_version);
    return copy_text(text, size, version);
}

API int nvmlSystemGetCudaDriverVersion_v2(int *version);
API int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    struct node *node = session_node();
    if (!node) return UNINITIALIZED;
    if (!version) return INVALID_ARGUMENT;
    *version = (int)node->state->cuda_version;
    return OK;
}
ALSO(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2);

API int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size);
API int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size) {
    char path[32], text[256];
    if (!session_node()) return UNINITIALIZED;
    if (!name || !size) return INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (!file) return NOT_FOUND;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0; /* up to the first word's end */
    snprintf(name, size, "%s", text);
    return OK;
}

API int nvmlUnitGetCount(unsigned *count);
API int nvmlUnitGetCount(unsigned *count) {
    if (!session_node()) return UNINITIALIZED;
    if (!count) return INVALID_ARGUMENT;
    *count = 0;
    return OK;
}

API int nvmlGetExcludedDeviceCount(unsigned *count);
API int nvmlGetExcludedDeviceCount(unsigned *count) {
    return nvmlUnitGetCount(count);
}
ALSO(nvmlGetBlacklistDeviceCount, nvmlGetExcludedDeviceCount);

API const char *nvmlErrorString(int result);
API const char *nvmlErrorString(int result) {
    switch (result) {
    case OK: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case GPU_IS_LOST: return "GPU is lost";
    case LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    case MEMORY: return "Insufficient Memory";
    case VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

/* One answer for each field: none of them is simulated but the number of NVLinks. */
API int nvmlDeviceGetFieldValues(device_t device, int count, struct field_value *values);
API int nvmlDeviceGetFieldValues(device_t device, int count, struct field_value *values) {
    WITH_CARD(card, device);
    if (!values || count < 0) return INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        values[i].result = NOT_SUPPORTED;
        if (values[i].id != 91) continue;
        values[i].result = OK;
        values[i].type = 1; /* unsigned int */
        values[i].value.ui = card->fixed.link_count;
    }
    return OK;
}
