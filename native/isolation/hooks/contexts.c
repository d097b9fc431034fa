/* Contexts: a process' first one on a card takes memory, and with a context goes all that was
 * allocated in it. */
#include <pthread.h>

#include "../core/settings.h"
#include "devices.h"
#include "ledger.h"
#include "pools.h"

#define MAX_DEVICES 64
#define MAX_CONTEXTS 256
#define UNASKED (-2)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int cards[MAX_DEVICES]; /* by device; one more than the number, 0: not asked yet */
static _Atomic int device_count;       /* 0: not known yet */
static struct {
    uint64_t id; /* 0: free */
    int device;
} contexts[MAX_CONTEXTS];
static int on_device[MAX_DEVICES];
static uint64_t primaries[MAX_DEVICES];
static _Atomic int context_count;
static _Atomic uint64_t only_context; /* while there is one */

int card_of(int device) {
    unsigned char id[16];
    char uuid[UUID_SIZE] = "GPU-";
    if (device < 0 || device >= MAX_DEVICES) return NO_CARD;
    int known = atomic_load_explicit(&cards[device], memory_order_relaxed);
    if (__builtin_expect(known != 0, 1)) return known + UNASKED;
    if (REAL(cuDeviceGetUuid)(id, device) != OK) return NO_CARD;
    char *end = uuid + 4;
    for (int i = 0; i < 16; i++) {
        *end++ = "0123456789abcdef"[id[i] >> 4];
        *end++ = "0123456789abcdef"[id[i] & 15];
        if (i == 3 || i == 5 || i == 7 || i == 9) *end++ = '-';
    }
    int card = limiter_card(uuid);
    atomic_store(&cards[device], card - UNASKED);
    return card;
}

/* Most programs see one card: then there is nothing to ask. */
bool current_device(int *device) {
    int count = atomic_load_explicit(&device_count, memory_order_relaxed);
    if (count == 0 && REAL(cuDeviceGetCount)(&count) == OK) atomic_store(&device_count, count);
    *device = 0;
    return count == 1 || REAL(cuCtxGetDevice)(device) == OK;
}

uint64_t current_context(void) {
    context_t context;
    if (atomic_load_explicit(&context_count, memory_order_relaxed) == 1)
        return atomic_load_explicit(&only_context, memory_order_relaxed);
    return REAL(cuCtxGetCurrent)(&context) == OK ? (uint64_t)(uintptr_t)context : 0;
}

/* With the mutex held. */
static int find(uint64_t id) {
    for (int i = 0; i < MAX_CONTEXTS; i++)
        if (contexts[i].id == id) return i;
    return -1;
}

static void count_contexts(void) {
    int count = 0;
    for (int i = 0; i < MAX_CONTEXTS; i++) {
        if (!contexts[i].id) continue;
        atomic_store(&only_context, contexts[i].id);
        count++;
    }
    atomic_store(&context_count, count);
}

static void remember(uint64_t id, int device) {
    int place = find(id) >= 0 ? -1 : find(0);
    if (place < 0) return;
    contexts[place].id = id;
    contexts[place].device = device;
    on_device[device]++;
    count_contexts();
    limiter_set_context(card_of(device), true);
}

static void forget(uint64_t id) {
    struct entry entry;
    int place = find(id);
    if (!id || place < 0) return;
    int device = contexts[place].device, card = card_of(device);
    contexts[place].id = 0;
    count_contexts();
    while (ledger_take_of(id, &entry)) limiter_give(entry.card, entry.bytes);
    pools_settle();
    if (--on_device[device]) return;
    limiter_give(card, settings()->context_bytes);
    limiter_set_context(card, false);
}

/* Pays for the first context on the device; false if there is no room for it. */
static bool begin(int device) {
    pthread_mutex_lock(&mutex);
    if (device < 0 || device >= MAX_DEVICES || on_device[device]) return true;
    return limiter_take(card_of(device), settings()->context_bytes);
}

static int end(int device, int result, uint64_t id) {
    bool is_device = device >= 0 && device < MAX_DEVICES;
    if (result == OK && is_device) remember(id, device);
    else if (is_device && !on_device[device])
        limiter_give(card_of(device), settings()->context_bytes);
    pthread_mutex_unlock(&mutex);
    return result;
}

