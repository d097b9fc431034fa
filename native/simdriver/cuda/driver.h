/* What all functions of the driver share: the node, the slot of this process, and its contexts. */
#ifndef SIMDRIVER_CUDA_DRIVER_H
#define SIMDRIVER_CUDA_DRIVER_H

#include <stdbool.h>

#include "../../interface/cuda.h"
#include "../gate.h"
#include "../node.h"

#define LIMITS 16 /* CUlimit has fewer */

struct context {
    _Atomic uint64_t id;      /* never used again, unlike the address of the struct */
    _Atomic bool is_alive;
    int device;               /* the program's number of the device: an index into driver.cards */
    int retained;             /* how often a primary context was retained, or another attached */
    unsigned flags;
    _Atomic uint64_t done_ns; /* the time at which all work that was started in it ends */
    uint64_t limits[LIMITS];
};

struct driver {
    struct node node;
    int slot;
    int card_count;
    int cards[MAX_CARDS]; /* by the program's device number: the index in the state */
    struct context primaries[MAX_CARDS];
};

/* The lock guards all tables of this process. Lock order: this lock first, then the locks of the
 * state file (slots.h), then the one of threads.c. */
void driver_lock(void);
void driver_unlock(void);

/* The driver; NULL before cuInit, and in a child that was forked after it, as with the real
 * driver. */
struct driver *driver_now(void);

/* OK, or the error of a card that is lost or has an uncorrectable memory error. */
int device_health(int device);

/* The calling thread's current context. Returns an error if there is none or its card is broken. */
int current_context(struct context **context);

struct card *card_at(int device);

/* Takes memory of the device for this process; false if there is not enough. With the lock held. */
bool take_memory(int device, uint64_t bytes);
void give_back_memory(int device, uint64_t bytes);

/* The same for managed memory, which limits of cgroups do not count. */
bool take_managed(int device, uint64_t bytes);
void give_back_managed(int device, uint64_t bytes);

/* Each declares what a function needs, and returns the error if it is missing. */
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
