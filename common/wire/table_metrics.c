/* SPDX-License-Identifier: Apache-2.0
 * What programs reported, by step: MetricsRequest and MetricsResponse. */
#include "common/wire/rows.h"

/* At their longest, tags and lengths counted: a point has a number of 10 bytes and one of 8, a
 * bucket four and four of them. */
#define POINT_BYTES_MAX      24
#define BUCKET_BYTES_MAX     88
#define GENERATION_BYTES_MAX 64
#define SERIES_BYTES_MAX                                                                           \
    (LIMIT_NAME_BYTES + 32 + LIMIT_SERIES_POINTS * POINT_BYTES_MAX +                               \
        LIMIT_SERIES_BUCKETS * BUCKET_BYTES_MAX)
#define EVALUATION_BYTES_MAX                                                                       \
    (LIMIT_NAME_BYTES + 32 +                                                                       \
        (LIMIT_SERIES_POINTS * POINT_BYTES_MAX + LIMIT_SERIES_BUCKETS * BUCKET_BYTES_MAX) /        \
            LIMIT_EVALUATION_PART)
_Static_assert((SERIES_BYTES_MAX + EVALUATION_BYTES_MAX) * LIMIT_METRICS +
                       LIMIT_METRIC_GENERATIONS * GENERATION_BYTES_MAX + 64 <=
                   LIMIT_FRAME_BYTES,
    "the longest metrics_response fits");

ROWS(MetricsRequest) = {
    JOB(MetricsRequest, id, id.n),
    TEXTS(MetricsRequest, names, name_count, decode_name, LIMIT_JOB_SERIES),
    POSITION(MetricsRequest, first_step),
    POSITION(MetricsRequest, last_step),
};
TABLE_WITH(MetricsRequest, metrics_request, .limit_bytes = LIMIT_FRAME_BYTES);

WIRE_MODEL(SeriesPoint, struct series_point);

ROWS(SeriesPoint) = {
    POSITION(SeriesPoint, step),
    COPY(SeriesPoint, value),
};
static TABLE(SeriesPoint, series_point);

WIRE_MODEL(SeriesBucket, struct series_bucket);

ROWS(SeriesBucket) = {
    NUMBER_UP_TO(SeriesBucket, first_step, last_step),
    POSITION(SeriesBucket, last_step),
    NUMBER(SeriesBucket, count, 1, UINT64_MAX),
    NUMBER_UP_TO(SeriesBucket, not_finite, count),
    COPY(SeriesBucket, minimum),
    COPY(SeriesBucket, maximum),
    COPY(SeriesBucket, mean),
    COPY(SeriesBucket, last),
};
static TABLE(SeriesBucket, series_bucket);

WIRE_MODEL(MetricSeries, struct metric_series);

ROWS(MetricSeries) = {
    TEXT(MetricSeries, name, decode_name),
    NUMBER(MetricSeries, stride, 1, LIMIT_POSITION),
    MESSAGES(MetricSeries, buckets, SeriesBucket, buckets, bucket_count, LIMIT_SERIES_BUCKETS),
    MESSAGES(MetricSeries, points, SeriesPoint, points, point_count, LIMIT_SERIES_POINTS),
};
static TABLE(MetricSeries, metric_series);

ROWS(MetricsResponse) = {
    MESSAGES(MetricsResponse, series, MetricSeries, series, series_count, LIMIT_JOB_SERIES),
    MESSAGES(MetricsResponse, generations, VerifyGeneration, generations, generation_count,
        LIMIT_METRIC_GENERATIONS),
    COPY(MetricsResponse, lost_bytes),
    COPY(MetricsResponse, refused),
};
TABLE_WITH(MetricsResponse, metrics_response, .limit_bytes = LIMIT_FRAME_BYTES);
