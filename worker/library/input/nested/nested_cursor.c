/* SPDX-License-Identifier: Apache-2.0
 * Reading of one inner dataset; see nested_cursor.h. */
#include "worker/library/input/nested/nested_cursor.h"

#include <inttypes.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/sample_id.h"

void nested_cursor_clear(struct nested_cursor *cursor)
{
    cadre_iterator_release(cursor->iterator);
    cadre_element_release(&cursor->element);
    *cursor = (struct nested_cursor){0};
}

/* Says of which input element an error is. */
static cadre_status nested_cursor_named(const struct nested_cursor *cursor,
    const struct nested_dataset *nested, const struct cadre_error *own, struct cadre_error *error)
{
    if (error != NULL) {
        *error = *own;
    }
    if (own->code == CADRE_OUT_OF_RANGE) {
        return own->code;
    }
    return cadre_error_wrap(
        error, own->code, "%s: input element %" PRIu64, nested->base.ops->name, cursor->number);
}

cadre_status nested_cursor_begin(struct nested_cursor *cursor, cadre_iterator *input,
    uint64_t *number, struct cadre_error *error)
{
    CADRE_CLEANUP(id_list_clear) struct id_list ids = {0};
    CADRE_ASSERT(cursor->element.count == 0);
    CADRE_TRY(iterator_next(input, &cursor->element, &ids, error));
    cursor->number = (*number)++;
    cursor->outer_id = ids.count > 0 ? ids.ids[0] : cursor->number;
    return CADRE_OK;
}

/* How many elements from `ordinal` on were consumed (*ret_consumed) or were not. */
static uint64_t consumed_run(
    const struct nested_cursor *cursor, const struct nested_dataset *nested, bool *ret_consumed)
{
    const struct nested_consumed *consumed = &nested->settings.consumed;
    *ret_consumed = false;
    if (consumed->run == NULL) {
        return UINT64_MAX;
    }
    uint64_t run =
        consumed->run(consumed->context, cursor->outer_id, cursor->ordinal, ret_consumed);
    CADRE_ASSERT(run >= 1);
    return run;
}

/* The inner dataset has ended: tells who wants to know. */
static void tell_end(const struct nested_cursor *cursor, const struct nested_dataset *nested)
{
    const struct nested_consumed *consumed = &nested->settings.consumed;
    if (consumed->ended != NULL) {
        consumed->ended(consumed->context, cursor->outer_id, cursor->ordinal);
    }
}

/* Passes over `count` elements, consumed or not. */
static cadre_status pass_over(
    struct nested_cursor *cursor, uint64_t count, uint64_t *ret_passed, struct cadre_error *error)
{
    cadre_status status = iterator_skip(cursor->iterator, count, ret_passed, error);
    cursor->ordinal += *ret_passed;
    return status;
}

/* Passes over what was consumed; *ret_run elements at the least follow that were not. */
static cadre_status find_unconsumed(struct nested_cursor *cursor,
    const struct nested_dataset *nested, uint64_t *ret_run, struct cadre_error *error)
{
    bool consumed = true;
    for (;;) {
        *ret_run = consumed_run(cursor, nested, &consumed);
        if (!consumed) {
            return CADRE_OK;
        }
        if (*ret_run == UINT64_MAX) {
            return iterator_end(error);
        }
        uint64_t passed = 0;
        CADRE_TRY(pass_over(cursor, *ret_run, &passed, error));
        if (passed < *ret_run) {
            tell_end(cursor, nested);
            return iterator_end(error);
        }
    }
}

cadre_status nested_cursor_open(struct nested_cursor *cursor, const struct nested_dataset *nested,
    const struct pass *pass, struct cadre_error *error)
{
    struct cadre_error own = {0};
    cadre_dataset *inner = NULL;
    bool consumed = false;
    CADRE_ASSERT(cursor->iterator == NULL);
    if (consumed_run(cursor, nested, &consumed) == UINT64_MAX && consumed) {
        return CADRE_OK;
    }
    CADRE_TRY(nested_make_inner(nested, &cursor->element, cursor->number, &inner, error));
    cadre_status status = dataset_iterate(inner, pass, &cursor->iterator, &own);
    cadre_dataset_release(inner);
    if (status != CADRE_OK) {
        return nested_cursor_named(cursor, nested, &own, error);
    }
    const uint64_t start = cursor->ordinal;
    uint64_t passed = 0;
    cursor->ordinal = 0;
    if (start > 0 && pass_over(cursor, start, &passed, &own) != CADRE_OK) {
        return nested_cursor_named(cursor, nested, &own, error);
    }
    if (passed < start) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: input element %" PRIu64 " was read up to its sample %" PRIu64
            " when the position was saved, and now has only %" PRIu64,
            nested->base.ops->name, cursor->number, start, passed);
    }
    return CADRE_OK;
}

