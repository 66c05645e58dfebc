/* SPDX-License-Identifier: Apache-2.0
 * Composite values as TensorFlow prints them. Ragged rows are numpy's arrays of arrays there: rows
 * of one length are an array with a dimension more, other items are broken into text lines of 75
 * characters; an item may have several lines; numbers are printed as they are alone, not in
 * columns. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/composite/components.h"
#include "worker/library/device/tensor_text.h"
#include "worker/library/device/device.h"

#define SUMMARY_OVER 1000 /* elements */
#define EDGE         3

/* --- items in text lines --- */

struct lines {
    FILE *to;
    size_t indent; /* of all text lines but the first */
    size_t width;
    size_t column;
    size_t blanks; /* at the end of the text line so far; left out where the line ends there */
};

static void begin_text_line(struct lines *lines, size_t indent)
{
    fputc('\n', lines->to);
    lines->blanks = indent;
    lines->column = indent;
}

static void composite_print_put(struct lines *lines, const char *text, size_t columns)
{
    fprintf(lines->to, "%*s", (int)lines->blanks, "");
    fwrite(text, 1, columns, lines->to);
    lines->blanks = 0;
    lines->column += columns;
}

static size_t longest_text_line(const char *text, size_t bytes)
{
    size_t longest = 0;
    size_t text_line = 0;
    for (size_t i = 0; i < bytes; i++) {
        text_line = text[i] == '\n' ? 0 : text_line + 1;
        longest = text_line > longest ? text_line : longest;
    }
    return longest;
}

/* An item of several text lines is printed as a block. */
static void put_word(struct lines *lines, const char *text, size_t bytes)
{
    const size_t columns = longest_text_line(text, bytes);
    if (lines->column + columns > lines->width && lines->column > lines->indent) {
        begin_text_line(lines, lines->indent);
    }
    const size_t left = lines->column;
    const char *end = memchr(text, '\n', bytes);
    while (end != NULL) {
        composite_print_put(lines, text, (size_t)(end - text));
        begin_text_line(lines, left);
        bytes -= (size_t)(end - text) + 1;
        text = end + 1;
        end = memchr(text, '\n', bytes);
    }
    composite_print_put(lines, text, bytes);
    lines->blanks = left + columns - lines->column;
    lines->column = left + columns;
}

/* Of a list with `count` items: whether item i is printed, or `...` instead. */
static bool is_shown(bool summary, int64_t count, int64_t i)
{
    return !summary || count <= 2 * EDGE || i < EDGE || i >= count - EDGE;
}

typedef void (*word_writer)(const void *user, int64_t i, FILE *to);

/* [item, item, ...], with `indent` columns in front, the bracket among them. */
static void put_list(
    const void *user, word_writer write, int64_t count, bool summary, size_t indent, FILE *to)
{
    struct lines lines = {
        .to = to, .indent = indent, .width = ARRAY_TEXT_COLUMNS - indent, .column = indent};
    fputc('[', to);
    for (int64_t i = 0; i < count; i++) {
        char *text = NULL;
        size_t bytes = 0;
        const bool shown = is_shown(summary, count, i);
        FILE *word = shown ? open_memstream(&text, &bytes) : NULL;
        if (word != NULL) {
            write(user, i, word);
            fclose(word);
            put_word(&lines, text, bytes);
        } else if (i == EDGE) {
            put_word(&lines, "...", 3);
        }
        if (i + 1 < count && (shown || i == EDGE)) {
            composite_print_put(&lines, ",", 1);
            lines.blanks = 1;
            lines.column++;
        }
        free(text);
    }
    fputc(']', to);
}

/* --- arrays --- */

struct array {
    const cadre_tensor *values;
    int64_t first; /* element */
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX + 1];
    bool summary;
};

static int64_t array_count(const struct array *array)
{
    int64_t count = 1;
    for (uint32_t axis = 0; axis < array->rank; axis++) {
        if (array->dims[axis] == 0) {
            return 0;
        }
    }
    for (uint32_t axis = 0; axis < array->rank; axis++) {
        count *= array->dims[axis];
    }
    return count;
}

static struct array array_row(const struct array *array, int64_t i)
{
    struct array row = {
        .values = array->values, .rank = array->rank - 1, .summary = array->summary};
    memcpy(row.dims, array->dims + 1, row.rank * sizeof row.dims[0]);
    row.first = array->first + i * array_count(&row);
    return row;
}

static void write_element(const void *user, int64_t i, FILE *to)
{
    const struct array *array = user;
    element_text(array->values, array->first + i, to);
}

