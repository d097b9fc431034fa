/* Which mount a file is on: who wrote a file cannot be seen from its path.
 *
 * A pod names the paths at which volumes and the file of its last message are mounted into its
 * container, and the links in images and volumes lead such a mount to any place. What is mounted
 * over a file of ours takes its place. But it cannot hide: the kernel lists every mount, also one
 * that is covered, with the path to which all links have been resolved.
 */
#ifndef ISOLATION_MOUNTS_H
#define ISOLATION_MOUNTS_H

struct place {
    const char *directory; /* where the node mounts the volume of the limit file */
    const char *root;      /* the mount point of the file system that the directory is in: "/" */
};

/* Why the open file is not on the mount that the node made there; NULL if it is. The node makes
 * exactly one mount, which nobody in the container can write through. So if there is one, and no
 * other at the directory or below it, it is the mount of the node.
 *
 * That it is on the file system of the root is also wanted. In a volume, a container that runs
 * beside this one could replace the directory while the runtime mounts: the node's mount would go
 * elsewhere, and another one to the directory. */
const char *mount_problem(int fd, const struct place *place);

/* Why the open file is not on the same mount as the directory; NULL if it is. */
const char *other_mount_problem(int fd, const char *directory);

#endif
