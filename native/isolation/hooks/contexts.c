/* Contexts. The first one of a process on a card takes memory, and destroying one frees all memory
 * that was allocated in it.
 *
 * The mutex is held while the driver creates or destroys a context. Whether it is the first one on
 * the card must not change in between, and the driver may give the handle of a destroyed context to
 * another thread at once. Lock order: this mutex, then those of pools.c, the ledger and
 * limiter.c. */
#include <pthread.h>

#include "../core/settings.h"
#include "graphs.h"
#include "pools.h"
#include "share.h"

#define MAX_DEVICES 64
#define MAX_CONTEXTS 256
#define LAST_DEFAULT_STREAM 2 /* the handles 0, 1 and 2 mean those of the current context */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* By device: the number of its card plus 1; 0: not known yet, or not in the limit file, to which it
 * may be added later. */
static _Atomic int cards[MAX_DEVICES];
static _Atomic int device_count; /* 0: not known yet */
static struct {
    uint64_t id; /* the handle; 0: the entry is free */
    int device;
    int attached; /* how often cuCtxAttach was called for it, and not undone */
} contexts[MAX_CONTEXTS];
static int on_device[MAX_DEVICES];      /* the number of contexts, by device */
static uint64_t primaries[MAX_DEVICES]; /* the primary context, by device */
static _Atomic int context_count;
static _Atomic uint64_t only_context; /* valid while context_count is 1 */

int card_of(int device) {
    unsigned char id[16];
    char uuid[UUID_SIZE] = "GPU-";
    if (device < 0 || device >= MAX_DEVICES) return NO_CARD;
    int known = atomic_load_explicit(&cards[device], memory_order_relaxed);
    if (__builtin_expect(known != 0, 1)) return known - 1;
    if (REAL(cuDeviceGetUuid)(id, device) != OK) return NO_CARD;
    char *end = uuid + 4;
    for (int i = 0; i < 16; i++) {
        *end++ = "0123456789abcdef"[id[i] >> 4];
        *end++ = "0123456789abcdef"[id[i] & 15];
        if (i == 3 || i == 5 || i == 7 || i == 9) *end++ = '-';
    }
    int card = limiter_card(uuid);
    if (card != NO_CARD) atomic_store(&cards[device], card + 1);
    return card;
}

int devices(void) {
    int count = atomic_load_explicit(&device_count, memory_order_relaxed);
    if (count == 0 && REAL(cuDeviceGetCount)(&count) == OK) atomic_store(&device_count, count);
    return count;
}

/* Most programs see one card only: then the driver need not be asked. */
bool current_device(int *device) {
    *device = 0;
    return devices() == 1 || REAL(cuCtxGetDevice)(device) == OK;
}

int device_of_stream(stream_t stream, int *device) {
    context_t owner, current = NULL;
    *device = 0;
    if (devices() == 1) return OK;
    if ((uintptr_t)stream <= LAST_DEFAULT_STREAM) return REAL(cuCtxGetDevice)(device);
    int result = REAL(cuStreamGetCtx)(stream, &owner);
    if (result != OK) return result;
    if (REAL(cuCtxGetCurrent)(&current) == OK && owner == current)
        return REAL(cuCtxGetDevice)(device);
    result = REAL(cuCtxPushCurrent_v2)(owner);
    if (result != OK) return result;
    result = REAL(cuCtxGetDevice)(device);
    REAL(cuCtxPopCurrent_v2)(&owner);
    return result;
}

uint64_t current_context(void) {
    context_t context;
    if (atomic_load_explicit(&context_count, memory_order_relaxed) == 1)
        return atomic_load_explicit(&only_context, memory_order_relaxed);
    return REAL(cuCtxGetCurrent)(&context) == OK ? (uint64_t)(uintptr_t)context : 0;
}

uint64_t context_of_stream(stream_t stream) {
    context_t owner;
    bool is_only = atomic_load_explicit(&context_count, memory_order_relaxed) == 1;
    if (is_only || (uintptr_t)stream <= LAST_DEFAULT_STREAM) return current_context();
    return REAL(cuStreamGetCtx)(stream, &owner) == OK ? (uint64_t)(uintptr_t)owner : 0;
}

/* The functions from here to forget are called with the mutex held. find(0) finds a free entry. */
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

static void add(uint64_t id, int device) {
    int place = find(id) >= 0 ? -1 : find(0);
    if (place < 0) return;
    contexts[place].id = id;
    contexts[place].device = device;
    contexts[place].attached = 0;
    on_device[device]++;
    count_contexts();
    limiter_set_context(card_of(device), true);
}

static void forget(uint64_t id) {
    uint64_t freed[MAX_CARDS] = {0};
    int place = find(id);
    if (!id || place < 0) return;
    int device = contexts[place].device, card = card_of(device);
    contexts[place].id = 0;
    count_contexts();
    ledger_take_of(id, freed);
    for (int i = 0; i < MAX_CARDS; i++) limiter_give(i, freed[i]);
    pools_end_context(id);
    graphs_settle();
    share_forget(id);
    if (--on_device[device]) return;
    limiter_give(card, settings()->context_bytes);
    limiter_set_context(card, false);
}

/* Reserves the memory of the first context on the device; false if there is not enough. Locks the
 * mutex in both cases: end_creation or refuse_creation unlocks it. */
static bool begin_creation(int device) {
    real_function(ID_cuDeviceGetUuid); /* finds the driver, for which no mutex may be held */
    pthread_mutex_lock(&mutex);
    if (device < 0 || device >= MAX_DEVICES || on_device[device]) return true;
    return limiter_take(card_of(device), settings()->context_bytes);
}

