/* What can be asked about one card: name, unit, and how to find it. */
#ifndef SIMDRIVER_SMI_FIELDS_H
#define SIMDRIVER_SMI_FIELDS_H

#include "library.h"

struct field {
    const char *name, *alias;
    const char *unit; /* NULL: none */
    int (*read)(device_t card, char *text, unsigned size);
};

/* NULL: there is none of that name. */
const struct field *field_by_name(const char *name);

/* As nvidia-smi writes it: the value, or why there is none. */
void field_text(const struct field *field, device_t card, int has_unit, char *text, unsigned size);

#endif
