#include "handles.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CHUNK 64

/* Before each object. Its size keeps the object aligned for every type. */
struct handle_cell {
    _Alignas(16) struct handle_cell *next_unused;
    _Atomic bool is_live;
};

/* Innermost: no other lock is taken while it is held. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t stride_of(const struct handles *kind) {
    return sizeof(struct handle_cell) + (kind->size + 15) / 16 * 16;
}

static size_t cells_of(int chunk) {
    return (size_t)FIRST_CHUNK << chunk;
}

static void *object_in(struct handle_cell *cell) {
    return cell + 1;
}

/* The cell of the handle; NULL if there is none at that address. */
static struct handle_cell *cell_of(const struct handles *kind, const void *object) {
    size_t stride = stride_of(kind);
    for (int i = 0; i < HANDLE_CHUNKS; i++) {
        char *chunk = atomic_load(&kind->chunks[i]);
        if (!chunk) return NULL;
        uintptr_t offset = (uintptr_t)object - (uintptr_t)chunk - sizeof(struct handle_cell);
        if (offset < cells_of(i) * stride)
            return offset % stride ? NULL : (struct handle_cell *)(chunk + offset);
    }
    return NULL;
}

/* With the mutex held. */
static bool grow(struct handles *kind) {
    size_t stride = stride_of(kind);
    int i = 0;
    while (i < HANDLE_CHUNKS && kind->chunks[i]) i++;
    char *chunk = i < HANDLE_CHUNKS ? calloc(cells_of(i), stride) : NULL;
    if (!chunk) return false;
    for (size_t cell = cells_of(i); cell-- > 0;) {
        struct handle_cell *unused = (struct handle_cell *)(chunk + cell * stride);
        unused->next_unused = kind->unused;
        kind->unused = unused;
    }
    atomic_store(&kind->chunks[i], chunk);
    return true;
}

void *handle_new(struct handles *kind) {
    struct handle_cell *cell = NULL;
    pthread_mutex_lock(&mutex);
    if (kind->unused || grow(kind)) {
        cell = kind->unused;
        kind->unused = cell->next_unused;
        memset(object_in(cell), 0, kind->size);
        atomic_store(&cell->is_live, true);
    }
    pthread_mutex_unlock(&mutex);
    return cell ? object_in(cell) : NULL;
}

bool handle_is_live(const struct handles *kind, const void *object) {
    struct handle_cell *cell = cell_of(kind, object);
    return cell && atomic_load(&cell->is_live);
}

bool handle_end(struct handles *kind, void *object) {
    struct handle_cell *cell = cell_of(kind, object);
    if (!cell || !atomic_exchange(&cell->is_live, false)) return false;
    pthread_mutex_lock(&mutex);
    cell->next_unused = kind->unused;
    kind->unused = cell;
    pthread_mutex_unlock(&mutex);
    return true;
}

void *handle_next(const struct handles *kind, size_t *cursor) {
    size_t first = 0; /* the number of the chunk's first cell */
    for (int i = 0; i < HANDLE_CHUNKS; first += cells_of(i++)) {
        char *chunk = atomic_load(&kind->chunks[i]);
        if (!chunk) return NULL;
        for (; *cursor - first < cells_of(i); ++*cursor) {
            struct handle_cell *cell =
                (struct handle_cell *)(chunk + (*cursor - first) * stride_of(kind));
            if (!atomic_load(&cell->is_live)) continue;
            ++*cursor;
            return object_in(cell);
        }
    }
    return NULL;
}
