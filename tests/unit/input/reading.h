/* SPDX-License-Identifier: Apache-2.0
 * Reading datasets of one int64 component as plain numbers, for the tests of this folder. */
#ifndef CADRE_TESTS_INPUT_READING_H
#define CADRE_TESTS_INPUT_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/dataset.h"
#include "cadre/sources.h"
#include "cadre/transformations.h"
#include "common/base/error.h"
#include "worker/library/input/distribution/distributed_input.h"

#define NUMBERS_MAX 4096

struct numbers {
    int64_t values[NUMBERS_MAX];
    size_t count;
};

/* Appends all values of an int64 tensor. */
void numbers_add(struct numbers *numbers, const cadre_tensor *tensor);

/* All values of epoch `epoch`, batches one after the other; fails the test on an error. Does not
 * consume `data`. */
void read_epoch(cadre_dataset *data, uint64_t epoch, struct numbers *ret_numbers);

/* The values of one step in text, "[0 1][2] | [3][]": replicas in brackets, workers apart. Opens
 * one input for each worker; checks the digests and rows against each other where a claim is made.
 * "end" when no worker has anything in it. */
const char *step_text(cadre_dataset *data, uint32_t workers, uint32_t replicas,
    cadre_shard_policy policy, uint64_t epoch, uint64_t step, char *text, size_t text_bytes);

/* All steps of epoch 0, " / " between them. Consumes `data`. */
const char *steps_text(cadre_dataset *data, uint32_t workers, uint32_t replicas,
    cadre_shard_policy policy, char *text, size_t text_bytes);

/* The same for any layout, whose worker_index is not looked at. */
const char *step_text_of(cadre_dataset *data, const struct distributed_layout *layout,
    uint64_t epoch, uint64_t step, char *text, size_t text_bytes);
const char *steps_text_of(
    cadre_dataset *data, const struct distributed_layout *layout, char *text, size_t text_bytes);

/* Turns a chain into one that is not indexable and has the same order: a shuffle from a buffer of
 * one. */
cadre_dataset *make_sequential(cadre_dataset *data);

/* An identity map: after a batch it hides the batch size. */
cadre_status copy_element(const cadre_element *in, cadre_element *ret_out, void *user);

#endif
