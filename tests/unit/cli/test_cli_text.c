/* SPDX-License-Identifier: Apache-2.0
 * Tables, details and JSON. */
#include "tests/lib/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render.h"
#include "coordinator/cli/render/table.h"

#define S UINT64_C(1000000)

static const struct text_style plain;

static const cadre_job_metric metrics[] = {{"loss", 0.25}, {"weird", NAN}};
static const cadre_job_task tasks[] = {
    {.task = 0,
        .incarnation = 1,
        .state = CADRE_TASK_EXITED,
        .worker = "alpha",
        .pid = 77,
        .has_exit = true,
        .exit_signal = 11,
        .exit_text = "bad\tluck",
        .uses_cadre = true,
        .log_bytes = 2048},
    {.task = 1,
        .incarnation = 1,
        .state = CADRE_TASK_EXITED,
        .worker = "",
        .has_exit = true,
        .exit_text = ""},
};

static cadre_job make_job(uint64_t id, cadre_job_state state)
{
    return (cadre_job){.id = id,
        .name = "digits",
        .program = "digits",
        .state = state,
        .message = state == CADRE_JOB_QUEUED ? "waits for 2 free slots" : "",
        .workers = 2,
        .replicas = 3,
        .submitted_us = 100 * S,
        .started_us = 101 * S,
        .ended_us = cadre_job_state_is_final(state) ? 103 * S + 100000 : 0,
        .checkpoint = "",
        .outputs_folder = "",
        .has_progress = true,
        .progress = {.stream = "train",
            .epoch = 1,
            .epochs = 4,
            .step = 2,
            .steps = 4,
            .samples_per_s = 1000,
            .left_s = -1,
            .metrics = metrics,
            .metric_count = 2}};
}

/* ---- small texts ---- */

static void spans_and_sizes_read_well(void **state)
{
    (void)state;
    char text[RENDER_BYTES];
    assert_string_equal(render_age(0, text), "0 s");
    assert_string_equal(render_age(119 * S, text), "119 s");
    assert_string_equal(render_age(120 * S, text), "2 min");
    assert_string_equal(render_age(7200 * S, text), "2 h");
    assert_string_equal(render_age(172800 * S, text), "2 d");
    assert_string_equal(render_duration(85000, text), "85 ms");
    assert_string_equal(render_duration(2 * S + 190000, text), "2.1 s");
    assert_string_equal(render_duration(205 * S, text), "3:25 min");
    assert_string_equal(render_duration(3850 * S, text), "1:04:10 h");
    assert_string_equal(render_bytes(0, text), "0 B");
    assert_string_equal(render_bytes(1023, text), "1023 B");
    assert_string_equal(render_bytes(1024, text), "1.0 KiB");
    assert_string_equal(render_bytes(12800, text), "12.5 KiB");
    assert_string_equal(render_bytes(UINT64_C(64) << 30, text), "64.0 GiB");
}

static void percent_is_of_all_epochs(void **state)
{
    (void)state;
    char text[RENDER_BYTES];
    cadre_job job = make_job(1, CADRE_JOB_RUNNING);
    assert_string_equal(render_percent(&job, text), "37%");
    job.progress.epochs = 0;
    assert_string_equal(render_percent(&job, text), "-");
    job = make_job(1, CADRE_JOB_SUCCEEDED);
    assert_string_equal(render_percent(&job, text), "100%");
    job.has_progress = false;
    assert_string_equal(render_percent(&job, text), "-");
}

/* ---- tables ---- */

static char *text_of(void (*print)(FILE *out))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    print(out);
    fclose(out);
    return text;
}

static void assert_printed(void (*print)(FILE *out), const char *wanted)
{
    char *text = text_of(print);
    assert_string_equal(text, wanted);
    free(text);
}

static void print_table(FILE *out)
{
    static const struct table_column columns[] = {{"N", true}, {"NAME", false}, {"NOTE", false}};
    struct table table;
    table_open(&table, columns, 3);
    table_add(&table, COLOUR_NONE, "%d", 7);
    table_add(&table, COLOUR_RED, "gr\xc3\xbc\xc3\x9f");
    table_add(&table, COLOUR_NONE, "a note that is long");
    table_add(&table, COLOUR_NONE, "%d", 1234);
    table_add(&table, COLOUR_NONE, "x\033[2Jy");
    table_add(&table, COLOUR_NONE, "-");
    const struct text_style narrow = {.columns = 20};
    assert_true(table_print(&table, &narrow, out));
    table_close(&table);
}

