/* What is known between nvmlInit and nvmlShutdown: the node, and a handle for each visible card. */
#ifndef SIMDRIVER_NVML_SESSION_H
#define SIMDRIVER_NVML_SESSION_H

#include <stddef.h>

#include "../../interface/nvml.h"
#include "../gate.h"
#include "../node.h"

/* The node, or NULL before nvmlInit. */
struct node *session_node(void);

/* Finds the card of a handle. Returns an error if the handle is not valid or the card is lost. */
int find_card(device_t device, struct card **card);

int card_index(const struct card *card);     /* the index in the state file */
int visible_index(device_t device);          /* the index among the cards that this process sees */
device_t device_at(int visible_index);       /* NULL: there is no such card */
device_t device_of(const struct card *card); /* NULL: this process does not see the card */

CALL_OF(nvmlDeviceGetHandleByPciBusId_v2, const char *text, device_t *device);

/* Ends all sets of events: the last nvmlShutdown. */
void events_end(void);

void describe_pci(const struct card_fixed *fixed, struct pci_v3 *pci);

/* Returns NVML_INSUFFICIENT_SIZE if the text does not fit. */
int copy_text(char *target, unsigned size, const char *text);

/* Declares a variable for the card of the handle; returns the error if there is none. */
#define WITH_CARD(variable, device)                 \
    struct card *variable;                          \
    do {                                            \
        int problem = find_card(device, &variable); \
        if (problem) return problem;                \
    } while (0)

/* An exported function that returns one value of a card. */
#define GETTER(function, type, expression)                \
    CALL(function, device_t device, type *value) {        \
        WITH_CARD(card, device);                          \
        if (!value) return NVML_INVALID_ARGUMENT;              \
        (void)card;                                       \
        *value = (expression);                            \
        return NVML_OK;                                        \
    }

#endif