/* The ids of `count` elements before the cursor. */
static cadre_status add_ids(const struct nested_cursor *cursor, uint64_t count, struct id_list *ids,
    struct cadre_error *error)
{
    for (uint64_t i = cursor->ordinal - count; i < cursor->ordinal && ids != NULL; i++) {
        CADRE_TRY(id_list_add(ids, sample_id_of(cursor->outer_id, i), error));
    }
    return CADRE_OK;
}

cadre_status nested_cursor_next(struct nested_cursor *cursor, const struct nested_dataset *nested,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    struct cadre_error own = {0};
    uint64_t run = 0;
    if (cursor->iterator == NULL) {
        return iterator_end(error);
    }
    cadre_status status = find_unconsumed(cursor, nested, &run, &own);
    if (status == CADRE_OK) {
        status = iterator_next(cursor->iterator, ret_element, NULL, &own);
        if (status == CADRE_OUT_OF_RANGE) {
            tell_end(cursor, nested);
        }
    }
    if (status == CADRE_OK) {
        cursor->ordinal++;
        status = add_ids(cursor, 1, ids, &own);
    }
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
        return nested_cursor_named(cursor, nested, &own, error);
    }
    return CADRE_OK;
}

cadre_status nested_cursor_next_rows(struct nested_cursor *cursor,
    const struct nested_dataset *nested, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct cadre_error own = {0};
    uint64_t run = 0;
    if (cursor->iterator == NULL) {
        return iterator_end(error);
    }
    cadre_status status = find_unconsumed(cursor, nested, &run, &own);
    if (status == CADRE_OK) {
        status = iterator_next_rows(cursor->iterator, run < wanted ? (size_t)run : wanted,
            ret_element, ret_count, NULL, &own);
        if (status == CADRE_OUT_OF_RANGE) {
            tell_end(cursor, nested);
        }
    }
    if (status == CADRE_OK) {
        cursor->ordinal += *ret_count;
        status = add_ids(cursor, *ret_count, ids, &own);
    }
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
        return nested_cursor_named(cursor, nested, &own, error);
    }
    return CADRE_OK;
}

cadre_status nested_cursor_skip(struct nested_cursor *cursor, const struct nested_dataset *nested,
    uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct cadre_error own = {0};
    *ret_skipped = 0;
    while (cursor->iterator != NULL && *ret_skipped < count) {
        uint64_t run = 0;
        uint64_t passed = 0;
        cadre_status status = find_unconsumed(cursor, nested, &run, &own);
        if (status == CADRE_OUT_OF_RANGE) {
            return CADRE_OK;
        }
        uint64_t piece = count - *ret_skipped < run ? count - *ret_skipped : run;
        if (status == CADRE_OK) {
            status = pass_over(cursor, piece, &passed, &own);
        }
        if (status != CADRE_OK) {
            return nested_cursor_named(cursor, nested, &own, error);
        }
        *ret_skipped += passed;
        if (passed < piece) {
            tell_end(cursor, nested);
            return CADRE_OK;
        }
    }
    return CADRE_OK;
}

/* --- do they agree? --- */

static cadre_status nested_cursor_disagree(const struct nested_cursor *cursor,
    const struct nested_dataset *nested, uint32_t component, const cadre_tensor_spec *before,
    const cadre_tensor *tensor, uint32_t rank, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s: component %" PRIu32 " of the elements made of input element %" PRIu64
        " is %s of rank %" PRIu32 ", and was %s of rank %" PRIu32
        " before; all agree in type and rank",
        nested->base.ops->name, component, cursor->number,
        cadre_dtype_name(cadre_tensor_dtype(tensor)), rank, cadre_dtype_name(before->dtype),
        before->rank);
}

