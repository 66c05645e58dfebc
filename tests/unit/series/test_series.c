/* SPDX-License-Identifier: Apache-2.0
 * The set of series against a model that keeps every value: exact ones are the newest of the model,
 * and each bucket is what the model's values of its steps come to. Both sources report by turns,
 * and each has its own generations and laps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "coordinator/series/series.h"
#include "tests/lib/test.h"

#define VALUES_MAX 4000
#define POINTS     16
#define BUCKETS    8

struct model {
    size_t count;
    struct series_point values[VALUES_MAX];
};

/* What one source reports, under one name. */
struct stream {
    enum series_source source;
    const char *name;
    uint64_t step;
    uint64_t generation;
    uint64_t lap;
    uint64_t wide;
    struct model model;
};

static struct series_set *set;
static struct stream streams[SERIES_SOURCES] = {{.source = SERIES_TRAINING, .name = "loss"},
    {.source = SERIES_EVALUATION, .name = "evaluation_loss"}};
static struct model *const model = &streams[SERIES_TRAINING].model;

static int set_up(void **state)
{
    (void)state;
    set = calloc(1, sizeof *set);
    assert_non_null(set);
    series_set_open(set, POINTS, BUCKETS);
    for (size_t i = 0; i < SERIES_SOURCES; i++) {
        streams[i].model.count = 0;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(set);
    return 0;
}

/* ---- the model ---- */

static void model_add(struct model *to, uint64_t step, double value)
{
    if (to->count > 0 && to->values[to->count - 1].step == step) {
        to->values[to->count - 1].value = value;
        return;
    }
    assert_true(to->count < VALUES_MAX);
    to->values[to->count++] = (struct series_point){.step = step, .value = value};
}

/* A bucket with steps on both sides goes as a whole. */
static void model_cut(struct stream *stream, uint64_t first)
{
    const struct series *series = series_set_find(set, stream->name);
    for (size_t i = 0; series != NULL && i < series->bucket_count; i++) {
        const struct series_bucket *bucket = &series->buckets[i];
        if (bucket->first_step < first && bucket->last_step >= first) {
            first = bucket->first_step;
        }
    }
    struct model *of = &stream->model;
    while (of->count > 0 && of->values[of->count - 1].step >= first) {
        of->count--;
    }
}

static void check_bucket(const struct model *of, const struct series_bucket *bucket, size_t *at)
{
    uint64_t count = 0;
    uint64_t not_finite = 0;
    double minimum = INFINITY;
    double maximum = -INFINITY;
    double sum = 0;
    assert_true(*at < of->count);
    assert_int_equal(of->values[*at].step, bucket->first_step);
    for (; *at < of->count && of->values[*at].step <= bucket->last_step; (*at)++) {
        double value = of->values[*at].value;
        count++;
        if (isfinite(value)) {
            minimum = fmin(minimum, value);
            maximum = fmax(maximum, value);
            sum += value;
        } else {
            not_finite++;
        }
    }
    assert_int_equal(count, bucket->count);
    assert_int_equal(not_finite, bucket->not_finite);
    assert_int_equal(of->values[*at - 1].step, bucket->last_step);
    assert_memory_equal(&of->values[*at - 1].value, &bucket->last, sizeof bucket->last);
    if (count > not_finite) {
        assert_true(bucket->minimum == minimum && bucket->maximum == maximum);
        assert_true(fabs(bucket->mean - sum / (double)(count - not_finite)) < 1e-6);
    } else {
        assert_true(bucket->minimum == 0 && bucket->maximum == 0 && bucket->mean == 0);
    }
}

static void check_stream(const struct stream *stream)
{
    const struct model *of = &stream->model;
    const struct series *series = series_set_find(set, stream->name);
    size_t part = stream->source == SERIES_EVALUATION ? LIMIT_EVALUATION_PART : 1;
    size_t at = 0;
    if (series == NULL) {
        assert_int_equal(of->count, 0);
        return;
    }
    assert_int_equal(series->source, stream->source);
    assert_true(series->bucket_count <= BUCKETS / part && series->point_count <= POINTS / part);
    assert_int_equal(series->stride & (series->stride - 1), 0);
    for (size_t i = 0; i < series->bucket_count; i++) {
        const struct series_bucket *bucket = &series->buckets[i];
        assert_int_equal(bucket->first_step / series->stride, bucket->last_step / series->stride);
        assert_true(i == 0 || bucket->first_step / series->stride >
                                  series->buckets[i - 1].first_step / series->stride);
        check_bucket(of, bucket, &at);
    }
    for (size_t i = 0; i < series->point_count; i++, at++) {
        struct series_point point = series_point_at(series, i);
        assert_true(at < of->count);
        assert_int_equal(of->values[at].step, point.step);
        assert_memory_equal(&of->values[at].value, &point.value, sizeof point.value);
    }
    assert_int_equal(at, of->count);
}

static void check_against_model(void)
{
    for (size_t i = 0; i < SERIES_SOURCES; i++) {
        check_stream(&streams[i]);
    }
}

/* ---- the tests ---- */

static double draw_value(struct prng *prng)
{
    if (prng_chance(prng, 1, 20)) {
        return prng_chance(prng, 1, 2) ? NAN : prng_chance(prng, 1, 2) ? INFINITY : -INFINITY;
    }
    return (double)prng_uniform(prng, 1000000) / 1000 - 500;
}

static void begin_generation(struct stream *stream, struct prng *prng)
{
    uint64_t back =
        prng_uniform(prng, prng_chance(prng, 1, 3) ? stream->step + 2 : 12 * stream->wide);
    uint64_t first = stream->step > back ? stream->step - back : 0;
    if (stream->generation > 0 && prng_chance(prng, 1, 3)) {
        stream->lap++;
    } else {
        stream->generation += 1 + prng_uniform(prng, 2);
        stream->lap = 0;
    }
    model_cut(stream, first);
    assert_true(series_set_begin(set, stream->source, stream->generation, stream->lap, first));
    stream->step = first > 0 ? first - 1 : 0;
    check_against_model();
}

static void report(struct stream *stream, struct prng *prng)
{
    const struct model *of = &stream->model;
    stream->step += prng_uniform(prng, stream->wide) + (prng_chance(prng, 1, 9) ? 0 : 1);
    double value = draw_value(prng);
    const struct series *series = series_set_find(set, stream->name);
    bool known = of->count > 0 && of->values[of->count - 1].step > stream->step;
    enum series_added added =
        series_set_add(set, stream->source, stream->name, stream->step, value);
    /* A value of the newest step whose point is in a bucket: it cannot be replaced there. */
    if (added == SERIES_ADDED) {
        assert_false(known);
        model_add(&stream->model, stream->step, value);
    } else {
        assert_true(known || (series != NULL && series->point_count == 0));
    }
    check_against_model();
}

static void run_seed(uint64_t seed)
{
    struct prng prng = {.state = seed};
    for (size_t i = 0; i < SERIES_SOURCES; i++) {
        struct stream *stream = &streams[i];
        stream->model.count = 0;
        stream->step = stream->generation = stream->lap = 0;
        stream->wide = prng_chance(&prng, 1, 4) ? 1000000 : 3;
    }
    for (int turn = 0; turn < 900; turn++) {
        struct stream *stream =
            &streams[prng_chance(&prng, 1, 3) ? SERIES_EVALUATION : SERIES_TRAINING];
        if (stream->generation == 0 || prng_chance(&prng, 1, 60)) {
            begin_generation(stream, &prng);
        }
        report(stream, &prng);
    }
}

static void test_what_is_kept_is_what_the_model_has(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        memset(set, 0xa5, sizeof *set); /* open leaves nothing of what was there */
        series_set_open(set, POINTS, BUCKETS);
        run_seed(seed);
    }
}

