/* The fields of a card that can be queried: name, unit of measurement, and how to read the
 * value. */
#ifndef SIMDRIVER_SMI_FIELDS_H
#define SIMDRIVER_SMI_FIELDS_H

#include "library.h"

struct field {
    const char *name, *alias;
    const char *unit; /* NULL: none */
    int (*read)(device_t card, char *text, unsigned size);
};

/* NULL: there is no field with this name. */
const struct field *field_by_name(const char *name);

/* Writes the value as nvidia-smi does, or a reason in brackets if there is none. */
void field_text(const struct field *field, device_t card, int has_unit, char *text, unsigned size);

#endif
