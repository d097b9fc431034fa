/* The connections between cards. */
#ifndef SIMDRIVER_NVML_LINKS_H
#define SIMDRIVER_NVML_LINKS_H

#include "session.h"

/* The number of NVLinks from one card to another, directly or through an NVSwitch. */
int count_links(const struct card *from, const struct card *to);

#endif
