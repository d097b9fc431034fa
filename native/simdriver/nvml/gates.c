/* The gates of libnvidia-ml. nvmlErrorString has none: it has no result. */
#include "../gate.h"

#include <string.h>

#include "session.h"

#define ENTRY(function) GATE(function)
#include "names.inc"
GATE(nvmlInternalGetExportTable)
GATE_COMMON

int gate_refusal(const char *call) {
    static const char *const EARLY[] = {
        "nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlInternalGetExportTable",
        "nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2", NULL,
    };
    return session_node() || is_one_of(call, EARLY) ? PASS : NVML_UNINITIALIZED;
}

/* Functions about one card have its handle as their first argument, except those that find it by
 * its index. */
int gate_card(const struct sim_state *state, const char *call, const uintptr_t *arguments) {
    struct card *card;
    device_t device = (device_t)arguments[0];
    if (strncmp(call, "nvmlDeviceGetHandleByIndex", 26) == 0) device = device_at((int)arguments[0]);
    int result = find_card(device, &card);
    return result == NVML_OK || result == NVML_GPU_IS_LOST ? (int)(card - state->cards) : -1;
}
