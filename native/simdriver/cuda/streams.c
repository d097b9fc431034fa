#include "streams.h"

#include "../../process/clock.h"
#include "contexts.h"
#include "../handles.h"
#include "pools.h"

#define NON_BLOCKING 1u
#define EXTERNAL 1u /* of a record and of a wait: in a graph, on the event itself */
#define TIMING_DISABLED 2u
#define INTERPROCESS 4u
#define EVENT_FLAGS 7u
#define LAST_SPECIAL 2 /* the handles 0, 1 and 2 mean default streams */

struct stream {
    unsigned flags;
    int priority;
    struct context *context;
    _Atomic uint64_t done_ns;
};

struct event {
    unsigned flags;
    const struct context *context;
    _Atomic uint64_t time_ns; /* 0: never recorded */
};

static struct handles streams = HANDLES_OF(struct stream);
static struct handles events = HANDLES_OF(struct event);

static bool is_default(const struct stream *stream) {
    return (uintptr_t)stream <= LAST_SPECIAL;
}

bool is_stream(const struct stream *stream) {
    return is_default(stream) || handle_is_live(&streams, stream);
}

bool is_stream_of(const struct stream *stream, const struct context *context) {
    return is_default(stream) || (handle_is_live(&streams, stream) && stream->context == context);
}

int stream_context(const struct stream *stream, struct context **context) {
    WITH_DRIVER(driver);
    if (is_default(stream)) return current_context(context);
    if (!handle_is_live(&streams, stream)) return INVALID_HANDLE;
    *context = stream->context;
    return device_health((*context)->device);
}

void streams_end(const struct context *context) {
    struct stream *stream;
    struct event *event;
    for (size_t cursor = 0; (stream = handle_next(&streams, &cursor));)
        if (stream->context == context) handle_end(&streams, stream);
    for (size_t cursor = 0; (event = handle_next(&events, &cursor));)
        if (event->context == context) handle_end(&events, event);
}

uint64_t stream_done_ns(const struct stream *stream, const struct context *context) {
    return atomic_load(is_default(stream) ? &context->done_ns : &stream->done_ns);
}

void stream_wait(const struct stream *stream, const struct context *context) {
    sleep_until_ns(stream_done_ns(stream, context));
}

void stream_extend(struct stream *stream, struct context *context, uint64_t done_ns) {
    if (!is_default(stream)) atomic_store(&stream->done_ns, done_ns);
    context_extend(context, done_ns);
}

CALL(cuStreamCreateWithPriority, struct stream **made, unsigned flags, int priority) {
    WITH_CONTEXT(context);
    if (!made || flags > NON_BLOCKING) return INVALID_VALUE;
    /* A priority outside of the range means its nearest end. */
    if (priority > 0) priority = 0;
    if (priority < GREATEST_PRIORITY) priority = GREATEST_PRIORITY;
    struct stream *stream = handle_new(&streams);
    if (!stream) return OUT_OF_MEMORY;
    *stream = (struct stream){flags, priority, context, 0};
    *made = stream;
    return OK;
}

CALL(cuStreamCreate, struct stream **made, unsigned flags) {
    return cuStreamCreateWithPriority(made, flags, 0);
}

CALL(cuStreamDestroy_v2, struct stream *stream) {
    WITH_DRIVER(driver);
    if (is_default(stream) || !handle_end(&streams, stream)) return INVALID_HANDLE;
    return OK;
}
ALSO(cuStreamDestroy, cuStreamDestroy_v2);

CALL(cuStreamSynchronize, struct stream *stream) {
    WITH_CONTEXT(context);
    if (!is_stream(stream)) return INVALID_HANDLE;
    stream_wait(stream, context);
    pools_release();
    return device_health(context->device);
}
ALSO(cuStreamSynchronize_ptsz, cuStreamSynchronize);

CALL(cuStreamQuery, struct stream *stream) {
    WITH_CONTEXT(context);
    if (!is_stream(stream)) return INVALID_HANDLE;
    return stream_done_ns(stream, context) <= now_ns() ? OK : NOT_READY;
}
ALSO(cuStreamQuery_ptsz, cuStreamQuery);

CALL(cuStreamGetPriority, struct stream *stream, int *priority) {
    WITH_CONTEXT(context);
    (void)context;
    if (!priority) return INVALID_VALUE;
    if (!is_stream(stream)) return INVALID_HANDLE;
    *priority = is_default(stream) ? 0 : stream->priority;
    return OK;
}
ALSO(cuStreamGetPriority_ptsz, cuStreamGetPriority);

CALL(cuStreamGetFlags, struct stream *stream, unsigned *flags) {
    WITH_CONTEXT(context);
    (void)context;
    if (!flags) return INVALID_VALUE;
    if (!is_stream(stream)) return INVALID_HANDLE;
    *flags = is_default(stream) ? 0 : stream->flags;
    return OK;
}
ALSO(cuStreamGetFlags_ptsz, cuStreamGetFlags);

CALL(cuStreamGetCtx, struct stream *stream, struct context **owner) {
    WITH_STREAM(context, stream);
    if (!owner) return INVALID_VALUE;
    *owner = context;
    return OK;
}
ALSO(cuStreamGetCtx_ptsz, cuStreamGetCtx);

