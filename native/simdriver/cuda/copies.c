/* Copies and fills. Each waits for the work that was started before, and is done when it
 * returns. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "allocations.h"
#include "contexts.h"
#include "streams.h"

#define PAGE 4096u

static void *at(pointer_t pointer) {
    return (void *)(uintptr_t)pointer;
}

/* `ours` must be memory of the driver, and so must `other` unless it is 0. */
static int copy(void *to, const void *from, size_t size, pointer_t ours, pointer_t other) {
    WITH_CONTEXT(context);
    if (!size) return OK;
    if (!to || !from || !is_ours(ours, size) || (other && !is_ours(other, size)))
        return INVALID_VALUE;
    context_wait(context);
    memmove(to, from, size);
    return OK;
}

CALL(cuMemcpyHtoD_v2, pointer_t to, const void *from, size_t size) {
    return copy(at(to), from, size, to, 0);
}
ALSO(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD_v2);

CALL(cuMemcpyDtoH_v2, void *to, pointer_t from, size_t size) {
    return copy(to, at(from), size, from, 0);
}
ALSO(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH_v2);

CALL(cuMemcpyDtoD_v2, pointer_t to, pointer_t from, size_t size) {
    return copy(at(to), at(from), size, to, from);
}
ALSO(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD_v2);

/* Either side may be host memory: one of them must be memory of the driver. */
CALL(cuMemcpy, pointer_t to, pointer_t from, size_t size) {
    return copy(at(to), at(from), size, is_ours(to, size) ? to : from, 0);
}
ALSO(cuMemcpy_ptds, cuMemcpy);

CALL(cuMemcpyHtoDAsync_v2, pointer_t to, const void *from, size_t size, struct stream *stream) {
    if (!is_stream(stream)) return INVALID_HANDLE;
    return copy(at(to), from, size, to, 0);
}
ALSO(cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyHtoDAsync_v2);

CALL(cuMemcpyDtoHAsync_v2, void *to, pointer_t from, size_t size, struct stream *stream) {
    if (!is_stream(stream)) return INVALID_HANDLE;
    return copy(to, at(from), size, from, 0);
}
ALSO(cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync_v2);

CALL(cuMemcpyDtoDAsync_v2, pointer_t to, pointer_t from, size_t size, struct stream *stream) {
    if (!is_stream(stream)) return INVALID_HANDLE;
    return copy(at(to), at(from), size, to, from);
}
ALSO(cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyDtoDAsync_v2);

CALL(cuMemcpyAsync, pointer_t to, pointer_t from, size_t size, struct stream *stream) {
    if (!is_stream(stream)) return INVALID_HANDLE;
    return cuMemcpy(to, from, size);
}
ALSO(cuMemcpyAsync_ptsz, cuMemcpyAsync);

CALL(cuMemcpyPeer, pointer_t to, struct context *there, pointer_t from, struct context *here,
     size_t size) {
    if (context_check(there) != OK || context_check(here) != OK) return INVALID_CONTEXT;
    return copy(at(to), at(from), size, to, from);
}
ALSO(cuMemcpyPeer_ptds, cuMemcpyPeer);

CALL(cuMemcpyPeerAsync, pointer_t to, struct context *there, pointer_t from, struct context *here,
     size_t size, struct stream *stream) {
    if (!is_stream(stream)) return INVALID_HANDLE;
    return cuMemcpyPeer(to, there, from, here, size);
}
ALSO(cuMemcpyPeerAsync_ptsz, cuMemcpyPeerAsync);

/* CUDA_MEMCPY2D: source and destination of a copy by rows. */
struct side {
    size_t x, y;
    unsigned type; /* 1 host, 2 device, 3 array, 4 either */
    void *host;
    pointer_t device;
    void *array;
    size_t pitch;
};
struct copy_2d {
    struct side from, to;
    size_t width, height;
};
_Static_assert(sizeof(struct copy_2d) == 128, "copy_2d");

