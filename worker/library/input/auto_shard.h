/* SPDX-License-Identifier: Apache-2.0
 * Rewrites a dataset for one worker of several: the sharding of tf.data, as a pure function of the
 * pipeline (tensorflow/core/grappler/optimizers/data/auto_shard.cc). It is what FILE, OFF and HINT
 * do with the pipeline of a worker; DATA with an indexable pipeline is cut by distribute.h instead,
 * with the same result and without reading the others' samples. */
#ifndef CADRE_WORKER_INPUT_AUTO_SHARD_H
#define CADRE_WORKER_INPUT_AUTO_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/input/node.h"

struct auto_shard {
    cadre_shard_policy policy;
    uint32_t workers;
    uint32_t worker;
    uint64_t replicas; /* in sync: pieces of the split rule, when DATA rewrites a sizes rule */
};

/* Consumes one reference of `data`. *ret_used (may be NULL) is what AUTO came to. NOT_FOUND: FILE
 * without names of files to share out. INVALID_ARGUMENT: a bad layout. Too few files or elements
 * for the workers is INVALID_ARGUMENT when the first element is read. */
cadre_status dataset_auto_shard(cadre_dataset *data, const struct auto_shard *shard,
    cadre_dataset **ret_data, cadre_shard_policy *ret_used, struct cadre_error *error);

/* Whether names of files can be shared out. May call a function of the program once. */
cadre_status dataset_shards_files(cadre_dataset *data, bool *ret_shards, struct cadre_error *error);

/* The same as a status: NOT_FOUND says why they cannot. */
cadre_status dataset_require_names(cadre_dataset *data, struct cadre_error *error);

/* Whether `data` reads files of names by one reader that is the only source, and what stands on it
 * passes each sample on once: then an epoch can be cut anew in its middle, by which samples of
 * which file were fed. FAILED_PRECONDITION: a sentence says why not. *ret_reader (borrowed) is the
 * reader; NOT_FOUND as dataset_auto_shard. */
cadre_status dataset_files_recut(
    cadre_dataset *data, cadre_dataset **ret_reader, struct cadre_error *error);

/* FILE as it is done otherwise: `part` makes what stands in the place of each reader (one
 * reference); what is on it is built again. Borrows `data`. */
cadre_status dataset_rewrite_readers(cadre_dataset *data,
    cadre_dataset *(*part)(const cadre_dataset *reader, void *context), void *context,
    cadre_dataset **ret_data, struct cadre_error *error);

#endif
