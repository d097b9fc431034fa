/* Launches of kernels wait until the container has card time left (share.h). */
#include "devices.h"
#include "share.h"

#define LAUNCH(function, stream, is_per_thread, call)                            \
    do {                                                                         \
        int device;                                                              \
        struct launch launch;                                                    \
        if (!limiter_is_on() || !limiter_has_percent() || !current_device(&device)) return call; \
        share_begin(&launch, device, function, stream, is_per_thread);           \
        int result = call;                                                       \
        share_end(&launch);                                                      \
        return result;                                                           \
    } while (0)

CALL(cuLaunchKernel, function_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned shared, stream_t stream, void **parameters, void **extra) {
    LAUNCH(function, stream, false,
           REAL(cuLaunchKernel)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters,
                                extra));
}

CALL(cuLaunchKernel_ptsz, function_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned shared, stream_t stream, void **parameters, void **extra) {
    LAUNCH(function, stream, true,
           REAL(cuLaunchKernel_ptsz)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters,
                                     extra));
}

CALL(cuLaunchKernelEx, const struct launch_config *config, function_t function, void **parameters,
     void **extra) {
    LAUNCH(function, config ? config->stream : NULL, false,
           REAL(cuLaunchKernelEx)(config, function, parameters, extra));
}

CALL(cuLaunchKernelEx_ptsz, const struct launch_config *config, function_t function,
     void **parameters, void **extra) {
    LAUNCH(function, config ? config->stream : NULL, true,
           REAL(cuLaunchKernelEx_ptsz)(config, function, parameters, extra));
}

CALL(cuLaunchCooperativeKernel, function_t function, unsigned gx, unsigned gy, unsigned gz,
     unsigned bx, unsigned by, unsigned bz, unsigned shared, stream_t stream, void **parameters) {
    LAUNCH(function, stream, false,
           REAL(cuLaunchCooperativeKernel)(function, gx, gy, gz, bx, by, bz, shared, stream,
                                           parameters));
}

CALL(cuLaunchCooperativeKernel_ptsz, function_t function, unsigned gx, unsigned gy, unsigned gz,
     unsigned bx, unsigned by, unsigned bz, unsigned shared, stream_t stream, void **parameters) {
    LAUNCH(function, stream, true,
           REAL(cuLaunchCooperativeKernel_ptsz)(function, gx, gy, gz, bx, by, bz, shared, stream,
                                                parameters));
}

CALL(cuLaunch, function_t function) {
    LAUNCH(function, NULL, false, REAL(cuLaunch)(function));
}

CALL(cuLaunchGrid, function_t function, int width, int height) {
    LAUNCH(function, NULL, false, REAL(cuLaunchGrid)(function, width, height));
}

CALL(cuLaunchGridAsync, function_t function, int width, int height, stream_t stream) {
    LAUNCH(function, stream, false, REAL(cuLaunchGridAsync)(function, width, height, stream));
}