static void columns_fit_their_text(void **state)
{
    (void)state;
    assert_printed(print_table, "   N  NAME    NOTE\n"
                                "   7  gr\xc3\xbc\xc3\x9f    a note\n"
                                "1234  x?[2Jy  -\n");
}

static void print_colours(FILE *out)
{
    static const struct table_column columns[] = {{"A", false}};
    struct table table;
    table_open(&table, columns, 1);
    table_add(&table, COLOUR_RED, "red");
    const struct text_style coloured = {.colour = true};
    table_print(&table, &coloured, out);
    table_close(&table);
}

static void colours_are_closed(void **state)
{
    (void)state;
    assert_printed(print_colours, "\033[2mA\033[0m\n\033[31mred\033[0m\n");
}

static void print_jobs(FILE *out)
{
    cadre_job jobs[] = {make_job(12, CADRE_JOB_QUEUED), make_job(3, CADRE_JOB_SUCCEEDED)};
    jobs[0].has_progress = false;
    const cadre_job_list list = {.jobs = jobs, .count = 2};
    assert_true(render_jobs(&list, false, 160 * S, &plain, out));
}

static void jobs_are_a_table(void **state)
{
    (void)state;
    assert_printed(print_jobs, "JOB  STATE      DONE  TASKS   AGE  NAME\n"
                               " 12  queued        -      2  60 s  digits: waits for 2 free slots\n"
                               "  3  succeeded  100%      2  60 s  digits\n");
}

static void print_elastic_jobs(FILE *out)
{
    cadre_job jobs[] = {make_job(4, CADRE_JOB_RUNNING), make_job(3, CADRE_JOB_RUNNING),
        make_job(2, CADRE_JOB_RUNNING), make_job(1, CADRE_JOB_FAILED)};
    jobs[0].generation = 2;
    jobs[0].roster = 1;
    jobs[0].message = "task 1 was lost with worker b";
    jobs[1].generation = 1;
    jobs[1].roster = 2;
    jobs[3].generation = 1;
    const cadre_job_list list = {.jobs = jobs, .count = 4};
    assert_true(render_jobs(&list, false, 160 * S, &plain, out));
}

/* Only where a live job trains with fewer than it could: nothing was formed yet in job 2, and job 1
 * has ended. */
static void missing_tasks_show_in_the_listing(void **state)
{
    (void)state;
    assert_printed(print_elastic_jobs,
        "JOB  STATE    DONE  TASKS   AGE  NAME\n"
        "  4  running   37%    1/2  60 s  digits: task 1 was lost with worker b\n"
        "  3  running   37%      2  60 s  digits\n"
        "  2  running   37%      2  60 s  digits\n"
        "  1  failed    37%      2  60 s  digits\n");
}

static void print_many(FILE *out)
{
    cadre_job jobs[RENDER_ENDED_MAX + 3];
    for (size_t i = 0; i < RENDER_ENDED_MAX + 3; i++) {
        jobs[i] = make_job(i + 1, i == RENDER_ENDED_MAX + 2 ? CADRE_JOB_RUNNING : CADRE_JOB_FAILED);
    }
    const cadre_job_list list = {.jobs = jobs, .count = RENDER_ENDED_MAX + 3};
    render_jobs(&list, false, 160 * S, &plain, out);
}

static void old_jobs_are_left_out_but_not_live_ones(void **state)
{
    (void)state;
    char *text = text_of(print_many);
    assert_non_null(strstr(text, " 20  failed"));
    assert_null(strstr(text, " 21  failed"));
    assert_non_null(strstr(text, " 23  running"));
    assert_non_null(strstr(text, "2 older jobs that ended: `cadre jobs --all`\n"));
    free(text);
}

