#define _GNU_SOURCE
#include "allocations.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "addresses.h"
#include "pools.h"

#define GRANULE 512u
#define PAGE 4096u

/* A hash table with open addressing, by base. Removing an entry moves the rest of its run up, so
 * that there are no tombstones. */
static struct allocation *table;
static size_t capacity; /* a power of two */
static size_t taken;

static size_t round_up(size_t size, size_t multiple) {
    return (size + multiple - 1) / multiple * multiple;
}

static size_t home(pointer_t base) {
    return (size_t)((base >> 12) * 0x9e3779b97f4a7c15ull >> 20) & (capacity - 1);
}

static struct allocation *place_of(pointer_t base) {
    for (size_t i = home(base);; i = (i + 1) & (capacity - 1))
        if (table[i].base == base || !table[i].base) return &table[i];
}

static bool insert(const struct allocation *allocation) {
    if (taken * 2 >= capacity) {
        struct allocation *old = table;
        size_t old_capacity = capacity, wanted = capacity ? capacity * 2 : 256;
        struct allocation *new = calloc(wanted, sizeof *new);
        if (!new) return false;
        table = new;
        capacity = wanted;
        for (size_t i = 0; i < old_capacity; i++)
            if (old[i].base) *place_of(old[i].base) = old[i];
        free(old);
    }
    *place_of(allocation->base) = *allocation;
    taken++;
    return true;
}

static void remove_entry(struct allocation *entry) {
    size_t hole = (size_t)(entry - table);
    taken--;
    for (size_t i = (hole + 1) & (capacity - 1); table[i].base; i = (i + 1) & (capacity - 1)) {
        size_t distance = (i - home(table[i].base)) & (capacity - 1);
        if (distance < ((i - hole) & (capacity - 1))) continue;
        table[hole] = table[i];
        hole = i;
    }
    table[hole].base = 0;
}

static struct allocation *exact(pointer_t base) {
    if (!capacity || !base) return NULL;
    struct allocation *entry = place_of(base);
    return entry->base ? entry : NULL;
}

static struct allocation *containing(pointer_t pointer) {
    struct allocation *entry = exact(pointer);
    for (size_t i = 0; !entry && i < capacity; i++)
        if (table[i].base && pointer - table[i].base < table[i].size) entry = &table[i];
    return entry;
}

static bool take(const struct allocation *allocation) {
    if (allocation->pool) return pool_take(allocation->pool, allocation->charged);
    if (!allocation->charged) return true;
    return allocation->kind == MANAGED ? take_managed(allocation->device, allocation->charged)
                                       : take_memory(allocation->device, allocation->charged);
}

static void give_back(const struct allocation *allocation, uint64_t free_ns) {
    if (allocation->pool) pool_give_back(allocation->pool, allocation->charged, free_ns);
    else if (allocation->charged && allocation->kind == MANAGED)
        give_back_managed(allocation->device, allocation->charged);
    else if (allocation->charged) give_back_memory(allocation->device, allocation->charged);
}

static void *map_memory(size_t size) {
    void *memory = addresses_take(size, PAGE);
    if (!memory || !mprotect(memory, size, PROT_READ | PROT_WRITE)) return memory;
    addresses_give(memory, size);
    return NULL;
}

static void free_memory(const struct allocation *allocation, uint64_t free_ns) {
    if (allocation->mapped) addresses_give((void *)(uintptr_t)allocation->base, allocation->mapped);
    give_back(allocation, free_ns);
}

int allocate(const struct context *context, int device, enum kind kind, size_t size,
             struct pool *pool, pointer_t *pointer) {
    if (!size || !pointer) return INVALID_VALUE;
    if (size > SIZE_MAX / 2) return OUT_OF_MEMORY;
    struct allocation allocation = {
        .size = size,
        .charged = kind == ON_HOST ? 0 : round_up(size, GRANULE),
        .mapped = round_up(size, PAGE),
        .device = device,
        .kind = kind,
        .context = context,
        .pool = pool,
    };
    int result = OUT_OF_MEMORY;
    driver_lock();
    if (take(&allocation)) {
        void *memory = map_memory(allocation.mapped);
        allocation.base = (pointer_t)(uintptr_t)memory;
        if (memory && insert(&allocation)) {
            *pointer = allocation.base;
            result = OK;
        } else {
            if (memory) addresses_give(memory, allocation.mapped);
            give_back(&allocation, 0);
        }
    }
    driver_unlock();
    return result;
}

int remember(const struct allocation *allocation) {
    driver_lock();
    int result = exact(allocation->base) ? INVALID_VALUE : insert(allocation) ? OK : OUT_OF_MEMORY;
    driver_unlock();
    return result;
}

int forget(pointer_t base, enum kind kind, struct allocation *forgotten) {
    driver_lock();
    struct allocation *entry = exact(base);
    bool found = entry && entry->kind == kind;
    if (found) {
        *forgotten = *entry;
        remove_entry(entry);
    }
    driver_unlock();
    return found ? OK : INVALID_VALUE;
}

int release_locked(pointer_t pointer, enum kind kind, uint64_t free_ns) {
    struct allocation *entry = exact(pointer);
    bool found = entry && (entry->kind == kind || (kind == ON_DEVICE && entry->kind == MANAGED));
    if (found) {
        free_memory(entry, free_ns);
        remove_entry(entry);
    }
    return found ? OK : INVALID_VALUE;
}

int release(pointer_t pointer, enum kind kind, uint64_t free_ns) {
    driver_lock();
    int result = release_locked(pointer, kind, free_ns);
    driver_unlock();
    return result;
}

bool find_allocation(pointer_t pointer, struct allocation *found) {
    driver_lock();
    struct allocation *entry = containing(pointer);
    if (entry) *found = *entry;
    driver_unlock();
    return entry != NULL;
}

bool is_ours(pointer_t pointer, size_t size) {
    struct allocation found;
    return find_allocation(pointer, &found) && size <= found.size - (pointer - found.base);
}

void allocations_drop(const struct context *context) {
    for (size_t i = 0; i < capacity; i++) {
        /* A loop: removing an entry may move another one into its place. */
        while (table[i].base && table[i].context == context) {
            free_memory(&table[i], 0);
            remove_entry(&table[i]);
        }
    }
}
