/* The place of a process: what the driver's memory limits are set on.
 *
 * A place is the path of a cgroup v2, from the root of the hierarchy: /kubepods/pod1/a. The kernel
 * says it of the calling process in /proc/self/cgroup, and a process cannot leave its cgroup
 * without rights over the machine.
 *
 * In a cgroup namespace of its own, a process sees no path from the root. The place is then the
 * inode of its cgroup, as a mounted hierarchy shows it there: #4711. It matches the limits of this
 * very cgroup, and not those of its ancestors.
 *
 * Containers of a local cluster have no cgroup. Each of them reaches the state file through a hard
 * link of its own, NODE/containers/POD/CONTAINER/state, which is mounted into it. The kernel tells
 * the path of the mounted file in /proc/self/mountinfo, whatever the program binds, links or renames
 * afterwards: the place is then containers:/POD/CONTAINER.
 *
 * Both need the kernel's /proc. A program that mounts another one over it forges its place, as it
 * could also write to the state file: a simulated driver runs inside the program, a real one in the
 * kernel.
 */
#ifndef SIMDRIVER_CGROUP_H
#define SIMDRIVER_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "layout.h"

/* What is not known lies below no cgroup; see limits.h. */
#define PLACE_UNKNOWN "?"

/* The place of this process. `state` is the path at which it has opened the state file. */
void read_own_place(const char *state, char place[PLACE_BYTES]);

/* The place that a directory stands for: that of a cgroup in a mounted hierarchy, or that of a
 * container of the node with this state file. False: it stands for none. `cgroup` becomes the inode
 * of the cgroup, and 0 for a container. */
bool place_of_directory(const char *directory, const char *state, char place[PLACE_BYTES],
                        uint64_t *cgroup);

/* Whether the place is that of the limit itself or lies below it. */
bool is_under(const char *place, const struct limit *limit);

/* Whether this process may set limits: it is root of the machine, not only of a namespace. */
bool is_administrator(void);

#endif
