/* Events: the fault injector writes them into the state, and nvmlEventSetWait returns them.
 *
 * Waiters sleep on a futex, a word of the state that changes with every event. They also wake up
 * once a second: whoever wrote the event may have died before it could wake them.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../process/clock.h"
#include "../handles.h"
#include "session.h"

#define ALL_TYPES 0x1full

struct event_set {
    uint64_t seen; /* the number of the last event that was read */
    uint64_t types[MAX_CARDS];
};

static struct handles sets = HANDLES_OF(struct event_set);

void events_end(void) {
    struct event_set *set;
    for (size_t cursor = 0; (set = handle_next(&sets, &cursor));) handle_end(&sets, set);
}

CALL(nvmlEventSetCreate, struct event_set **set) {
    struct node *node = session_node();
    if (!node) return NVML_UNINITIALIZED;
    if (!set) return NVML_INVALID_ARGUMENT;
    *set = handle_new(&sets);
    if (!*set) return NVML_MEMORY;
    (*set)->seen = atomic_load(&node->state->last_event);
    return NVML_OK;
}

CALL(nvmlEventSetFree, struct event_set *set) {
    return handle_end(&sets, set) ? NVML_OK : NVML_INVALID_ARGUMENT;
}

GETTER(nvmlDeviceGetSupportedEventTypes, unsigned long long, ALL_TYPES)

CALL(nvmlDeviceRegisterEvents, device_t device, unsigned long long types, struct event_set *set) {
    WITH_CARD(card, device);
    if (!handle_is_live(&sets, set)) return NVML_INVALID_ARGUMENT;
    if (types & ~ALL_TYPES) return NVML_NOT_SUPPORTED;
    set->types[card_index(card)] |= types;
    return NVML_OK;
}

static int next_event(struct event_set *set, struct event_data *data) {
    const struct sim_state *state = session_node()->state;
    uint64_t last = atomic_load(&state->last_event);
    if (last - set->seen > MAX_EVENTS - 1) set->seen = last - (MAX_EVENTS - 1);
    while (set->seen < last) {
        const struct card_event *event = &state->events[++set->seen % MAX_EVENTS];
        uint32_t card = event->card, type = event->type;
        uint64_t value = event->data;
        /* The events are a ring. Another number means that the entry was overwritten while it was
         * read; the check must come after the fields were copied. */
        if (atomic_load(&event->sequence) != set->seen || card >= state->card_count) continue;
        device_t device = device_of(&state->cards[card]);
        if (!device || !(set->types[card] & type)) continue;
        *data = (struct event_data){device, type, value, ~0u, ~0u};
        return 1;
    }
    return 0;
}

static void sleep_on(const _Atomic uint32_t *word, uint32_t value, uint64_t nanoseconds) {
    struct timespec time = {(time_t)(nanoseconds / SECOND_NS), (long)(nanoseconds % SECOND_NS)};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0);
}

CALL(nvmlEventSetWait_v2, struct event_set *set, struct event_data *data, unsigned timeout_ms) {
    if (!session_node()) return NVML_UNINITIALIZED;
    if (!handle_is_live(&sets, set) || !data) return NVML_INVALID_ARGUMENT;
    const struct sim_state *state = session_node()->state;
    uint64_t end = now_ns() + timeout_ms * 1000000ull;
    for (;;) {
        uint32_t word = atomic_load(&state->event_futex);
        if (next_event(set, data)) return NVML_OK;
        uint64_t now = now_ns();
        if (now >= end) return NVML_TIMEOUT;
        sleep_on(&state->event_futex, word, end - now < SECOND_NS ? end - now : SECOND_NS);
        if (!session_node()) return NVML_UNINITIALIZED;
    }
}
ALSO(nvmlEventSetWait, nvmlEventSetWait_v2);
