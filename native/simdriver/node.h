/* The node as one process sees it: the mapped state, and the cards that are visible to it. */
#ifndef SIMDRIVER_NODE_H
#define SIMDRIVER_NODE_H

#include <limits.h>
#include <stdbool.h>

#include "layout.h"

enum node_found {
    NODE_FOUND,
    NODE_MISSING, /* there is no state file: as if no driver were loaded */
    NODE_REFUSED, /* the file is damaged or of another version; a message was written to stderr */
    NODE_HIDDEN,  /* the container has no driver: NVIDIA_VISIBLE_DEVICES is void or empty */
};

struct node {
    struct sim_state *state;
    int fd;     /* for locks: never mapped, see process/byte_lock.h */
    int map_fd; /* from which the state was mapped; stays open, see node_open */
    char path[PATH_MAX];
    int visible_count;
    int visible[MAX_CARDS]; /* indexes into state->cards, in the node's order */
};

/* Opens the node's state. If it is open, opens it again only if another file has its path by now.
 * Not thread-safe. */
enum node_found node_open(struct node *node);

/* To be called in the child of a fork: gives up the parent's locks, so that the child does not keep
 * them held after the parent's death. */
void node_after_fork(struct node *node);

#endif
