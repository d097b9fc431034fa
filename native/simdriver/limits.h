/* Memory limits of cgroups, which the driver itself holds programs to (since driver 615).
 *
 * An entry has the limits of one cgroup on all cards. The nearest limited ancestor of a process
 * counts, and no other: a limit does not bound cgroups below it that have one of their own. Against
 * a limit counts all memory of the card that the processes under it hold, contexts too, but managed
 * memory does not. Nobody acts on soft limits: that is for an MPS server to do.
 *
 * Whoever changes the table holds LOCK_LIMITS. Readers take no lock: an entry is complete before
 * `is_set`, and its limits are taken away before it is given to another cgroup.
 */
#ifndef SIMDRIVER_LIMITS_H
#define SIMDRIVER_LIMITS_H

#include <stdbool.h>

#include "node.h"

struct limit_values {
    uint64_t soft, hard, used;
};

/* Whether processes at the place may take this much more of the card. Where a card has limits and
 * the place is not known, nothing may be taken. */
bool limit_allows(const struct sim_state *state, const char *place, int card, uint64_t bytes);

/* The limits that are set on this very place; false if none are. */
bool limit_at(const struct sim_state *state, const char *place, int card,
              struct limit_values *values);

/* Sets both limits, or clears them with 0 and NO_LIMIT. False: the table is full. Threads of one
 * process must not call it at the same time. */
bool limit_set(struct node *node, const char *place, uint64_t cgroup, int card, uint64_t soft,
               uint64_t hard);

/* Drops the limits of cgroups that are gone. `mount`: where their hierarchy is mounted. */
void limits_drop_removed(struct node *node, const char *mount);

#endif
