/* Virtual memory management: addresses are reserved, memory is created, and one is mapped to the
 * other. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocations.h"

#define GRANULARITY (2ull << 20)

/* Memory without an address. It is given back when its handles are released and it is mapped
 * nowhere. */
struct physical {
    struct physical *next;
    int device;
    size_t size;
    int fd;
    int uses; /* the number of handles and mappings */
};

struct mapping {
    struct mapping *next;
    pointer_t start;
    size_t size;
    struct physical *physical;
};

static struct physical *physicals;
static struct mapping *mappings;

/* With the lock held. */
static bool is_known(const struct physical *wanted) {
    for (const struct physical *physical = physicals; physical; physical = physical->next)
        if (physical == wanted) return true;
    return false;
}

static void drop(struct physical *physical) {
    if (--physical->uses) return;
    struct physical **link = &physicals;
    while (*link != physical) link = &(*link)->next;
    *link = physical->next;
    give_back_memory(physical->device, physical->size);
    close(physical->fd);
    free(physical);
}

CALL(cuMemGetAllocationGranularity, size_t *granularity,
     const struct physical_properties *properties, int option) {
    WITH_DRIVER(driver);
    (void)option;
    if (!granularity || !properties) return INVALID_VALUE;
    *granularity = GRANULARITY;
    return OK;
}

CALL(cuMemCreate, struct physical **made, size_t size, const struct physical_properties *properties,
     unsigned long long flags) {
    WITH_DRIVER(driver);
    if (!made || !properties || flags || !size || size % GRANULARITY) return INVALID_VALUE;
    if (properties->location.type != LOCATION_DEVICE) return NOT_SUPPORTED;
    int device = properties->location.id;
    if (device < 0 || device >= driver->card_count) return INVALID_DEVICE;
    int problem = device_health(device);
    if (problem) return problem;
    struct physical *physical = calloc(1, sizeof *physical);
    if (!physical) return OUT_OF_MEMORY;
    *physical = (struct physical){.device = device, .size = size, .uses = 1};
    /* As a system call: the function memfd_create is newer than glibc 2.17. */
    physical->fd = (int)syscall(SYS_memfd_create, "gpupool-device-memory", 1 /* close on exec */);
    if (physical->fd < 0 || ftruncate(physical->fd, (off_t)size)) goto failed;
    driver_lock();
    bool is_room = take_memory(device, size);
    if (is_room) {
        physical->next = physicals;
        physicals = physical;
    }
    driver_unlock();
    if (!is_room) goto failed;
    *made = physical;
    return OK;
failed:
    if (physical->fd >= 0) close(physical->fd);
    free(physical);
    return OUT_OF_MEMORY;
}

CALL(cuMemRelease, struct physical *physical) {
    WITH_DRIVER(driver);
    driver_lock();
    bool found = is_known(physical);
    if (found) drop(physical);
    driver_unlock();
    return found ? OK : INVALID_VALUE;
}

CALL(cuMemAddressReserve, pointer_t *pointer, size_t size, size_t alignment, pointer_t wanted,
     unsigned long long flags) {
    WITH_DRIVER(driver);
    (void)wanted;
    if (!pointer || flags || !size || size % GRANULARITY || alignment > GRANULARITY)
        return INVALID_VALUE;
    size_t whole = size + GRANULARITY;
    char *memory = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return OUT_OF_MEMORY;
    char *start = (char *)(((uintptr_t)memory + GRANULARITY - 1) / GRANULARITY * GRANULARITY);
    if (start > memory) munmap(memory, (size_t)(start - memory));
    munmap(start + size, (size_t)(memory + whole - (start + size)));
    struct allocation range = {.base = (pointer_t)(uintptr_t)start, .size = size, .mapped = size,
                               .kind = RESERVED};
    *pointer = range.base;
    return remember(&range);
}

CALL(cuMemAddressFree, pointer_t pointer, size_t size) {
    struct allocation range;
    WITH_DRIVER(driver);
    int result = forget(pointer, RESERVED, &range);
    if (result != OK) return result;
    if (range.size != size) {
        remember(&range);
        return INVALID_VALUE;
    }
    munmap((void *)(uintptr_t)pointer, size);
    return OK;
}

CALL(cuMemMap, pointer_t pointer, size_t size, size_t offset, struct physical *physical,
     unsigned long long flags) {
    struct allocation range;
    WITH_DRIVER(driver);
    if (flags || !find_allocation(pointer, &range) || range.kind != RESERVED ||
        size > range.size - (pointer - range.base))
        return INVALID_VALUE;
    struct mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping) return OUT_OF_MEMORY;
    int result = INVALID_VALUE;
    driver_lock();
    if (is_known(physical) && offset <= physical->size && size <= physical->size - offset) {
        void *place = mmap((void *)(uintptr_t)pointer, size, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED, physical->fd, (off_t)offset);
        result = place == MAP_FAILED ? OUT_OF_MEMORY : OK;
    }
    if (result == OK) {
        *mapping = (struct mapping){mappings, pointer, size, physical};
        mappings = mapping;
        physical->uses++;
    } else {
        free(mapping);
    }
    driver_unlock();
    return result;
}

CALL(cuMemUnmap, pointer_t pointer, size_t size) {
    WITH_DRIVER(driver);
    int found = 0;
    driver_lock();
    for (struct mapping **link = &mappings; *link;) {
        struct mapping *mapping = *link;
        if (mapping->start < pointer || mapping->start + mapping->size > pointer + size) {
            link = &mapping->next;
            continue;
        }
        mmap((void *)(uintptr_t)mapping->start, mapping->size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        *link = mapping->next;
        drop(mapping->physical);
        free(mapping);
        found++;
    }
    driver_unlock();
    return found ? OK : INVALID_VALUE;
}

CALL(cuMemSetAccess, pointer_t pointer, size_t size, const void *access, size_t count) {
    WITH_DRIVER(driver);
    return access && count && is_ours(pointer, size) ? OK : INVALID_VALUE;
}

CALL(cuMemRetainAllocationHandle, struct physical **handle, void *address) {
    WITH_DRIVER(driver);
    pointer_t pointer = (pointer_t)(uintptr_t)address;
    if (!handle) return INVALID_VALUE;
    *handle = NULL;
    driver_lock();
    for (struct mapping *mapping = mappings; mapping && !*handle; mapping = mapping->next)
        if (pointer - mapping->start < mapping->size) *handle = mapping->physical;
    if (*handle) (*handle)->uses++;
    driver_unlock();
    return *handle ? OK : INVALID_VALUE;
}
