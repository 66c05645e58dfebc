/* SPDX-License-Identifier: Apache-2.0
 * What clients read of jobs, tasks and workers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/wire.h"
#include "tests/unit/engine/stage.h"

/* Two jobs that wait for different reasons, read one after the other as a listing does. */
static void jobs_listed_together_keep_their_own_text(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct job_info infos[3];
    submit(stage, 1, 5);
    submit(stage, 2, 2);
    submit(stage, 3, 1);
    join(stage, 1, "one", 1);
    flush(stage);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(engine_job_at(stage->engine, i, &infos[i]));
        assert_int_equal(infos[i].id.n, 3 - i);
        assert_int_equal(infos[i].task_count, 0);
    }
    assert_false(engine_job_at(stage->engine, 3, &infos[0]));
    assert_true(engine_job_at(stage->engine, 0, &infos[0]));
    assert_string_not_equal(infos[2].message, "");
    assert_string_not_equal(infos[1].message, infos[2].message);
    stage_close(stage);
}

static void tasks_are_reported_with_their_workers(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    struct job_info info;
    engine_log_bytes(
        stage->engine, (struct task_ref){.job = {1}, .slot = 2, .incarnation = 3}, 4711);
    engine_log_bytes(stage->engine, (struct task_ref){.job = {1}, .slot = 3}, 1); /* no such task */
    engine_log_bytes(stage->engine, (struct task_ref){.job = {8}}, 1);
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.state, JOB_RUNNING);
    assert_int_equal(info.generation, 1);
    assert_int_equal(info.task_count, 3);
    for (uint32_t slot = 0; slot < 3; slot++) {
        const struct task_info *task = &info.tasks[slot];
        assert_int_equal(task->slot, slot);
        assert_int_equal(task->incarnation, slot + 1);
        assert_int_equal(task->state, TASK_RUNNING);
        assert_string_equal(task->worker, slot < 2 ? "one" : "two");
        assert_int_equal(task->pid, 100 + slot);
        assert_true(task->uses_cadre);
        assert_false(task->has_exit);
        assert_int_equal(task->log_bytes, slot == 2 ? 4711 : 0);
    }
    gone(stage, 1, 1, 1, 7, "last words");
    flush(stage);
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_true(info.tasks[1].has_exit);
    assert_int_equal(info.tasks[1].exit.code, 7);
    assert_string_equal(info.tasks[1].exit.text, "last words");
    stage_close(stage);
}

static void progress_counts_only_from_where_the_task_runs(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    struct job_info info;
    progress(stage, 2, 1, 0, 9); /* task 0 runs on link 1 */
    progress(stage, 1, 1, 3, 9); /* no such task */
    progress(stage, 1, 5, 0, 9); /* no such job */
    flush(stage);
    expect_output(stage, "");
    progress(stage, 1, 1, 0, 1);
    progress(stage, 1, 1, 1, 2);
    flush(stage);
    expect_output(stage, "changed 1: running\n"); /* once a turn */
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_true(info.has_progress);
    assert_int_equal(info.progress.epoch, 2);
    assert_string_equal(info.progress.stream, "train");
    assert_int_equal(info.progress.metric_count, 2);
    assert_string_equal(info.progress.metrics[0].name, "loss");
    stage_close(stage);
}

static void report_shards(struct stage *stage, uint64_t link, const char *dataset, uint32_t rank)
{
    const struct shard_file files[2] = {
        {.name = "a", .rank = rank, .read = 7}, {.name = "b", .rank = SHARD_NO_TASK, .total = 9}};
    const struct shards_report report = {.name = dataset,
        .policy = "FILE",
        .files = 2,
        .shown = files,
        .shown_count = rank == 0 ? 0 : 2};
    shards(stage, link, 1, 0, &report);
}

