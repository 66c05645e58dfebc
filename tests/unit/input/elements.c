/* SPDX-License-Identifier: Apache-2.0
 * See elements.h. */
#include "tests/unit/input/elements.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/input/cmocka_unit.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/batching/element_slice.h"

#define ELEMENTS_MAX 512

static cadre_status keep(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)in;
    (void)user;
    *ret_keep = true;
    return CADRE_OK;
}

cadre_dataset *in_order_only(cadre_dataset *data)
{
    return cadre_dataset_filter(data, keep, NULL);
}

struct text {
    char *bytes;
    size_t used;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length =
        vsnprintf(text->bytes + text->used, ELEMENTS_TEXT_BYTES - text->used, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length < ELEMENTS_TEXT_BYTES - text->used);
    text->used += (size_t)length;
}

static void add_value(struct text *text, const cadre_tensor *tensor, int64_t i)
{
    const void *data = cadre_tensor_const_data(tensor);
    switch (cadre_tensor_dtype(tensor)) {
    case CADRE_I64:
        add(text, "%" PRId64, ((const int64_t *)data)[i]);
        break;
    case CADRE_I32:
        add(text, "%" PRId32, ((const int32_t *)data)[i]);
        break;
    case CADRE_F32:
        add(text, "%g", (double)((const float *)data)[i]);
        break;
    case CADRE_U8:
    case CADRE_BOOL:
        add(text, "%d", ((const uint8_t *)data)[i]);
        break;
    case CADRE_STRING:
        add(text, "%.*s", (int)((const cadre_string *)data)[i].size,
            ((const cadre_string *)data)[i].bytes);
        break;
    default:
        fail_msg("no text of such values");
    }
}

static void add_axis(struct text *text, const cadre_tensor *tensor, uint32_t axis, int64_t *i)
{
    if (axis == cadre_tensor_rank(tensor)) {
        add_value(text, tensor, (*i)++);
        return;
    }
    add(text, "[");
    for (int64_t k = 0; k < cadre_tensor_dim(tensor, axis); k++) {
        add(text, "%s", k > 0 ? " " : "");
        add_axis(text, tensor, axis + 1, i);
    }
    add(text, "]");
}

static void add_element(struct text *text, const cadre_element *element)
{
    add(text, "%s", element->count == 1 ? "" : "(");
    for (uint32_t i = 0; i < element->count; i++) {
        int64_t value = 0;
        add(text, "%s", i > 0 ? ", " : "");
        add_axis(text, element->tensors[i], 0, &value);
    }
    add(text, "%s", element->count == 1 ? "" : ")");
}

static char *next_buffer(void)
{
    static char buffers[4][ELEMENTS_TEXT_BYTES];
    static unsigned used;
    char *buffer = buffers[used++ % 4];
    buffer[0] = '\0';
    return buffer;
}

const char *elements_text(cadre_dataset *data, const struct pass *pass, size_t most)
{
    struct text text = {.bytes = next_buffer()};
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    cadre_element element = {0};
    cadre_status status = dataset_iterate(data, pass, &iterator, &error);
    for (size_t i = 0; status == CADRE_OK && i < most; i++) {
        status = iterator_next(iterator, &element, NULL, &error);
        if (status == CADRE_OK) {
            add(&text, "%s", i > 0 ? " " : "");
            add_element(&text, &element);
            cadre_element_release(&element);
        }
    }
    if (status != CADRE_OK && status != CADRE_OUT_OF_RANGE) {
        add(&text, "!%s %s", cadre_status_name(status), error.text);
    }
    cadre_iterator_release(iterator);
    return text.bytes;
}

void expect_elements(cadre_dataset *data, const char *expected)
{
    assert_string_equal(elements_text(data, &(struct pass){0}, SIZE_MAX), expected);
    cadre_dataset_release(data);
}

void expect_failure(cadre_dataset *data, cadre_status code, const char *part)
{
    const char *text = elements_text(data, &(struct pass){0}, SIZE_MAX);
    char expected[64];
    snprintf(expected, sizeof expected, "!%s ", cadre_status_name(code));
    if (strstr(text, expected) == NULL || strstr(text, part) == NULL) {
        fail_msg("%s... %s... was expected, and it is: %s", expected, part, text);
    }
    cadre_dataset_release(data);
}