static void test_a_straddled_bucket_goes_whole(void **state)
{
    (void)state;
    assert_true(series_set_begin(set, SERIES_TRAINING, 1, 0, UINT64_MAX));
    for (uint64_t step = 0; step < 400; step++) {
        assert_int_equal(
            series_set_add(set, SERIES_TRAINING, "loss", step, (double)step), SERIES_ADDED);
    }
    const struct series *series = series_set_find(set, "loss");
    assert_true(series->stride >= 4);
    const struct series_bucket last = series->buckets[2];
    assert_true(series_set_begin(set, SERIES_TRAINING, 2, 0, last.first_step + 1));
    assert_int_equal(series->point_count, 0);
    assert_int_equal(series->bucket_count, 2);
    assert_int_equal(
        series_set_add(set, SERIES_TRAINING, "loss", last.first_step, 7), SERIES_ADDED);
}

static void test_old_generations_change_nothing(void **state)
{
    (void)state;
    assert_true(series_set_begin(set, SERIES_TRAINING, 2, 0, 1));
    assert_int_equal(series_set_add(set, SERIES_TRAINING, "loss", 5, 1), SERIES_ADDED);
    assert_false(series_set_begin(set, SERIES_TRAINING, 1, 9, 0));
    assert_false(series_set_begin(set, SERIES_TRAINING, 2, 0, 0));
    assert_int_equal(series_set_find(set, "loss")->point_count, 1);
    assert_true(series_set_begin(set, SERIES_TRAINING, 2, 1, 5)); /* a lap of the same generation */
    assert_int_equal(series_set_find(set, "loss")->point_count, 0);
}

