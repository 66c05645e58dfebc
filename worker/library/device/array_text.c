/* SPDX-License-Identifier: Apache-2.0
 * numpy's array2string: one pass over the elements for the width of a column, then the text lines.
 * tensor_text.c calls it for tensors on the host. */
#include "worker/library/device/tensor_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/half.h"
#include "worker/library/device/number_text.h"

#define SUMMARY_OVER 1000 /* elements */
#define EDGE         3
#define PLACES       8 /* behind the point, at most */

/* What all the shown elements need. */
struct column {
    cadre_dtype dtype;
    bool floating;
    bool scientific;
    double greatest; /* of the finite ones that are not 0, without their signs */
    double least;
    size_t whole;  /* columns before the point; of integers all of them */
    size_t behind; /* behind the point */
    int digits_after_point;
    int exponent_digits;
    size_t not_finite; /* columns of the widest that is not finite; 0: there is none */
    bool measuring;    /* `scientific` is decided */
};

struct array_writer {
    const cadre_tensor *tensor;
    const struct array_margins *margins;
    FILE *to;
    struct column column;
    bool summary;
    size_t columns; /* columns written in the current line of text */
};

static bool is_floating(cadre_dtype dtype)
{
    return dtype == CADRE_F64 || dtype == CADRE_F32 || dtype == CADRE_F16 || dtype == CADRE_BF16;
}

static double real_at(const cadre_tensor *tensor, int64_t at)
{
    const void *data = cadre_tensor_const_data(tensor);
    switch (cadre_tensor_dtype(tensor)) {
    case CADRE_F64:
        return ((const double *)data)[at];
    case CADRE_F32:
        return (double)((const float *)data)[at];
    case CADRE_F16:
        return (double)half_from_f16(((const uint16_t *)data)[at]);
    default:
        return (double)half_from_bf16(((const uint16_t *)data)[at]);
    }
}

static int64_t whole_at(const cadre_tensor *tensor, int64_t at)
{
    const void *data = cadre_tensor_const_data(tensor);
    switch (cadre_tensor_dtype(tensor)) {
    case CADRE_I64:
        return ((const int64_t *)data)[at];
    case CADRE_I32:
        return ((const int32_t *)data)[at];
    case CADRE_I16:
        return ((const int16_t *)data)[at];
    case CADRE_I8:
        return ((const int8_t *)data)[at];
    case CADRE_U32:
        return ((const uint32_t *)data)[at];
    case CADRE_U16:
        return ((const uint16_t *)data)[at];
    default:
        return ((const uint8_t *)data)[at];
    }
}

/* Bytes as Python writes them, b'a\n'; returns their columns. `to` may be NULL. */
static size_t bytes_text(const cadre_string *string, FILE *to)
{
    bool single = string->size > 0 && memchr(string->bytes, '\'', string->size) != NULL;
    bool both = single && memchr(string->bytes, '"', string->size) != NULL;
    char quote = single && !both ? '"' : '\'';
    size_t columns = 3;
    if (to != NULL) {
        fprintf(to, "b%c", quote);
    }
    for (size_t i = 0; i < string->size; i++) {
        unsigned char byte = (unsigned char)string->bytes[i];
        char text[8];
        const char *letter = byte == 0 ? NULL : strchr("\nn\rr\tt", byte);
        if (letter != NULL && byte < ' ') {
            snprintf(text, sizeof text, "\\%c", letter[1]);
        } else if (byte == '\\' || byte == quote) {
            snprintf(text, sizeof text, "\\%c", byte);
        } else if (byte < ' ' || byte > '~') {
            snprintf(text, sizeof text, "\\x%02x", byte);
        } else {
            snprintf(text, sizeof text, "%c", byte);
        }
        columns += strlen(text);
        if (to != NULL) {
            fputs(text, to);
        }
    }
    if (to != NULL) {
        fputc(quote, to);
    }
    return columns;
}

void element_text(const cadre_tensor *tensor, int64_t at, FILE *to)
{
    char text[NUMBER_TEXT_BYTES];
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    if (dtype == CADRE_STRING) {
        bytes_text((const cadre_string *)cadre_tensor_const_data(tensor) + at, to);
    } else if (dtype == CADRE_BOOL) {
        fputs(whole_at(tensor, at) != 0 ? "True" : "False", to);
    } else if (is_floating(dtype)) {
        decimal_alone(real_at(tensor, at), dtype, text);
        fputs(text, to);
    } else {
        fprintf(to, "%" PRId64, whole_at(tensor, at));
    }
}

