/* Between nvmlInit and nvmlShutdown: the node, and handles for the cards that are seen. */
#ifndef SIMDRIVER_NVML_SESSION_H
#define SIMDRIVER_NVML_SESSION_H

#include <stddef.h>

#include "../node.h"
#include "nvml.h"

/* The node, or NULL before nvmlInit. */
struct node *session_node(void);

/* A card that is there and answers; otherwise why not. */
int find_card(device_t device, struct card **card);

int card_index(const struct card *card);        /* in the state */
int visible_index(device_t device);             /* as this process counts */
device_t device_at(int visible_index);          /* NULL: there is none */
device_t device_of(const struct card *card);    /* NULL: not seen */

API int nvmlDeviceGetHandleByPciBusId_v2(const char *text, device_t *device);
void describe_pci(const struct card_fixed *fixed, struct pci_v3 *pci);
int copy_text(char *target, unsigned size, const char *text);

#define WITH_CARD(variable, device)                 \
    struct card *variable;                          \
    do {                                            \
        int problem = find_card(device, &variable); \
        if (problem) return problem;                \
    } while (0)

/* A function that asks one thing of a card. */
#define GETTER(function, type, expression)                \
    API int function(device_t device, type *value);       \
    API int function(device_t device, type *value) {      \
        WITH_CARD(card, device);                          \
        if (!value) return INVALID_ARGUMENT;              \
        (void)card;                                       \
        *value = (expression);                            \
        return OK;                                        \
    }

/* The same under another of its names. */
#define ALSO(alias_name, function)            \
    extern __typeof__(function) alias_name    \
        __attribute__((alias(#function), visibility("default")))

#endif
