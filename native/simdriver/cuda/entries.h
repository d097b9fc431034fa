/* Functions by name and by the CUDA version that the caller was built for. */
#ifndef SIMDRIVER_CUDA_ENTRIES_H
#define SIMDRIVER_CUDA_ENTRIES_H

#include <stdbool.h>

enum lookup { FOUND = 0, NO_SUCH_NAME = 1, NEWER_ONLY = 2 };

/* Finds the newest variant of the function that is not newer than `version`. */
enum lookup find_entry(const char *name, int version, bool is_per_thread, void **function);

#endif
