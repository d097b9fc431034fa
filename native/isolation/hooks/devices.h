/* The card that a call is about, and the context that it is made in. */
#ifndef ISOLATION_DEVICES_H
#define ISOLATION_DEVICES_H

#include "driver.h"

/* The card of a device, by the program's device number; NO_CARD if the card may not be used. */
int card_of(int device);

/* How many devices the program sees. */
int devices(void);

/* The device of the calling thread's context. False: there is no context, and the driver will
 * return the error. */
bool current_device(int *device);

/* The device of the stream's context. Returns the driver's result. */
int device_of_stream(stream_t stream, int *device);

/* The calling thread's context, as a number; 0 if it is not known. */
uint64_t current_context(void);

/* The context of the stream, in the same way. */
uint64_t context_of_stream(stream_t stream);

/* Around calls that the program did not make: while any stream of the program is being captured,
 * some calls are forbidden, and end the capture. The driver lets libraries switch that off for their
 * thread. */
#define CAPTURE_RELAXED 2 /* CUstreamCaptureMode */

static inline int capture_relax(void) {
    int mode = CAPTURE_RELAXED;
    return REAL(cuThreadExchangeStreamCaptureMode)(&mode) == OK ? mode : CAPTURE_RELAXED;
}

static inline void capture_restore(int mode) {
    if (mode != CAPTURE_RELAXED) REAL(cuThreadExchangeStreamCaptureMode)(&mode);
}

/* To be called in the child of a fork, which has no contexts. */
void contexts_after_fork(void);

#endif
