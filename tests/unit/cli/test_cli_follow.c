/* SPDX-License-Identifier: Apache-2.0
 * A job that is followed: lines of several tasks, the status line of a terminal, epochs elsewhere.
 */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/line_splitter.h"
#include "coordinator/cli/render/monitor.h"

/* ---- lines ---- */

struct sink {
    char text[3 * TEXT_LINE_BYTES];
    size_t used;
    int calls;
};

static void emit(uint32_t task, const char *line, size_t size, void *user)
{
    (void)task;
    struct sink *sink = user;
    assert_true(sink->used + size < sizeof sink->text);
    memcpy(sink->text + sink->used, line, size);
    sink->used += size;
    sink->text[sink->used] = '\0';
    sink->calls++;
}

static void consumption(struct line_splitter *line_splitter, uint32_t task, const char *text)
{
    line_splitter_add(line_splitter, task, text, strlen(text));
}

static void assert_line(const char *line, size_t size, const char *text, bool partial)
{
    const cadre_log first = {
        .task = 1, .offset = 70, .left_out = 5, .stream = CADRE_STDERR, .received_us = 9};
    json_t *json = json_of_text_line(3, &first, line, size);
    assert_int_equal(json_object_size(json), 8);
    assert_string_equal(json_string_value(json_object_get(json, "stream")), "stderr");
    assert_int_equal(json_integer_value(json_object_get(json, "received_us")), 9);
    assert_int_equal(json_integer_value(json_object_get(json, "left_out")), 5);
    assert_string_equal(json_string_value(json_object_get(json, "text")), text);
    assert_int_equal(json_is_true(json_object_get(json, "partial")), partial);
    assert_int_equal(json_integer_value(json_object_get(json, "offset")), 70);
    json_decref(json);
}

static void a_line_of_a_log_as_json_is_text(void **state)
{
    (void)state;
    assert_line("a \"line\"\t\n", 10, "a \"line\"\t", false);
    assert_line("half", 4, "half", true);
    assert_line("\n", 1, "", false);
    assert_line(
        "\xc3\xa9\xff\x80\x1b\xc3\n", 7, "\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\x1b\xef\xbf\xbd", false);
}

static void bare_lines_are_what_was_written(void **state)
{
    (void)state;
    const struct text_style plain = {0};
    struct sink *sink = calloc(1, sizeof *sink);
    struct line_splitter line_splitter;
    assert_true(line_splitter_open(&line_splitter, 2, &plain, emit, sink));
    line_splitter.bare = true;
    consumption(&line_splitter, 0, "one\nt");
    consumption(&line_splitter, 1, "a");
    consumption(&line_splitter, 0, "wo");
    assert_int_equal(sink->calls, 1);
    line_splitter_end(&line_splitter, 0);
    line_splitter_end(&line_splitter, 1);
    assert_string_equal(sink->text, "one\ntwoa");
    line_splitter_close(&line_splitter);
    free(sink);
}

static void lines_of_tasks_do_not_mix(void **state)
{
    (void)state;
    const struct text_style plain = {0};
    struct sink *sink = calloc(1, sizeof *sink);
    struct line_splitter line_splitter;
    assert_true(line_splitter_open(&line_splitter, 2, &plain, emit, sink));
    consumption(&line_splitter, 0, "one ");
    consumption(&line_splitter, 1, "a\nb");
    consumption(&line_splitter, 0, "two\n\n");
    consumption(&line_splitter, 7, "no such task\n");
    line_splitter_end(&line_splitter, 1);
    line_splitter_end(&line_splitter, 0);
    assert_string_equal(sink->text, "[1] a\n[0] one two\n[0] \n[1] b\n");
    line_splitter_close(&line_splitter);
    free(sink);
}