void expect_spec(cadre_dataset *data, const char *expected)
{
    struct text text = {.bytes = next_buffer()};
    struct cadre_error error = {0};
    cadre_element_spec spec = {0};
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    ASSERT_OK(dataset_spec(data, &spec, &error));
    for (uint32_t i = 0; i < spec.count; i++) {
        const cadre_tensor_spec *tensor = &spec.tensors[i];
        add(&text, "%s%s", i > 0 ? " " : "",
            tensor_shape_text(tensor->dtype, tensor->rank, tensor->dims, shape));
    }
    assert_string_equal(text.bytes, expected);
}

/* --- an iteration as a list --- */

struct one {
    char *text;
    struct id_list ids;
};

struct list {
    struct one ones[ELEMENTS_MAX];
    size_t count;
};

static void list_add(struct list *list, cadre_element *element, const struct id_list *ids)
{
    struct cadre_error error = {0};
    struct text text = {.bytes = next_buffer()};
    assert_true(list->count < ELEMENTS_MAX);
    add_element(&text, element);
    cadre_element_release(element);
    struct one *one = &list->ones[list->count++];
    one->text = strdup(text.bytes);
    assert_non_null(one->text);
    ASSERT_OK(id_list_add_range(&one->ids, ids, 0, ids->count, &error));
}

static void list_clear(struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->ones[i].text);
        id_list_clear(&list->ones[i].ids);
    }
    *list = (struct list){.count = 0};
}

static void list_read(struct list *list, cadre_iterator *iterator, size_t most)
{
    struct cadre_error error = {0};
    for (size_t i = 0; i < most; i++) {
        cadre_element element = {0};
        struct id_list ids = {0};
        cadre_status status = iterator_next(iterator, &element, &ids, &error);
        if (status != CADRE_OUT_OF_RANGE) {
            ASSERT_OK(status);
            list_add(list, &element, &ids);
        }
        id_list_clear(&ids);
        if (status == CADRE_OUT_OF_RANGE) {
            return;
        }
    }
}

static void expect_same_ids(const struct id_list *a, const struct id_list *b, size_t at)
{
    if (a->count != b->count ||
        (a->count > 0 && memcmp(a->ids, b->ids, a->count * sizeof a->ids[0]) != 0)) {
        fail_msg("element %zu has other ids (%zu, not %zu, the first %" PRIu64 ")", at, a->count,
            b->count, a->count > 0 ? a->ids[0] : 0);
    }
}

/* `part` is what `whole` has from `from` on. */
static void expect_rest(const struct list *part, const struct list *whole, size_t from)
{
    assert_int_equal(part->count, whole->count - from);
    for (size_t i = 0; i < part->count; i++) {
        assert_string_equal(part->ones[i].text, whole->ones[from + i].text);
        expect_same_ids(&part->ones[i].ids, &whole->ones[from + i].ids, from + i);
    }
}

static cadre_iterator *iterate(cadre_dataset *data, const struct pass *pass)
{
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    ASSERT_OK(dataset_iterate(data, pass, &iterator, &error));
    return iterator;
}

/* --- positions --- */

static void expect_position(
    cadre_dataset *data, const struct pass *pass, const struct list *whole, size_t at)
{
    struct cadre_error error = {0};
    struct iterator_state_writer saved = {0};
    struct list before = {.count = 0};
    struct list rest = {.count = 0};
    cadre_iterator *first = iterate(data, pass);
    list_read(&before, first, at);
    if (at > whole->count) {
        before.count = whole->count; /* the end was seen */
    }
    ASSERT_OK(iterator_save(first, &saved, &error));
    struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
    cadre_iterator *second = iterate(data, pass);
    ASSERT_OK(iterator_restore(second, &reader, &error));
    assert_int_equal(reader.at, reader.count);
    list_read(&rest, second, SIZE_MAX);
    expect_rest(&rest, whole, at < whole->count ? at : whole->count);
    list_clear(&rest);
    list_read(&rest, first, SIZE_MAX); /* the one that was saved goes on */
    expect_rest(&rest, whole, at < whole->count ? at : whole->count);
    /* Every cut of it is refused, or was not needed. */
    for (size_t count = 0; count < saved.count; count += 1 + saved.count / 16) {
        cadre_iterator *third = iterate(data, pass);
        struct iterator_state_reader cut = {.bytes = saved.bytes, .count = count};
        assert_int_equal(iterator_restore(third, &cut, &error), CADRE_INVALID_ARGUMENT);
        cadre_iterator_release(third);
    }
    cadre_iterator_release(first);
    cadre_iterator_release(second);
    list_clear(&before);
    list_clear(&rest);
    iterator_state_writer_clear(&saved);
}

