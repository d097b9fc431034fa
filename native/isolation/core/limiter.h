/* This process' part in the counting: its limits, its slot, and its turns. */
#ifndef ISOLATION_LIMITER_H
#define ISOLATION_LIMITER_H

#include "accounts.h"
#include "slots.h"

#define NO_CARD (-1)
#define NO_LIMIT UINT64_MAX

/* False: the container has no limits, and every call goes straight to the driver. */
bool limiter_is_on(void);

/* The number by which a card is counted; NO_CARD if it has no limit here, and so no use. */
int limiter_card(const char *uuid);

/* Takes so much of the card's share; false if there is not so much left. */
bool limiter_take(int card, uint64_t bytes);

/* As it is, even beyond the limit: it is already in use. */
void limiter_take_anyway(int card, uint64_t bytes);
void limiter_give(int card, uint64_t bytes);

/* In bytes. What is shown as total is never less than what is in use. */
uint64_t limiter_total(int card);
uint64_t limiter_used(int card);

unsigned limiter_percent(int card); /* 0: as much compute as there is */

/* Whether any card has a share of its compute set. */
bool limiter_has_percent(void);

/* Marks whether this process has a context on the card. */
void limiter_set_context(int card, bool is_there);

struct user {
    uint32_t pid;
    uint64_t used;
    const char *name;
};

/* The container's processes on the card; at most `room` of them are written. Returns how many. */
int limiter_users(int card, struct user *users, int room);

struct region *limiter_region(void);

#endif
