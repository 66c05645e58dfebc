/* SPDX-License-Identifier: Apache-2.0
 * Writes metrics in Prometheus' text format into memory; the pages of server.c call it. */
#include "common/http/exposition.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/pure/assert.h"

#define FIRST_BYTES ((size_t)16 * 1024)
#define VALUE_BYTES 200

void exposition_free(struct exposition *out)
{
    free(out->text);
    *out = (struct exposition){0};
}

static bool make_room(struct exposition *out, size_t size)
{
    if (out->failed || size <= out->capacity - out->size) {
        return !out->failed;
    }
    size_t capacity = out->capacity > 0 ? out->capacity : FIRST_BYTES;
    while (capacity - out->size < size) {
        capacity *= 2;
    }
    char *grown = realloc(out->text, capacity);
    out->failed = grown == NULL;
    out->text = grown != NULL ? grown : out->text;
    out->capacity = grown != NULL ? capacity : out->capacity;
    return !out->failed;
}

static void exposition_put(struct exposition *out, const char *bytes, size_t size)
{
    if (make_room(out, size)) {
        memcpy(out->text + out->size, bytes, size);
        out->size += size;
    }
}

void exposition_text(struct exposition *out, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CADRE_ASSERT(length >= 0);
    exposition_put(out, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

void exposition_family(
    struct exposition *out, const char *name, enum exposition_type type, const char *help)
{
    static const char *const types[] = {[EXPOSITION_COUNTER] = "counter",
        [EXPOSITION_GAUGE] = "gauge",
        [EXPOSITION_HISTOGRAM] = "histogram"};
    CADRE_ASSERT(strpbrk(help, "\\\n") == NULL);
    out->family = name;
    exposition_text(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, types[type]);
}

/* What may not be between the quotes is escaped; a byte that is not UTF-8 becomes '?'. */
static void put_value(struct exposition *out, const char *text)
{
    size_t size = strnlen(text, VALUE_BYTES);
    for (size_t at = 0; at < size;) {
        size_t length = utf8_printable(text + at, size - at);
        if (text[at] == '"' || text[at] == '\\') {
            exposition_put(out, "\\", 1);
        }
        exposition_put(out,
            text[at] == '\n' ? "\\n"
            : length > 0     ? text + at
                             : "?",
            text[at] == '\n' ? 2
            : length > 0     ? length
                             : 1);
        at += length > 0 ? length : 1;
    }
}

static void put_labels(struct exposition *out, const struct exposition_label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        exposition_text(out, "%s%s=\"", i == 0 ? "{" : ",", labels[i].name);
        put_value(out, labels[i].value);
        exposition_put(out, "\"", 1);
    }
    if (count > 0) {
        exposition_put(out, "}", 1);
    }
}

/* As short as reads back as the same number. */
static void put_number(struct exposition *out, double value)
{
    if (isnan(value) || isinf(value)) {
        exposition_text(out, " %s\n", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (!(back < value) && !(back > value)) {
            break;
        }
    }
    exposition_text(out, " %s\n", text);
}

void exposition_sample(
    struct exposition *out, const struct exposition_label *labels, size_t count, double value)
{
    exposition_text(out, "%s", out->family);
    put_labels(out, labels, count);
    put_number(out, value);
}

void exposition_count(
    struct exposition *out, const struct exposition_label *labels, size_t count, uint64_t value)
{
    exposition_text(out, "%s", out->family);
    put_labels(out, labels, count);
    exposition_text(out, " %" PRIu64 "\n", value);
}

void exposition_count_by(
    struct exposition *out, const char *label, const char *name, uint64_t value)
{
    exposition_count(out, &(struct exposition_label){label, name}, 1, value);
}

void exposition_histogram(struct exposition *out, const struct histogram *histogram)
{
    uint64_t cumulative = 0;
    for (size_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
        cumulative += histogram->buckets[i];
        exposition_text(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", out->family,
            (double)histogram_bounds_us[i] / 1e6, cumulative);
    }
    exposition_text(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", out->family, histogram->count);
    exposition_text(out, "%s_sum", out->family);
    put_number(out, (double)histogram->sum_us / 1e6);
    exposition_text(out, "%s_count %" PRIu64 "\n", out->family, histogram->count);
}

void exposition_one(struct exposition *out, const char *name, enum exposition_type type,
    const char *help, double value)
{
    exposition_family(out, name, type, help);
    exposition_sample(out, NULL, 0, value);
}

void exposition_one_count(struct exposition *out, const char *name, enum exposition_type type,
    const char *help, uint64_t value)
{
    exposition_family(out, name, type, help);
    exposition_count(out, NULL, 0, value);
}