static int end_creation(int device, int result, uint64_t id) {
    bool is_device = device >= 0 && device < MAX_DEVICES;
    if (result == OK && is_device) add(id, device);
    else if (is_device && !on_device[device])
        limiter_give(card_of(device), settings()->context_bytes);
    pthread_mutex_unlock(&mutex);
    return result;
}

static int refuse_creation(void) {
    pthread_mutex_unlock(&mutex);
    return OUT_OF_MEMORY;
}

#define CREATE(made, device, call)                                      \
    do {                                                                \
        if (!limiter_is_on()) return call;                              \
        if (!begin_creation(device)) return refuse_creation();          \
        int result = call;                                              \
        return end_creation(device, result, result == OK ? (uint64_t)(uintptr_t)*(made) : 0); \
    } while (0)

int cuDevicePrimaryCtxRetain(context_t *context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuGreenCtxCreate(green_context_t *made, void *resources, int device, unsigned flags);
int cuGreenCtxDestroy(green_context_t green);

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

/* A green context retains the primary one, which ends with the last of both. So the primary one is
 * what is counted. */
static int create_green(green_context_t *made, void *resources, int device, unsigned flags,
                        context_t *primary) {
    int result = REAL(cuGreenCtxCreate)(made, resources, device, flags);
    if (result != OK) return result;
    result = retain_primary(primary, device);
    if (result == OK) REAL(cuDevicePrimaryCtxRelease_v2)(device);
    else REAL(cuGreenCtxDestroy)(*made);
    return result;
}

CALL(cuGreenCtxCreate, green_context_t *made, void *resources, int device, unsigned flags) {
    context_t primary;
    if (!limiter_is_on()) return REAL(cuGreenCtxCreate)(made, resources, device, flags);
    CREATE(&primary, device, create_green(made, resources, device, flags, &primary));
}

#define DESTROY(context, call)                                 \
    do {                                                       \
        if (!limiter_is_on()) return call;                     \
        pthread_mutex_lock(&mutex);                            \
        int result = call;                                     \
        if (result == OK) forget((uint64_t)(uintptr_t)context); \
        pthread_mutex_unlock(&mutex);                          \
        return result;                                         \
    } while (0)

CALL(cuCtxDestroy, context_t context) {
    DESTROY(context, REAL(cuCtxDestroy)(context));
}

CALL(cuCtxDestroy_v2, context_t context) {
    DESTROY(context, REAL(cuCtxDestroy_v2)(context));
}

/* The driver counts how often a primary context was retained, and destroys it with the last
 * release. With the mutex held. */
static void forget_inactive_primary(int device) {
    unsigned flags;
    int is_active = 0;
    if (device < 0 || device >= MAX_DEVICES) return;
    if (REAL(cuDevicePrimaryCtxGetState)(device, &flags, &is_active) != OK) return;
    if (!is_active) forget(primaries[device]);
}

#define CHANGE_PRIMARY(device, call)                       \
    do {                                                   \
        if (!limiter_is_on()) return call;                 \
        pthread_mutex_lock(&mutex);                        \
        int result = call;                                 \
        if (result == OK) forget_inactive_primary(device); \
        pthread_mutex_unlock(&mutex);                      \
        return result;                                     \
    } while (0)

CALL(cuGreenCtxDestroy, green_context_t green) {
    if (!limiter_is_on()) return REAL(cuGreenCtxDestroy)(green);
    pthread_mutex_lock(&mutex);
    int result = REAL(cuGreenCtxDestroy)(green);
    for (int device = 0; result == OK && device < MAX_DEVICES; device++)
        if (primaries[device] && find(primaries[device]) >= 0) forget_inactive_primary(device);
    pthread_mutex_unlock(&mutex);
    return result;
}

CALL(cuCtxAttach, context_t *context, unsigned flags) {
    if (!limiter_is_on()) return REAL(cuCtxAttach)(context, flags);
    pthread_mutex_lock(&mutex);
    int result = REAL(cuCtxAttach)(context, flags);
    int place = result == OK ? find((uint64_t)(uintptr_t)*context) : -1;
    if (place >= 0) contexts[place].attached++;
    pthread_mutex_unlock(&mutex);
    return result;
}

/* With the mutex held. */
static void detached(uint64_t id) {
    int place = id ? find(id) : -1;
    if (place < 0) return;
    if (primaries[contexts[place].device] == id) forget_inactive_primary(contexts[place].device);
    else if (contexts[place].attached) contexts[place].attached--;
    else forget(id);
}

CALL(cuCtxDetach, context_t context) {
    if (!limiter_is_on()) return REAL(cuCtxDetach)(context);
    pthread_mutex_lock(&mutex);
    int result = REAL(cuCtxDetach)(context);
    if (result == OK) detached((uint64_t)(uintptr_t)context);
    pthread_mutex_unlock(&mutex);
    return result;
}

CALL(cuDevicePrimaryCtxRelease, int device) {
    CHANGE_PRIMARY(device, REAL(cuDevicePrimaryCtxRelease)(device));
}

CALL(cuDevicePrimaryCtxRelease_v2, int device) {
    CHANGE_PRIMARY(device, REAL(cuDevicePrimaryCtxRelease_v2)(device));
}

CALL(cuDevicePrimaryCtxReset, int device) {
    CHANGE_PRIMARY(device, REAL(cuDevicePrimaryCtxReset)(device));
}

CALL(cuDevicePrimaryCtxReset_v2, int device) {
    CHANGE_PRIMARY(device, REAL(cuDevicePrimaryCtxReset_v2)(device));
}

void contexts_after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
    for (int i = 0; i < MAX_CONTEXTS; i++) contexts[i].id = 0;
    for (int i = 0; i < MAX_DEVICES; i++) on_device[i] = 0;
    atomic_store(&context_count, 0);
}
