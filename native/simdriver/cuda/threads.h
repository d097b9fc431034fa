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

struct context *thread_context(void); /* NULL: the stack is empty */
bool thread_push(struct context *context);
struct context *thread_pop(void);
bool thread_replace_top(struct context *context); /* NULL: removes the top */
void threads_forget(const struct context *context); /* removes the context from all stacks */

#endif
