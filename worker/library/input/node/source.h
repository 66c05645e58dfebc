/* SPDX-License-Identifier: Apache-2.0
 * What sources that are read by index have in common. */
#ifndef CADRE_WORKER_INPUT_NODE_SOURCE_H
#define CADRE_WORKER_INPUT_NODE_SOURCE_H

#include "worker/library/input/node/node.h"

/* The `ids_at` of a source: the id of a sample is its place. */
cadre_status source_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error);

#endif
