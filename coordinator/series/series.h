/* SPDX-License-Identifier: Apache-2.0
 * The values that a job's program reported, by step, in bounded memory: of each name the newest
 * ones exactly, and those before them as buckets of steps, whose stride is a power of two and
 * doubles whenever there would be too many. No I/O and no allocation.
 *
 * They belong to the job's timeline. A value has the number of steps that were applied when it was
 * reported; values come by rising steps within one generation (and one lap of it, see below), and a
 * newer one removes those of the steps that it does again. */
#ifndef CADRE_COORDINATOR_SERIES_SERIES_H
#define CADRE_COORDINATOR_SERIES_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/limits.h"
#include "common/model/series.h"

struct series {
    char name[LIMIT_NAME_BYTES];
    uint64_t stride; /* steps of a bucket; 1 until buckets had to be merged */
    size_t bucket_count;
    size_t ring;        /* so many of `points` are in use, as a ring */
    size_t point_first; /* the oldest */
    size_t point_count;
    struct series_bucket buckets[LIMIT_SERIES_BUCKETS];
    struct series_point points[LIMIT_SERIES_POINTS];
};

/* Of one job. Some 2 MB, of which only what holds values is touched: allocate it with calloc. */
struct series_set {
    uint32_t points_max; /* exact points of each name, at most LIMIT_SERIES_POINTS */
    uint32_t buckets_max;
    uint64_t generation; /* of the newest values; 0: none yet */
    uint64_t lap;        /* of that generation */
    bool numbered;       /* the steps are the program's own numbers, not those of the ledger */
    uint32_t count;
    uint64_t refused; /* values of names beyond LIMIT_METRICS */
    struct series series[LIMIT_METRICS];
};

/* Of zeroed memory, or one that was used: empty again. Limits at least 2 and 2, at most those of
 * limits.h. */
void series_set_open(struct series_set *set, uint32_t points_max, uint32_t buckets_max);

/* From now on values are of this generation and lap, and those of step `first` and beyond are
 * undone: they are removed. A bucket that has such a step among others is removed whole. False, and
 * nothing changes: it is not newer than what the set has. */
bool series_set_begin(struct series_set *set, uint64_t generation, uint64_t lap, uint64_t first);

enum series_added {
    SERIES_ADDED = 1,
    SERIES_KNOWN,   /* a newer step has a value: it came twice */
    SERIES_NO_ROOM, /* there are LIMIT_METRICS other names */
};

/* Of the generation and lap that the set has. Another value of the same step replaces it. */
enum series_added series_set_add(
    struct series_set *set, const char *name, uint64_t step, double value);

/* NULL: no value of that name was added. */
const struct series *series_set_find(const struct series_set *set, const char *name);

/* The point `at`, from 0, the oldest; less than point_count. */
struct series_point series_point_at(const struct series *series, size_t at);

/* ---- for a file of them ---- */

/* A series without values; NULL: there is one of that name, or there are LIMIT_METRICS. */
struct series *series_set_put(struct series_set *set, const char *name);

/* Appends a bucket to a series without points; false: it does not follow the one before it, or
 * cannot be. */
bool series_put_bucket(
    struct series_set *set, struct series *series, const struct series_bucket *bucket);

#endif
