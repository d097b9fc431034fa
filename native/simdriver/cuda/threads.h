/* Each thread's stack of contexts, in a table by thread id.
 *
 * Neither __thread nor pthread keys can be used. A static program cannot dlopen a library with a
 * TLS segment. And with dlmopen, one process has two copies of the C library: in older versions
 * both give out the same key numbers, for the same threads.
 */
#ifndef SIMDRIVER_CUDA_THREADS_H
#define SIMDRIVER_CUDA_THREADS_H

#include <stdbool.h>

struct context;

/* The context at the top of the stack. INVALID_CONTEXT if the stack is empty; CONTEXT_IS_DESTROYED if
 * another thread has destroyed the context, or it was a primary one and is not retained now. */
int thread_context(struct context **context);

struct context *thread_top(void); /* also if it was destroyed; NULL: the stack is empty */
bool thread_push(struct context *context);
struct context *thread_pop(void);
bool thread_replace_top(struct context *context); /* NULL: removes the top */

#endif
