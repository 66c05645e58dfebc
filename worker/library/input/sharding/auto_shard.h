/* SPDX-License-Identifier: Apache-2.0
 * Rewrites a dataset for one worker of several: the sharding of tf.data, as a pure function of the
 * pipeline (tensorflow/core/grappler/optimizers/data/auto_shard.cc). It is what FILE, OFF and HINT
 * do with the pipeline of a worker; DATA with an indexable pipeline is cut by distributed_input.h
 * instead, with the same result and without reading the others' samples. */
#ifndef CADRE_WORKER_INPUT_SHARDING_AUTO_SHARD_H
#define CADRE_WORKER_INPUT_SHARDING_AUTO_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/input/node/node.h"

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

/* Whether files can be shared out, by names or of a list that a source holds: NOT_FOUND says why
 * not. May call a function of the program once. */
cadre_status dataset_require_file_names(cadre_dataset *data, struct cadre_error *error);

/* What AUTO comes to. */
struct policy_choice {
    cadre_shard_policy policy; /* FILE or DATA */
    bool either;               /* a list that a source holds: both give each sample once */
    bool few;                  /* DATA, because the list has fewer files than there are workers */
    struct cadre_error why;    /* DATA: why not FILE; code CADRE_OK: there is nothing to say */
};

/* FILE where names of files are read. A list that a source holds may be read either way, so it is
 * divided by files only where that helps and takes nothing: several workers, a file for each of
 * them at least, and an epoch can be cut again (dataset_check_resharding). May call a function of
 * the program once. */
cadre_status dataset_choose_policy(cadre_dataset *data, uint32_t workers,
    struct policy_choice *ret_choice, struct cadre_error *error);

/* The same elements, but lists of files that sources hold are read by names (file_list_source.h):
 * *ret_data is one reference. Only where files can be shared out. */
cadre_status dataset_list_by_name(
    cadre_dataset *data, cadre_dataset **ret_data, struct cadre_error *error);

/* Whether `data` reads files by one reader that is the only source, and what reads from it passes
 * each sample on once: then an epoch can be cut again in its middle, by which samples of which file
 * were consumed. FAILED_PRECONDITION: the message has the reason. *ret_reader (borrowed) is the
 * reader of names, or the source of a list; NOT_FOUND as dataset_auto_shard. */
cadre_status dataset_check_resharding(
    cadre_dataset *data, cadre_dataset **ret_reader, struct cadre_error *error);

/* FILE as it is done otherwise: `part` makes what stands in the place of each reader (one
 * reference); what is on it is built again. Borrows `data`. */
cadre_status dataset_rewrite_readers(cadre_dataset *data,
    cadre_dataset *(*part)(const cadre_dataset *reader, void *context), void *context,
    cadre_dataset **ret_data, struct cadre_error *error);

#endif
