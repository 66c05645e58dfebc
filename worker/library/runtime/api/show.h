/* SPDX-License-Identifier: Apache-2.0
 * The only writer to the terminal in the runtime: progress of a program started by hand, warnings,
 * and why cadre_finish failed. All of it goes to stderr. */
#ifndef CADRE_RUNTIME_API_SHOW_H
#define CADRE_RUNTIME_API_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/job.h"

/* Whether stderr is a terminal on which a line can be redrawn. */
bool show_redraws(void);

/* Draws the progress bar of an epoch, over the one before. */
void show_bar(const struct progress *progress);
/* Ends the bar's line of text; nothing when there is none. */
void show_bar_end(void);
/* Prints the result of an epoch that has ended. */
void show_epoch(const struct progress *progress);

/* Prints why cadre_finish failed. */
void show_failure(const struct cadre_error *error);

/* One line that begins with "cadre: ". */
void show_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One line that begins with "cadre: warning: ". */
void show_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Mistakes that a program can repeat in each step, each with an equal text. */
enum show_misuse { SHOW_VALUE_RELEASED, SHOW_TENSOR_RELEASED, SHOW_MISUSES };
/* A warning the first few times, then once a minute, with the count of those left out. Any thread.
 */
void show_misuse(enum show_misuse which, const struct cadre_error *error);
/* Prints the count of those left out until now. */
void show_misuse_end(void);

/* How much of a checkpoint was read, in how much time. Redrawn on a terminal, else a line when it
 * is first called and one at the end. `ends`: this is the last call. */
void show_reading(const struct task_fetch *fetch, bool ends);

/* A dataset that has no access by index is read again up to its position: `done` of `wanted`
 * elements, since `elapsed_us`. Redrawn on a terminal, else one more text line each time. `ends`:
 * it is the last one. */
void show_replay(const char *name, uint64_t done, uint64_t wanted, uint64_t elapsed_us, bool ends);

#endif