void expect_positions(cadre_dataset *data, const struct pass *pass)
{
    struct list whole = {.count = 0};
    cadre_iterator *iterator = iterate(data, pass);
    list_read(&whole, iterator, SIZE_MAX);
    cadre_iterator_release(iterator);
    for (size_t at = 0; at <= whole.count + 1; at++) {
        expect_position(data, pass, &whole, at);
    }
    list_clear(&whole);
}

/* --- rows, skips --- */

/* Cuts stacked rows apart again. */
static void list_add_rows(struct list *list, cadre_element *rows, size_t count)
{
    struct cadre_error error = {0};
    const struct id_list none = {0};
    for (size_t row = 0; row < count; row++) {
        cadre_element element = {.count = rows->count};
        for (uint32_t i = 0; i < rows->count; i++) {
            assert_int_equal(cadre_tensor_rows(rows->tensors[i]), count);
            ASSERT_OK(tensor_view_row(rows->tensors[i], (int64_t)row, &element.tensors[i], &error));
        }
        list_add(list, &element, &none);
    }
    cadre_element_release(rows);
}

static void expect_same_texts(const struct list *list, const struct list *whole)
{
    assert_int_equal(list->count, whole->count);
    for (size_t i = 0; i < list->count; i++) {
        assert_string_equal(list->ones[i].text, whole->ones[i].text);
    }
}

/* All ids of the list, one after the other. */
static void expect_all_ids(const struct id_list *ids, const struct list *whole)
{
    struct cadre_error error = {0};
    struct id_list all = {0};
    for (size_t i = 0; i < whole->count; i++) {
        const struct id_list *own = &whole->ones[i].ids;
        ASSERT_OK(id_list_add_range(&all, own, 0, own->count, &error));
    }
    expect_same_ids(ids, &all, 0);
    id_list_clear(&all);
}

static void expect_rows(
    cadre_dataset *data, const struct pass *pass, const struct list *whole, size_t wanted)
{
    struct cadre_error error = {0};
    struct list list = {.count = 0};
    struct id_list ids = {0};
    cadre_iterator *iterator = iterate(data, pass);
    for (;;) {
        cadre_element rows = {0};
        size_t count = 0;
        cadre_status status = iterator_next_rows(iterator, wanted, &rows, &count, &ids, &error);
        if (status == CADRE_OUT_OF_RANGE) {
            break;
        }
        ASSERT_OK(status);
        assert_true(count >= 1 && count <= wanted);
        list_add_rows(&list, &rows, count);
    }
    expect_same_texts(&list, whole);
    expect_all_ids(&ids, whole);
    id_list_clear(&ids);
    list_clear(&list);
    cadre_iterator_release(iterator);
}

static void expect_skips(
    cadre_dataset *data, const struct pass *pass, const struct list *whole, size_t count)
{
    struct cadre_error error = {0};
    struct list rest = {.count = 0};
    uint64_t skipped = 0;
    cadre_iterator *iterator = iterate(data, pass);
    list_read(&rest, iterator, 1);
    list_clear(&rest);
    size_t left = whole->count > 1 ? whole->count - 1 : 0;
    ASSERT_OK(iterator_skip(iterator, count, &skipped, &error));
    assert_int_equal(skipped, count < left ? count : left);
    list_read(&rest, iterator, SIZE_MAX);
    expect_rest(&rest, whole, whole->count - left + (size_t)skipped);
    list_clear(&rest);
    cadre_iterator_release(iterator);
}

/* --- by index --- */

