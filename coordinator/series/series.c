/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/series/series.h"

#include <string.h>

#include "common/pure/assert.h"

/* Of NaN and infinities it is not 0. */
static bool is_finite(double value)
{
    return value - value == 0;
}

/* ---- one series ---- */

static size_t index_of(const struct series *series, size_t at)
{
    CADRE_ASSERT(series->ring > 0);
    return (series->point_first + at) % series->ring;
}

static uint64_t key_of(const struct series *series, uint64_t step)
{
    CADRE_ASSERT(series->stride > 0);
    return step / series->stride;
}

/* `from`, whose steps are higher, becomes part of `to`. */
static void series_join(struct series_bucket *to, const struct series_bucket *from)
{
    CADRE_ASSERT(from->first_step > to->last_step);
    uint64_t to_finite = to->count - to->not_finite;
    uint64_t from_finite = from->count - from->not_finite;
    if (to_finite == 0) {
        to->minimum = from->minimum;
        to->maximum = from->maximum;
        to->mean = from->mean;
    } else if (from_finite > 0) {
        double part = (double)from_finite / ((double)to_finite + (double)from_finite);
        to->minimum = from->minimum < to->minimum ? from->minimum : to->minimum;
        to->maximum = from->maximum > to->maximum ? from->maximum : to->maximum;
        to->mean = to->mean * (1 - part) + from->mean * part; /* no difference: it might overflow */
    }
    to->last_step = from->last_step;
    to->last = from->last;
    to->count += from->count;
    to->not_finite += from->not_finite;
}

/* Doubles the stride until there is room for one more bucket. */
static void series_merge(struct series *series)
{
    while (series->bucket_count == series->buckets_max) {
        series->stride *= 2;
        CADRE_ASSERT(series->stride <= LIMIT_POSITION); /* so one bucket has all steps */
        size_t kept = 1;
        for (size_t i = 1; i < series->bucket_count; i++) {
            struct series_bucket *last = &series->buckets[kept - 1];
            const struct series_bucket *next = &series->buckets[i];
            if (key_of(series, last->first_step) == key_of(series, next->first_step)) {
                series_join(last, next);
            } else {
                series->buckets[kept++] = *next;
            }
        }
        series->bucket_count = kept;
    }
}

/* Joins the newest bucket if the steps are of the same one; else false. */
static bool series_joins_last(struct series *series, const struct series_bucket *bucket)
{
    struct series_bucket *last =
        series->bucket_count > 0 ? &series->buckets[series->bucket_count - 1] : NULL;
    bool same =
        last != NULL && key_of(series, last->first_step) == key_of(series, bucket->first_step);
    if (same) {
        series_join(last, bucket);
    }
    return same;
}

static void series_thin(struct series *series)
{
    CADRE_ASSERT(series->point_count > 0);
    const struct series_point oldest = series->points[series->point_first];
    bool finite = is_finite(oldest.value);
    const struct series_bucket bucket = {.first_step = oldest.step,
        .last_step = oldest.step,
        .count = 1,
        .not_finite = finite ? 0 : 1,
        .minimum = finite ? oldest.value : 0,
        .maximum = finite ? oldest.value : 0,
        .mean = finite ? oldest.value : 0,
        .last = oldest.value};
    series->point_first = index_of(series, 1);
    series->point_count--;
    if (!series_joins_last(series, &bucket)) {
        series_merge(series);
        if (!series_joins_last(series, &bucket)) { /* of the stride that may be wider now */
            series->buckets[series->bucket_count++] = bucket;
        }
    }
}

static void series_cut(struct series *series, uint64_t first)
{
    while (series->point_count > 0 &&
           series->points[index_of(series, series->point_count - 1)].step >= first) {
        series->point_count--;
    }
    if (series->point_count > 0) {
        return; /* buckets are older */
    }
    while (
        series->bucket_count > 0 && series->buckets[series->bucket_count - 1].last_step >= first) {
        series->bucket_count--;
    }
}

struct series_point series_point_at(const struct series *series, size_t at)
{
    CADRE_ASSERT(at < series->point_count);
    return series->points[index_of(series, at)];
}

/* ---- all of a job ---- */

