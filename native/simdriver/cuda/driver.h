/* What all calls share: the node, this process' slot, contexts, and the thread's own stack of them. */
#ifndef SIMDRIVER_CUDA_DRIVER_H
#define SIMDRIVER_CUDA_DRIVER_H

#include <stdbool.h>

#include "../node.h"
#include "cuda.h"

struct context {
    int device;             /* as the program counts: an index into driver.cards */
    bool is_primary;
    int retained;           /* of a primary context: how often */
    unsigned flags;
    _Atomic uint64_t done_ns; /* when all that was started in it has ended */
    uint64_t limits[16];
    struct context *next;
};

struct driver {
    struct node node;
    int slot;
    int card_count;
    int cards[MAX_CARDS]; /* the program's device -> index in the state */
    struct context primaries[MAX_CARDS];
};

/* Guards all of this process' tables. */
void driver_lock(void);
void driver_unlock(void);

/* The driver, or NULL before cuInit and in a child that was forked after it: as the real one. */
struct driver *driver_now(void);

/* Why nothing can be done on the device; OK otherwise. */
int device_health(int device);

/* The calling thread's present context, or why there is none. */
int current_context(struct context **context);

struct card *card_at(int device);

/* Takes so much of the device's memory for this process; with the lock held. */
bool take_memory(int device, uint64_t bytes);
void give_back_memory(int device, uint64_t bytes);

#define WITH_DRIVER(variable)                    \
    struct driver *variable = driver_now();      \
    if (!variable) return NOT_INITIALIZED;       \
    (void)variable

#define WITH_DEVICE(device)                      \
    WITH_DRIVER(driver);                         \
    if ((device) < 0 || (device) >= driver->card_count) return INVALID_DEVICE

#define WITH_CONTEXT(variable)                        \
    struct context *variable;                         \
    do {                                              \
        int problem = current_context(&variable);     \
        if (problem) return problem;                  \
    } while (0)

#endif