static char *side_start(const struct side *side, const struct copy_2d *all) {
    if (side->type == 3) return NULL;
    size_t pitch = side->pitch ? side->pitch : all->width;
    char *base = side->type == 1 ? side->host : at(side->device);
    char *start = base + side->y * pitch + side->x;
    if (side->type != 2) return start;
    size_t size = all->height ? (all->height - 1) * pitch + all->width : 0;
    return is_ours((pointer_t)(uintptr_t)start, size) ? start : NULL;
}

CALL(cuMemcpy2D_v2, const struct copy_2d *all) {
    WITH_CONTEXT(context);
    if (!all) return INVALID_VALUE;
    char *from = side_start(&all->from, all), *to = side_start(&all->to, all);
    if (all->from.type == 3 || all->to.type == 3) return NOT_SUPPORTED;
    if (!from || !to) return INVALID_VALUE;
    context_wait(context);
    for (size_t row = 0; row < all->height; row++) {
        memmove(to, from, all->width);
        from += all->from.pitch ? all->from.pitch : all->width;
        to += all->to.pitch ? all->to.pitch : all->width;
    }
    return OK;
}
ALSO(cuMemcpy2D_v2_ptds, cuMemcpy2D_v2);
ALSO(cuMemcpy2DUnaligned_v2, cuMemcpy2D_v2);
ALSO(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2D_v2);

CALL(cuMemcpy2DAsync_v2, const struct copy_2d *all, struct stream *stream) {
    if (!is_stream(stream)) return INVALID_HANDLE;
    return cuMemcpy2D_v2(all);
}
ALSO(cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync_v2);

/* Zeros take no memory of the machine: whole pages are given back to the kernel, which maps zero
 * pages in their place. */
static void fill_with_zeros(char *start, size_t size) {
    char *page = (char *)(((uintptr_t)start + PAGE - 1) / PAGE * PAGE);
    size_t head = (size_t)(page - start);
    struct allocation found;
    bool is_private = find_allocation((pointer_t)(uintptr_t)start, &found) &&
                      (found.kind == ON_DEVICE || found.kind == INTERNAL || found.kind == MANAGED);
    if (!is_private || size < head + PAGE) {
        memset(start, 0, size);
        return;
    }
    size_t pages = (size - head) / PAGE * PAGE;
    memset(start, 0, head);
    if (madvise(page, pages, MADV_DONTNEED)) memset(page, 0, pages);
    memset(page + pages, 0, size - head - pages);
}

static int fill(pointer_t to, const void *value, size_t width, size_t count) {
    WITH_CONTEXT(context);
    if (!count) return OK;
    if (count > SIZE_MAX / width || !is_ours(to, count * width) || to % width) return INVALID_VALUE;
    context_wait(context);
    static const char ZERO[4];
    if (memcmp(value, ZERO, width) == 0) fill_with_zeros(at(to), count * width);
    else if (width == 1) memset(at(to), *(const unsigned char *)value, count);
    else
        for (size_t i = 0; i < count; i++) memcpy((char *)at(to) + i * width, value, width);
    return OK;
}

#define FILLS(bits, suffix, type)                                                           \
    CALL(cuMemset##suffix##_v2, pointer_t to, type value, size_t count) {                   \
        return fill(to, &value, (bits) / 8, count);                                         \
    }                                                                                       \
    ALSO(cuMemset##suffix##_v2_ptds, cuMemset##suffix##_v2);                                \
    CALL(cuMemset##suffix##Async, pointer_t to, type value, size_t count,                   \
         struct stream *stream) {                                                           \
        if (!is_stream(stream)) return INVALID_HANDLE;                                      \
        return fill(to, &value, (bits) / 8, count);                                         \
    }                                                                                       \
    ALSO(cuMemset##suffix##Async_ptsz, cuMemset##suffix##Async);                            \
    CALL(cuMemsetD2##suffix##_v2, pointer_t to, size_t pitch, type value, size_t width,      \
         size_t height) {                                                                   \
        int result = OK;                                                                    \
        for (size_t row = 0; row < height && result == OK; row++)                           \
            result = fill(to + row * pitch, &value, (bits) / 8, width);                     \
        return result;                                                                      \
    }
FILLS(8, D8, unsigned char)
FILLS(16, D16, unsigned short)
FILLS(32, D32, unsigned)
