/* SPDX-License-Identifier: Apache-2.0
 * The names of Linux signals as strsignal() has them. */
#ifndef CADRE_COORDINATOR_CORE_STATE_SIGNALS_H
#define CADRE_COORDINATOR_CORE_STATE_SIGNALS_H

#include "coordinator/core/state/state.h"

/* "Killed"; NULL for a number without a name. */
const char *signal_name(int32_t signal);

#endif
