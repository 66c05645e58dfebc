/* SPDX-License-Identifier: Apache-2.0
 * The file of a job's values: replaying what was appended gives the same set, wherever a snapshot
 * was taken; each damage is found and costs only what is behind it; any bytes are read safely. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "coordinator/series/records/series_records.h"
#include "tests/lib/test.h"
#include "tests/unit/series/version_1.h"

static struct series_state *state;
static struct series_state *replayed;
static struct wire_buffer file;
static const char *const names[] = {"loss", "accuracy", "a \"name\", too"};
static const char *const evaluated[] = {"evaluation_loss", "evaluation_accuracy", "evaluation_3"};

static int set_up(void **unused)
{
    (void)unused;
    state = calloc(1, sizeof *state);
    replayed = calloc(1, sizeof *replayed);
    assert_non_null(state);
    assert_non_null(replayed);
    series_set_open(&state->set, LIMIT_SERIES_POINTS, LIMIT_SERIES_BUCKETS);
    assert_true(series_records_head(&file));
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    free(state);
    free(replayed);
    wire_buffer_free(&file);
    return 0;
}

static void append_of(enum series_source source, uint64_t generation, uint64_t lap, uint64_t first,
    size_t count, double factor)
{
    struct reported_value values[LIMIT_REPORTED_VALUES];
    for (size_t i = 0; i < count; i++) {
        values[i] = (struct reported_value){.name = (uint32_t)(i % 3),
            .step = first + i / 3,
            .value = i % 50 == 0 ? NAN : factor * (double)i};
    }
    const struct task_values message = {.generation = {.number = generation},
        .numbered = lap > 0,
        .lap = lap,
        .names = source == SERIES_TRAINING ? names : evaluated,
        .name_count = 3,
        .values = values,
        .value_count = count,
        .end = count};
    assert_true(series_records_values(state, source, &message, &file));
}

static void append(uint64_t generation, uint64_t lap, uint64_t first, size_t count, double factor)
{
    append_of(SERIES_TRAINING, generation, lap, first, count, factor);
}

static void check_same_series(const struct series *a, const struct series *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->source, b->source);
    assert_int_equal(a->stride, b->stride);
    assert_int_equal(a->bucket_count, b->bucket_count);
    assert_memory_equal(a->buckets, b->buckets, a->bucket_count * sizeof a->buckets[0]);
    assert_int_equal(a->point_count, b->point_count);
    for (size_t i = 0; i < a->point_count; i++) {
        struct series_point one = series_point_at(a, i);
        struct series_point other = series_point_at(b, i);
        assert_int_equal(one.step, other.step);
        assert_memory_equal(&one.value, &other.value, sizeof one.value);
    }
}

static void check_same(void)
{
    for (size_t source = 0; source < SERIES_SOURCES; source++) {
        const struct series_current *current = &state->set.current[source];
        const struct series_current *again = &replayed->set.current[source];
        bool recorded = series_set_names(&state->set, (enum series_source)source) > 0;
        assert_true(again->generation == current->generation || !recorded);
        assert_true(again->lap == current->lap || !recorded);
        assert_true(again->numbered == current->numbered || !recorded);
    }
    assert_int_equal(state->set.count, replayed->set.count);
    assert_int_equal(state->lost_bytes, replayed->lost_bytes);
    assert_int_equal(state->starts.count, replayed->starts.count);
    assert_memory_equal(state->starts.items, replayed->starts.items,
        state->starts.count * sizeof state->starts.items[0]);
    for (uint32_t i = 0; i < state->set.count; i++) {
        check_same_series(&state->set.series[i], &replayed->set.series[i]);
    }
}

static enum series_end replay(const uint8_t *bytes, size_t size, size_t *ret_whole)
{
    return series_records_replay(bytes, size, replayed, ret_whole);
}

static void replay_all(void)
{
    size_t whole = 0;
    assert_int_equal(replay(file.bytes, file.size, &whole), SERIES_END_WHOLE);
    assert_int_equal(whole, file.size);
    check_same();
}

static void take_snapshot(void)
{
    struct wire_buffer snapshot = {0};
    assert_true(series_records_snapshot(state, &snapshot));
    wire_buffer_free(&file);
    file = snapshot;
    replay_all();
}

/* A job that is restarted now and then, with an evaluator, and written as a snapshot now and then.
 */
static void test_a_replay_gives_the_same(void **unused)
{
    (void)unused;
    struct prng prng = {.state = 7};
    uint64_t step = 1;
    uint64_t generation = 0;
    for (int turn = 0; turn < 200; turn++) {
        if (turn == 0 || prng_chance(&prng, 1, 25)) {
            uint64_t back = prng_uniform(&prng, prng_chance(&prng, 1, 4) ? 20000 : 300);
            step = step > back + 1 ? step - back : 1;
            assert_true(series_records_plan(state, ++generation, step - 1, &file));
        }
        append(generation, 0, step, 900, (double)turn);
        step += 300;
        if (prng_chance(&prng, 1, 3)) {
            append_of(SERIES_EVALUATION, generation, 0, step, 1 + prng_uniform(&prng, 900), 2);
        }
        if (prng_chance(&prng, 1, 30)) {
            take_snapshot();
        }
    }
    assert_true(state->set.series[0].stride > 1);
    assert_int_equal(state->set.count, 6);
    replay_all();
    take_snapshot();
}

