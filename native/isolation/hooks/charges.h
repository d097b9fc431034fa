/* What every allocation does: take, call the driver, remember or give back. */
#ifndef ISOLATION_CHARGES_H
#define ISOLATION_CHARGES_H

#include "devices.h"
#include "ledger.h"

/* Takes so much of the card's share; if it is too much, after pools have given back what they keep
 * for later. */
bool has_room(int card, uint64_t bytes);

/* After the driver's call: the charge is remembered by this address or handle, or given back. What
 * cannot be remembered stays charged until the process ends. */
int charged(int result, enum kind kind, uint64_t value, int card, uint64_t bytes);

/* Before the driver's call that frees, and after it. */
bool discharge_begin(enum kind kind, uint64_t value, struct entry *entry);
int discharge_end(int result, bool is_known, const struct entry *entry);

#endif