static int no_room(void) {
    pthread_mutex_unlock(&mutex);
    return OUT_OF_MEMORY;
}

#define CREATE(made, device, call)                                      \
    do {                                                                \
        if (!limiter_is_on()) return call;                              \
        if (!begin(device)) return no_room();                           \
        int result = call;                                              \
        return end(device, result, result == OK ? (uint64_t)(uintptr_t)*(made) : 0); \
    } while (0)

int cuDevicePrimaryCtxRetain(context_t *context, int device);

static int retain_primary(context_t *context, int device) {
    int result = REAL(cuDevicePrimaryCtxRetain)(context, device);
    if (result == OK && device < MAX_DEVICES) primaries[device] = (uint64_t)(uintptr_t)*context;
    return result;
}

CALL(cuDevicePrimaryCtxRetain, context_t *context, int device) {
    if (!limiter_is_on()) return REAL(cuDevicePrimaryCtxRetain)(context, device);
    CREATE(context, device, retain_primary(context, device));
}

CALL(cuCtxCreate, context_t *context, unsigned flags, int device) {
    CREATE(context, device, REAL(cuCtxCreate)(context, flags, device));
}

CALL(cuCtxCreate_v2, context_t *context, unsigned flags, int device) {
    CREATE(context, device, REAL(cuCtxCreate_v2)(context, flags, device));
}

CALL(cuCtxCreate_v3, context_t *context, void *affinity, int count, unsigned flags, int device) {
    CREATE(context, device, REAL(cuCtxCreate_v3)(context, affinity, count, flags, device));
}

CALL(cuCtxCreate_v4, context_t *context, void *parameters, unsigned flags, int device) {
    CREATE(context, device, REAL(cuCtxCreate_v4)(context, parameters, flags, device));
}

CALL(cuGreenCtxCreate, green_context_t *context, void *resources, int device, unsigned flags) {
    CREATE(context, device, REAL(cuGreenCtxCreate)(context, resources, device, flags));
}

static int destroyed(int result, const void *context) {
    if (result != OK || !limiter_is_on()) return result;
    pthread_mutex_lock(&mutex);
    forget((uint64_t)(uintptr_t)context);
    pthread_mutex_unlock(&mutex);
    return result;
}

CALL(cuCtxDestroy, context_t context) {
    return destroyed(REAL(cuCtxDestroy)(context), context);
}

CALL(cuCtxDestroy_v2, context_t context) {
    return destroyed(REAL(cuCtxDestroy_v2)(context), context);
}

CALL(cuGreenCtxDestroy, green_context_t context) {
    return destroyed(REAL(cuGreenCtxDestroy)(context), context);
}

/* A primary context is counted by the driver: it goes when nobody retains it any more. */
static int primary_changed(int result, int device, bool is_reset) {
    unsigned flags;
    int is_active = 0;
    if (result != OK || !limiter_is_on() || device < 0 || device >= MAX_DEVICES) return result;
    if (!is_reset && REAL(cuDevicePrimaryCtxGetState)(device, &flags, &is_active) != OK) return OK;
    pthread_mutex_lock(&mutex);
    if (!is_active) forget(primaries[device]);
    pthread_mutex_unlock(&mutex);
    return result;
}

CALL(cuDevicePrimaryCtxRelease, int device) {
    return primary_changed(REAL(cuDevicePrimaryCtxRelease)(device), device, false);
}

CALL(cuDevicePrimaryCtxRelease_v2, int device) {
    return primary_changed(REAL(cuDevicePrimaryCtxRelease_v2)(device), device, false);
}

CALL(cuDevicePrimaryCtxReset, int device) {
    return primary_changed(REAL(cuDevicePrimaryCtxReset)(device), device, true);
}

CALL(cuDevicePrimaryCtxReset_v2, int device) {
    return primary_changed(REAL(cuDevicePrimaryCtxReset_v2)(device), device, true);
}

void contexts_after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
    for (int i = 0; i < MAX_CONTEXTS; i++) contexts[i].id = 0;
    for (int i = 0; i < MAX_DEVICES; i++) on_device[i] = 0;
    atomic_store(&context_count, 0);
}
