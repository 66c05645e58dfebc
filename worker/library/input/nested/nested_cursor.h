/* SPDX-License-Identifier: Apache-2.0
 * One input element of flat_map or interleave, and how far its inner dataset has been read. */
#ifndef CADRE_WORKER_INPUT_NESTED_NESTED_CURSOR_H
#define CADRE_WORKER_INPUT_NESTED_NESTED_CURSOR_H

#include "worker/library/input/nested/nested_node.h"

/* Zeroed: empty. */
struct nested_cursor {
    cadre_element element;    /* the input element; count 0: empty */
    uint64_t number;          /* of the element in the order of the input */
    uint64_t outer_id;        /* the first of its ids */
    uint64_t ordinal;         /* of the inner dataset's next element */
    cadre_iterator *iterator; /* of the inner dataset; NULL: not opened, or read to its end */
    bool checked;             /* its elements agree with those of the others */
};

/* Type and rank of the elements that were given: those of all inner datasets agree. */
struct nested_kind {
    bool known;
    cadre_element_spec spec; /* without dimensions */
};

/* Takes the next element of `input`; OUT_OF_RANGE at its end. `number` is counted up. */
cadre_status nested_cursor_begin(struct nested_cursor *cursor, cadre_iterator *input,
    uint64_t *number, struct cadre_error *error);

/* Makes the inner dataset and starts to read it, at `ordinal`. */
cadre_status nested_cursor_open(struct nested_cursor *cursor, const struct nested_dataset *nested,
    const struct pass *pass, struct cadre_error *error);

/* As iterator_next, iterator_next_rows and iterator_skip, of what was not consumed. Errors name the
 * input element. `error` is left alone on success. */
cadre_status nested_cursor_next(struct nested_cursor *cursor, const struct nested_dataset *nested,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);
cadre_status nested_cursor_next_rows(struct nested_cursor *cursor,
    const struct nested_dataset *nested, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error);
cadre_status nested_cursor_skip(struct nested_cursor *cursor, const struct nested_dataset *nested,
    uint64_t count, uint64_t *ret_skipped, struct cadre_error *error);

/* Whether an element of the cursor's has the type and rank of those before; the first one tells.
 * With `stacked` it is rows of elements. */
cadre_status nested_cursor_check(struct nested_cursor *cursor, const struct nested_dataset *nested,
    struct nested_kind *kind, const cadre_element *element, bool stacked,
    struct cadre_error *error);

/* Writes the input element and the position of its inner dataset: the ordinal, and its iterator's
 * state if it has one and `with_position`. Reading it back makes and opens the inner dataset, but
 * for `opened` false: that is left to nested_cursor_open. */
cadre_status nested_cursor_save(const struct nested_cursor *cursor, uint64_t ordinal,
    bool with_position, struct iterator_state_writer *writer, struct cadre_error *error);
cadre_status nested_cursor_restore(struct nested_cursor *cursor,
    const struct nested_dataset *nested, const struct pass *pass, bool opened,
    struct iterator_state_reader *reader, struct cadre_error *error);

/* Leaves it empty. */
void nested_cursor_clear(struct nested_cursor *cursor);

#endif
