/* SPDX-License-Identifier: Apache-2.0
 * Sources that hold a list of files themselves, as the reader of a list of names that they stand
 * for (tf.data's own readers of lists are that):
 *
 *     tfrecord (a, b, c)   ──>   names (a, b, c) ──> flat_map: tfrecord (one of them)
 *
 * It gives the same elements in the same order; file f is the name with the id f. What shares
 * out files by name shares out these then. */
#ifndef CADRE_WORKER_INPUT_SHARDING_FILE_LIST_SOURCE_H
#define CADRE_WORKER_INPUT_SHARDING_FILE_LIST_SOURCE_H

#include "worker/library/input/node/node.h"

/* The reader that `source`, which has `lists`, stands for: one reference, NULL without memory. It
 * holds one of `source`. */
cadre_dataset *file_list_source_expand(cadre_dataset *source);

/* The files of the shortest list in the tree; SIZE_MAX: there is none. */
size_t file_list_source_min_files(const cadre_dataset *data);

#endif
