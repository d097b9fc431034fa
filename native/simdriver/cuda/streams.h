/* Streams and events. For each, only the time is simulated at which its work ends. */
#ifndef SIMDRIVER_CUDA_STREAMS_H
#define SIMDRIVER_CUDA_STREAMS_H

#include "driver.h"

/* Whether the handle is that of a stream, or one of the numbers that mean default streams. */
bool is_stream(const struct stream *stream);

/* Whether work of the context can be put into the stream: it was made there, or is a default one. */
bool is_stream_of(const struct stream *stream, const struct context *context);

/* The context of the stream; of a default stream, the current one. Returns an error if there is
 * none. */
int stream_context(const struct stream *stream, struct context **context);

#define WITH_STREAM(variable, stream)                              \
    struct context *variable;                                      \
    do {                                                           \
        int problem = stream_context(stream, &variable);           \
        if (problem) return problem;                               \
    } while (0)

/* Ends all streams and events of the context, with which they are destroyed. */
void streams_end(const struct context *context);

/* The time at which the stream's work ends; for the default stream, that of all work of the
 * context. */
uint64_t stream_done_ns(const struct stream *stream, const struct context *context);
void stream_wait(const struct stream *stream, const struct context *context);

#define GREATEST_PRIORITY (-5) /* of a stream; the least is 0 */

/* Records work in the stream that ends at this time. */
void stream_extend(struct stream *stream, struct context *context, uint64_t done_ns);

#endif
