/* SPDX-License-Identifier: Apache-2.0
 * The largest messages that the limits allow are unpacked; one more entry is refused. */
#include "tests/unit/wire/refuse.h"

SEND(task_down)
SEND(list_jobs_response)
SEND(list_outputs_response)
SEND(verify_response)

static void a_job_of_all_tasks_fits(void **state)
{
    (void)state;
    struct task_info *tasks = calloc(LIMIT_TASKS_PER_JOB, sizeof *tasks);
    char *name = long_text(LIMIT_NAME_BYTES - 1);
    assert_non_null(tasks);
    for (uint32_t i = 0; i < LIMIT_TASKS_PER_JOB; i++) {
        tasks[i] = (struct task_info){
            .slot = i,
            .incarnation = UINT32_MAX,
            .state = TASK_EXITED,
            .worker = name,
            .pid = INT32_MAX,
            .has_exit = true,
            .exit = {.code = 1, .signal = 9},
            .uses_cadre = true,
            .log_bytes = UINT64_C(1) << 40,
        };
        memset(tasks[i].exit.text, 'e', LIMIT_TEXT_BYTES - 1);
    }
    struct job_info info = sample_info;
    struct job_info received;
    info.tasks = tasks;
    info.task_count = LIMIT_TASKS_PER_JOB;
    wire_buffer_clear(&packed);
    assert_ok(wire_pack_job_info(&info, &packed, &error), &error);
    assert_ok(wire_unpack_job_info(packed.bytes, packed.size, arena, &received, &error), &error);
    assert_int_equal(received.task_count, LIMIT_TASKS_PER_JOB);
    assert_string_equal(received.tasks[0].exit.text, "");
    assert_int_equal(received.tasks[16383].exit.signal, 9);
    free(name);
    free(tasks);
}

static void a_plan_of_all_tasks_fits(void **state)
{
    (void)state;
    struct roster_entry *roster = calloc(LIMIT_TASKS_PER_JOB, sizeof *roster);
    char *address = long_text(LIMIT_ADDRESS_BYTES - 1);
    assert_non_null(roster);
    for (uint32_t i = 0; i < LIMIT_TASKS_PER_JOB; i++) {
        roster[i] = (struct roster_entry){
            .slot = i, .incarnation = UINT64_MAX, .replicas = 256, .mesh_address = address};
    }
    struct task_down down = sample_plan;
    down.plan.roster = roster;
    down.plan.roster_count = LIMIT_TASKS_PER_JOB;
    assert_ok(send_task_down(&down), &error);
    free(address);
    free(roster);
}

static void the_longest_lists_fit(void **state)
{
    (void)state;
    char *name = long_text(LIMIT_NAME_BYTES - 1);
    char *text = long_text(LIMIT_TEXT_BYTES - 1);
    char *path = long_text(LIMIT_FILE_NAME_BYTES - 1);
    char *folder = long_text(960 + 15); /* of the key, and "s3://bucket-00/" */
    memcpy(folder, "s3://bucket-00/", 15);
    struct metric metrics[LIMIT_METRICS];
    struct job_info *jobs = calloc(LIMIT_JOBS_LISTED, sizeof *jobs);
    struct output_info *outputs = calloc(LIMIT_OUTPUTS_LISTED, sizeof *outputs);
    assert_true(jobs != NULL && outputs != NULL);
    for (size_t i = 255; i < LIMIT_FILE_NAME_BYTES - 1; i += 256) {
        path[i] = '/';
    }
    for (size_t i = 0; i < LIMIT_METRICS; i++) {
        metrics[i] = (struct metric){.name = name, .value = 1};
    }
    for (size_t i = 0; i < LIMIT_JOBS_LISTED; i++) {
        jobs[i] = sample_info;
        jobs[i].name = name;
        jobs[i].program = path;
        jobs[i].message = text;
        jobs[i].checkpoint = path;
        jobs[i].outputs_folder = folder;
        jobs[i].progress.stream = name;
        jobs[i].progress.metrics = metrics;
        jobs[i].progress.metric_count = LIMIT_METRICS;
        jobs[i].task_count = 0;
    }
    for (size_t i = 0; i < LIMIT_OUTPUTS_LISTED; i++) {
        outputs[i] = (struct output_info){.path = path, .size_bytes = UINT64_MAX};
    }
    struct list_jobs_response list = {.jobs = jobs, .count = LIMIT_JOBS_LISTED};
    assert_ok(send_list_jobs_response(&list), &error);
    struct list_outputs_response files = {
        .outputs = outputs, .count = LIMIT_OUTPUTS_LISTED, .store = "", .folder = folder};
    assert_ok(send_list_outputs_response(&files), &error);
    struct checkpoint_ref *stored = calloc(LIMIT_STORED_LISTED, sizeof *stored);
    char *store = long_text(LIMIT_FILE_NAME_BYTES - 1);
    assert_non_null(stored);
    for (size_t i = 0; i < LIMIT_STORED_LISTED; i++) {
        stored[i] = (struct checkpoint_ref){.position = LIMIT_POSITION,
            .shared = true,
            .path = path,
            .manifest_bytes = LIMIT_MANIFEST_BYTES};
    }
    store[0] = '/';
    files.count = LIMIT_OUTPUTS_LISTED - LIMIT_STORED_LISTED;
    files.stored = stored;
    files.stored_count = LIMIT_STORED_LISTED;
    files.store = store;
    assert_ok(send_list_outputs_response(&files), &error);
    free(store);
    free(stored);
    free(outputs);
    free(jobs);
    free(folder);
    free(path);
    free(text);
    free(name);
}

