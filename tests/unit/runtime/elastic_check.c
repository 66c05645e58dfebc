/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic_program.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"

const char *elastic_self;
char elastic_undisturbed[256];

void elastic_outcome(const char *printed, char line[256])
{
    const char *at = printed == NULL ? NULL : strstr(printed, "sum ");
    const char *end = at == NULL ? NULL : strstr(at, " tasks");
    snprintf(line, 256, "%.*s", end == NULL ? 0 : (int)(end - at), end == NULL ? "" : at);
}

void elastic_show(const struct stage_end *end)
{
    print_error("done %d at %" PRIu64 ", %" PRIu64 " generations, %s\n", end->done, end->position,
        end->generations, end->text);
    for (uint32_t i = 0; i < end->started; i++) {
        print_error(
            "attempt %u: exit code %d\n%s%s", i, end->exit_code[i], end->printed[i], end->erred[i]);
    }
}

struct stage_job elastic_job(uint32_t tasks, uint32_t replicas, const char *const *environment)
{
    return (struct stage_job){.self = elastic_self,
        .what = "elastic",
        .tasks = tasks,
        .replicas = replicas,
        .environment = environment};
}

void elastic_check(const struct stage_job *job, uint32_t dead, struct stage_end *ret_end)
{
    stage_run(job, ret_end);
    bool good = ret_end->done && ret_end->position == ELASTIC_POSITIONS;
    for (uint32_t i = 0; i < ret_end->started; i++) {
        char line[256];
        elastic_outcome(ret_end->printed[i], line);
        good = good && (i == dead ||
                           (ret_end->exit_code[i] == 0 && strcmp(line, elastic_undisturbed) == 0));
    }
    if (!good) {
        print_error("wanted: %s\n", elastic_undisturbed);
        elastic_show(ret_end);
    }
    assert_true(good);
}

void elastic_check_consumption(const struct stage_end *end)
{
    assert_int_equal(end->consumption_count, 2 * ELASTIC_EPOCHS);
    for (size_t i = 0; i < end->consumption_count; i++) {
        const struct consumption *consumption = &end->consumptions[i].consumption;
        bool test = end->consumptions[i].cursor.stream == 2;
        assert_int_equal(consumption->steps, test ? ELASTIC_TEST_STEPS : ELASTIC_STEPS);
        assert_int_equal(consumption->samples, test ? ELASTIC_TEST_SAMPLES : ELASTIC_SAMPLES);
        assert_true(consumption->provable);
        assert_true(consumption->consumed[0] == consumption->expected[0] &&
                    consumption->consumed[1] == consumption->expected[1]);
    }
    assert_int_equal(end->stream_count, 2);
    assert_string_equal(end->stream_names[0], "train");
    assert_int_equal(end->streams[0].samples, ELASTIC_SAMPLES);
    assert_true(end->streams[0].shares);
    assert_string_equal(end->stream_names[1], "test");
    assert_int_equal(end->streams[1].samples, ELASTIC_TEST_SAMPLES);
}

int elastic_learn(void **state)
{
    struct stage_end end;
    struct stage_job job = elastic_job(1, 1, NULL);
    (void)state;
    stage_run(&job, &end);
    elastic_outcome(end.printed[0], elastic_undisturbed);
    if (!end.done || elastic_undisturbed[0] == '\0') {
        elastic_show(&end);
        return -1;
    }
    elastic_check_consumption(&end);
    stage_end_free(&end);
    return 0;
}
