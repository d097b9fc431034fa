/* Loaded objects, the program and its libraries, as the dynamic loader knows them. */
#ifndef ISOLATION_OBJECTS_H
#define ISOLATION_OBJECTS_H

#include <stdbool.h>

struct link_map;

/* The object in which the address lies; NULL if it lies in none. */
struct link_map *object_at(const void *address);

/* Whether the object is called `name`, with anything behind it: "libcuda.so" is the name of
 * libcuda.so.1 and of libcuda.so.550.163.01. Both the name that the linker wrote into the object
 * (SONAME) and the name of its file count: either can be missing or changed. */
bool is_named(const struct link_map *object, const char *name);

/* A handle of the object that stays valid: the object is never unloaded from now on, whoever closes
 * his own handles. NULL if the loader does not give one. */
void *keep_loaded(const struct link_map *object);

/* Whether the loader searches the limiter before this object, which is in the same linker
 * namespace. */
bool is_behind_limiter(const struct link_map *object);

/* A function of the C library, found in its tables without a call of dlsym, dlvsym or dlopen, all of
 * which may be replaced by other libraries. NULL if it is not there. */
void *in_c_library(const char *function);

#endif