static void test_names_are_bounded(void **state)
{
    (void)state;
    char name[LIMIT_NAME_BYTES];
    assert_true(series_set_begin(set, SERIES_TRAINING, 1, 0, UINT64_MAX));
    for (int i = 0; i < 3 * LIMIT_METRICS; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(series_set_add(set, SERIES_TRAINING, name, 1, 1),
            i < LIMIT_METRICS ? SERIES_ADDED : SERIES_NO_ROOM);
    }
    assert_int_equal(set->count, LIMIT_METRICS);
    assert_int_equal(set->refused, 2 * LIMIT_METRICS);
    for (int i = 0; i <= LIMIT_METRICS; i++) { /* of the evaluation as many */
        snprintf(name, sizeof name, "evaluation_n%d", i);
        assert_int_equal(series_set_add(set, SERIES_EVALUATION, name, 1, 1),
            i < LIMIT_METRICS ? SERIES_ADDED : SERIES_NO_ROOM);
    }
    assert_int_equal(set->count, LIMIT_JOB_SERIES);
}

/* A name belongs to the source that reported it first: the other's generations do not cut it. */
static void test_a_name_is_of_one_source(void **state)
{
    (void)state;
    assert_true(series_set_begin(set, SERIES_TRAINING, 1, 0, UINT64_MAX));
    assert_true(series_set_begin(set, SERIES_EVALUATION, 1, 0, UINT64_MAX));
    assert_int_equal(series_set_add(set, SERIES_EVALUATION, "evaluation_loss", 5, 1), SERIES_ADDED);
    assert_int_equal(series_set_add(set, SERIES_TRAINING, "evaluation_loss", 6, 2), SERIES_NO_ROOM);
    assert_int_equal(set->refused, 1);
    assert_true(series_set_begin(set, SERIES_TRAINING, 2, 0, 1));
    assert_int_equal(series_set_find(set, "evaluation_loss")->point_count, 1);
    assert_true(series_set_begin(set, SERIES_EVALUATION, 2, 0, 1));
    assert_int_equal(series_set_find(set, "evaluation_loss")->point_count, 0);
}

static void test_steps_that_come_twice(void **state)
{
    (void)state;
    assert_true(series_set_begin(set, SERIES_TRAINING, 1, 0, UINT64_MAX));
    assert_int_equal(series_set_add(set, SERIES_TRAINING, "loss", 5, 1), SERIES_ADDED);
    assert_int_equal(series_set_add(set, SERIES_TRAINING, "loss", 4, 2), SERIES_KNOWN);
    assert_int_equal(series_set_add(set, SERIES_TRAINING, "loss", 5, 3), SERIES_ADDED);
    assert_true(series_point_at(series_set_find(set, "loss"), 0).value == 3);
    assert_int_equal(series_set_find(set, "loss")->point_count, 1);
}

/* Steps so far apart that one bucket has to have all of them. */
static void test_the_widest_steps(void **state)
{
    (void)state;
    assert_true(series_set_begin(set, SERIES_TRAINING, 1, 0, UINT64_MAX));
    for (unsigned bit = 0; bit <= 62; bit++) {
        assert_int_equal(
            series_set_add(set, SERIES_TRAINING, "loss", 1ULL << bit, bit), SERIES_ADDED);
        model_add(model, 1ULL << bit, bit);
        check_against_model();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_kept_is_what_the_model_has, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_straddled_bucket_goes_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_old_generations_change_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_name_is_of_one_source, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_steps_that_come_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_widest_steps, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