static void the_newest_report_of_each_dataset_is_kept(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    struct job_info info;
    report_shards(stage, 1, "train", 3);
    report_shards(stage, 1, "test", 1);
    report_shards(stage, 1, "train", 4);
    report_shards(stage, 2, "train", 5); /* task 0 runs on link 1 */
    flush(stage);
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.shards_count, 2);
    assert_string_equal(info.shards[0].name, "train");
    assert_string_equal(info.shards[0].policy, "FILE");
    assert_int_equal(info.shards[0].shown_count, 2);
    assert_int_equal(info.shards[0].shown[0].rank, 4);
    assert_string_equal(info.shards[0].shown[1].name, "b");
    assert_string_equal(info.shards[1].name, "test");
    report_shards(stage, 1, "test", 0);
    flush(stage);
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.shards[1].shown_count, 0);
    stage_close(stage);
}

static void a_task_belongs_to_the_worker_of_a_name(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    struct engine *engine = stage->engine;
    const struct task_ref task = {.job = {1}, .slot = 2, .incarnation = 3};
    join(stage, 3, "three", 1);
    flush(stage);
    assert_true(engine_task_is_of(engine, task, "two"));
    assert_false(engine_task_is_of(engine, task, "one"));
    assert_false(engine_task_is_of(
        engine, (struct task_ref){.job = {1}, .slot = 2, .incarnation = 4}, "two"));
    assert_false(engine_task_is_of(engine, (struct task_ref){.job = {1}, .slot = 3}, "two"));
    assert_false(engine_task_is_of(engine, (struct task_ref){.job = {9}}, "two"));
    assert_true(engine_worker_has_job(engine, "two", (struct job_id){1}));
    assert_false(engine_worker_has_job(engine, "three", (struct job_id){1}));
    assert_false(engine_worker_has_job(engine, "two", (struct job_id){9}));
    assert_true(engine_worker_has_tasks(engine, "two"));
    assert_false(engine_worker_has_tasks(engine, "three"));
    assert_false(engine_worker_has_tasks(engine, "four"));
    stage_close(stage);
}

static void a_task_belongs_to_one_link(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    struct task_ref task = {.job = {1}, .slot = 0, .incarnation = 1};
    assert_true(engine_task_on_link(stage->engine, task, (struct link_id){1}));
    assert_false(engine_task_on_link(stage->engine, task, (struct link_id){2}));
    task.incarnation = 2;
    assert_false(engine_task_on_link(stage->engine, task, (struct link_id){1}));
    task = (struct task_ref){.job = {1}, .slot = 3, .incarnation = 4};
    assert_false(engine_task_on_link(stage->engine, task, (struct link_id){1}));
    task.job.n = 2;
    assert_false(engine_task_on_link(stage->engine, task, (struct link_id){1}));
    stage_close(stage);
}

static void workers_are_reported_with_their_details(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    struct worker_info workers[2];
    struct worker_info none;
    uint32_t cursor = 0;
    assert_true(engine_worker_next(stage->engine, &cursor, &workers[0]));
    assert_true(engine_worker_next(stage->engine, &cursor, &workers[1]));
    assert_false(engine_worker_next(stage->engine, &cursor, &none));
    assert_string_equal(workers[0].name, "one");
    assert_string_equal(workers[1].name, "two");
    assert_string_equal(workers[1].host, "host");
    assert_string_equal(workers[1].version, "1.2.3");
    assert_int_equal(workers[0].slots_used, 2);
    assert_int_equal(workers[1].slots_used, 1);
    assert_int_equal(workers[1].cpus, 3);
    assert_int_equal(workers[1].memory_bytes, 4096);
    assert_true(workers[1].connected && workers[1].joined_us > 0);
    assert_int_equal(workers[1].gpus.count, 1);
    assert_int_equal(workers[1].gpus.usable, 1);
    assert_string_equal(workers[1].gpus.devices[0].name, "two");
    assert_string_equal(workers[1].gpus.devices[0].uuid, "GPU-1");
    assert_string_equal(workers[1].gpus.devices[0].bus, ""); /* it was not reported */
    assert_string_equal(workers[1].gpus.driver, "580.1");
    assert_string_equal(workers[1].gpus.reason, "");
    assert_int_equal(workers[1].gpus.nccl, 22809);
    engine_link_down(stage->engine, stage->now_us, (struct link_id){2});
    flush(stage);
    cursor = 0;
    assert_true(engine_worker_next(stage->engine, &cursor, &workers[0]));
    assert_true(engine_worker_next(stage->engine, &cursor, &workers[1]));
    assert_false(workers[1].connected);
    assert_string_equal(workers[1].name, "two");
    stage_close(stage);
}

