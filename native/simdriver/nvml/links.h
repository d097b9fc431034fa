/* How cards are joined. */
#ifndef SIMDRIVER_NVML_LINKS_H
#define SIMDRIVER_NVML_LINKS_H

#include "session.h"

/* NVLinks from one card to another, through a switch or not. */
int count_links(const struct card *from, const struct card *to);

#endif