static void print_nothing(FILE *out)
{
    const cadre_job_list jobs = {0};
    const cadre_worker_list workers = {0};
    const cadre_output_list outputs = {.folder = ""};
    render_jobs(&jobs, false, 0, &plain, out);
    render_workers(&workers, 0, &plain, out);
    render_outputs(&outputs, &plain, out);
}

static void empty_listings_say_so(void **state)
{
    (void)state;
    assert_printed(print_nothing, "There are no jobs yet: `cadre submit ./PROGRAM` makes one.\n"
                                  "No worker has joined: start cadre-worker.\n"
                                  "The job left no files.\n");
}

static void print_workers(FILE *out)
{
    static const cadre_worker workers[] = {{.name = "alpha",
                                               .host = "h1",
                                               .version = "0.2.0",
                                               .slots = 4,
                                               .slots_used = 2,
                                               .cpus = 8,
                                               .memory_bytes = UINT64_C(1) << 33,
                                               .connected = true,
                                               .joined_us = 40 * S},
        {.name = "b", .host = "h2", .version = "0.2.0", .slots = 1, .joined_us = 99 * S}};
    const cadre_worker_list list = {.workers = workers, .count = 2};
    render_workers(&list, 100 * S, &plain, out);
}

static void workers_are_a_table(void **state)
{
    (void)state;
    assert_printed(print_workers,
        "WORKER  STATE  SLOTS  CPUS   MEMORY  GPUS    JOINED  VERSION  HOST\n"
        "alpha   ready    2/4     8  8.0 GiB  -     60 s ago  0.2.0    h1\n"
        "b       away     0/1     0      0 B  -      1 s ago  0.2.0    h2\n");
}

static void print_failed_job(FILE *out)
{
    cadre_job job = make_job(3, CADRE_JOB_FAILED);
    job.message = "task 0 was killed by signal 11";
    job.exit_code = 139;
    job.position = 46;
    job.verified_position = 40;
    job.verified_digest = 1;
    job.generation = 1;
    job.tasks = tasks;
    job.task_count = 2;
    render_job(&job, 163 * S, &plain, out);
}

static void a_job_shows_everything(void **state)
{
    (void)state;
    char *text = text_of(print_failed_job);
    static const char *const parts[] = {"job 3  digits  failed\n",
        "  message     task 0 was killed by signal 11\n", "  tasks       2 of 3 replicas each\n",
        " 63 s ago\n", "  took        2.1 s\n", "epoch 2/4  step 2/4",
        "  steps       46 committed, generation 1\n", "  verified    step 40 of 46\n",
        "  exit code   139\n",
        "   0  exited  alpha    77            1  2.0 KiB  signal 11  bad?luck\n",
        "   1  exited  -         -            1      0 B  0          did not join\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strstr(text, parts[i]) == NULL) {
            fail_msg("\"%s\" is not in:\n%s", parts[i], text);
        }
    }
    free(text);
}

static void print_elastic_job(FILE *out)
{
    cadre_job job = make_job(3, CADRE_JOB_RUNNING);
    job.workers = 4;
    job.workers_min = 2;
    job.roster = 3;
    job.restarts = 1;
    job.position = 46;
    job.generation = 5;
    job.checkpoint = "checkpoints/checkpoint-40.json";
    const cadre_job_task lost = {
        .task = 3, .incarnation = 4, .state = CADRE_TASK_WAITING, .worker = "", .exit_text = ""};
    job.tasks = &lost;
    job.task_count = 1;
    render_job(&job, 163 * S, &plain, out);
}

static void an_elastic_job_shows_who_trains(void **state)
{
    (void)state;
    char *text = text_of(print_elastic_job);
    static const char *const parts[] = {"  tasks       2 to 4 of 3 replicas each\n",
        "  training    3 of 4 tasks, generation 5\n", "  restarts    1\n",
        "  checkpoint  checkpoints/checkpoint-40.json\n",
        "  steps       46 committed, generation 5\n  restarts    1\n", /* nothing was compared */
        "   3  waiting  -         -            4  0 B  -     for a free slot\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strstr(text, parts[i]) == NULL) {
            fail_msg("\"%s\" is not in:\n%s", parts[i], text);
        }
    }
    free(text);
}

static const cadre_job_file shard_files[] = {{.name = "b.tfrecord", .rank = 1, .read = 512},
    {.name = "a.tfrecord", .is_read = true, .read = 1000, .total = 1000}};
