/* Defines every function of NVML that is not written elsewhere: it returns "not supported". The
 * definitions are weak, so that one in another file replaces them. */
#include "../../interface/nvml.h"
#include "../gate.h"

#define ENTRY(function)                                  \
    __attribute__((weak)) CALL_OF(function, void);       \
    int function(void) {                                 \
        return NVML_NOT_SUPPORTED;                       \
    }
#include "names.inc"
