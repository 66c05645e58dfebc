/* SPDX-License-Identifier: Apache-2.0
 * Whether a strategy may be made in this program, and ended by it. */
#ifndef CADRE_RUNTIME_LIFETIME_H
#define CADRE_RUNTIME_LIFETIME_H

#include "worker/library/runtime/strategy/strategy.h"

/* A strategy that no constructor made cannot be ended: FAILED_PRECONDITION. */
cadre_status lifetime_require_constructed(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error);

/* Every constructor calls it first: FAILED_PRECONDITION in a plain program, also after its end, and
 * before cadre_init, because the process is one task. */
cadre_status strategy_check_program(const char *function, struct cadre_error *error);

#endif