void series_set_open(struct series_set *set, uint32_t points_max, uint32_t buckets_max)
{
    CADRE_ASSERT(points_max >= 2 && points_max <= LIMIT_SERIES_POINTS);
    CADRE_ASSERT(buckets_max >= 2 && buckets_max <= LIMIT_SERIES_BUCKETS);
    set->points_max = points_max;
    set->buckets_max = buckets_max;
    memset(set->current, 0, sizeof set->current);
    set->count = 0;
    set->refused = 0;
}

bool series_set_begin(struct series_set *set, enum series_source source, uint64_t generation,
    uint64_t lap, uint64_t first)
{
    struct series_current *current = &set->current[source];
    bool newer = generation > current->generation ||
                 (generation == current->generation && lap > current->lap);
    if (!newer) {
        return false;
    }
    current->generation = generation;
    current->lap = lap;
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->series[i].source == source) {
            series_cut(&set->series[i], first);
        }
    }
    return true;
}

uint32_t series_set_names(const struct series_set *set, enum series_source source)
{
    uint32_t names = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        names += set->series[i].source == source ? 1 : 0;
    }
    return names;
}

static struct series *series_get(struct series_set *set, const char *name)
{
    uint32_t at = 0;
    while (at < set->count && strcmp(set->series[at].name, name) != 0) {
        at++;
    }
    return at < set->count ? &set->series[at] : NULL;
}

const struct series *series_set_find(const struct series_set *set, const char *name)
{
    return series_get((struct series_set *)set, name);
}

static size_t limit_of(uint32_t most, enum series_source source)
{
    uint32_t part = most / LIMIT_EVALUATION_PART;
    return source == SERIES_TRAINING ? most : part >= 2 ? part : 2;
}

struct series *series_set_put(struct series_set *set, enum series_source source, const char *name)
{
    size_t length = strlen(name);
    CADRE_ASSERT(length < LIMIT_NAME_BYTES);
    if (series_set_names(set, source) == LIMIT_METRICS || series_get(set, name) != NULL) {
        return NULL;
    }
    CADRE_ASSERT(set->count < LIMIT_JOB_SERIES);
    struct series *made = &set->series[set->count++];
    memcpy(made->name, name, length + 1);
    made->source = source;
    made->stride = 1;
    made->buckets_max = limit_of(set->buckets_max, source);
    made->ring = limit_of(set->points_max, source);
    made->bucket_count = 0;
    made->point_first = 0;
    made->point_count = 0;
    return made;
}

enum series_added series_set_add(struct series_set *set, enum series_source source,
    const char *name, uint64_t step, double value)
{
    struct series *series = series_get(set, name);
    series = series != NULL ? series : series_set_put(set, source, name);
    if (series == NULL || series->source != source) {
        set->refused++;
        return SERIES_NO_ROOM;
    }
    const struct series_bucket *bucket =
        series->bucket_count > 0 ? &series->buckets[series->bucket_count - 1] : NULL;
    struct series_point *last =
        series->point_count > 0 ? &series->points[index_of(series, series->point_count - 1)] : NULL;
    if (last != NULL && last->step == step) {
        last->value = value;
        return SERIES_ADDED;
    }
    if ((last != NULL && last->step > step) ||
        (last == NULL && bucket != NULL && bucket->last_step >= step)) {
        return SERIES_KNOWN;
    }
    if (series->point_count == series->ring) {
        series_thin(series);
    }
    series->points[index_of(series, series->point_count)] =
        (struct series_point){.step = step, .value = value};
    series->point_count++;
    return SERIES_ADDED;
}

bool series_put_bucket(struct series *series, const struct series_bucket *bucket)
{
    const struct series_bucket *last =
        series->bucket_count > 0 ? &series->buckets[series->bucket_count - 1] : NULL;
    bool good =
        bucket->count > 0 && bucket->not_finite <= bucket->count &&
        bucket->first_step <= bucket->last_step && bucket->last_step <= LIMIT_POSITION &&
        bucket->last_step - bucket->first_step >= bucket->count - 1 && is_finite(bucket->minimum) &&
        is_finite(bucket->maximum) && is_finite(bucket->mean) && series->point_count == 0 &&
        series->bucket_count < series->buckets_max &&
        key_of(series, bucket->first_step) == key_of(series, bucket->last_step) &&
        (last == NULL || key_of(series, last->first_step) < key_of(series, bucket->first_step));
    if (good) {
        series->buckets[series->bucket_count++] = *bucket;
    }
    return good;
}
