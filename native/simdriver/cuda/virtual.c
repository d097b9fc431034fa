/* Virtual memory management: addresses are reserved, memory is created, and one is mapped to the
 * other. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "addresses.h"
#include "allocations.h"
#include "../handles.h"

#define GRANULARITY (2ull << 20)
#define NO_DEVICE (-1)

/* Memory without an address. It is given back when its handles are released and it is mapped
 * nowhere. */
struct physical {
    int device; /* NO_DEVICE: memory of the host */
    size_t size;
    int fd;
    int handles; /* cuMemCreate and cuMemRetainAllocationHandle, without their cuMemRelease */
    int mappings;
};

struct mapping {
    struct mapping *next;
    pointer_t start;
    size_t size;
    struct physical *physical;
};

static struct handles physicals = HANDLES_OF(struct physical);
static struct mapping *mappings;

/* The functions from here to give_back_unused are called with the lock held. */
static bool is_known(const struct physical *physical) {
    return handle_is_live(&physicals, physical) && physical->handles;
}

/* The bytes of the range that are mapped: mappings that lie wholly in it, and, as `partly`, those
 * that only share addresses with it. */
static size_t mapped_bytes(pointer_t start, size_t size, bool *partly) {
    size_t sum = 0;
    *partly = false;
    for (const struct mapping *one = mappings; one; one = one->next) {
        if (one->start >= start + size || one->start + one->size <= start) continue;
        if (one->start >= start && one->start + one->size <= start + size) sum += one->size;
        else *partly = true;
    }
    return sum;
}

static bool is_mapped(pointer_t start, size_t size) {
    bool partly;
    return mapped_bytes(start, size, &partly) || partly;
}

static struct physical *create(int device, size_t size, int fd) {
    if (device != NO_DEVICE && !take_memory(device, size)) return NULL;
    struct physical *physical = handle_new(&physicals);
    if (physical) *physical = (struct physical){device, size, fd, 1, 0};
    else if (device != NO_DEVICE) give_back_memory(device, size);
    return physical;
}

static void give_back_unused(struct physical *physical) {
    if (physical->handles || physical->mappings) return;
    if (physical->device != NO_DEVICE) give_back_memory(physical->device, physical->size);
    close(physical->fd);
    handle_end(&physicals, physical);
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
    if (!made || !properties || properties->type != PINNED || flags || !size ||
        size % GRANULARITY)
        return INVALID_VALUE;
    int device = NO_DEVICE;
    if (properties->location.type == LOCATION_DEVICE) {
        device = properties->location.id;
        if (device < 0 || device >= driver->card_count) return INVALID_DEVICE;
        int problem = device_health(device);
        if (problem) return problem;
    } else if (properties->location.type != LOCATION_HOST) {
        return NOT_SUPPORTED;
    }
    /* As a system call: the function memfd_create is newer than glibc 2.17. */
    int fd = (int)syscall(SYS_memfd_create, "gpupool-device-memory", 1 /* close on exec */);
    if (fd < 0 || ftruncate(fd, (off_t)size)) goto failed;
    driver_lock();
    struct physical *physical = create(device, size, fd);
    driver_unlock();
    if (!physical) goto failed;
    *made = physical;
    return OK;
failed:
    if (fd >= 0) close(fd);
    return OUT_OF_MEMORY;
}

CALL(cuMemRelease, struct physical *physical) {
    WITH_DRIVER(driver);
    driver_lock();
    bool found = is_known(physical);
    if (found) {
        physical->handles--;
        give_back_unused(physical);
    }
    driver_unlock();
    return found ? OK : INVALID_VALUE;
}

CALL(cuMemAddressReserve, pointer_t *pointer, size_t size, size_t alignment, pointer_t wanted,
     unsigned long long flags) {
    WITH_DRIVER(driver);
    (void)wanted;
    if (!pointer || flags || !size || size % GRANULARITY || alignment > GRANULARITY)
        return INVALID_VALUE;
    driver_lock();
    void *start = addresses_take(size, GRANULARITY);
    driver_unlock();
    if (!start) return OUT_OF_MEMORY;
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
    driver_lock();
    bool is_whole = range.size == size && !is_mapped(pointer, size);
    if (is_whole) addresses_give((void *)(uintptr_t)pointer, size);
    driver_unlock();
    if (is_whole) return OK;
    remember(&range);
    return INVALID_VALUE;
}

/* With the lock held. */
static int map(pointer_t pointer, size_t size, size_t offset, struct physical *physical) {
    if (!is_known(physical) || offset > physical->size || size > physical->size - offset ||
        is_mapped(pointer, size))
        return INVALID_VALUE;
    struct mapping *mapping = calloc(1, sizeof *mapping);
    if (!mapping) return OUT_OF_MEMORY;
    void *place = mmap((void *)(uintptr_t)pointer, size, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, physical->fd, (off_t)offset);
    if (place == MAP_FAILED) {
        free(mapping);
        return OUT_OF_MEMORY;
    }
    *mapping = (struct mapping){mappings, pointer, size, physical};
    mappings = mapping;
    physical->mappings++;
    return OK;
}

CALL(cuMemMap, pointer_t pointer, size_t size, size_t offset, struct physical *physical,
     unsigned long long flags) {
    struct allocation range;
    WITH_DRIVER(driver);
    if (flags || !size || (pointer | size | offset) % GRANULARITY ||
        !find_allocation(pointer, &range) || range.kind != RESERVED ||
        size > range.size - (pointer - range.base))
        return INVALID_VALUE;
    driver_lock();
    int result = map(pointer, size, offset, physical);
    driver_unlock();
    return result;
}

/* With the lock held. */
static void unmap(pointer_t pointer, size_t size) {
    for (struct mapping **link = &mappings; *link;) {
        struct mapping *mapping = *link;
        if (mapping->start < pointer || mapping->start >= pointer + size) {
            link = &mapping->next;
            continue;
        }
        mmap((void *)(uintptr_t)mapping->start, mapping->size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        *link = mapping->next;
        mapping->physical->mappings--;
        give_back_unused(mapping->physical);
        free(mapping);
    }
}

CALL(cuMemUnmap, pointer_t pointer, size_t size) {
    bool partly;
    WITH_DRIVER(driver);
    driver_lock();
    bool is_whole = size && mapped_bytes(pointer, size, &partly) == size && !partly;
    if (is_whole) unmap(pointer, size);
    driver_unlock();
    return is_whole ? OK : INVALID_VALUE;
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
    if (*handle) (*handle)->handles++;
    driver_unlock();
    return *handle ? OK : INVALID_VALUE;
}
