/* The gates of libcuda. */
#include "../gate.h"
#include "driver.h"
#include "threads.h"

#define ENTRY(name, version, is_per_thread, symbol) GATE(symbol)
#include "names.inc"
GATE_COMMON

int gate_refusal(const char *call) {
    static const char *const EARLY[] = {
        "cuInit", "cuDriverGetVersion", "cuGetProcAddress", "cuGetProcAddress_v2",
        "cuGetErrorName", "cuGetErrorString", "cuGetExportTable", NULL,
    };
    return driver_now() || is_one_of(call, EARLY) ? PASS : NOT_INITIALIZED;
}

/* The card of the calling thread's current context. */
int gate_card(const struct sim_state *state, const char *call, const uintptr_t *arguments) {
    struct context *context;
    (void)state;
    (void)call;
    (void)arguments;
    struct driver *driver = driver_now();
    if (!driver || thread_context(&context) != OK) return -1;
    return driver->cards[context->device];
}
