/* SPDX-License-Identifier: Apache-2.0
 * Records that no message waits for: which are kept, in which order, when they are due. */
#include "coordinator/engine/lagging.h"
#include "tests/lib/test.h"

#define SECOND   UINT64_C(1000000)
#define JOBS     3
#define MANY     ((size_t)16 * LAGGING_RECORDS_PER_S)
#define LIST_MAX 8

static struct core_record watermark(uint64_t job, uint64_t generation, uint64_t step)
{
    struct core_record record = {.type = CORE_RECORD_WATERMARK, .job = {job}};
    record.watermark.generation.number = generation;
    record.watermark.up_to = step;
    return record;
}

static void add(struct lagging *lagging, struct lagging_of_job *jobs, uint64_t job,
    uint64_t generation, uint64_t step)
{
    const struct core_record record = watermark(job, generation, step);
    assert_true(lagging_add(lagging, &record, &jobs[job]));
}

static void expect(const struct core_record *record, uint64_t job, uint64_t step)
{
    assert_true(record->job.n == job && record->watermark.up_to == step);
}

static void the_newest_of_each_run_is_kept_in_order(void **state)
{
    (void)state;
    struct lagging lagging = {0};
    struct lagging_of_job jobs[JOBS] = {0};
    const struct core_record *list[LIST_MAX];
    add(&lagging, jobs, 1, 1, 10);
    add(&lagging, jobs, 2, 1, 20);
    add(&lagging, jobs, 1, 2, 11);
    add(&lagging, jobs, 1, 1, 12);
    assert_true(lagging.count == 3 && lagging_count_of(&lagging, &jobs[1]) == 2);
    lagging_list(&lagging, list);
    expect(list[0], 1, 12);
    expect(list[1], 2, 20);
    expect(list[2], 1, 11);
    lagging_list_of(&lagging, &jobs[1], list);
    expect(list[0], 1, 12);
    expect(list[1], 1, 11);
    lagging_free(&lagging);
}

static void those_of_one_job_go_alone(void **state)
{
    (void)state;
    struct lagging lagging = {0};
    struct lagging_of_job jobs[JOBS] = {0};
    const struct core_record *list[LIST_MAX];
    add(&lagging, jobs, 1, 1, 10);
    add(&lagging, jobs, 2, 1, 20);
    add(&lagging, jobs, 1, 2, 11);
    lagging_take_of(&lagging, &jobs[1]);
    assert_true(lagging.count == 1 && lagging_count_of(&lagging, &jobs[1]) == 0);
    add(&lagging, jobs, 1, 2, 13); /* it does not replace the one that is gone */
    assert_true(lagging.count == 2 && lagging_count_of(&lagging, &jobs[1]) == 1);
    lagging_list(&lagging, list);
    expect(list[0], 2, 20);
    expect(list[1], 1, 13);
    lagging_clear(&lagging);
    assert_true(lagging.count == 0 && lagging_count_of(&lagging, &jobs[2]) == 0);
    lagging_free(&lagging);
}

/* Taking all jobs one by one frees the room, so that it does not grow for ever. */
static void what_is_gone_takes_no_room(void **state)
{
    (void)state;
    struct lagging lagging = {0};
    struct lagging_of_job jobs[JOBS] = {0};
    for (uint64_t step = 1; step < 1000; step++) {
        add(&lagging, jobs, 1, 1, step);
        lagging_take_of(&lagging, &jobs[1]);
    }
    assert_true(lagging.capacity <= 16);
    lagging_free(&lagging);
}

static void many_wait_longer(void **state)
{
    (void)state;
    struct lagging lagging = {0};
    assert_true(lagging_due_us(&lagging, 5, SECOND) == 5 + SECOND);
    for (uint64_t job = 1; job <= MANY; job++) {
        struct lagging_of_job its = {0};
        const struct core_record record = watermark(job, 1, job);
        assert_true(lagging_add(&lagging, &record, &its));
    }
    assert_true(lagging_due_us(&lagging, 5, SECOND) == 5 + 16 * SECOND);
    assert_true(lagging_due_us(&lagging, 5, 20 * SECOND) == 5 + 20 * SECOND);
    lagging_free(&lagging);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_of_each_run_is_kept_in_order),
        cmocka_unit_test(those_of_one_job_go_alone),
        cmocka_unit_test(what_is_gone_takes_no_room),
        cmocka_unit_test(many_wait_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
