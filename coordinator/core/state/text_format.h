/* SPDX-License-Identifier: Apache-2.0
 * Parts of the sentences in texts of jobs and errors. */
#ifndef CADRE_COORDINATOR_CORE_STATE_TEXT_FORMAT_H
#define CADRE_COORDINATOR_CORE_STATE_TEXT_FORMAT_H

#include "coordinator/core/state/state.h"

/* ---- text_format.c ---- */

/* Of a task that joined and exited with status 0. It may lack either call. */
#define UNFINISHED " before cadre_finish (or cadre_plain_finish)"

/* "task 2"; of a ps job "ps 1 (slot 4)" */
void task_title(const struct job *job, uint32_t slot, struct text *text);
/* "task 2 on worker b" */
void task_name(const struct core *core, const struct job *job, uint32_t slot, struct text *text);
/* "10 s", "1500 ms" */
void text_time(struct text *text, uint64_t us);
/* The same for a time that a person chose: "2 h", "90 min", "45 s" */
void text_span(struct text *text, uint64_t us);
/* "1 step", "4 steps" */
void text_count(struct text *text, uint64_t count, const char *one, const char *many);
/* "; all 12 steps were done by then": what the program does after cadre_finish may have failed. */
void text_finished(const struct job *job, struct text *text);

/* ---- signals.c ---- */

/* "Killed"; NULL for a number without a name. */
const char *signal_name(int32_t signal);

#endif
