#include "contexts.h"

#include "../../process/clock.h"
#include "../slots.h"
#include "allocations.h"
#include "../handles.h"
#include "modules.h"
#include "pools.h"
#include "streams.h"
#include "threads.h"

#define MODE_PROHIBITED 2
#define MODE_EXCLUSIVE 3

CALL_OF(cuDevicePrimaryCtxRelease_v2, int device);

static struct handles others = HANDLES_OF(struct context); /* the contexts that are not primary */
static uint64_t last_id;
static int on_device[MAX_CARDS]; /* the number of contexts of this process, by device */

void context_wait(const struct context *context) {
    sleep_until_ns(atomic_load(&context->done_ns));
}

void context_extend(struct context *context, uint64_t done_ns) {
    uint64_t known = atomic_load(&context->done_ns);
    while (known < done_ns && !atomic_compare_exchange_weak(&context->done_ns, &known, done_ns)) {
    }
}

static bool is_taken_by_another(const struct driver *driver, int card) {
    const struct sim_state *state = driver->node.state;
    for (int slot = 0; slot < (int)atomic_load(&state->slots_seen) && slot < MAX_SLOTS; slot++)
        if (slot != driver->slot && atomic_load(&state->slots[slot].contexts) >> card & 1)
            return true;
    return false;
}

/* The functions from here to is_known are called with the lock held.
 *
 * Counts one more context on the device. The first one takes memory. */
static int add_context(struct driver *driver, int device) {
    struct card *card = card_at(device);
    int index = driver->cards[device];
    int problem = device_health(device);
    if (problem) return problem;
    unsigned mode = atomic_load(&card->live.compute_mode);
    if (mode == MODE_PROHIBITED) return DEVICE_UNAVAILABLE;
    if (mode == MODE_EXCLUSIVE) {
        slots_reap(&driver->node, driver->slot);
        if (is_taken_by_another(driver, index)) return DEVICE_UNAVAILABLE;
    }
    if (on_device[device] == 0) {
        if (!take_memory(device, card->fixed.context_bytes)) return OUT_OF_MEMORY;
        atomic_fetch_or(&driver->node.state->slots[driver->slot].contexts, 1u << index);
    }
    on_device[device]++;
    return OK;
}

static void begin(struct context *context, int device, unsigned flags) {
    context->id = ++last_id;
    context->device = device;
    context->flags = flags;
    context->is_alive = true;
}

/* Frees all that belongs to the context. The last context on a device also gives back the memory
 * that the first one took. */
static void remove_context(struct driver *driver, struct context *context) {
    int device = context->device;
    context->is_alive = false;
    streams_end(context);
    modules_end(context);
    arrays_end(context);
    external_end(context);
    allocations_drop(context);
    if (--on_device[device]) return;
    pools_end(device);
    graphs_end(device);
    give_back_memory(device, card_at(device)->fixed.context_bytes);
    atomic_fetch_and(&driver->node.state->slots[driver->slot].contexts,
                     ~(1u << driver->cards[device]));
}

static bool is_primary(const struct driver *driver, const struct context *context) {
    return context >= driver->primaries && context < driver->primaries + driver->card_count;
}

static bool is_known(const struct driver *driver, const struct context *context) {
    if (is_primary(driver, context)) return context->is_alive;
    return handle_is_live(&others, context) && context->is_alive;
}

int context_check(const struct context *context) {
    WITH_DRIVER(driver);
    driver_lock();
    bool found = is_known(driver, context);
    driver_unlock();
    return found ? OK : INVALID_CONTEXT;
}

/* How threads wait (0, 1, 2 or 4), and switches. */
static bool is_flags(unsigned flags) {
    unsigned waiting = flags & 7;
    return flags <= 0xff && (waiting <= 2 || waiting == 4);
}

static int create(struct context **made, unsigned flags, int device) {
    WITH_DEVICE(device);
    if (!made || !is_flags(flags)) return INVALID_VALUE;
    struct context *context = handle_new(&others);
    if (!context) return OUT_OF_MEMORY;
    driver_lock();
    int result = add_context(driver, device);
    if (result == OK) begin(context, device, flags);
    driver_unlock();
    if (result != OK) {
        handle_end(&others, context);
        return result;
    }
    thread_push(context);
    *made = context;
    return OK;
}

CALL(cuCtxCreate_v2, struct context **made, unsigned flags, int device) {
    return create(made, flags, device);
}
ALSO(cuCtxCreate, cuCtxCreate_v2);

