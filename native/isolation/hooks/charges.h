/* What the hook of every allocating function does: reserve memory of the share, call the driver,
 * and then record the charge or give it back. */
#ifndef ISOLATION_CHARGES_H
#define ISOLATION_CHARGES_H

#include "devices.h"
#include "ledger.h"

/* Reserves so many bytes of the container's share of the card. If there is not that much left,
 * pools and graphs first give back the memory that they keep for later. False: there is still not
 * enough. The caller gives the reservation back with limiter_give or records it with
 * record_charge. */
bool reserve(int card, uint64_t bytes);

/* To be called after the driver's function, with its result. If it succeeded, the charge is
 * recorded under this address or handle; otherwise the reservation is given back. If there is no
 * memory for the record, the charge stays until the process ends. Returns `result`. */
int record_charge(int result, enum kind kind, uint64_t value, int card, uint64_t bytes);

/* To be called before and after a function of the driver that frees. The record is removed before:
 * as soon as the driver has freed the address, another thread may get the same one and record
 * it. */
bool discharge_begin(enum kind kind, uint64_t value, struct entry *entry);
int discharge_end(int result, bool is_known, const struct entry *entry);

#endif
