/* SPDX-License-Identifier: Apache-2.0
 * The rules by which a distributed input divides steps among replicas, behind one small table. */
#ifndef CADRE_WORKER_INPUT_RULE_H
#define CADRE_WORKER_INPUT_RULE_H

#include "worker/input/batch_reader.h"
#include "worker/input/distribute.h"

struct input_rule {
    /* Steps of an epoch as far as they are known without reading. Changes nothing. */
    int64_t (*steps)(struct distributed_input *input, uint64_t epoch);

    /* Fills the batch's zeroed elements and global_rows, and appends the ids to input->ids.
     * OUT_OF_RANGE when there is no such step. On error what is filled stays, to be cleared. */
    cadre_status (*fill)(struct distributed_input *input, struct distributed_batch *batch,
        struct cadre_error *error);

    /* True when a step is an element of the dataset and the workers share it out. */
    bool claims_samples;
};

struct distributed_input {
    cadre_dataset *data;
    const struct input_rule *rule;
    char *name;
    uint32_t workers;
    uint32_t worker_index;
    uint32_t replicas;
    bool proves;
    cadre_element_spec spec;       /* of a global batch */
    cadre_element_spec piece_spec; /* of what one replica gets */
    struct batch_reader reader;
    struct id_list ids; /* of the step at hand */

    /* Sizes rule only: the row stream of one epoch. */
    int64_t batch_rows;
    struct row_stream {
        bool counted;  /* the rest belongs to `at.epoch` */
        int64_t total; /* rows of the epoch; INT64_MAX: endless */
        uint64_t steps;
        struct place at;   /* the batch ... */
        int64_t first_row; /* ... that begins with this row of the stream */
    } stream;
};

extern const struct input_rule rule_whole;      /* one replica: the batch as it is */
extern const struct input_rule rule_split_data; /* split rule; pieces dealt to the workers */
extern const struct input_rule rule_split_own; /* split rule; each worker has a stream of its own */
extern const struct input_rule rule_sizes_own; /* sizes rule; each worker has a stream of its own */

#endif
