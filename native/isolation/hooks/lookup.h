/* How programs find functions: dlsym, dlvsym, cuGetProcAddress. */
#ifndef ISOLATION_LOOKUP_H
#define ISOLATION_LOOKUP_H

#define NO_HOOK (-1)

/* The C library's own dlsym. */
void *real_dlsym(void *handle, const char *name);

/* Which of the hooked functions has this name, or NO_HOOK. */
int hook_id(const char *name);

/* What a program is to get that asked `handle` for the function and would have found this. */
void *routed(int id, void *handle, void *found);

#endif
