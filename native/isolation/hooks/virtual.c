/* Virtual memory management: memory is created without an address and then mapped. It is in use
 * until all its handles are released and it is mapped nowhere. The ledger counts handles and
 * mappings as references.
 *
 * The mutex is held while the driver maps, unmaps or releases, and until the ledger has the change:
 * as soon as the driver has freed memory, another thread may get the same handle or map to the same
 * address, and must be recorded after. Lock order: this mutex, then those of the ledger and
 * limiter.c. */
#include "virtual.h"

#include <pthread.h>

#include "charges.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int cuMemRelease(physical_t handle);
int cuMemRetainAllocationHandle(physical_t *handle, void *address);
int cuMemMap(pointer_t pointer, size_t size, size_t offset, physical_t handle,
             unsigned long long flags);
int cuMemUnmap(pointer_t pointer, size_t size);

#define LOCKED(call)                    \
    do {                                \
        pthread_mutex_lock(&mutex);     \
        int result = call;              \
        pthread_mutex_unlock(&mutex);   \
        return result;                  \
    } while (0)

void virtual_after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
}

/* Creating may take long, and needs no lock: nobody else has the handle until it is recorded. */
CALL(cuMemCreate, physical_t *made, size_t size, const struct physical_properties *properties,
     unsigned long long flags) {
    if (!limiter_is_on() || !made || !properties || properties->location.type != LOCATION_DEVICE)
        return REAL(cuMemCreate)(made, size, properties, flags);
    int card = card_of(properties->location.id);
    if (!reserve(card, size)) return OUT_OF_MEMORY;
    int created = REAL(cuMemCreate)(made, size, properties, flags);
    LOCKED(record_charge(created, PHYSICAL, *made, card, size));
}

/* The functions from here to unmap are called with the mutex held. */
static void drop_reference(uint64_t key) {
    struct entry entry;
    if (ledger_release(key, &entry)) limiter_give(entry.card, entry.bytes);
}

static int release(physical_t handle) {
    int result = REAL(cuMemRelease)(handle);
    if (result == OK) drop_reference(ledger_key(PHYSICAL, handle));
    return result;
}

static int retain(physical_t *handle, void *address) {
    int result = REAL(cuMemRetainAllocationHandle)(handle, address);
    if (result == OK) ledger_retain(ledger_key(PHYSICAL, *handle));
    return result;
}

/* Mappings of memory that is not counted (of the host, of other processes) are recorded, too,
 * without a target: cuMemUnmap has to get past them. */
static int map(pointer_t pointer, size_t size, size_t offset, physical_t handle,
               unsigned long long flags) {
    struct entry replaced;
    int result = REAL(cuMemMap)(pointer, size, offset, handle, flags);
    if (result != OK) return result;
    struct entry mapping = {ledger_key(MAPPING, pointer), size, 0, ledger_key(PHYSICAL, handle),
                            NO_CARD, 1};
    if (!ledger_retain(mapping.target)) mapping.target = 0;
    /* An older mapping at this address was undone in a way that was not seen. */
    if (ledger_put(&mapping, &replaced) && replaced.key && replaced.target)
        drop_reference(replaced.target);
    return result;
}

/* One call may undo several mappings that lie side by side in the range. */
static int unmap(pointer_t pointer, size_t size) {
    struct entry mapping;
    int result = REAL(cuMemUnmap)(pointer, size);
    if (result != OK) return result;
    for (pointer_t at = pointer, end = pointer + size; at < end; at += mapping.bytes) {
        if (!ledger_take(ledger_key(MAPPING, at), &mapping) || !mapping.bytes) break;
        if (mapping.target) drop_reference(mapping.target);
    }
    return result;
}

CALL(cuMemRelease, physical_t handle) {
    if (!limiter_is_on()) return REAL(cuMemRelease)(handle);
    LOCKED(release(handle));
}

CALL(cuMemRetainAllocationHandle, physical_t *handle, void *address) {
    if (!limiter_is_on()) return REAL(cuMemRetainAllocationHandle)(handle, address);
    LOCKED(retain(handle, address));
}

CALL(cuMemMap, pointer_t pointer, size_t size, size_t offset, physical_t handle,
     unsigned long long flags) {
    if (!limiter_is_on()) return REAL(cuMemMap)(pointer, size, offset, handle, flags);
    LOCKED(map(pointer, size, offset, handle, flags));
}

CALL(cuMemUnmap, pointer_t pointer, size_t size) {
    if (!limiter_is_on()) return REAL(cuMemUnmap)(pointer, size);
    LOCKED(unmap(pointer, size));
}
