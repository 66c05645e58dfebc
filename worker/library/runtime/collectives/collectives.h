/* SPDX-License-Identifier: Apache-2.0
 * Collectives as a part of a strategy. */
#ifndef CADRE_RUNTIME_COLLECTIVES_H
#define CADRE_RUNTIME_COLLECTIVES_H

#include "cadre/replica.h"

/* No replica is running, or ever will be: ends their threads for collectives, and frees what they
 * keep. */
void collectives_close(cadre_strategy *strategy);

#endif
