/* SPDX-License-Identifier: Apache-2.0
 * The source of TFRecord files, as its two ways of reading share it. */
#ifndef CADRE_WORKER_INPUT_SOURCES_TFRECORD_H
#define CADRE_WORKER_INPUT_SOURCES_TFRECORD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/library/input/node/node.h"
#include "worker/library/input/files/input_file.h"
#include "worker/library/input/files/record_reader.h"
#include "worker/library/input/files/record_table.h"
#include "worker/library/input/node/thread_pool.h"

struct tfrecord_dataset {
    cadre_dataset base;
    char **paths;
    size_t path_count;
    struct record_options options;
    char *index_folder; /* NULL: beside the files */
    uint32_t threads;   /* that read a batch by index */

    /* Of paths that are objects, once they were looked at: kept open, so that all epochs read one
     * state of them. Under the lock. */
    struct input_file *files;

    /* By index; made by prepare, and fixed once `prepared`. */
    pthread_mutex_t lock; /* held while they are made; also guards `files` */
    atomic_bool prepared;
    struct record_table *tables; /* one for each path */
    uint64_t *ends;              /* number of records in this file and all before it */
    struct thread_pool *pool;    /* NULL with one thread */
};

/* In order (dataset_ops.iterate). */
cadre_status tfrecord_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error);

/* By index (dataset_ops.prepare, at, gather). */
cadre_status tfrecord_prepare(cadre_dataset *self, struct cadre_error *error);
cadre_status tfrecord_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);
cadre_status tfrecord_gather(cadre_dataset *self, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);

/* Opens the object that path `number` names, if it is one and not open, and has it open until the
 * dataset is destroyed. */
cadre_status tfrecord_hold(
    struct tfrecord_dataset *tfrecord, size_t number, struct cadre_error *error);

/* Closes what prepare opened. */
void tfrecord_close_tables(struct tfrecord_dataset *tfrecord);

#endif