CALL(cuCtxCreate_v3, struct context **made, void *affinity, int count, unsigned flags, int device) {
    (void)affinity;
    (void)count;
    return create(made, flags, device);
}

CALL(cuCtxCreate_v4, struct context **made, void *parameters, unsigned flags, int device) {
    (void)parameters;
    return create(made, flags, device);
}

/* A thread that has the context in its stack keeps it there, and its calls fail. */
CALL(cuCtxDestroy_v2, struct context *context) {
    WITH_DRIVER(driver);
    driver_lock();
    bool found = handle_is_live(&others, context) && context->is_alive;
    if (found) remove_context(driver, context);
    driver_unlock();
    if (!found) return INVALID_CONTEXT;
    if (thread_top() == context) thread_pop();
    handle_end(&others, context);
    return OK;
}
ALSO(cuCtxDestroy, cuCtxDestroy_v2);

CALL(cuCtxAttach, struct context **context, unsigned flags) {
    WITH_CONTEXT(current);
    if (!context || flags) return INVALID_VALUE;
    driver_lock();
    current->retained++;
    driver_unlock();
    *context = current;
    return OK;
}

/* The opposite of cuCtxAttach and of cuCtxCreate. */
CALL(cuCtxDetach, struct context *context) {
    WITH_CONTEXT(current);
    if (context != current) return INVALID_CONTEXT;
    if (is_primary(driver_now(), context)) return cuDevicePrimaryCtxRelease_v2(context->device);
    driver_lock();
    bool is_last = !context->retained;
    if (!is_last) context->retained--;
    driver_unlock();
    return is_last ? cuCtxDestroy_v2(context) : OK;
}

CALL(cuDevicePrimaryCtxRetain, struct context **context, int device) {
    WITH_DEVICE(device);
    if (!context) return INVALID_VALUE;
    struct context *primary = &driver->primaries[device];
    driver_lock();
    int result = primary->is_alive ? device_health(device) : add_context(driver, device);
    if (result == OK) {
        if (!primary->is_alive) begin(primary, device, primary->flags);
        primary->retained++;
        *context = primary;
    }
    driver_unlock();
    return result;
}

CALL(cuDevicePrimaryCtxRelease_v2, int device) {
    WITH_DEVICE(device);
    struct context *primary = &driver->primaries[device];
    driver_lock();
    int result = primary->retained ? OK : INVALID_CONTEXT;
    if (result == OK && --primary->retained == 0 && primary->is_alive)
        remove_context(driver, primary);
    driver_unlock();
    return result;
}
ALSO(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

/* Who has retained the context releases it afterwards, too. */
CALL(cuDevicePrimaryCtxReset_v2, int device) {
    WITH_DEVICE(device);
    struct context *primary = &driver->primaries[device];
    driver_lock();
    if (primary->is_alive) remove_context(driver, primary);
    driver_unlock();
    return OK;
}
ALSO(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

CALL(cuDevicePrimaryCtxGetState, int device, unsigned *flags, int *is_active) {
    WITH_DEVICE(device);
    if (!flags || !is_active) return INVALID_VALUE;
    *flags = driver->primaries[device].flags;
    *is_active = driver->primaries[device].is_alive;
    return OK;
}

CALL(cuDevicePrimaryCtxSetFlags_v2, int device, unsigned flags) {
    WITH_DEVICE(device);
    if (!is_flags(flags)) return INVALID_VALUE;
    driver->primaries[device].flags = flags;
    return OK;
}
ALSO(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

CALL(cuCtxPushCurrent_v2, struct context *context) {
    int problem = context_check(context);
    if (problem) return problem;
    return thread_push(context) ? OK : OUT_OF_MEMORY;
}
ALSO(cuCtxPushCurrent, cuCtxPushCurrent_v2);

CALL(cuCtxPopCurrent_v2, struct context **context) {
    WITH_DRIVER(driver);
    struct context *top = thread_pop();
    if (context) *context = top;
    return top ? OK : INVALID_CONTEXT;
}
ALSO(cuCtxPopCurrent, cuCtxPopCurrent_v2);

CALL(cuCtxSetCurrent, struct context *context) {
    int problem = context ? context_check(context) : driver_now() ? OK : NOT_INITIALIZED;
    if (problem) return problem;
    return thread_replace_top(context) ? OK : OUT_OF_MEMORY;
}

CALL(cuCtxGetCurrent, struct context **context) {
    WITH_DRIVER(driver);
    if (!context) return INVALID_VALUE;
    *context = thread_top();
    return OK;
}