static const cadre_job_shards shards[] = {{.dataset = "train",
                                              .policy = "FILE",
                                              .epoch = 2,
                                              .step = 40,
                                              .readers = 2,
                                              .file_count = 3,
                                              .files_read = 1,
                                              .files = shard_files,
                                              .shown = 2},
    {.dataset = "test", .policy = "DATA", .readers = 2}};

static void print_shards(FILE *out)
{
    cadre_job job = make_job(12, CADRE_JOB_RUNNING);
    job.shards = shards;
    job.shards_count = 2;
    assert_true(render_shards(&job, &plain, out));
}

static void print_no_shards(FILE *out)
{
    cadre_job job = make_job(12, CADRE_JOB_RUNNING);
    assert_true(render_shards(&job, &plain, out));
}

static void shards_show_who_reads_what(void **state)
{
    (void)state;
    assert_printed(print_shards,
        "dataset train  FILE: whole files, by 2 tasks; epoch 2, step 40; 1 of 3 files read\n"
        "FILE        RANK  READ  SAMPLES\n"
        "b.tfrecord     1   512        ?\n"
        "a.tfrecord     -  1000     1000\n"
        "  and 1 more\n"
        "\n"
        "dataset test  DATA: the samples of each step, by 2 tasks; epoch 0, step 0\n");
    assert_printed(print_no_shards, "job 12 has reported no dataset\n");
}

static void print_outcomes(FILE *out)
{
    cadre_job job = make_job(3, CADRE_JOB_SUCCEEDED);
    render_outcome(&job, &plain, out);
    fputc('\n', out);
    job = make_job(4, CADRE_JOB_FAILED);
    job.message = "task 1 exited with status 7";
    render_outcome(&job, &plain, out);
    fputc('\n', out);
    job = make_job(5, CADRE_JOB_CANCELLED);
    job.started_us = 0;
    render_outcome(&job, &plain, out);
}

static void an_outcome_is_a_line(void **state)
{
    (void)state;
    assert_printed(print_outcomes, "job 3 succeeded in 2.1 s\n"
                                   "job 4 failed: task 1 exited with status 7\n"
                                   "job 5 was cancelled after 3.1 s");
}

/* ---- JSON ---- */

static void assert_keys(json_t *json, const char *const *keys)
{
    size_t count = 0;
    for (; keys[count] != NULL; count++) {
        if (json_object_get(json, keys[count]) == NULL) {
            fail_msg("the key %s is missing", keys[count]);
        }
    }
    assert_int_equal(json_object_size(json), count);
}

