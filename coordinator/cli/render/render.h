/* SPDX-License-Identifier: Apache-2.0
 * Jobs, workers and outputs as text for people. Pure: what is shown follows from the arguments,
 * `now_us` (Unix time) among them. */
#ifndef CADRE_CLI_RENDER_RENDER_H
#define CADRE_CLI_RENDER_RENDER_H

#include "cadre/client.h"
#include "common/base/progress_bar.h"
#include "coordinator/cli/render/comparison.h"
#include "coordinator/cli/render/terminal.h"

#define RENDER_BYTES 64

/* "42 s", "5 min", "3 h", "2 d". */
const char *render_age(uint64_t span_us, char text[RENDER_BYTES]);
/* "85 ms", "2.1 s", "3:25 min", "1:04:10 h". */
const char *render_duration(uint64_t span_us, char text[RENDER_BYTES]);
/* "512 B", "12.5 KiB", "1.2 GiB". */
const char *render_bytes(uint64_t bytes, char text[RENDER_BYTES]);
/* How much of all epochs is done, "57%"; "-" when it is not known. */
const char *render_percent(const cadre_job *job, char text[RENDER_BYTES]);

enum colour render_state_colour(cadre_job_state state);

/* What the evaluator last said, "step 400  loss 0.31"; false: nothing yet. */
#define RENDER_EVALUATION_BYTES 512
bool render_evaluation(const cadre_job *job, char *text, size_t size);

/* What common/base/progress_bar.h draws; false while the job reported nothing. `metrics` outlives
 * the bar. */
bool render_bar(const cadre_job *job, struct progress_bar_metric metrics[PROGRESS_BAR_METRICS_MAX],
    struct progress_bar *ret_bar);

/* The jobs as a table. Without `all`, of those that have ended only the newest RENDER_ENDED_MAX,
 * with a line that says so. */
#define RENDER_ENDED_MAX 20
bool render_jobs(const cadre_job_list *list, bool all, uint64_t now_us,
    const struct text_style *text_style, FILE *out);
bool render_job(
    const cadre_job *job, uint64_t now_us, const struct text_style *text_style, FILE *out);
bool render_shards(const cadre_job *job, const struct text_style *text_style, FILE *out);
bool render_workers(
    const cadre_worker_list *list, uint64_t now_us, const struct text_style *text_style, FILE *out);
/* Until its certificate expires: "23 days", "5 hours", "expired"; "-": it has none. */
const char *render_certificate(
    const cadre_worker *worker, uint64_t now_us, char text[RENDER_BYTES]);
/* Yellow and red where it is time for a new one. */
enum colour render_certificate_colour(const cadre_worker *worker, uint64_t now_us);
/* One line about the certificates that expire soon, the soonest first; nothing when none does. */
void render_certificate_warning(
    const cadre_worker_list *list, uint64_t now_us, const struct text_style *text_style, FILE *out);
/* One, with its GPUs. */
bool render_worker(
    const cadre_worker *worker, uint64_t now_us, const struct text_style *text_style, FILE *out);
bool render_outputs(const cadre_output_list *list, const struct text_style *text_style, FILE *out);

/* What was fed, epoch by epoch, and what follows from it. */
bool render_verification(
    const cadre_verification *verification, const struct text_style *text_style, FILE *out);

/* Whether two consumed the same, and where first not. */
void render_comparison(
    const struct comparison *comparison, const struct text_style *text_style, FILE *out);

/* The line of both where `more` is set. */
#define RENDER_TRUNCATED                                                                           \
    "The coordinator is of an older version and left out the newest epochs: upgrade it to have "   \
    "them here."

/* How a job that has ended did, in one line without its newline: "job 3 succeeded in 2.1 s". */
void render_outcome(const cadre_job *job, const struct text_style *text_style, FILE *out);

#endif
