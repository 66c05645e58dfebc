/* SPDX-License-Identifier: Apache-2.0
 * FILE in a live job, one worker's side: the files by number, the pipelines that read this worker's
 * part of them, and what a step has consumed of which. */
#ifndef CADRE_WORKER_INPUT_DISTRIBUTION_FILE_CONSUMPTION_H
#define CADRE_WORKER_INPUT_DISTRIBUTION_FILE_CONSUMPTION_H

#include <pthread.h>

#include "worker/library/input/distribution/distributed_input.h"
#include "worker/library/input/nested/nested.h"
#include "worker/library/input/node/node.h"

/* Zeroed: none. Does not move while a pipeline lives that it made. */
struct file_consumption {
    bool open;
    uint32_t workers;
    uint32_t worker;
    struct id_list ids;          /* file f is the name with the id ids.ids[f] */
    char *names;                 /* of the files, one after the other, each ended by a zero byte */
    const char **name_of;        /* file f's */
    struct file_shares assigned; /* the table that was given; of no files: none */
    struct file_shares
        consumed;         /* of the pass at hand, by this worker, with `dealt` in its epoch */
    uint64_t *totals;     /* samples of each file, UINT64_MAX: not known */
    pthread_mutex_t lock; /* guards `totals` and: */
    uint64_t *found;      /* files whose totals became known, not looked at yet */
    size_t found_count;
    bool over; /* this pass has reported that all is done */
};

/* `reader` as dataset_check_resharding gives it; `shares` may be NULL and is copied.
 * INVALID_ARGUMENT: the table is not of these files and workers. FAILED_PRECONDITION: the names
 * have no numbers. */
cadre_status file_consumption_init(struct file_consumption *consumption, cadre_dataset *reader,
    uint32_t workers, uint32_t worker, const struct file_shares *shares, struct cadre_error *error);
void file_consumption_clear(struct file_consumption *consumption);

/* `data` for this worker, one reference: in a fresh epoch; or with `dealt` in that of the table. */
cadre_status file_consumption_rewrite(struct file_consumption *consumption, cadre_dataset *data,
    bool assigned, cadre_dataset **ret_data, struct cadre_error *error);

/* Epoch `epoch` is read from its start, or from another place. */
cadre_status file_consumption_begin(
    struct file_consumption *consumption, uint64_t epoch, struct cadre_error *error);

/* A step was made of the samples `ids`; `over`: the pipeline has ended. Fills runs and done. */
cadre_status file_consumption_step(struct file_consumption *consumption, const struct id_list *ids,
    bool over, struct distributed_batch *batch, struct cadre_error *error);

#endif
