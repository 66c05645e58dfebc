/* SPDX-License-Identifier: Apache-2.0
 * What options that were attached to a dataset say. */
#ifndef CADRE_WORKER_INPUT_TRANSFORMATIONS_DATASET_OPTIONS_H
#define CADRE_WORKER_INPUT_TRANSFORMATIONS_DATASET_OPTIONS_H

#include <stdbool.h>

#include "cadre/transformations.h"

/* The policy that the last cadre_dataset_with_options with one attached to `data` or, where the
 * pipeline branches, to the first input that has one. False: there is none. */
bool dataset_auto_shard_option(const cadre_dataset *data, cadre_shard_policy *ret_policy);

#endif