static void expect_at_rows(cadre_dataset *data, struct element_position position)
{
    struct cadre_error error = {0};
    int64_t rows = dataset_rows(data, position);
    for (int64_t first = 0; first < rows; first++) {
        struct list expected = {.count = 0};
        struct list found = {.count = 0};
        const struct id_list none = {0};
        cadre_element whole = {0};
        cadre_element part = {0};
        int64_t count = 1 + (rows - first - 1) / 2;
        ASSERT_OK(dataset_at(data, position, &whole, NULL, &error));
        cadre_element cut = {0};
        int64_t found_rows = 0;
        ASSERT_OK(element_row_count(&whole, &found_rows, &error));
        assert_int_equal(found_rows, rows);
        ASSERT_OK(element_slice(&whole, (struct row_range){first, count}, &cut, &error));
        cadre_element_release(&whole);
        ASSERT_OK(dataset_at_rows(data, position, first, count, &part, NULL, &error));
        list_add(&expected, &cut, &none);
        list_add(&found, &part, &none);
        expect_same_texts(&found, &expected);
        list_clear(&expected);
        list_clear(&found);
    }
}

static void expect_positions_uniform(
    cadre_dataset *data, uint64_t epoch, const struct list *whole, bool uniform)
{
    struct cadre_error error = {0};
    struct list list = {.count = 0};
    struct id_list ids = {0};
    struct element_position positions[ELEMENTS_MAX];
    ASSERT_OK(dataset_prepare(data, &error));
    if (dataset_cardinality(data) != CADRE_CARDINALITY_INFINITE) {
        assert_int_equal(dataset_cardinality(data), whole->count);
    }
    for (size_t i = 0; i < whole->count; i++) {
        cadre_element element = {0};
        positions[i] = (struct element_position){.index = i, .epoch = epoch};
        ASSERT_OK(dataset_at(data, positions[i], &element, &ids, &error));
        list_add(&list, &element, &ids);
        ids.count = 0;
        struct element_position position = positions[i];
        ASSERT_OK(dataset_ids_at(data, &position, 1, &ids, &error));
        expect_same_ids(&ids, &whole->ones[i].ids, i);
        ids.count = 0;
        expect_at_rows(data, positions[i]);
    }
    expect_rest(&list, whole, 0);
    list_clear(&list);
    if (uniform && whole->count > 0) {
        cadre_element rows = {0};
        ASSERT_OK(dataset_gather(data, positions, whole->count, &rows, &ids, &error));
        list_add_rows(&list, &rows, whole->count);
        expect_same_texts(&list, whole);
        expect_all_ids(&ids, whole);
        list_clear(&list);
        ids.count = 0;
    }
    for (size_t i = 0; i < whole->count; i++) {
        positions[i] = (struct element_position){.index = i, .epoch = epoch};
    }
    ASSERT_OK(dataset_ids_at(data, positions, whole->count, &ids, &error));
    expect_all_ids(&ids, whole);
    id_list_clear(&ids);
}

void expect_same(cadre_dataset *data, cadre_dataset *other, const struct pass *pass)
{
    struct list list = {.count = 0};
    struct list others = {.count = 0};
    cadre_iterator *iterator = iterate(data, pass);
    list_read(&list, iterator, SIZE_MAX);
    cadre_iterator_release(iterator);
    iterator = iterate(other, pass);
    list_read(&others, iterator, SIZE_MAX);
    cadre_iterator_release(iterator);
    expect_rest(&others, &list, 0);
    list_clear(&list);
    list_clear(&others);
}

void expect_consistent(cadre_dataset *data)
{
    struct cadre_error error = {0};
    cadre_element_spec spec = {0};
    ASSERT_OK(dataset_spec(data, &spec, &error));
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        const struct pass pass = {.epoch = epoch, .ordered = true};
        struct list whole = {.count = 0};
        cadre_iterator *iterator = iterate(data, &pass);
        list_read(&whole, iterator, SIZE_MAX);
        cadre_iterator_release(iterator);
        for (size_t at = 0; at <= whole.count + 1; at++) {
            expect_position(data, &pass, &whole, at);
        }
        for (size_t count = 1; count < 6; count++) {
            expect_skips(data, &pass, &whole, count);
            if (element_spec_is_uniform(&spec)) {
                expect_rows(data, &pass, &whole, count);
            }
        }
        if (data->indexable) {
            expect_positions_uniform(data, epoch, &whole, element_spec_is_uniform(&spec));
        }
        list_clear(&whole);
    }
}
