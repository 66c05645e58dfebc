/* SPDX-License-Identifier: Apache-2.0
 * The outputs of replica functions: one value for each output of cadre_run. Those of a step stay
 * lent to the program until the next one is applied, because until then a task that was frozen in
 * it may have to adopt them (protocol, rule 28). */
#ifndef CADRE_RUNTIME_STEP_OUTPUTS_H
#define CADRE_RUNTIME_STEP_OUTPUTS_H

#include "worker/library/runtime/strategy/strategy.h"

extern const struct strategy_hooks outputs_hooks;

/* Takes those of one replica whose function returned OK, in its thread: INVALID_ARGUMENT when they
 * are not as many as requested, each with a reference of its own. They are the library's then. */
cadre_status outputs_take(cadre_replica *replica, uint32_t n_outputs, struct cadre_error *error);

/* All have returned OK: INVALID_ARGUMENT when local replicas have given outputs of other names. */
cadre_status outputs_agree(const cadre_strategy *strategy, struct cadre_error *error);

/* Of all replicas: releases what was not lent. */
void outputs_drop(cadre_strategy *strategy);

/* The step of `order` is applied here: it is the last one from now on. */
void outputs_record(const struct step_order *order);

/* Whether a step was applied in this process, or taken over. */
bool outputs_has_last(const cadre_strategy *strategy);

#endif
