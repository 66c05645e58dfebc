/* SPDX-License-Identifier: Apache-2.0
 * The names of files that a reader (flat_map, interleave) opens: their shuffles taken off and put
 * back, so that a share of them is the same for everybody; their ids; and some of them by number.
 */
#ifndef CADRE_WORKER_INPUT_SHARDING_FILE_NAMES_H
#define CADRE_WORKER_INPUT_SHARDING_FILE_NAMES_H

#include <stdio.h>

#include "worker/library/input/node/node.h"

#define FILE_NAMES_SHUFFLES_MAX 8

/* Shuffles that were taken off, the last one first; borrowed from the old pipeline. */
struct file_names_shuffles {
    const cadre_dataset *shuffles[FILE_NAMES_SHUFFLES_MAX];
    size_t count;
};

/* `names` without the shuffles in it (more than FILE_NAMES_SHUFFLES_MAX stay where they are): one
 * reference. */
cadre_dataset *file_names_unshuffle(cadre_dataset *names, struct file_names_shuffles *ret_order);

/* Shuffled by them again. Consumes `names`. */
cadre_dataset *file_names_reshuffle(cadre_dataset *names, const struct file_names_shuffles *order);

/* Whether the names are the same list in each epoch, and have ids. INVALID_ARGUMENT: `ret_reason`
 * says why not. */
cadre_status file_names_check_fixed(const cadre_dataset *names, struct cadre_error *ret_reason);

/* Reads all names for their ids, one of each, which must ascend, and for what people see of them:
 * `texts` gets each without its folder, ended by a zero byte. INVALID_ARGUMENT where the ids do not
 * ascend or there are more than can be numbered. */
cadre_status file_names_read_ids(
    cadre_dataset *names, struct id_list *ids, FILE *texts, struct cadre_error *error);

/* Those with the numbers numbers[0], numbers[1], ..., ascending (`count` of them; copied). Consumes
 * `names`. */
cadre_dataset *file_names_select(cadre_dataset *names, const uint64_t numbers[], size_t count);

#endif
