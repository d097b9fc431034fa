/* The gates of libcuda. */
#include "../gate.h"
#include "driver.h"
#include "threads.h"

#define ENTRY(name, version, is_per_thread, symbol) GATE(symbol)
#include "names.inc"
GATE_COMMON

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
