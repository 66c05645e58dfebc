/* SPDX-License-Identifier: Apache-2.0
 * The values of a training in event files, as a part of a strategy: what the program reports, how
 * long each step took, which generations applied the steps. */
#ifndef CADRE_RUNTIME_SUMMARIES_SUMMARIES_H
#define CADRE_RUNTIME_SUMMARIES_SUMMARIES_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/wire/summary_event.h"

struct cadre_strategy;
struct strategy_hooks;

extern const struct strategy_hooks summaries_hooks;

/* Whether values are written, by this task or by another one of the job. */
bool summaries_are_on(const struct cadre_strategy *strategy);

/* A value of the program, of the newest step that is applied: its tag is a name that name_check
 * accepts; `step` and `wall_us` are filled in. Nothing when they are off. RESOURCE_EXHAUSTED: too
 * many tags, or no memory. */
cadre_status summaries_add(
    struct cadre_strategy *strategy, const struct summary_event *value, struct cadre_error *error);

/* A checkpoint is about to be taken: the values up to it are in the file before it counts. */
void summaries_flush(struct cadre_strategy *strategy);

#endif
