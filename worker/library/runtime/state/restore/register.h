/* SPDX-License-Identifier: Apache-2.0
 * Giving registered state what a checkpoint holds of it. */
#ifndef CADRE_RUNTIME_RESTORE_REGISTER_H
#define CADRE_RUNTIME_RESTORE_REGISTER_H

#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/runtime/strategy/strategy.h"

/* Before the first step, in all tasks together: registered state `i` gets what the strategy's
 * restoration holds of it, if it does. Errors are final, but INVALID_ARGUMENT, which says that it
 * has another size there. */
cadre_status registered_take_restored(
    cadre_strategy *strategy, uint32_t i, struct cadre_error *error);

#endif
