/* SPDX-License-Identifier: Apache-2.0
 * Gives the global batches of a dataset by number, and rows of them: only the rows asked for where
 * the dataset is indexable and its batching known, else from the whole batch, which is kept for the
 * next piece. A chain that is not indexable is read on from where it stands, or again from the
 * start. */
#ifndef CADRE_WORKER_INPUT_DISTRIBUTION_BATCH_READER_H
#define CADRE_WORKER_INPUT_DISTRIBUTION_BATCH_READER_H

#include "worker/library/input/batching/element_slice.h"
#include "worker/library/input/distribution/element_stream.h"

struct batch_reader {
    cadre_dataset *data;          /* borrowed */
    struct element_stream stream; /* where it is not indexable */
    bool holds;                   /* `element` and `ids` are those of `held` */
    struct element_position held;
    cadre_element element;
    struct id_list ids;
};

/* Reads the batch at `place` unless it is held. OUT_OF_RANGE behind the end. */
cadre_status batch_reader_hold(
    struct batch_reader *reader, struct element_position position, struct cadre_error *error);

/* Piece `piece` of `pieces` of the batch by the split rule, as an element of its own; appends its
 * ids. Reads only this piece where it can; else the batch is held, and each component is cut on its
 * own row count. `spec` (of the batch) gives the types of an empty piece. */
cadre_status batch_reader_piece(struct batch_reader *reader, struct element_position position,
    uint64_t pieces, uint64_t piece, const cadre_element_spec *spec, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error);

/* Rows of the held batch's first component; 1 for a scalar. */
int64_t batch_reader_held_rows(const struct batch_reader *reader);

void batch_reader_finish(struct batch_reader *reader);

#endif
