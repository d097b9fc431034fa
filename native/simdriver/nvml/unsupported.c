/* Every function that is not written elsewhere: it is there, and says that the card cannot do it. */
#include "nvml.h"

#define ENTRY(function)                                  \
    API __attribute__((weak)) int function(void);        \
    API __attribute__((weak)) int function(void) {       \
        return NOT_SUPPORTED;                            \
    }
#include "names.inc"