static size_t points_of(const char *name)
{
    const struct series *series = series_set_find(&state->set, name);
    return series != NULL ? series->point_count : 0;
}

/* The chief of a ps job numbers its steps itself and goes back; the evaluator's are the ledger's.
 */
static void test_sources_do_not_cut_each_other(void **unused)
{
    (void)unused;
    assert_true(series_records_plan(state, 1, 0, &file));
    append(1, 1, 1, 30, 1);
    append_of(SERIES_EVALUATION, 1, 0, 1, 15, 1);
    append(1, 2, 1, 3, 2); /* its chief is another process */
    assert_int_equal(points_of("loss"), 1);
    assert_int_equal(points_of("evaluation_loss"), 5);
    append_of(SERIES_EVALUATION, 1, 0, 5, 3, 3); /* another evaluator: of the same step */
    assert_int_equal(points_of("evaluation_loss"), 5);
    append_of(SERIES_EVALUATION, 1, 0, 6, 3, 3);
    assert_int_equal(points_of("evaluation_loss"), 6);
    replay_all();
    take_snapshot();
    assert_true(series_records_plan(state, 2, 3, &file)); /* steps 4, 5 and 6 are undone */
    assert_int_equal(points_of("loss"), 1);
    assert_int_equal(points_of("evaluation_loss"), 3);
    append_of(SERIES_EVALUATION, 1, 0, 7, 3, 3); /* of a generation that is over */
    assert_int_equal(points_of("evaluation_loss"), 3);
    replay_all();
    take_snapshot();
}

/* Nothing of theirs is kept, however often they come. */
static void test_values_without_room_damage_no_file(void **unused)
{
    (void)unused;
    append_of(SERIES_TRAINING, 2, 0, 1, 3, 1);
    const struct reported_value value = {.step = 1};
    const struct task_values collides = {.generation = {.number = 2},
        .names = names,
        .name_count = 1,
        .values = &value,
        .value_count = 1,
        .end = 1};
    struct task_values stale = collides;
    stale.generation.number = 1;
    for (int turn = 0; turn < 3; turn++) {
        assert_true(series_records_values(state, SERIES_EVALUATION, &collides, &file));
        assert_true(series_records_values(state, SERIES_EVALUATION, &stale, &file));
    }
    append_of(SERIES_EVALUATION, 2, 0, 1, 3, 1);
    assert_int_equal(state->set.refused, 3);
    assert_int_equal(points_of("evaluation_loss"), 1);
    replay_all();
}

/* A file of a coordinator before this one: all of it is training. */
static void test_a_file_of_version_1(void **unused)
{
    (void)unused;
    struct wire_buffer old = {0};
    size_t whole = 0;
    assert_true(series_records_plan(state, 1, 0, &file));
    append(1, 1, 7, 90, 1);
    append(2, 1, 9, 90, 2);
    version_1_of(&file, &old);
    assert_int_equal(replay(old.bytes, old.size, &whole), SERIES_END_WHOLE);
    assert_true(replayed->outdated);
    check_same();
    wire_buffer_free(&old);
    take_snapshot();
    assert_false(replayed->outdated);
    version_1_of(&file, &old); /* one that begins with a snapshot */
    assert_int_equal(replay(old.bytes, old.size, &whole), SERIES_END_WHOLE);
    check_same();
    wire_buffer_free(&old);
}

static void test_own_numbers(void **unused)
{
    (void)unused;
    assert_true(series_records_plan(state, 1, 0, &file));
    append(1, 1, 1000, 30, 1);
    append(1, 2, 1005, 3, 2); /* back: the steps from 1005 on are done again */
    assert_int_equal(state->set.series[0].point_count, 6);
    assert_true(series_records_plan(state, 2, 0, &file)); /* positions are not these numbers */
    assert_int_equal(state->set.series[0].point_count, 6);
    append(1, 3, 1, 3, 9); /* of a generation that is not over as far as these values say */
    append(3, 1, 1004, 3, 3);
    append(2, 7, 1, 3, 9); /* of one that is */
    assert_int_equal(state->set.series[0].point_count, 2);
    replay_all();
}

/* The generations that a start of the coordinator gives again remove nothing. */
static void test_plans_come_again(void **unused)
{
    (void)unused;
    assert_true(series_records_plan(state, 1, 0, &file));
    assert_true(series_records_plan(state, 2, 0, &file));
    append(2, 0, 1, 300, 1);
    assert_true(series_records_plan(state, 3, 50, &file));
    assert_int_equal(state->set.series[0].point_count, 50);
    replay_all();
    size_t size = file.size;
    for (uint64_t generation = 1; generation <= 3; generation++) {
        assert_true(series_records_plan(replayed, generation, generation == 3 ? 50 : 0, &file));
    }
    assert_int_equal(file.size, size);
    check_same();
}

