/* SPDX-License-Identifier: Apache-2.0
 * Whether a strategy may be made in this program, and ended by it. */
#ifndef CADRE_RUNTIME_LIFETIME_H
#define CADRE_RUNTIME_LIFETIME_H

#include "worker/library/runtime/strategy/strategy.h"

/* What no constructor made is nobody's to end: FAILED_PRECONDITION. */
cadre_status lifetime_require_constructed(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error);

/* What every constructor asks first: the process is one task, and a plain program is that already,
 * also behind its end. */
cadre_status strategy_check_program(const char *function, struct cadre_error *error);

#endif
