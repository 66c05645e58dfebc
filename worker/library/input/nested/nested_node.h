/* SPDX-License-Identifier: Apache-2.0
 * The node that flat_map and interleave are: a function of the program makes an inner dataset of
 * each input element. */
#ifndef CADRE_WORKER_INPUT_NESTED_NESTED_NODE_H
#define CADRE_WORKER_INPUT_NESTED_NESTED_NODE_H

#include <pthread.h>

#include "worker/library/input/nested/nested.h"
#include "worker/library/input/node/node.h"

struct nested_settings {
    cadre_dataset_function function;
    void *user;
    uint64_t cycle;   /* inner datasets read by turns, >= 1 */
    uint64_t block;   /* elements of one turn, >= 1 */
    uint32_t threads; /* that read ahead; 0: none */
    bool unordered;
    struct nested_consumed consumed; /* `run` NULL: none */
};

struct nested_dataset {
    cadre_dataset base;
    struct nested_settings settings;
    pthread_mutex_t lock; /* guards the two below while they are found */
    bool found;
    cadre_element_spec output;
};

/* Takes over `data`, which is usable. */
cadre_dataset *nested_new(
    const struct dataset_ops *ops, cadre_dataset *data, const struct nested_settings *settings);

/* Calls the function for an input element. The inner dataset is the caller's. Errors name the
 * element, whose number in the order of the input is `number`. */
cadre_status nested_make_inner(const struct nested_dataset *nested, const cadre_element *element,
    uint64_t number, cadre_dataset **ret_data, struct cadre_error *error);

/* What both tables have. */
void nested_destroy(cadre_dataset *self);
cadre_dataset *nested_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[]);
cadre_status nested_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error);
int64_t nested_cardinality(const cadre_dataset *self);
uint64_t nested_samples(const cadre_dataset *self);
cadre_status nested_opens_names(cadre_dataset *self, bool *ret_opens, struct cadre_error *error);

/* Of interleave without threads, and with. */
cadre_status interleave_parallel_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error);

#endif
