/* SPDX-License-Identifier: Apache-2.0
 * The sample ids an element was made of, in the order of its rows. */
#ifndef CADRE_WORKER_INPUT_NODE_ID_LIST_H
#define CADRE_WORKER_INPUT_NODE_ID_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

/* Zeroed: empty. */
struct id_list {
    uint64_t *ids;
    size_t count;
    size_t capacity;
};

/* Appends one id. `list` may be NULL: does nothing. */
cadre_status id_list_add(struct id_list *list, uint64_t id, struct cadre_error *error);

/* Makes room for `more` ids behind those that are there and counts them; the caller fills them in
 * at *ret_ids. */
cadre_status id_list_extend(
    struct id_list *list, size_t more, uint64_t **ret_ids, struct cadre_error *error);

/* Appends ids [first, first + count) of `from`. `list` may be NULL. */
cadre_status id_list_add_range(struct id_list *list, const struct id_list *from, size_t first,
    size_t count, struct cadre_error *error);

/* Frees the memory and zeroes the list. */
void id_list_clear(struct id_list *list);

#endif
