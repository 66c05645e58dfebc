/* SPDX-License-Identifier: Apache-2.0
 * Metrics in Prometheus' text format: families with their samples, one after the other. Each
 * family is begun once, and its samples follow it directly. */
#ifndef CADRE_HTTP_EXPOSITION_H
#define CADRE_HTTP_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/histogram.h"
#include "common/tls/material.h"

/* Begins as {0}. When memory is out `failed` is set, and what follows is dropped. */
struct exposition {
    char *text;
    size_t size;
    size_t capacity;
    const char *family; /* whose samples follow; borrowed */
    bool failed;
};

/* Frees the text; a zeroed one is allowed. */
void exposition_free(struct exposition *out);

enum exposition_type { EXPOSITION_COUNTER, EXPOSITION_GAUGE, EXPOSITION_HISTOGRAM };

/* `name` lives as long as samples follow; a counter's ends in _total. `help` is one sentence. */
void exposition_family(
    struct exposition *out, const char *name, enum exposition_type type, const char *help);

/* Any text may be a label's value: it is escaped, and cut after some 200 bytes. */
struct exposition_label {
    const char *name;
    const char *value;
};

/* A sample of the family that was begun last; `labels` may be NULL. */
void exposition_sample(
    struct exposition *out, const struct exposition_label *labels, size_t count, double value);
/* The same of a whole number, which is written exactly. */
void exposition_count(
    struct exposition *out, const struct exposition_label *labels, size_t count, uint64_t value);
/* One sample with a single label, `label`="value". */
void exposition_count_by(
    struct exposition *out, const char *label, const char *name, uint64_t value);

/* The buckets, the sum and the count of a histogram family, in seconds. */
void exposition_histogram(struct exposition *out, const struct histogram *histogram);

/* A family of one sample. */
void exposition_one(struct exposition *out, const char *name, enum exposition_type type,
    const char *help, double value);
/* A family of one whole number. */
void exposition_one_count(struct exposition *out, const char *name, enum exposition_type type,
    const char *help, uint64_t value);

/* Plain text: for pages that are no metrics. */
void exposition_text(struct exposition *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- What every program reports of itself ---- */

/* The process_ families, as Prometheus' own libraries name them, and cadre_build_info with the
 * program's name. What the system does not report is left out. With `tls`: when it expires. */
void process_metrics(struct exposition *out, const char *program, const struct tls_material *tls);

#endif