/* A line has the time of its first byte. */
static void lines_have_the_time_at_which_they_came(void **state)
{
    (void)state;
    const struct text_style plain = {0};
    struct sink *sink = calloc(1, sizeof *sink);
    struct line_splitter line_splitter;
    assert_true(line_splitter_open(&line_splitter, 2, &plain, emit, sink));
    line_splitter.timestamps = true;
    line_splitter_stamp(&line_splitter, 0, UINT64_C(1795934404123456));
    assert_true(line_splitter_begins(&line_splitter, 0));
    consumption(&line_splitter, 0, "one ");
    assert_false(line_splitter_begins(&line_splitter, 0));
    line_splitter_stamp(&line_splitter, 0, UINT64_C(1795934405000000));
    consumption(&line_splitter, 0, "two\nthree\n");
    consumption(&line_splitter, 1, "of a worker of an earlier version\n");
    assert_string_equal(sink->text, "[0] 2026-11-29T06:40:04.123Z one two\n"
                                    "[0] 2026-11-29T06:40:05.000Z three\n"
                                    "[1] - of a worker of an earlier version\n");
    line_splitter_close(&line_splitter);
    free(sink);
}

static void one_task_has_no_prefix_and_several_have_colours(void **state)
{
    (void)state;
    const struct text_style coloured = {.colour = true};
    struct sink *sink = calloc(1, sizeof *sink);
    struct line_splitter line_splitter;
    line_splitter_open(&line_splitter, 1, &coloured, emit, sink);
    consumption(&line_splitter, 0, "x\n");
    assert_string_equal(sink->text, "x\n");
    line_splitter_close(&line_splitter);
    sink->used = 0;
    line_splitter_open(&line_splitter, 2, &coloured, emit, sink);
    consumption(&line_splitter, 1, "x\n");
    assert_string_equal(sink->text, "\033[33m[1]\033[0m x\n");
    line_splitter_close(&line_splitter);
    free(sink);
}

static void a_line_without_end_comes_in_pieces(void **state)
{
    (void)state;
    const struct text_style plain = {0};
    struct sink *sink = calloc(1, sizeof *sink);
    char *bytes = malloc(2 * TEXT_LINE_BYTES);
    struct line_splitter line_splitter;
    memset(bytes, 'x', 2 * TEXT_LINE_BYTES);
    line_splitter_open(&line_splitter, 2, &plain, emit, sink);
    line_splitter_add(&line_splitter, 0, bytes, TEXT_LINE_BYTES + 10);
    assert_int_equal(sink->calls, 1);
    assert_int_equal(sink->used, 4 + TEXT_LINE_BYTES + 1);
    line_splitter_end(&line_splitter, 0);
    assert_int_equal(sink->calls, 2);
    assert_int_equal(sink->used, 4 + TEXT_LINE_BYTES + 1 + 4 + 10 + 1);
    line_splitter_close(&line_splitter);
    free(bytes);
    free(sink);
}

/* ---- the monitor, without a terminal ---- */

struct streams {
    struct monitor monitor;
    FILE *out;
    FILE *err;
    char *out_text;
    char *err_text;
    size_t out_size;
    size_t err_size;
};

/* terminal_style_of() asks the descriptor, which a memory stream has none of: so these are files.
 */
static void open_streams(struct streams *streams, size_t tasks)
{
    *streams = (struct streams){.out = tmpfile(), .err = tmpfile()};
    assert_true(monitor_open(&streams->monitor, tasks, false, streams->out, streams->err));
}

static char *content(FILE *file)
{
    char *text = calloc(1, 65536);
    rewind(file);
    size_t size = fread(text, 1, 65535, file);
    text[size] = '\0';
    fclose(file);
    return text;
}

static void close_streams(struct streams *streams)
{
    monitor_close(&streams->monitor);
    streams->out_text = content(streams->out);
    streams->err_text = content(streams->err);
}

static void free_streams(struct streams *streams)
{
    free(streams->out_text);
    free(streams->err_text);
}

static cadre_job make_job(cadre_job_state state, const char *message)
{
    return (cadre_job){.id = 3, .state = state, .name = "digits", .message = message};
}

