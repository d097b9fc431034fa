/* Defines every function of the driver that is not written elsewhere: it returns "not supported".
 * The definitions are weak, so that one in another file replaces them. */
#include "../../interface/cuda.h"

#define ENTRY(name, version, is_per_thread, symbol)      \
    API __attribute__((weak)) int symbol(void);          \
    API __attribute__((weak)) int symbol(void) {         \
        return NOT_SUPPORTED;                            \
    }
#include "names.inc"