/* --- the width of a column --- */

static void array_text_wider(size_t *width, size_t than)
{
    *width = *width > than ? *width : than;
}

static void column_see_finite(struct column *column, double number)
{
    double size = fabs(number);
    if (!column->measuring) {
        bool zero = fpclassify(number) == FP_ZERO;
        column->greatest = !zero && size > column->greatest ? size : column->greatest;
        column->least =
            !zero && (column->least <= 0 || size < column->least) ? size : column->least;
        return;
    }
    struct decimal decimal = decimal_of(number, column->dtype, PLACES, column->scientific);
    size_t sign = decimal.negative ? 1 : 0;
    if (column->scientific) {
        int digits_after_point = decimal.count - 1;
        column->digits_after_point = digits_after_point > column->digits_after_point
                                         ? digits_after_point
                                         : column->digits_after_point;
        column->exponent_digits =
            decimal.exponent > 99 || decimal.exponent < -99 ? 3 : column->exponent_digits;
        array_text_wider(&column->whole, sign + 1);
    } else {
        array_text_wider(&column->whole, sign + (size_t)decimal_whole(&decimal));
        array_text_wider(&column->behind, (size_t)decimal_digits_after_point(&decimal));
    }
}

static void column_see(struct column *column, const cadre_tensor *tensor, int64_t at)
{
    if (column->floating) {
        double number = real_at(tensor, at);
        if (isfinite(number)) {
            column_see_finite(column, number);
        } else {
            array_text_wider(&column->not_finite, isinf(number) && number < 0 ? 4 : 3);
        }
    } else if (column->dtype == CADRE_BOOL) {
        column->whole = 5;
    } else if (column->dtype != CADRE_STRING) {
        char text[32];
        array_text_wider(
            &column->whole, (size_t)snprintf(text, sizeof text, "%" PRId64, whole_at(tensor, at)));
    }
}

/* --- which elements are shown --- */

static int64_t next_shown(const struct array_writer *writer, uint32_t axis, int64_t index)
{
    int64_t size = cadre_tensor_dim(writer->tensor, axis);
    return writer->summary && size > 2 * EDGE && index + 1 == EDGE ? size - EDGE : index + 1;
}

static void see_all(struct array_writer *writer, uint32_t axis, int64_t first)
{
    if (axis == cadre_tensor_rank(writer->tensor)) {
        column_see(&writer->column, writer->tensor, first);
        return;
    }
    int64_t size = cadre_tensor_dim(writer->tensor, axis);
    for (int64_t i = 0; i < size; i = next_shown(writer, axis, i)) {
        see_all(writer, axis + 1, first * size + i);
    }
}

static void array_text_measure(struct array_writer *writer)
{
    struct column *column = &writer->column;
    see_all(writer, 0, 0);
    if (column->floating) {
        column->scientific =
            column->greatest > 0 && (column->greatest >= 1e8 || column->least < 1e-4 ||
                                        column->greatest / column->least > 1000);
        column->measuring = true;
        column->exponent_digits = 2;
        see_all(writer, 0, 0);
        if (column->scientific) {
            column->behind =
                (size_t)column->digits_after_point + 2 + (size_t)column->exponent_digits;
        }
        if (column->not_finite > column->whole + column->behind + 1) {
            column->whole = column->not_finite - column->behind - 1;
        }
    }
}

/* --- lines of text --- */

/* An element in its column: blanks, the number, blanks. */
struct word {
    size_t before;
    size_t after;
    char text[NUMBER_TEXT_BYTES];
};

static size_t word_columns(const struct word *word)
{
    return word->before + strlen(word->text) + word->after;
}

static void fill_up(struct word *word, size_t columns)
{
    size_t own = word_columns(word);
    word->before = columns > own ? columns - own : 0;
}

