/* SPDX-License-Identifier: Apache-2.0
 * A frame of `cadre top`: what tasks use, for whom steps wait, and that it fits a terminal. */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli/render/top_frame.h"

#define S   UINT64_C(1000000)
#define MIB (UINT64_C(1) << 20)

static struct top_speeds speeds;
static struct top_waits waits;
static cadre_job_task tasks[20];
static cadre_job jobs[2];
static cadre_worker worker;

static void fill(void)
{
    memset(&waits, 0, sizeof waits);
    for (uint32_t i = 0; i < 20; i++) {
        tasks[i] = (cadre_job_task){.task = i,
            .state = CADRE_TASK_RUNNING,
            .worker = "a-worker-with-a-long-name.example.org",
            .exit_text = "",
            .type = "",
            .usage = {.has_cpu = true,
                .cpu_thousandths = 1000 + 100 * i,
                .has_memory = i > 0,
                .memory_bytes = 200 * MIB,
                .has_memory_peak = i > 0,
                .memory_peak_bytes = 300 * MIB}};
    }
    jobs[0] = (cadre_job){.id = 7,
        .name = "digits-with-a-name-that-is-too-long-for-a-narrow-terminal",
        .program = "digits",
        .state = CADRE_JOB_RUNNING,
        .message = "",
        .workers = 20,
        .roster = 20,
        .position = 123456,
        .checkpoint = "",
        .outputs_folder = "",
        .tasks = tasks,
        .task_count = 20};
    jobs[1] = jobs[0];
    jobs[1].id = 8;
    worker = (cadre_worker){.name = "w2",
        .host = "w2.example.org",
        .version = "0.2.0",
        .slots = 4,
        .connected = true,
        .cpus = 16,
        .memory_bytes = 64 * 1024 * MIB,
        .gpu_reason = "",
        .gpu_driver = "",
        .gpu_runtime = "",
        .drained_by = "",
        .drained_why = "",
        .joined_us = S,
        .usage = {.has_cpu = true,
            .cpu_thousandths = 3250,
            .has_memory = true,
            .memory_bytes = 16 * 1024 * MIB}};
}

static const cadre_job_list job_list = {.jobs = jobs, .count = 2};
static const cadre_worker_list worker_list = {.workers = &worker, .count = 1};
static const cadre_job *const asked[] = {&jobs[0]};

static struct top_frame frame(void)
{
    return (struct top_frame){.jobs = &job_list,
        .workers = &worker_list,
        .speeds = &speeds,
        .waits = &waits,
        .asked = asked,
        .asked_count = 1,
        .coordinator = "unix:/run/cadre/coordinator.sock",
        .trouble = "",
        .now_us = 100 * S};
}

/* The text of a frame; to be freed. */
static char *frame_text(unsigned columns)
{
    char *text = NULL;
    size_t size = 0;
    const struct text_style text_style = {.columns = columns};
    const struct top_frame shown = frame();
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(top_frame_render(&shown, &text_style, out));
    fclose(out);
    return text;
}

static void wait_on(size_t job, uint32_t task, uint64_t waited_us)
{
    jobs[job].wait = (cadre_job_wait){.task = task, .worker = "w2", .waited_us = waited_us};
}

static void the_busiest_tasks_are_shown(void **state)
{
    (void)state;
    fill();
    char *text = frame_text(0);
    assert_non_null(strstr(text, "JOB  TASK   CPU     MEMORY       PEAK  WAITED FOR  WORKER\n"
                                 "  7    19  2.90  200.0 MiB  300.0 MiB           -  a-worker"));
    assert_non_null(strstr(text, "  7     8  1.80 "));
    assert_null(strstr(text, "  7     7  1.70 "));
    assert_non_null(strstr(text, "and 8 more tasks: `cadre job ID` shows all of a job\n"));
    assert_non_null(strstr(text, "w2      ready    0/4  3.25/16  16.0/64.0 GiB "));
    free(text);
    tasks[0].usage.has_gpu = tasks[0].usage.has_gpu_memory = true;
    tasks[0].usage.gpu_percent = 97;
    tasks[0].usage.gpu_memory_bytes = 12 * 1024 * MIB;
    tasks[0].waited_us = 12300000;
    wait_on(0, 0, 4200000); /* it is waited for, so it comes first although it uses least */
    text = frame_text(0);
    assert_non_null(
        strstr(text, "JOB  TASK   CPU     MEMORY           GPU       PEAK  WAITED FOR  WORKER\n"
                     "  7     0  1.00          -  97% 12.0 GiB          -      12.3 s  a-worker"));
    free(text);
}

static void what_is_not_known_is_not_zero(void **state)
{
    (void)state;
    fill();
    for (int i = 0; i < 20; i++) {
        tasks[i].usage = (cadre_usage){.has_cpu = false};
    }
    worker.usage = tasks[0].usage;
    char *text = frame_text(0);
    assert_null(strstr(text, "WAITED FOR")); /* the table of tasks would have nothing to show */
    assert_non_null(strstr(text, "w2      ready    0/4    16  64.0 GiB "));
    free(text);
    tasks[3].usage.has_memory = true;
    text = frame_text(0);
    assert_non_null(strstr(text, "  7     3    -     0 B     -           -  a-worker"));
    free(text);
}

