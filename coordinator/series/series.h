/* SPDX-License-Identifier: Apache-2.0
 * The values that a job's program reported, by step, in bounded memory: of each name the newest
 * ones exactly, and those before them as buckets of steps, whose stride is a power of two and
 * doubles whenever there would be too many. No I/O and no allocation.
 *
 * They belong to the job's timeline. A value has the number of steps that were applied when it was
 * reported; values of one source come by rising steps within one generation (and one lap of it, see
 * below), and a newer one removes those of the steps that it does again. Sources are independent:
 * an evaluator is started again without the chief, and numbers its evaluations itself. */
#ifndef CADRE_COORDINATOR_SERIES_SERIES_H
#define CADRE_COORDINATOR_SERIES_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/limits.h"
#include "common/model/series.h"

/* Which tasks of a job report; each has LIMIT_METRICS names. */
enum series_source {
    SERIES_TRAINING = 0, /* the chief: cadre_report, cadre_plain_report */
    SERIES_EVALUATION,   /* the evaluator: cadre_report_evaluation */
    SERIES_SOURCES
};

_Static_assert(LIMIT_JOB_SERIES == SERIES_SOURCES * LIMIT_METRICS, "each source has its names");

/* Of the newest values of a source. */
struct series_current {
    uint64_t generation; /* 0: none yet */
    uint64_t lap;        /* of that generation */
    bool numbered;       /* the steps are the program's own numbers, not those of the ledger */
};

struct series {
    char name[LIMIT_NAME_BYTES];
    enum series_source source;
    uint64_t stride; /* steps of a bucket; 1 until buckets had to be merged */
    size_t bucket_count;
    size_t buckets_max;
    size_t ring;        /* so many of `points` are in use, as a ring */
    size_t point_first; /* the oldest */
    size_t point_count;
    struct series_bucket buckets[LIMIT_SERIES_BUCKETS];
    struct series_point points[LIMIT_SERIES_POINTS];
};

/* Of one job. Some 4 MB, of which only what holds values is touched: allocate it with calloc. */
struct series_set {
    uint32_t points_max; /* exact points of a name of the training, at most LIMIT_SERIES_POINTS */
    uint32_t buckets_max;
    struct series_current current[SERIES_SOURCES];
    uint32_t count;
    uint64_t refused; /* values for whose names there was no room */
    struct series series[LIMIT_JOB_SERIES];
};

/* Of zeroed memory, or one that was used: empty again. Limits at least 2 and 2, at most those of
 * limits.h; names of an evaluation have 1 / LIMIT_EVALUATION_PART of them, at least 2. */
void series_set_open(struct series_set *set, uint32_t points_max, uint32_t buckets_max);

/* From now on values of the source are of this generation and lap, and its values of step `first`
 * and beyond are undone: they are removed. A bucket that has such a step among others is removed
 * whole. False, and nothing changes: it is not newer than what the source has. */
bool series_set_begin(struct series_set *set, enum series_source source, uint64_t generation,
    uint64_t lap, uint64_t first);

enum series_added {
    SERIES_ADDED = 1,
    SERIES_KNOWN,   /* a newer step has a value: it came twice */
    SERIES_NO_ROOM, /* the source has LIMIT_METRICS other names, or another source has this one */
};

/* Of the generation and lap that the source has. Another value of the same step replaces it. */
enum series_added series_set_add(struct series_set *set, enum series_source source,
    const char *name, uint64_t step, double value);

/* How many names the source has. */
uint32_t series_set_names(const struct series_set *set, enum series_source source);

/* NULL: no value of that name was added. */
const struct series *series_set_find(const struct series_set *set, const char *name);

/* The point `at`, from 0, the oldest; less than point_count. */
struct series_point series_point_at(const struct series *series, size_t at);

/* ---- for a file of them ---- */

/* A series without values; NULL: there is one of that name, or the source has LIMIT_METRICS. */
struct series *series_set_put(struct series_set *set, enum series_source source, const char *name);

/* Appends a bucket to a series without points; false: it does not follow the one before it, or
 * cannot be. */
bool series_put_bucket(struct series *series, const struct series_bucket *bucket);

#endif
