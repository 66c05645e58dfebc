/* SPDX-License-Identifier: Apache-2.0
 * Giving registered state its value of a checkpoint. */
#ifndef CADRE_RUNTIME_RESTORE_REGISTER_H
#define CADRE_RUNTIME_RESTORE_REGISTER_H

#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/runtime/strategy/strategy.h"

/* Before the first step, in all tasks together: registered state `i` gets its value of the
 * strategy's restoration, if there is one. Errors are final, but INVALID_ARGUMENT, which means that
 * it has another size there. */
cadre_status registered_take_restored(
    cadre_strategy *strategy, uint32_t i, struct cadre_error *error);

#endif
