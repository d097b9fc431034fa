/* Which mount a file is on: who wrote a file cannot be seen from its path.
 *
 * A pod names the paths at which volumes and the file of its last message are mounted into its
 * container, and the links in images and volumes lead such a mount to any place. What is mounted
 * over a file of ours takes its place. But it cannot hide: the kernel lists every mount, also one
 * that is covered, with the path to which all links have been resolved.
 */
#ifndef ISOLATION_MOUNTS_H
#define ISOLATION_MOUNTS_H

/* Why the open file is not on the mount that the node made at `directory`; NULL if it is. The node
 * makes exactly one mount there, which nobody in the container can write through. So if there is
 * one, and no other at the directory or below it, it is the mount of the node. */
const char *mount_problem(int fd, const char *directory);

/* Why the open file is not on the same mount as the directory; NULL if it is. */
const char *other_mount_problem(int fd, const char *directory);

#endif
