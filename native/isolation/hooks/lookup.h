/* How programs find functions: dlsym, dlvsym, cuGetProcAddress. */
#ifndef ISOLATION_LOOKUP_H
#define ISOLATION_LOOKUP_H

#define NO_HOOK (-1)

/* The C library's dlsym. */
void *real_dlsym(void *handle, const char *name);

/* The hooked function with this name; NO_HOOK if there is none. */
int hook_id(const char *name);

/* What dlsym returns to a program that asks `handle` for the hooked function `id`, when the C
 * library has `found` there: the hook, in place of a function of the driver. */
void *hook_for(int id, void *handle, void *found);

#endif