static void element_word(const struct array_writer *writer, int64_t at, struct word *word)
{
    const struct column *column = &writer->column;
    word->before = 0;
    word->after = 0;
    if (!column->floating) {
        int64_t whole = whole_at(writer->tensor, at);
        if (column->dtype == CADRE_BOOL) {
            snprintf(word->text, sizeof word->text, "%s", whole != 0 ? "True" : "False");
        } else {
            snprintf(word->text, sizeof word->text, "%" PRId64, whole);
        }
        fill_up(word, column->whole);
        return;
    }
    double real = real_at(writer->tensor, at);
    if (!isfinite(real)) {
        decimal_alone(real, column->dtype, word->text);
    } else {
        struct decimal decimal = decimal_of(real, column->dtype, PLACES, column->scientific);
        if (column->scientific) {
            decimal_scientific(
                &decimal, column->digits_after_point, column->exponent_digits, word->text);
        } else {
            decimal_plain(&decimal, 0, word->text);
            word->after = column->behind - (size_t)decimal_digits_after_point(&decimal);
        }
    }
    fill_up(word, column->whole + 1 + column->behind);
}

/* Writes what is between two elements: a separator, or the end of the line of text where `columns`
 * more do not fit within `width`. */
static void put_space(
    struct array_writer *writer, bool first, size_t indent, size_t width, size_t columns)
{
    const char *separator = writer->margins->separator;
    size_t columns_used = writer->columns + (first ? 0 : strlen(separator));
    if (!first && columns_used > indent && columns_used + columns > width) {
        fprintf(writer->to, "%s\n%*s", separator[0] == ',' ? "," : "", (int)indent, "");
        columns_used = indent;
    } else if (!first) {
        fputs(separator, writer->to);
    }
    writer->columns = columns_used + columns;
}

static void put_element(
    struct array_writer *writer, int64_t at, bool first, size_t indent, size_t width)
{
    struct word word;
    if (writer->column.dtype == CADRE_STRING) {
        const cadre_string *strings = cadre_tensor_const_data(writer->tensor);
        put_space(writer, first, indent, width, bytes_text(&strings[at], NULL));
        bytes_text(&strings[at], writer->to);
        return;
    }
    element_word(writer, at, &word);
    put_space(writer, first, indent, width, word_columns(&word));
    fprintf(writer->to, "%*s%s%*s", (int)word.before, "", word.text, (int)word.after, "");
}

static void put_dots(struct array_writer *writer, bool last_axis, size_t indent, size_t width)
{
    if (last_axis) {
        put_space(writer, false, indent, width, strlen("..."));
    }
    fputs("...", writer->to);
}

static void end_row(struct array_writer *writer, uint32_t axis, size_t indent)
{
    fputs(writer->margins->separator[0] == ',' ? "," : "", writer->to);
    for (uint32_t i = axis + 1; i < cadre_tensor_rank(writer->tensor); i++) {
        fputc('\n', writer->to);
    }
    fprintf(writer->to, "%*s", (int)indent, "");
    writer->columns = indent;
}

/* The elements after `axis` indices; `indent` columns are in front of them, "[" among these. */
static void put_axis(
    struct array_writer *writer, uint32_t axis, int64_t first, size_t indent, size_t width)
{
    bool last_axis = axis + 1 == cadre_tensor_rank(writer->tensor);
    int64_t size = cadre_tensor_dim(writer->tensor, axis);
    fputc('[', writer->to);
    writer->columns = indent;
    for (int64_t i = 0; i < size; i = next_shown(writer, axis, i)) {
        if (i > 0 && !last_axis) {
            end_row(writer, axis, indent);
        }
        if (last_axis) {
            put_element(writer, first * size + i, i == 0, indent, width - 1);
        } else {
            put_axis(writer, axis + 1, first * size + i, indent + 1, width - 1);
        }
        if (next_shown(writer, axis, i) > i + 1) {
            if (!last_axis) {
                end_row(writer, axis, indent);
            }
            put_dots(writer, last_axis, indent, width - 1);
        }
    }
    fputc(']', writer->to);
    writer->columns++;
}

size_t array_text(const cadre_tensor *tensor, const struct array_margins *margins, FILE *to)
{
    CADRE_ASSERT(cadre_tensor_rank(tensor) > 0);
    if (cadre_tensor_count(tensor) == 0) {
        fputs("[]", to);
        return margins->before + 2;
    }
    struct array_writer writer = {.tensor = tensor,
        .margins = margins,
        .to = to,
        .column = {.dtype = cadre_tensor_dtype(tensor),
            .floating = is_floating(cadre_tensor_dtype(tensor))},
        .summary = cadre_tensor_count(tensor) > SUMMARY_OVER};
    array_text_measure(&writer);
    put_axis(&writer, 0, 0, margins->before + 1, ARRAY_TEXT_COLUMNS - margins->after);
    return writer.columns;
}
