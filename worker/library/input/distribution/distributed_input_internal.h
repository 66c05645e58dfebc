/* SPDX-License-Identifier: Apache-2.0
 * The rules by which a distributed input divides steps among replicas, behind one small table, and
 * what the input is inside. */
#ifndef CADRE_WORKER_INPUT_DISTRIBUTION_DISTRIBUTED_INPUT_INTERNAL_H
#define CADRE_WORKER_INPUT_DISTRIBUTION_DISTRIBUTED_INPUT_INTERNAL_H

#include <pthread.h>

#include "worker/library/input/sharding/auto_shard.h"
#include "worker/library/input/distribution/batch_reader.h"
#include "worker/library/input/distribution/distributed_input.h"
#include "worker/library/input/distribution/element_stream.h"
#include "worker/library/input/distribution/file_consumption.h"

#define INPUT_STATES_MAX 6

struct input_rule {
    /* Steps of an epoch as far as they are known without reading. Changes nothing. */
    int64_t (*steps)(struct distributed_input *input, uint64_t epoch);

    /* Where a step may hold elements for some of the replicas only, and `steps` is known: those
     * that hold one for each; and the elements of all from step `step` on, UNKNOWN where that is
     * not known. NULL: all steps are whole. */
    int64_t (*whole_steps)(struct distributed_input *input, uint64_t epoch);
    int64_t (*left)(struct distributed_input *input, uint64_t epoch, uint64_t step);

    /* Fills the batch's zeroed elements, `present` and the rows, and appends the ids to input->ids.
     * OUT_OF_RANGE when there is no such step. On error what is filled stays, to be cleared. */
    cadre_status (*fill)(struct distributed_input *input, struct distributed_batch *batch,
        struct cadre_error *error);

    /* After `fill`, and once the position is kept: what files it was of. NULL: nothing is said. */
    cadre_status (*report_files)(struct distributed_input *input, struct distributed_batch *batch,
        struct cadre_error *error);

    /* The streams that step `step` of an epoch is read from, and the number of its first element in
     * them. None: *ret_count is 0. */
    struct element_stream *(*streams)(struct distributed_input *input, uint64_t epoch,
        uint64_t step, uint32_t *ret_count, uint64_t *ret_index);
};

/* Pipelines of this worker's own: one, or one for each replica. */
struct worker_pipelines {
    cadre_dataset **data; /* a reference each */
    struct element_stream *streams;
    uint32_t count;
    uint64_t first_step; /* that they begin with */
};

struct distributed_input {
    const struct input_rule *rule;
    char *name;
    uint32_t workers;
    uint32_t worker_index;
    uint32_t replicas;
    bool partial_steps; /* wanted whatever shapes the elements have */
    bool wants_expected;
    cadre_shard_policy policy;     /* what it came to */
    struct policy_choice choice;   /* AUTO: how it came to it */
    cadre_element_spec spec;       /* DATA: of a global batch; else of the pipeline's elements */
    cadre_element_spec piece_spec; /* of what one replica gets */
    bool endless;                  /* the dataset as it was given; of functions: all of them */
    bool agrees;
    bool alike; /* all workers' pipelines have the same number of elements */
    bool can_reshard;
    struct cadre_error no_reshard; /* why not */
    cadre_dataset *data;           /* as it was given, under FILE with the files by name; NULL for
                                      functions */
    struct id_list ids;            /* of the step at hand */
    struct replay replay;

    struct batch_reader reader; /* DATA */

    struct worker_pipelines own;         /* else: of all epochs but */
    struct worker_pipelines assigned;    /* that of the table of files */
    struct file_consumption consumption; /* where it recuts */
    uint64_t passes;                     /* of the streams, as the feed has followed them */

    pthread_mutex_t lock; /* guards the states that are kept, the oldest first */
    struct distributed_state states[INPUT_STATES_MAX];
    uint32_t state_count;
    size_t state_bytes_max;
    uint64_t state_us;     /* at least so long apart */
    uint64_t state_due_us; /* not before */
};

extern const struct input_rule input_rule_data; /* each element in pieces, dealt to all workers */
extern const struct input_rule
    input_rule_pipelines; /* the next elements of the worker's own pipeline */

/* Pipelines that are read as they are; takes the references over, also on error. */
cadre_status worker_pipelines_init(struct worker_pipelines *own, cadre_dataset *const data[],
    uint32_t count, struct replay *replay, struct cadre_error *error);
void worker_pipelines_clear(struct worker_pipelines *own);

/* After a step was read: keeps where the streams stand, if it is time to. */
void distributed_input_keep_state(struct distributed_input *input, uint64_t epoch, uint64_t step);

#endif
