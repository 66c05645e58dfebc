/* SPDX-License-Identifier: Apache-2.0
 * The two rebatchers as transformations: elements are global batches, results are what one replica
 * gets (semantics of tf.data.experimental.rebatch and of the legacy rebatch dataset). They consume
 * one reference of `data`, and keep errors in the dataset as all transformations do. Scalar
 * components are INVALID_ARGUMENT. */
#ifndef CADRE_WORKER_INPUT_BATCHING_REBATCH_DATASET_H
#define CADRE_WORKER_INPUT_BATCHING_REBATCH_DATASET_H

#include "worker/library/input/node/node.h"
#include "worker/library/input/batching/rebatch.h"

/* Sizes rule: forgets the batches' borders and cuts the stream of rows by `sizes`, again and again.
 * `sizes` (`count` >= 1, each >= 0, not all 0) are copied. */
cadre_dataset *dataset_rebatch_sizes(
    cadre_dataset *data, const int64_t sizes[], size_t count, bool drop_remainder);

/* The same for a list, of which a copy is made. */
cadre_dataset *dataset_rebatch_list(
    cadre_dataset *data, const struct size_list *list, bool drop_remainder);

/* Whether `data` itself is one of these two. */
bool dataset_is_rebatch_sizes(const cadre_dataset *data);

/* Split rule: each batch alone gives `pieces` >= 1 pieces of ceil(rows / pieces) rows, late ones
 * short or empty. */
cadre_dataset *dataset_rebatch_split(cadre_dataset *data, uint64_t pieces);

#endif