cadre_status nested_cursor_check(struct nested_cursor *cursor, const struct nested_dataset *nested,
    struct nested_kind *kind, const cadre_element *element, bool stacked, struct cadre_error *error)
{
    if (cursor->checked) {
        return CADRE_OK;
    }
    if (kind->known && kind->spec.count != element->count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: the elements made of input element %" PRIu64 " have %" PRIu32
            " components, and those before had %" PRIu32,
            nested->base.ops->name, cursor->number, element->count, kind->spec.count);
    }
    for (uint32_t i = 0; i < element->count; i++) {
        const cadre_tensor *tensor = element->tensors[i];
        cadre_tensor_spec *spec = &kind->spec.tensors[i];
        const uint32_t rank = cadre_tensor_rank(tensor) - (stacked ? 1 : 0);
        if (!kind->known) {
            spec->dtype = cadre_tensor_dtype(tensor);
            spec->rank = rank;
            spec->composite = tensor_composite(tensor);
        } else if (spec->dtype != cadre_tensor_dtype(tensor) || spec->rank != rank ||
                   spec->composite != tensor_composite(tensor)) {
            return nested_cursor_disagree(cursor, nested, i, spec, tensor, rank, error);
        }
    }
    kind->spec.count = element->count;
    kind->known = true;
    cursor->checked = true;
    return CADRE_OK;
}

/* --- where it stands --- */

/* What the inner iterator says, as bytes; none if it cannot tell. */
static cadre_status save_position(const struct nested_cursor *cursor,
    struct iterator_state_writer *writer, struct cadre_error *error)
{
    CADRE_CLEANUP(iterator_state_writer_clear)
    struct iterator_state_writer position = {.limit = writer->limit};
    struct cadre_error own = {0};
    cadre_status status = iterator_save(cursor->iterator, &position, &own);
    if (status == CADRE_UNIMPLEMENTED) {
        return iterator_state_write_bytes(writer, "", 0, error);
    }
    if (status != CADRE_OK) {
        if (error != NULL) {
            *error = own;
        }
        return status;
    }
    return iterator_state_write_bytes(writer, position.bytes, position.count, error);
}

cadre_status nested_cursor_save(const struct nested_cursor *cursor, uint64_t ordinal,
    bool with_position, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const bool empty = cursor->element.count == 0;
    CADRE_TRY(iterator_state_write_number(writer, !empty, error));
    if (empty) {
        return CADRE_OK;
    }
    CADRE_TRY(iterator_state_write_element(writer, &cursor->element, error));
    CADRE_TRY(iterator_state_write_number(writer, cursor->number, error));
    CADRE_TRY(iterator_state_write_number(writer, cursor->outer_id, error));
    CADRE_TRY(iterator_state_write_number(writer, ordinal, error));
    if (!with_position || cursor->iterator == NULL) {
        return iterator_state_write_bytes(writer, "", 0, error);
    }
    return save_position(cursor, writer, error);
}

cadre_status nested_cursor_restore(struct nested_cursor *cursor,
    const struct nested_dataset *nested, const struct pass *pass, bool opened,
    struct iterator_state_reader *reader, struct cadre_error *error)
{
    uint64_t there = 0;
    const void *bytes = NULL;
    struct iterator_state_reader position = {0};
    nested_cursor_clear(cursor);
    CADRE_TRY(iterator_state_read_number(reader, &there, error));
    if (there == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(iterator_state_read_element(reader, &cursor->element, error));
    CADRE_TRY(iterator_state_read_number(reader, &cursor->number, error));
    CADRE_TRY(iterator_state_read_number(reader, &cursor->outer_id, error));
    CADRE_TRY(iterator_state_read_number(reader, &cursor->ordinal, error));
    CADRE_TRY(iterator_state_read_bytes(reader, &bytes, &position.count, error));
    if (there > 1 || cursor->element.count == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: what was saved as an input element is none", nested->base.ops->name);
    }
    if (!opened) {
        return CADRE_OK;
    }
    if (position.count == 0) {
        return nested_cursor_open(cursor, nested, pass, error);
    }
    const uint64_t ordinal = cursor->ordinal;
    position.bytes = bytes;
    cursor->ordinal = 0;
    CADRE_TRY(nested_cursor_open(cursor, nested, pass, error));
    cursor->ordinal = ordinal;
    return cursor->iterator == NULL ? CADRE_OK
                                    : iterator_restore(cursor->iterator, &position, error);
}
