/* Defines every function of NVML that is not written elsewhere: it returns "not supported". The
 * definitions are weak, so that one in another file replaces them. */
#include "../../interface/nvml.h"

#define ENTRY(function)                                  \
    API __attribute__((weak)) int function(void);        \
    API __attribute__((weak)) int function(void) {       \
        return NVML_NOT_SUPPORTED;                            \
    }
#include "names.inc"