static void test_each_cut_and_each_flipped_bit(void **unused)
{
    (void)unused;
    size_t whole = 0;
    assert_true(series_records_plan(state, 1, 0, &file));
    append(1, 0, 1, 30, 1);
    append_of(SERIES_EVALUATION, 1, 0, 1, 9, 1);
    append(1, 0, 11, 30, 1);
    for (size_t size = 0; size < file.size; size++) {
        enum series_end end = replay(file.bytes, size, &whole);
        assert_true(whole <= size);
        assert_int_equal(end, whole == size ? SERIES_END_WHOLE : SERIES_END_TORN);
    }
    for (size_t bit = 0; bit < 8 * file.size; bit++) {
        file.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        enum series_end end = replay(file.bytes, file.size, &whole);
        assert_true(end != SERIES_END_WHOLE && whole <= bit / 8);
        file.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
    }
    replay_all();
}

/* A host that lost its power may have the length and not the bytes. */
static void test_zeros_at_the_end(void **unused)
{
    (void)unused;
    size_t whole = 0;
    append(1, 0, 1, 30, 1);
    size_t size = file.size;
    assert_true(wire_buffer_reserve(&file, 5000));
    memset(file.bytes + size, 0, 5000);
    assert_int_equal(replay(file.bytes, size + 5000, &whole), SERIES_END_TORN);
    assert_int_equal(whole, size);
    file.bytes[size + 100] = 1;
    assert_int_equal(replay(file.bytes, size + 5000, &whole), SERIES_END_DAMAGED);
}

static void test_losses_are_kept(void **unused)
{
    (void)unused;
    append(1, 0, 1, 3, 1);
    assert_true(series_records_lost(state, 100, &file));
    assert_true(series_records_lost(state, 11, &file));
    assert_int_equal(state->lost_bytes, 111);
    replay_all();
    take_snapshot();
}

/* Bytes of any origin, and records with a right checksum and wrong contents. */
static void test_any_bytes(void **unused)
{
    (void)unused;
    struct prng prng = {.state = 11};
    append(1, 0, 1, 30, 1);
    append_of(SERIES_EVALUATION, 1, 0, 1, 9, 1);
    uint8_t *copy = malloc(file.size);
    assert_non_null(copy);
    for (int turn = 0; turn < 20000; turn++) {
        size_t whole = 0;
        memcpy(copy, file.bytes, file.size);
        for (uint64_t i = prng_uniform(&prng, 8) + 1; i > 0; i--) {
            copy[prng_uniform(&prng, file.size)] = (uint8_t)prng_next(&prng);
        }
        (void)replay(copy, prng_uniform(&prng, file.size + 1), &whole);
        assert_true(whole <= file.size);
    }
    free(copy);
}

static uint64_t start_of(uint64_t generation)
{
    uint64_t start = series_starts_find(&replayed->starts, generation, 1000);
    assert_int_equal(series_starts_find(&state->starts, generation, 1000), start);
    return start;
}

/* The ledger counts the saves of a program that numbers its steps itself. */
static void test_generations_begin_at_own_numbers(void **unused)
{
    (void)unused;
    append(2, 1, 0, 30, 1);
    append(2, 2, 5, 30, 1); /* it went back: the same generation */
    append(4, 1, 12, 30, 1);
    append(5, 1, 8, 3, 1);
    append(4, 2, 99, 3, 1); /* of one that is over */
    for (int snapshots = 0; snapshots < 2; snapshots++) {
        replay_all();
        assert_int_equal(start_of(1), 0); /* it reported nothing */
        assert_int_equal(start_of(2), 0);
        assert_int_equal(start_of(3), 11); /* where the next one began */
        assert_int_equal(start_of(4), 11);
        assert_int_equal(start_of(5), 7);
        assert_int_equal(start_of(6), 1000); /* behind the newest value */
        take_snapshot();
    }
    for (uint64_t generation = 6; generation < 6 + LIMIT_METRIC_GENERATIONS; generation++) {
        append(generation, 1, generation, 3, 1);
    }
    replay_all();
    assert_int_equal(state->starts.count, LIMIT_METRIC_GENERATIONS);
    assert_int_equal(start_of(6), 5);
    take_snapshot();
    assert_int_equal(start_of(5 + LIMIT_METRIC_GENERATIONS), 4 + LIMIT_METRIC_GENERATIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_replay_gives_the_same, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sources_do_not_cut_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_values_without_room_damage_no_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_file_of_version_1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_own_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_generations_begin_at_own_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_plans_come_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_each_cut_and_each_flipped_bit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_zeros_at_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_losses_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_any_bytes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