static uint64_t certificate_of(const struct stage *stage, uint32_t worker)
{
    struct worker_info info = {0};
    uint32_t cursor = 0;
    for (uint32_t i = 0; i <= worker; i++) {
        assert_true(engine_worker_next(stage->engine, &cursor, &info));
    }
    return info.certificate_ends_us;
}

/* A hello without it is of a worker without one; a heartbeat without it brings no news. */
static void the_end_of_a_certificate_is_kept_up_to_date(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    const struct link_id link = {2};
    struct agent_up up = {.type = AGENT_UP_HEARTBEAT, .certificate_ends_us = 77};
    assert_int_equal(certificate_of(stage, 1), 0);
    engine_agent_up(stage->engine, stage->now_us, link, &up);
    heartbeat(stage, 2);
    flush(stage);
    assert_int_equal(certificate_of(stage, 0), 0);
    assert_int_equal(certificate_of(stage, 1), 77);
    engine_link_down(stage->engine, stage->now_us, link);
    flush(stage);
    assert_int_equal(certificate_of(stage, 1), 77); /* it may be why it is away */
    up = (struct agent_up){.type = AGENT_UP_HELLO,
        .certificate_ends_us = 78,
        .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
            .library_version = "1",
            .name = "two",
            .host = "h",
            .boot_nonce = 1002,
            .slots = 2,
            .gpus = {.driver = "", .runtime = "", .reason = ""}}};
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){3}, &up);
    flush(stage);
    assert_int_equal(certificate_of(stage, 1), 78);
    engine_link_down(stage->engine, stage->now_us, (struct link_id){3});
    up.certificate_ends_us = 0;
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){4}, &up);
    flush(stage);
    assert_int_equal(certificate_of(stage, 1), 0);
    stage_close(stage);
}

static struct task_fetch fetch_of(struct stage *stage, uint32_t slot)
{
    struct job_info info;
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    return info.tasks[slot].fetch;
}

static void fetches_are_shown_until_the_task_runs(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    join(stage, 1, "one", 2);
    join(stage, 2, "two", 1);
    submit(stage, 1, 3);
    flush(stage);
    const struct agent_fetch fetches[] = {
        {.task = {{1}, 0, 1}, .fetch = {FETCH_FILES, 1, 2, 3}},
        {.task = {{1}, 1, 9}, .fetch = {FETCH_FILES, 1, 2, 3}}, /* not the incarnation that is */
        {.task = {{1}, 2, 3}, .fetch = {FETCH_FILES, 1, 2, 3}}, /* it is on the other worker */
        {.task = {{7}, 0, 1}, .fetch = {FETCH_FILES, 1, 2, 3}}, /* no such job */
    };
    struct agent_up up = {
        .type = AGENT_UP_HEARTBEAT, .heartbeat = {.fetches = fetches, .fetch_count = 4}};
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){1}, &up);
    flush(stage);
    assert_int_equal(fetch_of(stage, 0).kind, FETCH_FILES);
    assert_int_equal(fetch_of(stage, 0).done_bytes, 1);
    assert_int_equal(fetch_of(stage, 1).kind, FETCH_NONE);
    assert_int_equal(fetch_of(stage, 2).kind, FETCH_NONE);
    heartbeat(stage, 1); /* nothing is new */
    flush(stage);
    assert_int_equal(fetch_of(stage, 0).whole_bytes, 2);
    started(stage, 1, 1, 0);
    flush(stage);
    assert_int_equal(fetch_of(stage, 0).kind, FETCH_NONE);
    stage_close(stage);
}

static struct resource_usage usage_of(struct stage *stage, uint32_t slot)
{
    struct job_info info;
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    return info.tasks[slot].usage;
}

