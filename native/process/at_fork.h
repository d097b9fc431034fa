/* Functions that are called around fork; each may be NULL.
 *
 * Use: at_fork(before, in_parent, in_child) in a constructor.
 *
 * pthread_atfork itself is not used: in the shared C library it is an old symbol that newer
 * versions keep only for old programs. What it calls, __register_atfork, is in every version.
 * __dso_handle names the calling library, so that dlclose removes the functions again. */
#ifndef PROCESS_AT_FORK_H
#define PROCESS_AT_FORK_H

extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
extern void *__dso_handle;

/* Inline, because __dso_handle is another one in each library. */
static inline void at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
    __register_atfork(before, in_parent, in_child, __dso_handle);
}

#endif
