/* How a library defines functions that programs call. */
#ifndef INTERFACE_EXPORTS_H
#define INTERFACE_EXPORTS_H

/* Everything else is hidden (-fvisibility=hidden), so that it cannot meet a symbol of the
 * program. */
#define API __attribute__((visibility("default")))

/* Declares an exported function and begins its definition. */
#define CALL(function, ...)         \
    API int function(__VA_ARGS__);  \
    API int function(__VA_ARGS__)

/* Exports the function under a second name. */
#define ALSO(alias_name, function)            \
    extern __typeof__(function) alias_name    \
        __attribute__((alias(#function), visibility("default")))

#endif
