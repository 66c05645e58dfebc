/* SPDX-License-Identifier: Apache-2.0
 * What a job's program reported, by step, as text. Pure. */
#ifndef CADRE_CLI_RENDER_RENDER_METRICS_H
#define CADRE_CLI_RENDER_RENDER_METRICS_H

#include "coordinator/cli/render/curve.h"
#include "coordinator/cli/render/terminal.h"

/* A row for each name: its newest value, the extremes and the number of all. False: no memory. */
bool render_metrics(
    const cadre_job_series *metrics, const struct text_style *text_style, FILE *out);

/* A curve of each name. */
void render_curves(const cadre_job_series *metrics, const struct curve_style *style, FILE *out);

/* What of the values is not there, and why; nothing when all is. */
void render_metrics_notes(const cadre_job_series *metrics, FILE *out);

/* The first row of the CSV, and the others: a row for each value, or bucket. */
void render_metrics_csv_head(FILE *out);
void render_metrics_csv(const cadre_job_series *metrics, FILE *out);

#endif
