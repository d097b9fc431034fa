/* How programs find functions: dlsym, cuGetProcAddress. */
#ifndef ISOLATION_LOOKUP_H
#define ISOLATION_LOOKUP_H

#include <stdbool.h>

#define NO_HOOK (-1)

/* The C library's dlsym. */
void *real_dlsym(void *handle, const char *name);

/* The hooked function with this name; NO_HOOK if there is none. */
int hook_id(const char *name);

/* What dlsym returns to code at `caller`, which asks a library for the hooked function `id`, when
 * the C library has `found` there: the hook, in place of a function of the driver. */
void *hook_for(int id, void *found, const void *caller);

/* The same for code at `caller` that asks for the next function of this name behind itself: the
 * hook, or NULL if the C library is to answer. */
void *hook_for_next(int id, const void *caller);

#endif
