/* A program that gcc built with ASan refuses to start if any library is before ASan's, because such
 * a library could replace functions that ASan replaces. The limiter replaces dlsym only, which ASan
 * does not. ASan asks this function for its options. The program's own comes first, and so does the
 * variable ASAN_OPTIONS. */
#include "../../interface/exports.h"

API const char *__asan_default_options(void);
API const char *__asan_default_options(void) {
    return "verify_asan_link_order=0";
}