static struct resource_usage usage_of_host(struct stage *stage, const char *name)
{
    struct worker_info worker;
    uint32_t cursor = 0;
    while (engine_worker_next(stage->engine, &cursor, &worker)) {
        if (strcmp(worker.name, name) == 0) {
            return worker.usage;
        }
    }
    fail_msg("no worker %s", name);
    return (struct resource_usage){.has_cpu = false};
}

static void use_is_shown_while_it_is_current(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    const struct resource_usage cpu = {.has_cpu = true, .cpu_thousandths = 950};
    const struct resource_usage host = {.has_memory = true, .memory_bytes = 77};
    const struct agent_usage usages[] = {
        {.task = {{1}, 0, 1}, .usage = cpu},
        {.task = {{1}, 1, 9}, .usage = cpu}, /* not the incarnation that is */
        {.task = {{1}, 2, 3}, .usage = cpu}, /* it is on the other worker */
        {.task = {{7}, 0, 1}, .usage = cpu}, /* no such job */
    };
    struct agent_up up = {.type = AGENT_UP_HEARTBEAT,
        .heartbeat = {.usages = usages, .usage_count = 4, .host = host}};
    assert_false(resource_usage_any(&(struct resource_usage){.cpu_thousandths = 1}));
    stage_skip(stage);
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){1}, &up);
    flush(stage);
    expect_output(stage, ""); /* it wakes no watcher */
    assert_true(usage_of(stage, 0).has_cpu);
    assert_int_equal(usage_of(stage, 0).cpu_thousandths, 950);
    assert_false(usage_of(stage, 0).has_memory);
    assert_false(usage_of(stage, 1).has_cpu);
    assert_false(usage_of(stage, 2).has_cpu);
    assert_int_equal(usage_of_host(stage, "one").memory_bytes, 77);
    assert_false(usage_of_host(stage, "two").has_memory);
    heartbeat(stage, 1); /* nothing is new */
    flush(stage);
    assert_true(usage_of(stage, 0).has_cpu);
    for (int second = 0; second < 15; second++) { /* as of a worker of an earlier version */
        stage->now_us += SECOND;
        heartbeat(stage, 1);
        heartbeat(stage, 2);
        flush(stage);
    }
    assert_false(usage_of(stage, 0).has_cpu);
    assert_false(usage_of_host(stage, "one").has_memory);
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){1}, &up);
    gone(stage, 1, 1, 0, 0, "");
    flush(stage);
    assert_false(usage_of(stage, 0).has_cpu); /* it uses nothing any more */
    stage_close(stage);
}

static void the_task_that_is_waited_for_is_shown(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    struct job_info info;
    struct agent_up up = {.type = AGENT_UP_RELAY,
        .relay_up = {.task = {{1}, 0, 1},
            .up = {.type = TASK_UP_STALL,
                .stall = {.generation = stage->generation, .slot = 2, .waited_us = SECOND}}}};
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.wait.waited_us, 0);
    stage->now_us += SECOND;
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){1}, &up);
    flush(stage);
    assert_true(engine_job_basics(stage->engine, (struct job_id){1}, &info));
    assert_int_equal(info.wait.slot, 2);
    assert_string_equal(info.wait.worker, "two");
    assert_true(info.wait.waited_us >= SECOND);
    stage_close(stage);
}

/* The program of a task reads its checkpoint: that is no progress of the job. */
static void a_program_that_reads_is_shown_until_its_last_report(void **state)
{
    (void)state;
    struct stage *stage = stage_formed();
    struct job_info info;
    struct agent_up up = {.type = AGENT_UP_RELAY,
        .relay_up = {.task = {{1}, 0, 1},
            .up = {.type = TASK_UP_PROGRESS,
                .progress = {.stream = "", .left_s = -1, .fetch = {FETCH_READ, 1, 2, 3}}}}};
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){1}, &up);
    flush(stage);
    assert_int_equal(fetch_of(stage, 0).kind, FETCH_READ);
    up.relay_up.up.progress.fetch.done_bytes = 2;
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){1}, &up);
    flush(stage);
    assert_int_equal(fetch_of(stage, 0).kind, FETCH_NONE);
    assert_true(engine_job_info(stage->engine, (struct job_id){1}, &info));
    assert_false(info.has_progress);
    stage_close(stage);
}

