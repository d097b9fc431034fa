/* Every function that is not written elsewhere: it is there, and says what it is. */
#include "cuda.h"

#define ENTRY(name, version, is_per_thread, symbol)      \
    API __attribute__((weak)) int symbol(void);          \
    API __attribute__((weak)) int symbol(void) {         \
        return NOT_SUPPORTED;                            \
    }
#include "names.inc"
