/* Events: what the injector announces, for those who wait for it.
 *
 * Waiters sleep on a word of the state that changes with every event. They also look once a second,
 * should the one who announced it not have been able to wake them.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../engine.h"
#include "session.h"

#define ALL_TYPES 0x1full

struct event_set {
    uint64_t seen; /* the last event that was looked at */
    uint64_t types[MAX_CARDS];
};

API int nvmlEventSetCreate(struct event_set **set);
API int nvmlEventSetCreate(struct event_set **set) {
    struct node *node = session_node();
    if (!node) return UNINITIALIZED;
    if (!set) return INVALID_ARGUMENT;
    *set = calloc(1, sizeof **set);
    if (!*set) return MEMORY;
    (*set)->seen = atomic_load(&node->state->last_event);
    return OK;
}

API int nvmlEventSetFree(struct event_set *set);
API int nvmlEventSetFree(struct event_set *set) {
    free(set);
    return OK;
}

GETTER(nvmlDeviceGetSupportedEventTypes, unsigned long long, ALL_TYPES)

API int nvmlDeviceRegisterEvents(device_t device, unsigned long long types, struct event_set *set);
API int nvmlDeviceRegisterEvents(device_t device, unsigned long long types,
                                 struct event_set *set) {
    WITH_CARD(card, device);
    if (!set) return INVALID_ARGUMENT;
    if (types & ~ALL_TYPES) return NOT_SUPPORTED;
    set->types[card_index(card)] |= types;
    return OK;
}

static int next_event(struct event_set *set, struct event_data *data) {
    const struct sim_state *state = session_node()->state;
    uint64_t last = atomic_load(&state->last_event);
    if (last - set->seen > MAX_EVENTS - 1) set->seen = last - (MAX_EVENTS - 1);
    while (set->seen < last) {
        const struct card_event *event = &state->events[++set->seen % MAX_EVENTS];
        uint32_t card = event->card, type = event->type;
        uint64_t value = event->data;
        /* Else it was overwritten meanwhile. */
        if (atomic_load(&event->sequence) != set->seen || card >= state->card_count) continue;
        device_t device = device_of(&state->cards[card]);
        if (!device || !(set->types[card] & type)) continue;
        *data = (struct event_data){device, type, value, ~0u, ~0u};
        return 1;
    }
    return 0;
}

static void sleep_on(const _Atomic uint32_t *word, uint32_t value, uint64_t nanoseconds) {
    struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0);
}

API int nvmlEventSetWait_v2(struct event_set *set, struct event_data *data, unsigned timeout_ms);
API int nvmlEventSetWait_v2(struct event_set *set, struct event_data *data, unsigned timeout_ms) {
    if (!session_node()) return UNINITIALIZED;
    if (!set || !data) return INVALID_ARGUMENT;
    const struct sim_state *state = session_node()->state;
    uint64_t end = now_ns() + timeout_ms * 1000000ull;
    for (;;) {
        uint32_t word = atomic_load(&state->event_futex);
        if (next_event(set, data)) return OK;
        uint64_t now = now_ns();
        if (now >= end) return TIMEOUT;
        sleep_on(&state->event_futex, word, end - now < 1000000000 ? end - now : 1000000000);
        if (!session_node()) return UNINITIALIZED;
    }
}
ALSO(nvmlEventSetWait, nvmlEventSetWait_v2);
