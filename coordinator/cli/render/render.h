/* SPDX-License-Identifier: Apache-2.0
 * Jobs, workers and outputs as text. Pure: the text depends only on the arguments, `now_us` (Unix
 * time) among them. Functions that return bool: false when memory is out. */
#ifndef CADRE_CLI_RENDER_RENDER_H
#define CADRE_CLI_RENDER_RENDER_H

#include "cadre/client.h"
#include "common/base/progress_bar.h"
#include "coordinator/cli/render/comparison.h"
#include "coordinator/cli/render/quantities.h"
#include "coordinator/cli/render/terminal.h"

/* How much of all epochs is done, "57%"; "-" when it is not known. */
const char *render_percent(const cadre_job *job, char text[RENDER_BYTES]);

/* Red for failed, green for succeeded or running, and so on. */
enum colour render_state_colour(cadre_job_state state);

/* Bytes for render_evaluation(). */
#define RENDER_EVALUATION_BYTES 512
/* The evaluator's last report, "step 400  loss 0.31"; false: there is none yet. */
bool render_evaluation(const cadre_job *job, char *text, size_t size);

/* What common/base/progress_bar.h draws; false while the job reported nothing. `metrics` outlives
 * the bar. */
bool render_bar(const cadre_job *job, struct progress_bar_metric metrics[PROGRESS_BAR_METRICS_MAX],
    struct progress_bar *ret_bar);

/* Ended jobs in the table without `all`. */
#define RENDER_ENDED_MAX 20
/* The jobs as a table; without `all` only the newest RENDER_ENDED_MAX that have ended, and a
 * line with the number of the others. */
bool render_jobs(const cadre_job_list *list, bool all, uint64_t now_us,
    const struct text_style *text_style, FILE *out);
/* One job with its tasks. */
bool render_job(
    const cadre_job *job, uint64_t now_us, const struct text_style *text_style, FILE *out);
/* The tasks of a job as a table. */
bool render_tasks(const cadre_job *job, const struct text_style *text_style, FILE *out);
/* The busiest tasks of several jobs, so many at most, those that others wait for first; and an
 * empty line. Nothing when of none is known what it uses. */
#define RENDER_BUSY_MAX 12
bool render_busy_tasks(
    const cadre_job *const *jobs, size_t count, const struct text_style *text_style, FILE *out);
/* CPUs in use, "0.98", "12.3"; "-": not known. */
const char *render_cores(const cadre_usage *usage, char text[RENDER_BYTES]);
/* Which task reads what of each dataset of the job. */
bool render_shards(const cadre_job *job, const struct text_style *text_style, FILE *out);
/* The workers as a table, with notes below it. */
bool render_workers(
    const cadre_worker_list *list, uint64_t now_us, const struct text_style *text_style, FILE *out);
/* The time until its certificate expires: "23 days", "5 hours", "expired"; "-": it has none. */
const char *render_certificate(
    const cadre_worker *worker, uint64_t now_us, char text[RENDER_BYTES]);
/* Yellow when the certificate expires soon, red when it has expired. */
enum colour render_certificate_colour(const cadre_worker *worker, uint64_t now_us);
/* One line about the certificates that expire soon, the soonest first; nothing when none does. */
void render_certificate_warning(
    const cadre_worker_list *list, uint64_t now_us, const struct text_style *text_style, FILE *out);
/* One worker with its GPUs. */
bool render_worker(
    const cadre_worker *worker, uint64_t now_us, const struct text_style *text_style, FILE *out);
/* Where tasks of a job leave their files whose outputs_folder is this one, which is not "":
 * "s3://bucket/key/12". */
#define RENDER_FOLDER_BYTES 1100
const char *render_outputs_folder(const char *folder, uint64_t job, char text[RENDER_FOLDER_BYTES]);
/* The files as a table; of those that lie in an object store nothing is said. */
bool render_outputs(const cadre_output_list *list, const struct text_style *text_style, FILE *out);

/* The proof epoch by epoch, and its conclusion. */
bool render_verification(
    const cadre_verification *verification, const struct text_style *text_style, FILE *out);

/* Whether two jobs consumed the same, and the first difference. */
void render_comparison(
    const struct comparison *comparison, const struct text_style *text_style, FILE *out);

/* Printed by both where `more` is set. */
#define RENDER_TRUNCATED                                                                           \
    "The coordinator is of an older version and left out the newest epochs: upgrade it to have "   \
    "them here."

/* The outcome of a job that has ended, without a newline: "job 3 succeeded in 2.1 s". */
void render_outcome(const cadre_job *job, const struct text_style *text_style, FILE *out);

#endif