static void tell_progress(
    struct streams *streams, const char *stream, uint64_t epoch, uint64_t step)
{
    cadre_job job = make_job(CADRE_JOB_RUNNING, "");
    job.has_progress = true;
    job.progress = (cadre_job_progress){
        .stream = stream, .epoch = epoch, .epochs = 3, .step = step, .steps = 5, .left_s = 7};
    monitor_job(&streams->monitor, &job);
}

static void an_epoch_is_a_line(void **state)
{
    (void)state;
    struct streams streams;
    open_streams(&streams, 1);
    tell_progress(&streams, "train", 0, 1);
    tell_progress(&streams, "train", 0, 5);
    tell_progress(&streams, "train", 1, 2);
    tell_progress(&streams, "test", 1, 4);
    cadre_job job = make_job(CADRE_JOB_SUCCEEDED, "");
    monitor_job(&streams.monitor, &job);
    close_streams(&streams);
    assert_string_equal(streams.err_text, "train  epoch 1/3  step 5/5\n"
                                          "train  epoch 2/3  step 2/5\n"
                                          "test  epoch 2/3  step 4/5\n");
    assert_string_equal(streams.out_text, "");
    free_streams(&streams);
}

/* Large files and checkpoints take their time before there is progress. */
static void a_start_that_takes_long_shows_its_time(void **state)
{
    (void)state;
    struct streams streams;
    open_streams(&streams, 2);
    const cadre_job_task tasks[2] = {{.state = CADRE_TASK_STARTING}, {.state = CADRE_TASK_RUNNING}};
    cadre_job job = make_job(CADRE_JOB_STARTING, "");
    struct screen *screen = &streams.monitor.screen;
    const char *const starting = "job 3 is starting: 1 of 2 tasks get their files and checkpoint";
    char timed[128];
    job.tasks = tasks;
    job.task_count = job.workers = 2;
    screen->live = true;
    screen->err_style.columns = 100;
    monitor_job(&streams.monitor, &job);
    monitor_tick(&streams.monitor, CADRE_US_PER_S);
    assert_string_equal(screen->status, starting);
    monitor_tick(&streams.monitor, 63 * CADRE_US_PER_S);
    snprintf(timed, sizeof timed, "%s  1:02", starting);
    assert_string_equal(screen->status, timed);
    monitor_job(&streams.monitor, &job); /* no news: the time stays */
    assert_string_equal(screen->status, timed);
    job = make_job(CADRE_JOB_RUNNING, "");
    monitor_job(&streams.monitor, &job);
    monitor_tick(&streams.monitor, 64 * CADRE_US_PER_S);
    assert_string_equal(screen->status, "job 3 is running");
    tell_progress(&streams, "train", 0, 1);
    monitor_tick(&streams.monitor, 99 * CADRE_US_PER_S);
    assert_non_null(strstr(screen->status, "train  epoch 1/3"));
    close_streams(&streams);
    free_streams(&streams);
}

/* On a terminal a bar. What comes at once is not shown; files of a task that joins a job with
 * progress are not either, but a checkpoint is. */
static void fetches_that_take_long_are_a_bar(void **state)
{
    (void)state;
    struct streams streams;
    open_streams(&streams, 2);
    cadre_job_task tasks[2] = {
        {.task = 0, .state = CADRE_TASK_STARTING, .fetch = {"files", 0, 100, 1999999}},
        {.task = 1, .state = CADRE_TASK_STARTING, .fetch = {"", 0, 0, 0}}};
    cadre_job job = make_job(CADRE_JOB_STARTING, "");
    struct screen *screen = &streams.monitor.screen;
    job.tasks = tasks;
    job.task_count = job.workers = 2;
    screen->live = true;
    screen->err_style.columns = 120;
    monitor_job(&streams.monitor, &job);
    assert_non_null(strstr(screen->status, "2 of 2 tasks get their files and checkpoint"));
    tasks[0].fetch = (cadre_job_fetch){"checkpoint", 1 << 20, 2 << 20, 2 * CADRE_US_PER_S};
    monitor_job(&streams.monitor, &job);
    monitor_tick(&streams.monitor, 99 * CADRE_US_PER_S);
    assert_string_equal(screen->status, "job 3: task 0 fetches its checkpoint  1.0 MiB/2.0 MiB "
                                        "[==========>         ]  512.0 KiB/s  0:02 left");
    tasks[1].fetch = (cadre_job_fetch){"checkpoint", 0, 2 << 20, CADRE_US_PER_S};
    monitor_job(&streams.monitor, &job);
    assert_string_equal(screen->status, "job 3: 2 tasks fetch their checkpoint  1.0 MiB/4.0 MiB "
                                        "[=====>              ]  512.0 KiB/s  0:06 left");
    job.has_progress = true;
    job.progress = (cadre_job_progress){.stream = "train", .steps = 5};
    monitor_job(&streams.monitor, &job);
    assert_non_null(strstr(screen->status, "2 tasks fetch their checkpoint"));
    tasks[0].fetch.what = tasks[1].fetch.what = "files";
    monitor_job(&streams.monitor, &job);
    assert_non_null(strstr(screen->status, "train  epoch 1"));
    close_streams(&streams);
    free_streams(&streams);
}