CALL(cuStreamGetDevice, struct stream *stream, int *device) {
    struct context *owner;
    int result = device ? cuStreamGetCtx(stream, &owner) : INVALID_VALUE;
    if (result == OK) *device = owner->device;
    return result;
}
ALSO(cuStreamGetDevice_ptsz, cuStreamGetDevice);

CALL(cuStreamGetId, struct stream *stream, unsigned long long *id) {
    WITH_CONTEXT(context);
    (void)context;
    if (!id) return INVALID_VALUE;
    if (!is_stream(stream)) return INVALID_HANDLE;
    *id = (unsigned long long)(uintptr_t)stream;
    return OK;
}
ALSO(cuStreamGetId_ptsz, cuStreamGetId);

CALL(cuStreamIsCapturing, struct stream *stream, int *status) {
    WITH_CONTEXT(context);
    (void)context;
    if (!status) return INVALID_VALUE;
    if (!is_stream(stream)) return INVALID_HANDLE;
    *status = 0;
    return OK;
}
ALSO(cuStreamIsCapturing_ptsz, cuStreamIsCapturing);

CALL(cuLaunchHostFunc, struct stream *stream, void (*function)(void *), void *data) {
    WITH_CONTEXT(context);
    if (!function) return INVALID_VALUE;
    if (!is_stream(stream)) return INVALID_HANDLE;
    stream_wait(stream, context);
    function(data);
    return OK;
}
ALSO(cuLaunchHostFunc_ptsz, cuLaunchHostFunc);

CALL(cuStreamAddCallback, struct stream *stream, void (*function)(struct stream *, int, void *),
     void *data, unsigned flags) {
    WITH_CONTEXT(context);
    if (!function || flags) return INVALID_VALUE;
    if (!is_stream(stream)) return INVALID_HANDLE;
    stream_wait(stream, context);
    function(stream, OK, data);
    return OK;
}
ALSO(cuStreamAddCallback_ptsz, cuStreamAddCallback);

CALL(cuEventCreate, struct event **made, unsigned flags) {
    WITH_CONTEXT(context);
    if (!made || flags > EVENT_FLAGS || ((flags & INTERPROCESS) && !(flags & TIMING_DISABLED)))
        return INVALID_VALUE;
    struct event *event = handle_new(&events);
    if (!event) return OUT_OF_MEMORY;
    event->flags = flags;
    event->context = context;
    *made = event;
    return OK;
}

static bool is_event(const struct event *event) {
    return handle_is_live(&events, event);
}

CALL(cuEventRecord, struct event *event, struct stream *stream) {
    WITH_CONTEXT(context);
    if (!is_event(event) || event->context != context || !is_stream_of(stream, context))
        return INVALID_HANDLE;
    uint64_t done = stream_done_ns(stream, context), now = now_ns();
    atomic_store(&event->time_ns, done > now ? done : now);
    return OK;
}
ALSO(cuEventRecord_ptsz, cuEventRecord);

CALL(cuEventRecordWithFlags, struct event *event, struct stream *stream, unsigned flags) {
    return flags > EXTERNAL ? INVALID_VALUE : cuEventRecord(event, stream);
}
ALSO(cuEventRecordWithFlags_ptsz, cuEventRecordWithFlags);

CALL(cuEventQuery, struct event *event) {
    WITH_DRIVER(driver);
    if (!is_event(event)) return INVALID_HANDLE;
    return atomic_load(&event->time_ns) <= now_ns() ? OK : NOT_READY;
}

CALL(cuEventSynchronize, struct event *event) {
    WITH_DRIVER(driver);
    if (!is_event(event)) return INVALID_HANDLE;
    sleep_until_ns(atomic_load(&event->time_ns));
    pools_release();
    return OK;
}

CALL(cuEventElapsedTime, float *milliseconds, struct event *start, struct event *end) {
    WITH_DRIVER(driver);
    if (!milliseconds) return INVALID_VALUE;
    if (!is_event(start) || !is_event(end) || (start->flags | end->flags) & TIMING_DISABLED)
        return INVALID_HANDLE;
    uint64_t from = atomic_load(&start->time_ns), until = atomic_load(&end->time_ns);
    if (!from || !until) return INVALID_HANDLE;
    if (from > now_ns() || until > now_ns()) return NOT_READY;
    *milliseconds = (float)((double)(int64_t)(until - from) / 1e6);
    return OK;
}
ALSO(cuEventElapsedTime_v2, cuEventElapsedTime);

CALL(cuEventDestroy_v2, struct event *event) {
    WITH_DRIVER(driver);
    return handle_end(&events, event) ? OK : INVALID_HANDLE;
}
ALSO(cuEventDestroy, cuEventDestroy_v2);

CALL(cuStreamWaitEvent, struct stream *stream, struct event *event, unsigned flags) {
    WITH_CONTEXT(context);
    if (flags > EXTERNAL) return INVALID_VALUE;
    if (!is_event(event) || !is_stream(stream)) return INVALID_HANDLE;
    uint64_t time = atomic_load(&event->time_ns);
    if (time > stream_done_ns(stream, context)) stream_extend(stream, context, time);
    return OK;
}
ALSO(cuStreamWaitEvent_ptsz, cuStreamWaitEvent);