/* A cluster of thousands fits one message all the same. */
static void gpus_of_many_workers_are_left_out(void **state)
{
    (void)state;
    struct gpu gpus[8];
    struct cadre_error error;
    struct worker_info *workers = calloc(LIMIT_TASKS_PER_JOB, sizeof *workers);
    struct wire_buffer packed = {0};
    assert_non_null(workers);
    for (size_t i = 0; i < 8; i++) {
        gpus[i] = (struct gpu){.name = "NVIDIA H200",
            .uuid = "GPU-8f7e6d5c-0000-1111-2222-333344445555",
            .bus = "0000:65:00.0",
            .memory_bytes = UINT64_MAX,
            .unused = ""};
    }
    for (uint32_t i = 0; i < LIMIT_TASKS_PER_JOB; i++) {
        workers[i] = (struct worker_info){.id = {i + 1},
            .name = "a-worker-of-some-length",
            .host = "a-host-of-some-length.example.org",
            .version = "0.2.0",
            .gpus = {.devices = gpus,
                .count = 8,
                .usable = 8,
                .driver = "580.159.04 (CUDA 13.0)",
                .runtime = "CUDA 13.0",
                .nccl = 22809,
                .reason = ""}};
    }
    const struct list_workers_response list = {.workers = workers, .count = LIMIT_TASKS_PER_JOB};
    assert_int_equal(
        wire_pack_list_workers_response(&list, &packed, &error), CADRE_RESOURCE_EXHAUSTED);
    engine_shorten_workers(workers, LIMIT_TASKS_PER_JOB);
    assert_ok(wire_pack_list_workers_response(&list, &packed, &error), &error);
    assert_int_equal(workers[0].gpus.count, 8);
    assert_int_equal(workers[0].gpus.omitted, 0);
    const struct gpus *last = &workers[LIMIT_TASKS_PER_JOB - 1].gpus;
    assert_int_equal(last->count, 0);
    assert_int_equal(last->omitted, 8);
    assert_int_equal(last->usable, 8);
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    struct list_workers_response received;
    assert_ok(
        wire_unpack_list_workers_response(packed.bytes, packed.size, arena, &received, &error),
        &error);
    wire_arena_free(arena);
    wire_buffer_free(&packed);
    free(workers);
}

/* Workers that come and go for ever must not add up. */
static void details_of_lost_workers_are_dropped(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct worker_info worker;
    for (uint64_t link = 1; link <= 100; link++) {
        char name[32];
        snprintf(name, sizeof name, "worker %u", (unsigned)link);
        join(stage, link, name, 1);
        flush(stage);
        uint32_t cursor = 0;
        assert_true(engine_worker_next(stage->engine, &cursor, &worker));
        assert_string_equal(worker.name, name);
        engine_link_down(stage->engine, stage->now_us, (struct link_id){link});
        stage->now_us += 10 * SECOND; /* its lease ends */
        engine_tick(stage->engine, stage->now_us);
        flush(stage);
        cursor = 0;
        assert_false(engine_worker_next(stage->engine, &cursor, &worker));
        stage_skip(stage);
    }
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(jobs_listed_together_keep_their_own_text),
        cmocka_unit_test(tasks_are_reported_with_their_workers),
        cmocka_unit_test(progress_counts_only_from_where_the_task_runs),
        cmocka_unit_test(the_newest_report_of_each_dataset_is_kept),
        cmocka_unit_test(a_task_belongs_to_one_link),
        cmocka_unit_test(a_task_belongs_to_the_worker_of_a_name),
        cmocka_unit_test(workers_are_reported_with_their_details),
        cmocka_unit_test(the_end_of_a_certificate_is_kept_up_to_date),
        cmocka_unit_test(fetches_are_shown_until_the_task_runs),
        cmocka_unit_test(use_is_shown_while_it_is_current),
        cmocka_unit_test(the_task_that_is_waited_for_is_shown),
        cmocka_unit_test(a_program_that_reads_is_shown_until_its_last_report),
        cmocka_unit_test(gpus_of_many_workers_are_left_out),
        cmocka_unit_test(details_of_lost_workers_are_dropped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
