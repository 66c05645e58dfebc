/* SPDX-License-Identifier: Apache-2.0
 * What a training leaves for TensorBoard: event files, written while it runs. (tf.summary.)
 *
 *     cadre_report(strategy, "loss", loss)                  tf.summary.scalar      cadre/program.h
 *     cadre_summary_histogram(strategy, "w", weights, 0)    tf.summary.histogram
 *     cadre_summary_text(strategy, "note", "**bold**")      tf.summary.text
 *
 * A value belongs to the number of steps that are applied when it is reported: 1 after the first.
 * The first value begins a file events.out.tfevents.* in the folder events of the output folder,
 * and the library adds
 *
 *     cadre/step_seconds     from one step that was applied to the next, with all waits between
 *     cadre/tasks            at the beginning of each generation
 *     cadre/generations      likewise: a table of which tasks formed it, after which step, and why
 *
 *     tensorboard --logdir job-3      after `cadre get 3`, which puts the files of all tasks into
 *                                     job-3/events: one run
 *
 * The chief writes. Call all of these in every task: one that becomes the chief writes its own
 * values of the last second again, because those of a chief that was killed may be lost. Where a
 * job begins again from a checkpoint its chief begins another file, at whose beginning TensorBoard
 * discards the values of the steps that were undone; so each step's value is there once. A file is
 * valid up to its last whole record whenever the process is killed. What was reported before a
 * checkpoint was taken is in the file before the checkpoint counts; all else is written within a
 * quarter of a second.
 *
 * Values are written by a thread of their own: a call costs less than a microsecond, a histogram
 * two passes over its values. A disk that is full is a warning, once, and no error. Every value is
 * written until the file has 16 MiB (some 250,000 scalars); then each name's newest ten times a
 * second, from 64 MiB on once a second. At most 1024 names (RESOURCE_EXHAUSTED).
 *
 * CADRE_EVENTS in the environment (`cadre submit --env`) is off, on, or a folder, as an absolute
 * path, that gets the files instead, best one that all hosts share: TensorBoard then shows the
 * training while it runs. Without it there are files where an output folder was asked for: under a
 * daemon, under `cadre run`, and by hand where CADRE_OUTPUT_DIR is set. A second strategy of a
 * program that was started by hand is a run of its own, in events/2. A later run into the same
 * folder takes the place of the one before in TensorBoard; the files stay. The evaluator of a job
 * with parameter servers writes what it reports in events/eval, which is a run of its own, too. */
#ifndef CADRE_SUMMARY_H
#define CADRE_SUMMARY_H

#include <stdint.h>

#include "cadre/strategy.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The longest text of a summary. */
#define CADRE_SUMMARY_TEXT_BYTES 65536

/* How the values of a tensor are distributed, in `buckets` buckets of equal width from the least to
 * the greatest (0: 30; at most 1000). Any shape; numbers or booleans on the host, else
 * INVALID_ARGUMENT or FAILED_PRECONDITION. Equal values share one bucket. Values that are NaN or
 * infinite are in no bucket: their number is a scalar, NAME/not_finite, where there are any. They
 * are read before this returns. `name`: 1 to 127 bytes of printable ASCII, with "/" between groups.
 * Cross-replica context, in every task. (tf.summary.histogram.) */
CADRE_API cadre_status cadre_summary_histogram(
    cadre_strategy *strategy, const char *name, const cadre_tensor *values, uint32_t buckets);

/* A text, which TensorBoard shows as Markdown: UTF-8 of at most CADRE_SUMMARY_TEXT_BYTES bytes,
 * without control characters but tabs and newlines (INVALID_ARGUMENT); copied. Names and context as
 * above. (tf.summary.text.) */
CADRE_API cadre_status cadre_summary_text(
    cadre_strategy *strategy, const char *name, const char *text);

#ifdef __cplusplus
}
#endif
#endif
