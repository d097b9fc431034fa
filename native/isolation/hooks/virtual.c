/* Virtual memory management: memory is created without an address and then mapped. It is in use
 * until all its handles are released and it is mapped nowhere. The ledger counts handles and
 * mappings as references. */
#include "charges.h"

CALL(cuMemCreate, physical_t *made, size_t size, const struct physical_properties *properties,
     unsigned long long flags) {
    if (!limiter_is_on() || !made || !properties || properties->location.type != LOCATION_DEVICE)
        return REAL(cuMemCreate)(made, size, properties, flags);
    int card = card_of(properties->location.id);
    if (!reserve(card, size)) return OUT_OF_MEMORY;
    int result = REAL(cuMemCreate)(made, size, properties, flags);
    return record_charge(result, PHYSICAL, *made, card, size);
}

static void drop_reference(uint64_t key) {
    struct entry entry;
    if (ledger_release(key, &entry)) limiter_give(entry.card, entry.bytes);
}

CALL(cuMemRelease, physical_t handle) {
    int result = REAL(cuMemRelease)(handle);
    if (result == OK && limiter_is_on()) drop_reference(ledger_key(PHYSICAL, handle));
    return result;
}

CALL(cuMemRetainAllocationHandle, physical_t *handle, void *address) {
    int result = REAL(cuMemRetainAllocationHandle)(handle, address);
    if (result == OK && limiter_is_on()) ledger_retain(ledger_key(PHYSICAL, *handle));
    return result;
}

CALL(cuMemMap, pointer_t pointer, size_t size, size_t offset, physical_t handle,
     unsigned long long flags) {
    uint64_t key = ledger_key(PHYSICAL, handle);
    int result = REAL(cuMemMap)(pointer, size, offset, handle, flags);
    if (result != OK || !limiter_is_on() || !ledger_retain(key)) return result;
    struct entry mapping = {ledger_key(MAPPING, pointer), size, 0, key, NO_CARD, 1}, replaced;
    ledger_put(&mapping, &replaced);
    return result;
}

/* One call may undo several mappings that lie side by side in the range. */
CALL(cuMemUnmap, pointer_t pointer, size_t size) {
    struct entry mapping;
    int result = REAL(cuMemUnmap)(pointer, size);
    if (result != OK || !limiter_is_on()) return result;
    for (pointer_t at = pointer, end = pointer + size; at < end; at += mapping.bytes) {
        if (!ledger_take(ledger_key(MAPPING, at), &mapping) || !mapping.bytes) break;
        drop_reference(mapping.target);
    }
    return result;
}
