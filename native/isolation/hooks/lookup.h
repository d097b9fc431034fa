/* How programs find functions: dlsym, cuGetProcAddress. */
#ifndef ISOLATION_LOOKUP_H
#define ISOLATION_LOOKUP_H

#define NO_HOOK (-1)

/* Before a function that ASan calls before it is ready. If the limiter itself is built with ASan,
 * such a function is left as it is. */
#define EARLY __attribute__((no_sanitize("address")))

/* The C library's dlsym. */
void *real_dlsym(void *handle, const char *name);

/* The hooked function with this name; NO_HOOK if there is none. */
int hook_id(const char *name);

/* What dlsym returns to code at `caller`, which asks `handle` for the hooked function `id`, when the
 * C library has `found` there: the hook, in place of a function of the driver. From then on hooks
 * call the driver that was asked. */
void *hook_for(int id, void *handle, void *found, const void *caller);

/* The same for code at `caller` that asks for the next function of this name behind itself: the
 * hook, or NULL if the C library is to answer. */
void *hook_for_next(int id, const void *caller);

#endif