static void fetches_that_take_long_are_one_line_in_a_pipe(void **state)
{
    (void)state;
    struct streams streams;
    open_streams(&streams, 1);
    cadre_job_task task = {.task = 0, .state = CADRE_TASK_STARTING};
    cadre_job job = make_job(CADRE_JOB_STARTING, "");
    job.tasks = &task;
    job.task_count = job.workers = 1;
    for (uint64_t second = 0; second < 9; second++) {
        task.fetch = (cadre_job_fetch){"check", second << 20, 9 << 20, second * CADRE_US_PER_S};
        monitor_job(&streams.monitor, &job);
    }
    task.fetch = (cadre_job_fetch){"", 0, 0, 0};
    monitor_job(&streams.monitor, &job);
    close_streams(&streams);
    assert_string_equal(
        streams.err_text, "job 3: task 0 waits until its checkpoint is checked: 9.0 MiB\n");
    free_streams(&streams);
}

static void what_a_job_waits_for_is_said_once(void **state)
{
    (void)state;
    struct streams streams;
    open_streams(&streams, 1);
    cadre_job job = make_job(CADRE_JOB_QUEUED, "waits for 2 free slots");
    monitor_job(&streams.monitor, &job);
    monitor_job(&streams.monitor, &job);
    job.message = "waits for 1 free slot";
    monitor_job(&streams.monitor, &job);
    close_streams(&streams);
    assert_string_equal(streams.err_text, "job 3 is queued: waits for 2 free slots\n"
                                          "job 3 is queued: waits for 1 free slot\n");
    free_streams(&streams);
}

static void what_befalls_a_job_is_said_once(void **state)
{
    (void)state;
    struct streams streams;
    open_streams(&streams, 1);
    cadre_job job = make_job(CADRE_JOB_RUNNING, "");
    job.workers = 4;
    job.roster = 4;
    job.generation = 1;
    job.position = 100;
    job.message = "1 of 4 tasks joined"; /* that is how each one begins */
    monitor_job(&streams.monitor, &job);
    job.message = "";
    monitor_job(&streams.monitor, &job);
    job.message = "step 120 has not ended for 12 s: task 1 on worker b is waited for by 3 others";
    monitor_job(&streams.monitor, &job);
    job.message = "step 120 has not ended for 117 s: task 1 on worker b is waited for by 3 others";
    monitor_job(&streams.monitor, &job); /* counts on: no news */
    job.message = "worker b was lost with task 1";
    monitor_job(&streams.monitor, &job);
    monitor_job(&streams.monitor, &job);
    job.message = "";
    job.generation = 2;
    job.roster = 3;
    job.position = 120;
    monitor_job(&streams.monitor, &job);
    monitor_job(&streams.monitor, &job);
    job.generation = 3;
    job.message = "worker c was lost with task 1"; /* in a new generation it is news again */
    job.roster = 2;
    monitor_job(&streams.monitor, &job);
    close_streams(&streams);
    assert_string_equal(streams.err_text,
        "job 3: step 120 has not ended for 12 s: task 1 on worker b is waited for by 3 others\n"
        "job 3: worker b was lost with task 1\n"
        "job 3 goes on at step 120 with 3 of 4 tasks (generation 2)\n"
        "job 3: worker c was lost with task 1\n"
        "job 3 goes on at step 120 with 2 of 4 tasks (generation 3)\n");
    free_streams(&streams);
}