static void a_job_as_json_has_stable_keys(void **state)
{
    (void)state;
    static const char *const job_keys[] = {"id", "name", "program", "state", "final", "code",
        "message", "exit_code", "workers", "workers_min", "roster", "restarts", "replicas",
        "priority", "memory_bytes", "cpu_thousandths", "pids", "time_limit_us", "submitted_us",
        "started_us", "ended_us", "position", "verified", "wait", "generation", "checkpoint",
        "outputs_folder", "progress", "tasks", NULL};
    static const char *const progress_keys[] = {
        "stream", "epoch", "epochs", "step", "steps", "samples_per_s", "left_s", "metrics", NULL};
    static const char *const task_keys[] = {"task", "state", "worker", "incarnation", "pid",
        "exit_code", "exit_signal", "exit_text", "uses_cadre", "log_bytes", "fetch", "usage",
        "waited_us", NULL};
    static const char *const wait_keys[] = {"task", "worker", "waited_us", NULL};
    static const char *const usage_keys[] = {"cpu_thousandths", "memory_bytes", "memory_peak_bytes",
        "gpu_percent", "gpu_memory_bytes", NULL};
    static const char *const fetch_keys[] = {
        "what", "done_bytes", "whole_bytes", "elapsed_us", NULL};
    cadre_job job = make_job(3, CADRE_JOB_RUNNING);
    cadre_job_task with_fetch[2] = {tasks[0], tasks[1]};
    with_fetch[1].fetch = (cadre_job_fetch){"files", 1, 2, 3};
    job.wait = (cadre_job_wait){.task = 1, .worker = "a", .waited_us = 5};
    job.tasks = with_fetch;
    job.task_count = 2;
    json_t *json = json_of_job(&job);
    assert_keys(json, job_keys);
    assert_string_equal(json_string_value(json_object_get(json, "state")), "running");
    assert_string_equal(json_string_value(json_object_get(json, "code")), "OK");
    json_t *progress = json_object_get(json, "progress");
    assert_keys(progress, progress_keys);
    assert_true(json_is_null(json_object_get(progress, "left_s")));
    json_t *values = json_object_get(progress, "metrics");
    assert_true(json_real_value(json_object_get(values, "loss")) == 0.25);
    assert_true(json_is_null(json_object_get(values, "weird")));
    json_t *task = json_array_get(json_object_get(json, "tasks"), 0);
    assert_keys(task, task_keys);
    assert_true(json_is_null(json_object_get(task, "exit_code")));
    assert_keys(json_object_get(task, "usage"), usage_keys);
    assert_keys(json_object_get(json, "wait"), wait_keys);
    assert_int_equal(json_integer_value(json_object_get(task, "exit_signal")), 11);
    assert_true(json_is_null(json_object_get(task, "fetch")));
    assert_keys(
        json_object_get(json_array_get(json_object_get(json, "tasks"), 1), "fetch"), fetch_keys);
    assert_true(json_is_null(json_object_get(json, "verified")));
    json_decref(json);
    job.has_progress = false;
    job.task_count = 0;
    job.verified_position = 40;
    job.verified_digest = UINT64_C(0xfedcba9876543210);
    json = json_of_job(&job);
    json_t *verified = json_object_get(json, "verified");
    assert_int_equal(json_integer_value(json_object_get(verified, "position")), 40);
    assert_string_equal(json_string_value(json_object_get(verified, "digest")), "fedcba9876543210");
    assert_true(json_is_null(json_object_get(json, "progress")));
    assert_null(json_object_get(json, "tasks"));
    json_decref(json);
}

static cadre_job make_ps_job(void)
{
    static const cadre_job_metric evaluated[] = {{"loss", 0.3125}};
    static const cadre_job_task ps_job_task_count[] = {
        {.task = 0, .state = CADRE_TASK_RUNNING, .worker = "a", .exit_text = "", .type = "chief"},
        {.task = 2,
            .state = CADRE_TASK_WAITING,
            .worker = "",
            .exit_text = "",
            .type = "ps",
            .index = 0}};
    cadre_job job = make_job(3, CADRE_JOB_RUNNING);
    job.workers = job.workers_min = 4;
    job.generation = 1;
    job.roster = 1;
    job.worker_tasks = 1;
    job.servers = 1;
    job.evaluators = 1;
    job.has_evaluation = true;
    job.evaluation = (cadre_job_progress){
        .stream = "test", .step = 400, .left_s = -1, .metrics = evaluated, .metric_count = 1};
    job.tasks = ps_job_task_count;
    job.task_count = 2;
    return job;
}

static void print_ps_job(FILE *out)
{
    cadre_job job = make_ps_job();
    assert_true(render_job(&job, 160 * S, &plain, out));
    const cadre_job_list list = {.jobs = &job, .count = 1};
    assert_true(render_jobs(&list, false, 160 * S, &plain, out));
}

static void a_ps_job_shows_its_types(void **state)
{
    (void)state;
    char *text = text_of(print_ps_job);
    assert_non_null(
        strstr(text, "tasks       4: a chief, 1 worker, 1 parameter server and an evaluator"));
    assert_non_null(strstr(text, "evaluation  step 400  loss 0.3125\n"));
    assert_non_null(strstr(text, "TASK  TYPE     STATE"));
    assert_non_null(strstr(text, "   0  chief 0  running"));
    assert_non_null(strstr(text, "   2  ps 0     waiting"));
    assert_null(strstr(text, "training")); /* the roster is the chief's alone, and says nothing */
    assert_null(strstr(text, "1/4"));
    free(text);
    cadre_job job = make_ps_job();
    json_t *json = json_of_job(&job);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(json, "ps_job"), "servers")), 1);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(json, "evaluation"), "step")), 400);
    json_t *task = json_array_get(json_object_get(json, "tasks"), 1);
    assert_string_equal(json_string_value(json_object_get(task, "type")), "ps");
    json_decref(json);
}

