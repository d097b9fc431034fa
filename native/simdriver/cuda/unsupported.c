/* Defines every function of the driver that is not written elsewhere: it returns "not supported".
 * The definitions are weak, so that one in another file replaces them. */
#include "../../interface/cuda.h"
#include "../gate.h"

#define ENTRY(name, version, is_per_thread, symbol)      \
    __attribute__((weak)) CALL_OF(symbol, void);         \
    int symbol(void) {                                   \
        return NOT_SUPPORTED;                            \
    }
#include "names.inc"
