/* SPDX-License-Identifier: Apache-2.0
 * What a job's program reported, by step, as a table with curves, as CSV and as JSON. */
#include "coordinator/cli/render/render_metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "coordinator/cli/render/table.h"

/* ---- the table ---- */

/* Of all values of a series. */
struct summary {
    uint64_t step;
    double newest;
    uint64_t count;
    uint64_t not_finite;
    double minimum;
    double maximum;
};

static void summary_add(
    struct summary *summary, uint64_t count, uint64_t not_finite, double low, double high)
{
    bool first = summary->count == summary->not_finite;
    summary->count += count;
    summary->not_finite += not_finite;
    if (count > not_finite) {
        summary->minimum = first || low < summary->minimum ? low : summary->minimum;
        summary->maximum = first || high > summary->maximum ? high : summary->maximum;
    }
}

static struct summary summary_of(const cadre_series *series)
{
    struct summary summary = {0};
    for (size_t i = 0; i < series->bucket_count; i++) {
        const cadre_series_bucket *bucket = &series->buckets[i];
        summary_add(&summary, bucket->count, bucket->not_finite, bucket->minimum, bucket->maximum);
        summary.step = bucket->last_step;
        summary.newest = bucket->last;
    }
    for (size_t i = 0; i < series->point_count; i++) {
        const cadre_series_point *point = &series->points[i];
        bool finite = isfinite(point->value);
        summary_add(&summary, 1, finite ? 0U : 1U, point->value, point->value);
        summary.step = point->step;
        summary.newest = point->value;
    }
    return summary;
}

static void render_metrics_add(struct table *table, const cadre_series *series)
{
    char text[CURVE_NUMBER_BYTES];
    struct summary summary = summary_of(series);
    bool finite = summary.count > summary.not_finite;
    enum colour colour = isfinite(summary.newest) ? COLOUR_NONE : COLOUR_RED;
    table_add(table, COLOUR_NONE, "%s", series->name);
    table_add(table, COLOUR_NONE, "%" PRIu64, summary.step);
    table_add(table, colour, "%s", curve_number(summary.newest, text));
    table_add(table, COLOUR_NONE, "%s", finite ? curve_number(summary.minimum, text) : "-");
    table_add(table, COLOUR_NONE, "%s", finite ? curve_number(summary.maximum, text) : "-");
    table_add(table, COLOUR_NONE, "%" PRIu64, summary.count);
    table_add(
        table, summary.not_finite > 0 ? COLOUR_RED : COLOUR_NONE, "%" PRIu64, summary.not_finite);
}

void render_metrics_notes(const cadre_job_series *metrics, FILE *out)
{
    if (metrics->lost_bytes > 0) {
        fprintf(out,
            "%" PRIu64 " bytes of these values were damaged on the coordinator's disk and are "
            "lost\n",
            metrics->lost_bytes);
    }
    if (metrics->refused > 0) {
        fprintf(out,
            "%" PRIu64 " values had a name beyond the first 16, or one that the evaluator has, and "
            "are not kept: report fewer names\n",
            metrics->refused);
    }
}

bool render_metrics(const cadre_job_series *metrics, const struct text_style *text_style, FILE *out)
{
    static const struct table_column columns[] = {{"NAME", false}, {"STEP", true}, {"NEWEST", true},
        {"MIN", true}, {"MAX", true}, {"VALUES", true}, {"NOT FINITE", true}};
    struct table table;
    table_open(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < metrics->count; i++) {
        render_metrics_add(&table, &metrics->series[i]);
    }
    bool good = table_print(&table, text_style, out);
    table_close(&table);
    return good;
}

void render_curves(const cadre_job_series *metrics, const struct curve_style *style, FILE *out)
{
    for (size_t i = 0; i < metrics->count; i++) {
        const cadre_series *series = &metrics->series[i];
        fputc('\n', out);
        text_print(out, series->name, 0);
        fputc('\n', out);
        if (!curve_draw(series, metrics, style, out)) {
            fputs("  no value is finite: there is no curve\n", out);
        }
    }
}

/* ---- CSV (RFC 4180) ---- */

static void put_field(FILE *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', out);
        }
        fputc(*text, out);
    }
    fputc('"', out);
}

static void put_value(FILE *out, double value)
{
    if (isfinite(value)) {
        fprintf(out, ",%.17g", value);
    } else {
        fputs(isnan(value) ? ",NaN" : value > 0 ? ",Infinity" : ",-Infinity", out);
    }
}

void render_metrics_csv_head(FILE *out)
{
    fputs("name,step,value,minimum,maximum,first_step,count\n", out);
}

void render_metrics_csv(const cadre_job_series *metrics, FILE *out)
{
    for (size_t i = 0; i < metrics->count; i++) {
        const cadre_series *series = &metrics->series[i];
        for (size_t at = 0; at < series->bucket_count; at++) {
            const cadre_series_bucket *bucket = &series->buckets[at];
            bool finite = bucket->count > bucket->not_finite;
            put_field(out, series->name);
            fprintf(out, ",%" PRIu64, bucket->last_step);
            put_value(out, finite ? bucket->mean : bucket->last);
            put_value(out, finite ? bucket->minimum : bucket->last);
            put_value(out, finite ? bucket->maximum : bucket->last);
            fprintf(out, ",%" PRIu64 ",%" PRIu64 "\n", bucket->first_step, bucket->count);
        }
        for (size_t at = 0; at < series->point_count; at++) {
            const cadre_series_point *point = &series->points[at];
            put_field(out, series->name);
            fprintf(out, ",%" PRIu64, point->step);
            put_value(out, point->value);
            put_value(out, point->value);
            put_value(out, point->value);
            fprintf(out, ",%" PRIu64 ",1\n", point->step);
        }
    }
}
