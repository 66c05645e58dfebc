/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/render/curve.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define AXIS_COLUMNS 12 /* the numbers at the side, and a bar */
#define DOTS_X_MAX   (2 * CURVE_COLUMNS_MAX)

/* What is seen of the values: their extent, and in each column of dots from where to where a bar
 * goes. */
struct curve {
    unsigned columns;
    bool braille;
    uint64_t first_step;
    uint64_t last_step;
    double lowest;
    double highest;
    bool any;
    unsigned dots_x;
    unsigned dots_y;
    int low[DOTS_X_MAX]; /* rows from the bottom; -1: nothing in this column */
    int high[DOTS_X_MAX];
};

const char *curve_number(double value, char text[CURVE_NUMBER_BYTES])
{
    if (isfinite(value)) {
        snprintf(text, CURVE_NUMBER_BYTES, "%.6g", value);
    } else {
        snprintf(text, CURVE_NUMBER_BYTES, "%s",
            isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    }
    return text;
}

/* ---- the extent ---- */

static void curve_extend(
    struct curve *curve, uint64_t first, uint64_t last, double low, double high)
{
    if (!curve->any) {
        *curve = (struct curve){.columns = curve->columns,
            .braille = curve->braille,
            .first_step = first,
            .lowest = low,
            .highest = high,
            .any = true};
    }
    curve->last_step = last;
    curve->lowest = low < curve->lowest ? low : curve->lowest;
    curve->highest = high > curve->highest ? high : curve->highest;
}

static void find_extent(struct curve *curve, const cadre_series *series)
{
    for (size_t i = 0; i < series->bucket_count; i++) {
        const cadre_series_bucket *bucket = &series->buckets[i];
        if (bucket->count > bucket->not_finite) {
            curve_extend(curve, bucket->first_step, bucket->last_step, bucket->minimum,
                bucket->maximum);
        }
    }
    for (size_t i = 0; i < series->point_count; i++) {
        const cadre_series_point *point = &series->points[i];
        if (isfinite(point->value)) {
            curve_extend(curve, point->step, point->step, point->value, point->value);
        }
    }
}

/* ---- dots ---- */

static unsigned column_of(const struct curve *curve, uint64_t step)
{
    double span = (double)(curve->last_step - curve->first_step);
    double part = span > 0 ? (double)(step - curve->first_step) / span : 0;
    return (unsigned)lround(part * (curve->dots_x - 1));
}

static int row_of(const struct curve *curve, double value)
{
    /* Halves: the difference of two doubles may overflow. */
    double span = curve->highest / 2 - curve->lowest / 2;
    double part = span > 0 ? (value / 2 - curve->lowest / 2) / span : 0.5;
    return (int)lround(part * (curve->dots_y - 1));
}

static void put_bar(struct curve *curve, unsigned column, int low, int high)
{
    bool fresh = curve->low[column] < 0;
    curve->low[column] = fresh || low < curve->low[column] ? low : curve->low[column];
    curve->high[column] = fresh || high > curve->high[column] ? high : curve->high[column];
}

/* A line from the last value to this one: in each column a bar, so that it has no gaps. */
static void connect(struct curve *curve, unsigned from, int from_row, unsigned to, int to_row)
{
    int before = from_row;
    for (unsigned column = from + 1; column <= to; column++) {
        double part = (double)(column - from) / (double)(to - from);
        int row = (int)lround(from_row + part * (to_row - from_row));
        int near = row == before ? row : row > before ? before + 1 : before - 1;
        put_bar(curve, column, near < row ? near : row, near > row ? near : row);
        before = row;
    }
    if (from == to) {
        put_bar(curve, to, from_row < to_row ? from_row : to_row,
            from_row > to_row ? from_row : to_row);
    }
}

static void put_dots(struct curve *curve, const cadre_series *series)
{
    bool any = false;
    unsigned last_column = 0;
    int last_row = 0;
    for (unsigned i = 0; i < curve->dots_x; i++) {
        curve->low[i] = -1;
    }
    for (size_t i = 0; i < series->bucket_count + series->point_count; i++) {
        bool is_bucket = i < series->bucket_count;
        const cadre_series_bucket *bucket = is_bucket ? &series->buckets[i] : NULL;
        const cadre_series_point *point =
            is_bucket ? NULL : &series->points[i - series->bucket_count];
        if (is_bucket ? bucket->count == bucket->not_finite : !isfinite(point->value)) {
            continue;
        }
        unsigned column = column_of(curve, is_bucket ? bucket->last_step : point->step);
        int row = row_of(curve, is_bucket ? bucket->mean : point->value);
        if (is_bucket) {
            put_bar(curve, column, row_of(curve, bucket->minimum), row_of(curve, bucket->maximum));
        } else {
            put_bar(curve, column, row, row);
        }
        if (any) {
            connect(curve, last_column, last_row, column, row);
        }
        any = true;
        last_column = column;
        last_row = row;
    }
}

static bool is_set(const struct curve *curve, unsigned column, int row)
{
    return column < curve->dots_x && curve->low[column] >= 0 && row >= curve->low[column] &&
           row <= curve->high[column];
}

/* ---- characters ---- */

/* Unicode, "Braille Patterns": the bits of the dots, from the top, left and right. */
static void put_braille(const struct curve *curve, unsigned x, int bottom, FILE *out)
{
    static const unsigned bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned pattern = 0;
    for (int row = 0; row < 4; row++) {
        for (unsigned column = 0; column < 2; column++) {
            pattern |= is_set(curve, 2 * x + column, bottom + 3 - row) ? bits[row][column] : 0;
        }
    }
    fputc(0xe2, out);
    fputc((int)(0xa0 | pattern >> 6), out);
    fputc((int)(0x80 | (pattern & 0x3f)), out);
}

/* Whether the one value that there is lies in this row of characters. */
static bool is_flat_row(const struct curve *curve, int row)
{
    return row_of(curve, curve->lowest) / (int)(curve->dots_y / CURVE_ROWS) == row;
}

static void draw_row(const struct curve *curve, int row, FILE *out)
{
    char number[CURVE_NUMBER_BYTES];
    bool flat = curve->lowest == curve->highest;
    bool labelled = flat ? is_flat_row(curve, row) : row == CURVE_ROWS - 1 || row == 0;
    double value = row == 0 ? curve->lowest : curve->highest;
    fprintf(out, "%*s |", AXIS_COLUMNS - 2, labelled ? curve_number(value, number) : "");
    for (unsigned x = 0; x < curve->columns; x++) {
        if (curve->braille) {
            put_braille(curve, x, 4 * row, out);
        } else {
            fputc(is_set(curve, x, row) ? '*' : ' ', out);
        }
    }
    fputc('\n', out);
}

/* The row beneath: '+' where a generation began, '-' else; then the first and last step. */
static void draw_steps(const struct curve *curve, const cadre_job_series *job, FILE *out)
{
    char row[CURVE_COLUMNS_MAX + 1];
    char first[32];
    char last[32];
    memset(row, '-', curve->columns);
    row[curve->columns] = '\0';
    unsigned scale = curve->braille ? 2 : 1;
    for (size_t i = 0; i < job->generation_count; i++) {
        uint64_t step = job->generations[i].first_step;
        if (step > curve->first_step && step <= curve->last_step) {
            row[column_of(curve, step) / scale] = '+';
        }
    }
    snprintf(first, sizeof first, "%" PRIu64, curve->first_step);
    snprintf(last, sizeof last, "%" PRIu64, curve->last_step);
    fprintf(out, "%*s +%s\n", AXIS_COLUMNS - 2, "step", row);
    int room = (int)curve->columns - (int)strlen(first);
    fprintf(out, "%*s%s%*s\n", AXIS_COLUMNS, "", first, room > 0 ? room : 0, last);
}

bool curve_draw(const cadre_series *series, const cadre_job_series *job,
    const struct curve_style *style, FILE *out)
{
    unsigned columns = style->columns > CURVE_COLUMNS_MAX ? CURVE_COLUMNS_MAX : style->columns;
    columns = columns < CURVE_COLUMNS_MIN ? CURVE_COLUMNS_MIN : columns;
    struct curve curve = {.columns = columns - AXIS_COLUMNS, .braille = style->braille};
    find_extent(&curve, series);
    if (!curve.any) {
        return false;
    }
    curve.dots_x = curve.columns * (curve.braille ? 2 : 1);
    curve.dots_y = CURVE_ROWS * (curve.braille ? 4 : 1);
    put_dots(&curve, series);
    for (int row = CURVE_ROWS - 1; row >= 0; row--) {
        draw_row(&curve, row, out);
    }
    draw_steps(&curve, job, out);
    return true;
}
