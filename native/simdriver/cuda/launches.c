/* Kernels: they take time on the card and do nothing else. */
#include "../engine.h"
#include "contexts.h"
#include "modules.h"
#include "streams.h"

static int launch(struct function *function, struct stream *stream) {
    WITH_CONTEXT(context);
    if (!is_function_of(function, context) || !is_stream_of(stream, context))
        return INVALID_HANDLE;
    struct driver *driver = driver_now();
    uint64_t length = function->length_ns ? function->length_ns : driver->node.state->kernel_ns;
    uint64_t done =
        engine_run(driver->node.state, driver->cards[context->device], driver->slot, length);
    stream_extend(stream, context, done);
    return OK;
}

static int is_bad_shape(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz) {
    return !gx || !gy || !gz || !bx || !by || !bz || (uint64_t)bx * by * bz > 1024;
}

CALL(cuLaunchKernel, struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned shared, struct stream *stream, void **parameters,
     void **extra) {
    (void)shared;
    (void)parameters;
    (void)extra;
    return is_bad_shape(gx, gy, gz, bx, by, bz) ? INVALID_VALUE : launch(function, stream);
}
ALSO(cuLaunchKernel_ptsz, cuLaunchKernel);

CALL(cuLaunchCooperativeKernel, struct function *function, unsigned gx, unsigned gy, unsigned gz,
     unsigned bx, unsigned by, unsigned bz, unsigned shared, struct stream *stream,
     void **parameters) {
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL);
}
ALSO(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel);

CALL(cuLaunchKernelEx, const struct launch_config *config, struct function *function,
     void **parameters, void **extra) {
    if (!config) return INVALID_VALUE;
    return cuLaunchKernel(function, config->grid[0], config->grid[1], config->grid[2],
                          config->block[0], config->block[1], config->block[2], config->shared,
                          config->stream, parameters, extra);
}
ALSO(cuLaunchKernelEx_ptsz, cuLaunchKernelEx);

CALL(cuLaunchGrid, struct function *function, int width, int height) {
    return width > 0 && height > 0 ? launch(function, NULL) : INVALID_VALUE;
}

CALL(cuLaunchGridAsync, struct function *function, int width, int height, struct stream *stream) {
    return width > 0 && height > 0 ? launch(function, stream) : INVALID_VALUE;
}

CALL(cuLaunch, struct function *function) {
    return launch(function, NULL);
}
