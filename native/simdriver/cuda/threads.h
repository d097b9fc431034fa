/* Each thread's stack of contexts, in a table by thread id.
 *
 * Neither __thread nor pthread keys will do: a library with a TLS segment cannot be opened by a
 * static program, and two copies of an older C library in one process (dlmopen) number their keys
 * each for itself, on the same threads.
 */
#ifndef SIMDRIVER_CUDA_THREADS_H
#define SIMDRIVER_CUDA_THREADS_H

#include <stdbool.h>

struct context;

struct context *thread_context(void); /* NULL: the stack is empty */
bool thread_push(struct context *context);
struct context *thread_pop(void);
bool thread_replace_top(struct context *context); /* NULL: takes the top away */
void threads_forget(const struct context *context); /* it is destroyed: on no stack any more */

#endif