static void output_of_one_task_passes_as_it_is(void **state)
{
    (void)state;
    struct streams streams;
    open_streams(&streams, 1);
    monitor_output(&streams.monitor, 0, 1, "no newline", 10);
    monitor_output(&streams.monitor, 0, 2, "error\n", 6);
    close_streams(&streams);
    assert_string_equal(streams.out_text, "no newline");
    assert_string_equal(streams.err_text, "error\n");
    free_streams(&streams);
}

static void output_of_several_tasks_is_marked(void **state)
{
    (void)state;
    struct streams streams;
    open_streams(&streams, 2);
    monitor_output(&streams.monitor, 0, 1, "a", 1);
    monitor_output(&streams.monitor, 1, 1, "b\n", 2);
    monitor_output(&streams.monitor, 1, 2, "c\n", 2);
    monitor_task_end(&streams.monitor, 0);
    close_streams(&streams);
    assert_string_equal(streams.out_text, "[1] b\n[0] a\n");
    assert_string_equal(streams.err_text, "[1] c\n");
    free_streams(&streams);
}

/* ---- the status line of a terminal ---- */

static void the_status_line_stays_below(void **state)
{
    (void)state;
    struct screen screen;
    FILE *both = tmpfile();
    screen_open(&screen, both, both);
    assert_false(screen.live);
    screen.live = true;
    screen.err_style.columns = 10;
    screen_status(&screen, "12345678901234");
    screen_write(&screen, 1, "out\n", 4);
    screen_note(&screen, "note %d", 1);
    screen_status(&screen, "");
    screen_write(&screen, 2, "end\n", 4);
    screen_close(&screen);
    char *text = content(both);
    assert_string_equal(text, "\r123456789\033[K"
                              "\r\033[Kout\n\r123456789\033[K"
                              "\r\033[Knote 1\n\r123456789\033[K"
                              "\r\033[Kend\n");
    free(text);
}

static void exit_codes_are_the_jobs(void **state)
{
    (void)state;
    cadre_job job = make_job(CADRE_JOB_SUCCEEDED, "");
    assert_int_equal(monitor_exit_code(&job), 0);
    job.state = CADRE_JOB_FAILED;
    assert_int_equal(monitor_exit_code(&job), 1);
    job.exit_code = 139;
    assert_int_equal(monitor_exit_code(&job), 139);
    job.exit_code = 256;
    assert_int_equal(monitor_exit_code(&job), 1);
    job.state = CADRE_JOB_CANCELLED;
    job.exit_code = 0;
    assert_int_equal(monitor_exit_code(&job), 130);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_of_a_log_as_json_is_text),
        cmocka_unit_test(bare_lines_are_what_was_written),
        cmocka_unit_test(lines_of_tasks_do_not_mix),
        cmocka_unit_test(lines_have_the_time_at_which_they_came),
        cmocka_unit_test(one_task_has_no_prefix_and_several_have_colours),
        cmocka_unit_test(a_line_without_end_comes_in_pieces),
        cmocka_unit_test(an_epoch_is_a_line),
        cmocka_unit_test(fetches_that_take_long_are_a_bar),
        cmocka_unit_test(fetches_that_take_long_are_one_line_in_a_pipe),
        cmocka_unit_test(a_start_that_takes_long_shows_its_time),
        cmocka_unit_test(what_a_job_waits_for_is_said_once),
        cmocka_unit_test(what_befalls_a_job_is_said_once),
        cmocka_unit_test(output_of_one_task_passes_as_it_is),
        cmocka_unit_test(output_of_several_tasks_is_marked),
        cmocka_unit_test(the_status_line_stays_below),
        cmocka_unit_test(exit_codes_are_the_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
