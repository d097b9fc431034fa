/* Streams and events: points in time at which work ends. */
#ifndef SIMDRIVER_CUDA_STREAMS_H
#define SIMDRIVER_CUDA_STREAMS_H

#include "driver.h"

/* When the stream's work ends; of the default stream: the context's. */
uint64_t stream_done_ns(const struct stream *stream, const struct context *context);
void stream_wait(const struct stream *stream, const struct context *context);

/* New work in the stream lasts until then. */
void stream_extend(struct stream *stream, struct context *context, uint64_t done_ns);

#endif
