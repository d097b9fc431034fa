/* A process' view of its node: the mapped state, and the cards that it may see. */
#ifndef SIMDRIVER_NODE_H
#define SIMDRIVER_NODE_H

#include <limits.h>
#include <stdbool.h>

#include "layout.h"

enum node_found {
    NODE_FOUND,
    NODE_MISSING,  /* no state file: as if no driver were loaded */
    NODE_REFUSED,  /* a file that is damaged or of another version; said on stderr */
    NODE_HIDDEN,   /* the container has no driver: NVIDIA_VISIBLE_DEVICES is void or empty */
};

struct node {
    struct sim_state *state;
    int fd;     /* for locks: opened by this library for itself, never mapped (see node.c) */
    int map_fd; /* open as long as the mapping: see node_open */
    char path[PATH_MAX];
    int visible_count;
    int visible[MAX_CARDS]; /* indexes into state->cards, in the node's order */
};

/* Opens the node's state, or the new one if the file was replaced since. Not thread-safe. */
enum node_found node_open(struct node *node);

/* In the child of a fork: locks taken by the parent are not the child's. */
void node_after_fork(struct node *node);

#endif