static void the_longest_audit_fits(void **state)
{
    (void)state;
    char *name = long_text(LIMIT_NAME_BYTES - 1);
    struct verify_generation *generations = calloc(LIMIT_PAGE_GENERATIONS, sizeof *generations);
    struct verify_epoch *epochs = calloc(LIMIT_PAGE_EPOCHS + 1, sizeof *epochs);
    struct verified *verified = calloc(LIMIT_PAGE_VERIFIED + 1, sizeof *verified);
    assert_true(generations != NULL && epochs != NULL && verified != NULL);
    for (size_t i = 0; i < LIMIT_PAGE_GENERATIONS; i++) {
        generations[i] = (struct verify_generation){.generation = {UINT64_MAX, UINT64_MAX},
            .resume = LIMIT_POSITION,
            .restarted = true,
            .members = LIMIT_TASKS_PER_JOB,
            .planned_us = UINT64_MAX};
    }
    const uint64_t most = LIMIT_POSITION;
    for (size_t i = 0; i <= LIMIT_PAGE_EPOCHS; i++) {
        epochs[i] = (struct verify_epoch){.stream = STREAM_ANY - 1,
            .name = name,
            .shares = true,
            .source_samples = most,
            .cursor = {STREAM_ANY - 1, UINT64_MAX, most, most, most, true},
            .consumption = {
                most, most, {UINT64_MAX, 1}, {1, UINT64_MAX}, true, CONSUMED_FILES_DROPPED}};
    }
    for (size_t i = 0; i <= LIMIT_PAGE_VERIFIED; i++) {
        verified[i] = (struct verified){.position = most, .digest = UINT64_MAX};
    }
    struct verify_response verify = {.job = sample_verify.job,
        .generations = generations,
        .generation_count = LIMIT_PAGE_GENERATIONS,
        .epochs = epochs,
        .epoch_count = LIMIT_PAGE_EPOCHS,
        .verified = verified,
        .verified_count = LIMIT_PAGE_VERIFIED,
        .more = true,
        .next = {UINT64_MAX, STREAM_ANY - 1, UINT64_MAX, most}};
    assert_ok(send_verify_response(&verify), &error);
    verify.epoch_count++;
    assert_error(send_verify_response(&verify), TOO_LARGE, &error,
        "VerifyResponse.epochs has 8193 entries; at most 8192 are accepted");
    verify.epoch_count = 1; /* so that the frame is not what is too long */
    verify.verified_count++;
    assert_error(send_verify_response(&verify), TOO_LARGE, &error,
        "VerifyResponse.verified has 16385 entries; at most 16384 are accepted");
    verified[1].position++;
    verify.verified_count = 2;
    assert_error(send_verify_response(&verify), INVALID, &error, "Verified.position");
    assert_non_null(strstr(error.text, "(in VerifyResponse.verified[1])"));
    verify.verified_count = 1;
    verify.next.position++;
    assert_error(send_verify_response(&verify), INVALID, &error, "VerifyFrom.position");
    free(verified);
    free(epochs);
    free(generations);
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_of_all_tasks_fits),
        cmocka_unit_test(a_plan_of_all_tasks_fits),
        cmocka_unit_test(the_longest_lists_fit),
        cmocka_unit_test(the_longest_audit_fits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