static void put_array(const struct array *array, size_t indent, FILE *to)
{
    const int64_t count = array->dims[0];
    if (array->rank == 1) {
        put_list(array, write_element, count, array->summary, indent, to);
        return;
    }
    fputc('[', to);
    for (int64_t i = 0; i < count; i++) {
        const struct array row = array_row(array, i);
        const bool shown = is_shown(array->summary, count, i);
        if (!shown && i != EDGE) {
            continue;
        }
        if (shown) {
            put_array(&row, indent + 1, to);
        } else {
            fputs("...", to);
        }
        if (i + 1 < count) {
            fputc(',', to);
            for (uint32_t axis = 1; axis < array->rank; axis++) {
                fputc('\n', to);
            }
            fprintf(to, "%*s", (int)indent, "");
        }
    }
    fputc(']', to);
}

/* An array without elements: [[], []], as Python's lists. */
static void put_nothing(const struct array *array, FILE *to)
{
    const int64_t count = array->rank > 1 ? array->dims[0] : 0;
    const bool summary = count > SUMMARY_OVER;
    fputc('[', to);
    for (int64_t i = 0; i < count; i++) {
        const struct array row = array_row(array, i);
        fputs(i == 0 ? "" : ", ", to);
        put_nothing(&row, to);
        if (summary && i + 1 == EDGE) {
            fputs(", ...", to);
            i = count - EDGE - 1;
        }
    }
    fputc(']', to);
}

static void array_text_alone(struct array *array, FILE *to)
{
    const int64_t count = array_count(array);
    array->summary = count > SUMMARY_OVER;
    if (count == 0) {
        put_nothing(array, to);
    } else {
        put_array(array, 1, to);
    }
}

/* --- ragged --- */

struct ragged {
    const cadre_tensor *values;
    const int64_t *splits;
    int64_t rows;
};

/* `count` rows from row `first` on that have one length, with their own dimension or without. */
static struct array rows_as_array(
    const struct ragged *ragged, int64_t first, int64_t count, bool alone)
{
    struct array array = {.values = ragged->values};
    const int64_t *dims = cadre_tensor_dims(ragged->values);
    const uint32_t rank = cadre_tensor_rank(ragged->values);
    const int64_t values = cadre_tensor_rows(ragged->values);
    const int64_t inner = values == 0 ? 0 : cadre_tensor_count(ragged->values) / values;
    if (!alone) {
        array.dims[array.rank++] = count;
    }
    array.dims[array.rank++] = ragged->splits[first + 1] - ragged->splits[first];
    for (uint32_t axis = 1; axis < rank; axis++) {
        array.dims[array.rank++] = dims[axis];
    }
    array.first = ragged->splits[first] * inner;
    return array;
}

static void write_row(const void *user, int64_t i, FILE *to)
{
    struct array row = rows_as_array(user, i, 1, true);
    array_text_alone(&row, to);
}

static void write_ragged(const struct ragged *ragged, FILE *to)
{
    bool equal = true;
    for (int64_t i = 1; i < ragged->rows && equal; i++) {
        equal = ragged->splits[i + 1] - ragged->splits[i] == ragged->splits[1];
    }
    fputs("<RaggedTensor ", to);
    if (ragged->rows == 0) {
        fputs("[]", to);
    } else if (equal) {
        struct array array = rows_as_array(ragged, 0, ragged->rows, false);
        array_text_alone(&array, to);
    } else {
        put_list(ragged, write_row, ragged->rows, ragged->rows > SUMMARY_OVER, 1, to);
    }
    fputc('>', to);
}

/* --- both --- */

static cadre_status print_here(
    cadre_composite kind, cadre_tensor *const tensors[], FILE *to, struct cadre_error *error)
{
    CADRE_TRY(composite_check(kind, tensors, error));
    if (kind == CADRE_COMPOSITE_RAGGED) {
        const struct ragged ragged = {.values = tensors[RAGGED_VALUES],
            .splits = cadre_tensor_const_data(tensors[RAGGED_SPLITS]),
            .rows = composite_rows(kind, tensors)};
        write_ragged(&ragged, to);
        return CADRE_OK;
    }
    static const char *const names[] = {"indices", "values", "dense_shape"};
    fputs("SparseTensor(", to);
    for (uint32_t i = 0; i < SPARSE_COMPONENTS; i++) {
        fprintf(to, "%s%s=", i == 0 ? "" : ", ", names[i]);
        CADRE_TRY(tensor_text(tensors[i], TENSOR_FORM_STR, to, error));
    }
    fputc(')', to);
    return CADRE_OK;
}

cadre_status composite_print(
    cadre_composite kind, cadre_tensor *const tensors[], FILE *to, struct cadre_error *error)
{
    cadre_tensor *here[SPARSE_COMPONENTS] = {NULL};
    const uint32_t count = kind == CADRE_COMPOSITE_RAGGED ? RAGGED_COMPONENTS : SPARSE_COMPONENTS;
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; i < count && status == CADRE_OK; i++) {
        status = tensor_on_host(tensors[i], &here[i], error);
    }
    if (status == CADRE_OK) {
        status = print_here(kind, here, to, error);
    }
    components_release(here, SPARSE_COMPONENTS);
    return status;
}
