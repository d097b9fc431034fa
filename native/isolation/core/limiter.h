/* The limiter in this process: reads the limits, and counts what the process takes and gives
 * back. */
#ifndef ISOLATION_LIMITER_H
#define ISOLATION_LIMITER_H

#include "accounts.h"
#include "slots.h"

#define NO_CARD (-1)
#define NO_LIMIT UINT64_MAX

/* False: the container has no limits, and all calls go straight to the driver. */
bool limiter_is_on(void);

/* The number of the card in the region; NO_CARD if the limit file does not name the card, which may
 * not be used then. */
int limiter_card(const char *uuid);

/* Takes so many bytes of the container's share of the card; false if there is not that much
 * left. */
bool limiter_take(int card, uint64_t bytes);

/* Counts memory that the driver has already given, even beyond the limit. */
void limiter_take_anyway(int card, uint64_t bytes);

/* Whether more is in use than the limit allows, by what the limit file says now. */
bool limiter_is_over(int card);

/* Gives back bytes that were taken. */
void limiter_give(int card, uint64_t bytes);

/* In bytes. The total is the limit, or what is in use if that is more (after the limit shrank):
 * programs do not expect more memory in use than there is. */
uint64_t limiter_total(int card);
uint64_t limiter_used(int card);

unsigned limiter_percent(int card); /* 0: compute is not limited */

/* Whether compute is limited on any card. */
bool limiter_has_percent(void);

/* Records whether this process has a context on the card: it is listed then even without memory. */
void limiter_set_context(int card, bool is_there);

struct user {
    uint32_t pid;
    uint64_t used;
    const char *name; /* NAME_SIZE bytes; the end may be missing: others can write to the region */
};

/* The container's processes on the card. Returns how many; writes at most `room` of them. */
int limiter_users(int card, struct user *users, int room);

struct region *limiter_region(void);

#endif
