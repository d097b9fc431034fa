/* Files that lie in the directory of this library: how it finds its settings without asking the
 * environment. */
#ifndef PROCESS_BESIDE_H
#define PROCESS_BESIDE_H

#include <limits.h>
#include <stdbool.h>

/* Writes the path of the file with this name; `path` has PATH_MAX bytes. False, and an empty path:
 * the directory is not known, or the path is too long.
 *
 * Takes the dynamic loader's lock. A thread that runs a constructor holds that lock already, so the
 * caller must not hold a mutex that such a thread may wait for. */
bool path_beside_library(char *path, const char *name);

#endif
