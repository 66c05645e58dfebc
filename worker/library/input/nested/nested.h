/* SPDX-License-Identifier: Apache-2.0
 * What flat_map and interleave show to the distribution of files: how such a node goes on with
 * other input elements, without the samples that were consumed already. sample_id.h has their ids.
 *
 * Their input elements (mostly names of files) are the outer ones; of each the program's function
 * makes an inner dataset, and element number `ordinal` of that is one sample, whatever the inner
 * dataset itself numbers. */
#ifndef CADRE_WORKER_INPUT_NESTED_NESTED_H
#define CADRE_WORKER_INPUT_NESTED_NESTED_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/dataset.h"

/* What was consumed already. Asked from several threads at once. */
struct nested_consumed {
    /* Whether sample `ordinal` of the input element `outer_id` was consumed, and how many from
     * there on, at least 1, are alike in that; UINT64_MAX: all that follow. An input element that
     * was consumed from 0 to the end is not opened at all. */
    uint64_t (*run)(void *context, uint64_t outer_id, uint64_t ordinal, bool *ret_consumed);
    /* Called when the dataset of input element `outer_id` was read to its end, and has `samples`;
     * with threads that read ahead before its last samples are given. Not called for one whose rest
     * was consumed. May be NULL, and so may `run`: nothing was consumed. */
    void (*ended)(void *context, uint64_t outer_id, uint64_t samples);
    void *context; /* outlives the dataset and its iterators */
};

/* Whether `data` itself is a flat_map or interleave. */
bool dataset_is_nested(const cadre_dataset *data);

/* The node `self` (dataset_is_nested) on the input `names`, whose reference is taken over. The
 * samples that `consumed` names are passed over as if the inner datasets did not hold them, and
 * not made where the inner dataset can skip; ids and ordinals of the others stay the same.
 * `consumed` is copied; NULL: all is given. What `self` itself passes over does not count. */
cadre_dataset *dataset_nested_rebuild(
    const cadre_dataset *self, cadre_dataset *names, const struct nested_consumed *consumed);

#endif
