/* SPDX-License-Identifier: Apache-2.0
 * The events of one task: values by tag and step. The chief's go into an event file, which begins
 * with the first value of the program. Other tasks keep those of the last one or two seconds: one
 * that becomes the chief writes them again, because what the chief before it had not written is
 * lost with its process.
 *
 * One thread at a time, but for event_log_write_out. A failure to write is a warning
 * (event_file.h); errors are of the arguments, or of memory. */
#ifndef CADRE_RUNTIME_EVENT_FILE_EVENT_LOG_H
#define CADRE_RUNTIME_EVENT_FILE_EVENT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/wire/summary_event.h"
#include "worker/library/runtime/event_file/event_target.h"

struct event_log;

/* Of a task that is not the chief, until event_log_lead. *ret_log is the caller's to close. */
cadre_status event_log_open(
    const struct event_target *target, struct event_log **ret_log, struct cadre_error *error);

/* The task is the chief of `generation`, which begins after `position` steps: what was written of
 * later ones is void. Nothing when it was already. */
void event_log_lead(struct event_log *log, uint64_t generation, uint64_t position);

/* The task is not the chief any more: ends its file. */
void event_log_follow(struct event_log *log);

/* A value; its kind is SUMMARY_SCALAR, _HISTOGRAM or _TEXT, wall_us is filled in. `own`: of the
 * program, which begins the file; those of the library are dropped before. RESOURCE_EXHAUSTED: of
 * the tags, or memory. */
cadre_status event_log_add(
    struct event_log *log, const struct summary_event *value, bool own, struct cadre_error *error);

/* Whether there is a file that values go to. */
bool event_log_has_file(const struct event_log *log);

/* What was added before is in the file, unless its disk refuses it. */
void event_log_flush(struct event_log *log);

/* The same at the end of the process, without the scalars that wait. Any thread. */
void event_log_write_out(struct event_log *log);

/* Writes what is left. Accepts NULL. */
void event_log_close(struct event_log *log);

#endif