static void assert_dumps(json_t *json, const char *wanted)
{
    char *text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text, wanted);
    free(text);
    json_decref(json);
}

static void listings_as_json(void **state)
{
    (void)state;
    const cadre_output outputs[] = {{"0/a", 5}};
    const cadre_output_list output_list = {
        .outputs = outputs, .count = 1, .more = true, .folder = ""};
    assert_dumps(json_of_outputs(&output_list),
        "{\"outputs\":[{\"path\":\"0/a\",\"size_bytes\":5}],\"more\":true,\"folder\":\"\"}");
    const cadre_worker worker = {.id = 1,
        .name = "a",
        .host = "h",
        .version = "v",
        .slots = 2,
        .connected = true,
        .draining = true,
        .drained_by = "ada",
        .drained_why = "disk",
        .gpu_driver = "d",
        .gpu_runtime = "r",
        .gpu_reason = "none"};
    const cadre_worker_list workers = {.workers = &worker, .count = 1};
    assert_dumps(json_of_workers(&workers),
        "{\"workers\":[{\"id\":1,\"name\":\"a\",\"state\":\"draining\",\"drained_by\":\"ada\","
        "\"drained_why\":\"disk\",\"host\":\"h\","
        "\"version\":\"v\",\"slots\":2,\"slots_used\":0,\"cpus\":0,\"memory_bytes\":0,"
        "\"joined_us\":0,\"gpus\":[],\"gpus_usable\":0,\"gpus_omitted\":0,\"gpu_driver\":\"d\","
        "\"gpu_runtime\":\"r\",\"nccl\":0,\"gpu_reason\":\"none\",\"certificate_ends_us\":0,"
        "\"usage\":{\"cpu_thousandths\":null,\"memory_bytes\":null,\"memory_peak_bytes\":null,"
        "\"gpu_percent\":null,\"gpu_memory_bytes\":null}}]}");
    const cadre_job_list jobs = {0};
    assert_dumps(json_of_jobs(&jobs), "{\"jobs\":[],\"more\":false}");
    cadre_job job = make_job(12, CADRE_JOB_RUNNING);
    job.shards = shards;
    job.shards_count = 1;
    assert_dumps(json_of_shards(&job),
        "{\"id\":12,\"datasets\":[{\"dataset\":\"train\",\"policy\":\"FILE\",\"epoch\":2,"
        "\"step\":40,\"readers\":2,\"file_count\":3,\"files_read\":1,\"files\":["
        "{\"name\":\"b.tfrecord\",\"rank\":1,\"read\":512,\"total\":null},"
        "{\"name\":\"a.tfrecord\",\"rank\":null,\"read\":1000,\"total\":1000}]}]}");
    const cadre_submitted submitted = {.job = 3, .queued_before = 1};
    assert_dumps(json_of_submitted(&submitted), "{\"id\":3,\"queued_before\":1,\"note\":\"\"}");
    assert_dumps(json_of_version(NULL), "{\"client\":\"" CADRE_VERSION "\",\"coordinator\":null}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_and_sizes_read_well),
        cmocka_unit_test(percent_is_of_all_epochs),
        cmocka_unit_test(columns_fit_their_text),
        cmocka_unit_test(colours_are_closed),
        cmocka_unit_test(jobs_are_a_table),
        cmocka_unit_test(missing_tasks_show_in_the_listing),
        cmocka_unit_test(old_jobs_are_left_out_but_not_live_ones),
        cmocka_unit_test(empty_listings_say_so),
        cmocka_unit_test(workers_are_a_table),
        cmocka_unit_test(a_job_shows_everything),
        cmocka_unit_test(an_elastic_job_shows_who_trains),
        cmocka_unit_test(shards_show_who_reads_what),
        cmocka_unit_test(an_outcome_is_a_line),
        cmocka_unit_test(a_job_as_json_has_stable_keys),
        cmocka_unit_test(a_ps_job_shows_its_types),
        cmocka_unit_test(listings_as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
