/* SPDX-License-Identifier: Apache-2.0
 * The only place of the runtime that writes to a terminal: the progress of a program that was
 * started by hand, and why cadre_finish failed. All of it goes to stderr. */
#ifndef CADRE_RUNTIME_SHOW_H
#define CADRE_RUNTIME_SHOW_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/model/job.h"

/* Whether stderr is a terminal on which a line can be redrawn. */
bool show_redraws(void);

void show_bar(const struct progress *progress);
void show_bar_end(void);
void show_epoch(const struct progress *progress);

void show_failure(const struct cadre_error *error);

#endif