static void a_wait_is_shown_with_its_share(void **state)
{
    (void)state;
    fill();
    top_waits_note(&waits, &job_list, 1000 * S);
    wait_on(0, 3, 1200000);
    top_waits_note(&waits, &job_list, 1001 * S);
    char *text = frame_text(0);
    assert_non_null(
        strstr(text, "job 7 waits for task 3 on w2 (1.2 s); 100% of the last minute\n"));
    free(text);
    wait_on(0, 3, 2200000);
    top_waits_note(&waits, &job_list, 1002 * S);
    wait_on(0, 3, 0);
    for (uint64_t second = 1003; second <= 1010; second++) {
        top_waits_note(&waits, &job_list, second * S);
    }
    text = frame_text(0); /* 2 of 10 s */
    assert_non_null(strstr(text, "job 7 waited for task 3 on w2: 20% of the last minute\n"));
    free(text);
    for (uint64_t second = 1011; second <= 1070; second++) {
        top_waits_note(&waits, &job_list, second * S);
    }
    text = frame_text(0);
    assert_null(strstr(text, "waited for task 3"));
    free(text);
}

/* A terminal that was suspended, and one frame an hour. */
static void frames_may_be_far_apart(void **state)
{
    (void)state;
    fill();
    wait_on(0, 3, 90 * S);
    top_waits_note(&waits, &job_list, 1000 * S);
    assert_true(top_waits_share(&waits, &waits.tasks[0]) < 0); /* of one frame it is not known */
    char *text = frame_text(0);
    assert_non_null(strstr(text, "job 7 waits for task 3 on w2 (1:30 min)\n"));
    free(text);
    wait_on(0, 3, 3690 * S);
    top_waits_note(&waits, &job_list, 4600 * S);
    assert_true(top_waits_share(&waits, &waits.tasks[0]) > 0.9);
    assert_true(top_waits_share(&waits, &waits.tasks[0]) <= 1);
    wait_on(0, 3, 0);
    top_waits_note(&waits, &job_list, 8200 * S);
    assert_true(top_waits_share(&waits, &waits.tasks[0]) == 0);
}

static void more_waits_than_there_is_room_for(void **state)
{
    (void)state;
    fill();
    for (uint32_t i = 0; i < 3 * TOP_WAITS_MAX; i++) {
        wait_on(0, i, 2 * S);
        wait_on(1, 1, (i + 2) * S);
        top_waits_note(&waits, &job_list, (1000 + i) * S);
    }
    char *text = frame_text(0);
    assert_non_null(strstr(text, "job 8 waits for task 1 on w2 (1:37 min)"));
    assert_non_null(strstr(text, "job 7 waits for task 95 on w2 (2.0 s)"));
    size_t lines = 0;
    for (const char *at = text; (at = strstr(at, "% of the last minute")) != NULL; at++) {
        lines++;
    }
    assert_int_equal(lines, 4);
    free(text);
}

static void a_frame_fits_80_columns(void **state)
{
    (void)state;
    fill();
    tasks[5].usage.has_gpu = tasks[5].usage.has_gpu_memory = true;
    tasks[5].usage.gpu_percent = 100;
    tasks[5].usage.gpu_memory_bytes = 1000 * 1024 * MIB;
    wait_on(0, 5, 3600 * S);
    top_waits_note(&waits, &job_list, 1000 * S);
    top_waits_note(&waits, &job_list, 1001 * S);
    char *text = frame_text(80);
    char *rest = text;
    for (char *text_line = strsep(&rest, "\n"); text_line != NULL;
         text_line = strsep(&rest, "\n")) {
        if (strlen(text_line) > 80) {
            fail_msg("more than 80 columns: %s", text_line);
        }
    }
    free(text);
}

static void a_frame_as_json(void **state)
{
    (void)state;
    fill();
    wait_on(1, 2, 4200000);
    top_waits_note(&waits, &job_list, 1000 * S);
    const struct top_frame shown = frame();
    json_t *json = top_frame_json(&shown);
    char *text = json_dumps(json_object_get(json, "waits"), JSON_COMPACT);
    assert_string_equal(
        text, "[{\"job\":8,\"task\":2,\"worker\":\"w2\",\"waited_us\":4200000,\"share\":null}]");
    free(text);
    json_t *first = json_array_get(json_object_get(json, "jobs"), 0);
    assert_int_equal(json_array_size(json_object_get(first, "tasks")), 20);
    assert_true(json_is_null(json_object_get(first, "wait")));
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_busiest_tasks_are_shown),
        cmocka_unit_test(what_is_not_known_is_not_zero),
        cmocka_unit_test(a_wait_is_shown_with_its_share), cmocka_unit_test(frames_may_be_far_apart),
        cmocka_unit_test(more_waits_than_there_is_room_for),
        cmocka_unit_test(a_frame_fits_80_columns), cmocka_unit_test(a_frame_as_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
