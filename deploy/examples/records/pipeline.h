/* SPDX-License-Identifier: Apache-2.0
 * From files of records to batches: what this example is about. */
#ifndef RECORDS_PIPELINE_H
#define RECORDS_PIPELINE_H

#include "settings.h"

/* What the pipelines share. It outlives them. */
struct pipeline {
    cadre_tfrecord_options files;
    const char *data;                   /* the folder */
    cadre_example_parser *parser;       /* image f32 [PIXELS], label i64 */
    cadre_normalization *normalization; /* of the images */
};

/* Makes the parser, and finds the normalization: all tasks together, each reading a part of the
 * training records. A call of the beginning, before the first step. */
cadre_status pipeline_create(
    cadre_strategy *strategy, const struct settings *settings, struct pipeline *ret_pipeline);

void pipeline_release(struct pipeline *pipeline);

/* The datasets: one reference each. Errors, such as files that are not there, come out where they
 * are read or distributed. Batches (image f32 [n, PIXELS], normalized; label i64 [n]). */
cadre_dataset *pipeline_training(struct pipeline *pipeline, const struct settings *settings);
cadre_dataset *pipeline_test(struct pipeline *pipeline, int64_t batch);

/* The same records as the test's, in their order, with their numbers as a third component i64 [n]:
 * 0 for the first record of all. */
cadre_dataset *pipeline_numbered(struct pipeline *pipeline, int64_t batch);

#endif
