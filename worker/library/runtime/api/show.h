/* SPDX-License-Identifier: Apache-2.0
 * The only place of the runtime that writes to a terminal: the progress of a program that was
 * started by hand, warnings, and why cadre_finish failed. All of it goes to stderr. */
#ifndef CADRE_RUNTIME_API_SHOW_H
#define CADRE_RUNTIME_API_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/job.h"

/* Whether stderr is a terminal on which a line can be redrawn. */
bool show_redraws(void);

void show_bar(const struct progress *progress);
void show_bar_end(void);
void show_epoch(const struct progress *progress);

void show_failure(const struct cadre_error *error);

/* One line that begins with "cadre: ". */
void show_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line that begins with "cadre: warning: ". */
void show_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What a program can do wrong in each step, each with an equal text. */
enum show_misuse { SHOW_VALUE_RELEASED, SHOW_TENSOR_RELEASED, SHOW_MISUSES };
/* A warning the first few times, then once a minute, with how often it was left out. Any thread. */
void show_misuse(enum show_misuse which, const struct cadre_error *error);
/* What was left out until now is told. */
void show_misuse_end(void);

/* A dataset that cannot be read by place is read up to where it stood: `done` of `wanted` elements,
 * since `elapsed_us`. Redrawn on a terminal, else a line each time. `ends`: it is the last. */
void show_replay(const char *name, uint64_t done, uint64_t wanted, uint64_t elapsed_us, bool ends);

#endif
