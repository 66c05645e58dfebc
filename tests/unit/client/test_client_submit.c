/* SPDX-License-Identifier: Apache-2.0
 * Submitting: what travels, what does not travel twice, and what is refused before anything does.
 */
#include "stub.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cadre/client.h"

struct world {
    struct stub stub;
    cadre_client *client;
    char program[TEST_PATH_BYTES];
    char small[TEST_PATH_BYTES];
    char copy[TEST_PATH_BYTES];
    char large[TEST_PATH_BYTES];
    char empty[TEST_PATH_BYTES];
    uint64_t reported_bytes;
    size_t reported_files;
    bool spoil; /* change the large file once its upload has begun */
};

#define LARGE_BYTES ((size_t)3 * 1024 * 1024 + 5)

static int open_world(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    const char *folder = test_temp_dir();
    stub_open(&world->stub, NULL);
    test_write(test_path(world->program, folder, "prog"), "#!/bin/sh\n");
    chmod(world->program, 0755);
    test_write(test_path(world->small, folder, "small"), "same content");
    test_write(test_path(world->copy, folder, "copy"), "same content");
    test_write(test_path(world->empty, folder, "empty"), "");
    char *bytes = calloc(1, LARGE_BYTES + 1);
    for (size_t i = 0; i < LARGE_BYTES; i++) {
        bytes[i] = (char)('a' + i * 7 % 26);
    }
    test_write(test_path(world->large, folder, "large"), bytes);
    free(bytes);
    const cadre_client_options options = {.address = world->stub.address};
    assert_int_equal(cadre_client_connect(&options, &world->client), CADRE_OK);
    *state = world;
    return 0;
}

static int close_world(void **state)
{
    struct world *world = *state;
    cadre_client_release(world->client);
    stub_close(&world->stub);
    free(world);
    return 0;
}

static void on_upload(const cadre_upload *upload, void *user)
{
    struct world *world = user;
    assert_true(upload->sent_bytes <= upload->total_bytes);
    assert_true(upload->file < upload->files);
    world->reported_bytes = upload->sent_bytes;
    world->reported_files = upload->files;
    if (world->spoil && strcmp(upload->path, world->large) == 0) {
        world->spoil = false;
        int fd = open(world->large, O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "!", 1, LARGE_BYTES - 1), 1);
        close(fd);
    }
}

static void everything_travels_once(void **state)
{
    struct world *world = *state;
    const cadre_file files[] = {{.path = world->small},
        {.path = world->copy, .name = "data/second"}, {.path = world->large, .name = "big.bin"},
        {.path = world->empty}, {.path = world->program, .name = "tool"}};
    const char *const arguments[] = {"--epochs", "20"};
    const char *const environment[] = {"A=b"};
    const cadre_submit_options options = {.program = world->program,
        .arguments = arguments,
        .argument_count = 2,
        .environment = environment,
        .environment_count = 1,
        .files = files,
        .file_count = 5,
        .workers = 3,
        .replicas = 2,
        .strategy = "mirrored",
        .priority = -1,
        .on_upload = on_upload,
        .user = world};
    cadre_submitted submitted = {0};
    assert_int_equal(cadre_client_submit(world->client, &options, &submitted, NULL), CADRE_OK);
    assert_int_equal(submitted.job, 7);
    assert_int_equal(submitted.queued_before, 2);
    assert_string_equal(submitted.note, "of step 20");
    struct stub_seen seen = stub_seen(&world->stub);
    assert_int_equal(seen.submits, 1);
    assert_string_equal(seen.spec,
        "name=prog program=prog args=--epochs,20, env=A=b, "
        "files=small,data/second,big.bin,empty,tool*, workers=3 replicas=2 strategy=mirrored "
        "priority=-1 min=0 restarts=3 wait=0 stall=0 every=0 kept=0 folder= from=0");
    assert_int_equal(
        seen.blob_count, 4); /* program, one for the two that are equal, large, empty */
    for (size_t i = 0; i < seen.blob_count; i++) {
        assert_true(seen.blobs[i].whole);
        assert_int_equal(seen.blobs[i].got_bytes, seen.blobs[i].announced_bytes);
    }
    assert_int_equal(world->reported_files, 4);
    assert_int_equal(world->reported_bytes, 10 + 12 + LARGE_BYTES);
    assert_int_equal(cadre_client_submit(world->client, &options, &submitted, NULL), CADRE_OK);
    seen = stub_seen(&world->stub);
    assert_int_equal(seen.submits, 2);
    assert_int_equal(seen.blob_count, 4);
}

static void on_outage(bool away, void *user)
{
    char *outages = user; /* of 16 bytes */
    size_t used = strlen(outages);
    snprintf(outages + used, 16 - used, "%s", away ? "-" : "+");
}

/* To a coordinator that knows request ids. */
static cadre_client *connect_again(struct world *world, char outages[16], uint64_t wait_timeout_us)
{
    cadre_client *client = NULL;
    world->stub.request_ids = true;
    const cadre_client_options options = {.address = world->stub.address,
        .wait_timeout_us = wait_timeout_us,
        .on_outage = on_outage,
        .user = outages};
    assert_int_equal(cadre_client_connect(&options, &client), CADRE_OK);
    return client;
}

/* Only their names travel, and only to a coordinator that knows what they are. */
static void objects_are_left_to_workers(void **state)
{
    struct world *world = *state;
    const cadre_file files[] = {{.path = "s3://bucket/sets/a b.bin"},
        {.path = "https://host/c?secret", .name = "d/c", .version = "\"1\"", .size_bytes = 12},
        {.path = "s3://bucket/e", .size_bytes = 13}}; /* a size without a version is none */
    cadre_submit_options options = {.program = world->program,
        .files = files,
        .file_count = 3,
        .outputs_folder = "s3://bucket/runs//"};
    cadre_submitted submitted = {0};
    assert_int_equal(
        cadre_client_submit(world->client, &options, &submitted, NULL), CADRE_FAILED_PRECONDITION);
    assert_int_equal(stub_seen(&world->stub).submits, 0);
    char outages[16] = "";
    world->stub.objects = true;
    cadre_client *client = connect_again(world, outages, 0);
    assert_int_equal(cadre_client_submit(client, &options, &submitted, NULL), CADRE_OK);
    cadre_client_release(client);
    struct stub_seen seen = stub_seen(&world->stub);
    assert_non_null(strstr(seen.spec,
        "files=a b.bin=s3://bucket/sets/a b.bin( 0),d/c=https://host/c?secret(\"1\" 12),"
        "e=s3://bucket/e( 0), "));
    assert_non_null(strstr(seen.spec, " outputs=s3://bucket/runs"));
    assert_null(strstr(seen.spec, "runs/"));
    assert_int_equal(seen.blob_count, 1); /* the program */
}

/* It would pass over them, and the job would be another one. */
static void an_earlier_coordinator_gets_no_job_with_objects(void **state)
{
    struct world *world = *state;
    static const cadre_file file = {.path = "s3://bucket/a"};
    static const cadre_stored_checkpoint stored = {
        .step = 4, .path = "s3://bucket/run/checkpoint-4.json", .manifest_bytes = 9};
    const struct {
        cadre_submit_options options;
        const char *what;
    } rows[] = {
        {{.files = &file, .file_count = 1}, "no files that workers fetch"},
        {{.outputs_folder = "s3://bucket/runs"}, "no outputs"},
        {{.restore_stored = &stored}, "no start from a checkpoint"},
        {{.checkpoint_folder = "s3://bucket/run"}, "no checkpoint folder"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cadre_submit_options options = rows[i].options;
        options.program = world->program;
        assert_int_equal(
            cadre_client_submit(world->client, &options, NULL, NULL), CADRE_FAILED_PRECONDITION);
        if (strstr(cadre_error_message(), rows[i].what) == NULL ||
            strstr(cadre_error_message(), "has version 1.2.3, which knows ") == NULL ||
            strstr(cadre_error_message(), ": upgrade the coordinator") == NULL) {
            fail_msg("%s", cadre_error_message());
        }
    }
    assert_int_equal(stub_seen(&world->stub).submits, 0);
    assert_int_equal(stub_seen(&world->stub).blob_count, 0);
}

static void objects_that_cannot_be_are_refused_here(void **state)
{
    struct world *world = *state;
    static const struct {
        cadre_file file;
        const char *outputs;
        const char *sentence;
    } rows[] = {
        {{.path = "s3://bucket", .name = "a"}, NULL, "file s3://bucket has no key"},
        {{.path = "https://host?secret", .name = "a"}, NULL, "file https://host names no host"},
        {{.path = "https://host/a?secret"}, NULL, "file https://host/a: what follows the path"},
        {{.path = "https://host/a?secret", .name = "../a"}, NULL, "file https://host/a: its name"},
        {{.path = "s3://bucket/a"}, "/mnt/x", "outputs folder \"/mnt/x\" is not s3://BUCKET/KEY"},
        {{.path = "s3://bucket/a"}, "s3://B/x", "outputs folder \"s3://B/x\" has a bucket"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const cadre_submit_options options = {.program = world->program,
            .files = &rows[i].file,
            .file_count = 1,
            .outputs_folder = rows[i].outputs};
        assert_int_equal(
            cadre_client_submit(world->client, &options, NULL, NULL), CADRE_INVALID_ARGUMENT);
        if (strstr(cadre_error_message(), rows[i].sentence) == NULL) {
            fail_msg("%s", cadre_error_message());
        }
        assert_null(strstr(cadre_error_message(), "secret"));
    }
}

static void an_elastic_job_says_so(void **state)
{
    struct world *world = *state;
    cadre_submit_options options = {.program = world->program,
        .workers = 4,
        .workers_min = 2,
        .max_restarts = 5,
        .wait_us = 6,
        .stall_us = 7,
        .checkpoint_every = 8,
        .checkpoints_kept = 9,
        .checkpoint_folder = "/mnt/ckpt",
        .restore_from = 10,
        .restore_step = 400,
        .gpus = 2,
        .memory_bytes = 1 << 20,
        .cpu_thousandths = 1500,
        .pids = 256,
        .time_limit_us = 11,
        .terminal = true};
    cadre_submitted submitted = {0};
    assert_int_equal(cadre_client_submit(world->client, &options, &submitted, NULL), CADRE_OK);
    assert_string_equal(stub_seen(&world->stub).spec,
        "name=prog program=prog args= env= files= workers=4 replicas=0 strategy= priority=0 "
        "min=2 restarts=5 wait=6 stall=7 every=8 kept=9 folder=/mnt/ckpt from=10 step=400 gpus=2 "
        "limits=1048576,1500,256,11 terminal");
    options = (cadre_submit_options){.program = world->program, .max_restarts = -1};
    assert_int_equal(cadre_client_submit(world->client, &options, &submitted, NULL), CADRE_OK);
    assert_non_null(strstr(stub_seen(&world->stub).spec, "min=0 restarts=0 "));
    const cadre_stored_checkpoint stored = {.path = "s3://bucket/a/checkpoint-4.json",
        .step = 4,
        .manifest_bytes = 5,
        .manifest_sha256 = {0xab}};
    options = (cadre_submit_options){.program = world->program, .restore_stored = &stored};
    char outages[16] = "";
    world->stub.objects = true;
    cadre_client *client = connect_again(world, outages, 0);
    assert_int_equal(cadre_client_submit(client, &options, &submitted, NULL), CADRE_OK);
    cadre_client_release(client);
    assert_non_null(strstr(
        stub_seen(&world->stub).spec, "from=0 object=s3://bucket/a/checkpoint-4.json,4,5,ab"));
}

static void assert_refused(
    struct world *world, const cadre_submit_options *options, cadre_status wanted, const char *part)
{
    cadre_submitted submitted = {0};
    assert_int_equal(cadre_client_submit(world->client, options, &submitted, NULL), wanted);
    if (strstr(cadre_error_message(), part) == NULL) {
        fail_msg("\"%s\" is not in: %s", part, cadre_error_message());
    }
    struct stub_seen seen = stub_seen(&world->stub);
    assert_int_equal(seen.submits, 0);
    assert_int_equal(seen.blob_count, 0);
}

static void assert_file_refused(
    struct world *world, const char *path, const char *name, cadre_status wanted, const char *part)
{
    const cadre_file file = {.path = path, .name = name};
    const cadre_submit_options options = {
        .program = world->program, .files = &file, .file_count = 1};
    assert_refused(world, &options, wanted, part);
}

static void bad_programs_are_refused_here(void **state)
{
    struct world *world = *state;
    cadre_submit_options options = {.program = "/nowhere/prog"};
    assert_refused(world, &options, CADRE_NOT_FOUND, "/nowhere/prog");
    options.program = world->small;
    assert_refused(world, &options, CADRE_PERMISSION_DENIED, "is not executable");
    options.program = "/";
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "not a regular file");
    options.program = NULL;
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "its path is empty");
}

static void bad_files_are_refused_here(void **state)
{
    struct world *world = *state;
    char longer[1100];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    for (size_t i = 100; i < sizeof longer - 1; i += 100) {
        longer[i] = '/';
    }
    assert_file_refused(world, "/nowhere/x", NULL, CADRE_NOT_FOUND, "/nowhere/x");
    assert_file_refused(world, world->small, "../x", CADRE_INVALID_ARGUMENT, "\"../x\"");
    assert_file_refused(world, world->small, "/x", CADRE_INVALID_ARGUMENT, "must be relative");
    assert_file_refused(world, world->small, "a//b", CADRE_INVALID_ARGUMENT, "refused");
    assert_file_refused(world, world->small, longer, CADRE_INVALID_ARGUMENT, "longer than");
    assert_file_refused(world, world->small, "prog", CADRE_INVALID_ARGUMENT, "would both be prog");
    assert_file_refused(world, world->small, "prog/x", CADRE_INVALID_ARGUMENT, "also the folder");
    assert_file_refused(world, "", NULL, CADRE_INVALID_ARGUMENT, "refused");
    const cadre_file twice[] = {{.path = world->small}, {.path = world->copy, .name = "small"}};
    const cadre_submit_options options = {
        .program = world->program, .files = twice, .file_count = 2};
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "would both be small");
}

static void bad_values_are_refused_here(void **state)
{
    struct world *world = *state;
    const char *const environment[] = {"NOVALUE"};
    cadre_submit_options options = {
        .program = world->program, .environment = environment, .environment_count = 1};
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "\"NOVALUE\" has no \"=\"");
    options = (cadre_submit_options){.program = world->program, .workers = 100000};
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "100000 workers");
    options = (cadre_submit_options){.program = world->program, .workers = 2, .workers_min = 3};
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "at least 3 workers and at most 2");
    options = (cadre_submit_options){.program = world->program, .max_restarts = 1000001};
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "1000001 restarts");
    options = (cadre_submit_options){.program = world->program, .checkpoints_kept = 1001};
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "1001 checkpoints to keep");
    options = (cadre_submit_options){.program = world->program, .checkpoint_folder = "ckpt"};
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "\"ckpt\" is not an absolute path");
    options = (cadre_submit_options){.program = world->program, .wait_us = UINT64_MAX};
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "JobSpec.wait_us");
    options = (cadre_submit_options){.program = world->program, .replicas = 1000};
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "1000 replicas");
    options = (cadre_submit_options){.program = world->program, .name = "two\nlines"};
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "JobSpec.name");
    const char *const arguments[] = {"\xff"};
    options = (cadre_submit_options){
        .program = world->program, .arguments = arguments, .argument_count = 1};
    assert_refused(world, &options, CADRE_INVALID_ARGUMENT, "JobSpec.arguments");
}

static void a_file_that_changes_is_noticed(void **state)
{
    struct world *world = *state;
    const cadre_file file = {.path = world->large};
    const cadre_submit_options options = {.program = world->program,
        .files = &file,
        .file_count = 1,
        .on_upload = on_upload,
        .user = world};
    cadre_submitted submitted = {0};
    world->spoil = true;
    assert_int_equal(cadre_client_submit(world->client, &options, &submitted, NULL), CADRE_ABORTED);
    assert_non_null(strstr(cadre_error_message(), "large changed while it was being uploaded"));
    assert_int_equal(stub_seen(&world->stub).submits, 0);
    /* The client is as good as new, and so is the file. */
    assert_int_equal(cadre_client_submit(world->client, &options, &submitted, NULL), CADRE_OK);
}

static void answers_of_the_coordinator_are_passed_on(void **state)
{
    struct world *world = *state;
    const cadre_submit_options options = {.program = world->program};
    cadre_submitted submitted = {0};
    world->stub.submit_fails = CADRE_RESOURCE_EXHAUSTED;
    assert_int_equal(
        cadre_client_submit(world->client, &options, &submitted, NULL), CADRE_RESOURCE_EXHAUSTED);
    assert_string_equal(cadre_error_message(), "the coordinator says no");
    world->stub.submit_fails = CADRE_UNAVAILABLE;
    assert_int_equal(
        cadre_client_submit(world->client, &options, &submitted, NULL), CADRE_UNAVAILABLE);
    assert_non_null(strstr(cadre_error_message(), "look there before you submit again"));
    assert_int_equal(submitted.job, 0);
}

static void a_submission_without_an_answer_is_repeated(void **state)
{
    struct world *world = *state;
    char outages[16] = "";
    cadre_client *client = connect_again(world, outages, 0);
    const cadre_submit_options options = {.program = world->program};
    cadre_submitted submitted = {0};
    world->stub.submit_losses = 2;
    assert_int_equal(cadre_client_submit(client, &options, &submitted, NULL), CADRE_OK);
    assert_int_equal(submitted.job, 7);
    assert_string_equal(outages, "-+");
    assert_int_equal(cadre_client_submit(client, &options, &submitted, NULL), CADRE_OK);
    struct stub_seen seen = stub_seen(&world->stub);
    static const uint8_t none[LIMIT_REQUEST_ID_BYTES];
    assert_int_equal(seen.submits, 4);
    assert_memory_not_equal(seen.request_ids[0], none, sizeof none);
    assert_memory_equal(seen.request_ids[1], seen.request_ids[0], sizeof none);
    assert_memory_equal(seen.request_ids[2], seen.request_ids[0], sizeof none);
    assert_memory_not_equal(seen.request_ids[3], seen.request_ids[0], sizeof none);
    assert_int_equal(seen.blob_count, 1);
    world->stub.submit_fails = CADRE_RESOURCE_EXHAUSTED; /* a refusal is an answer */
    assert_int_equal(
        cadre_client_submit(client, &options, &submitted, NULL), CADRE_RESOURCE_EXHAUSTED);
    assert_int_equal(stub_seen(&world->stub).submits, 5);
    cadre_client_release(client);
}

static void it_is_not_repeated_for_ever(void **state)
{
    struct world *world = *state;
    char outages[16] = "";
    cadre_client *client = connect_again(world, outages, 300000);
    const cadre_submit_options options = {.program = world->program};
    cadre_submitted submitted = {0};
    world->stub.submit_losses = 1000000;
    assert_int_equal(cadre_client_submit(client, &options, &submitted, NULL), CADRE_UNAVAILABLE);
    assert_non_null(strstr(cadre_error_message(), "look there before you submit again"));
    assert_int_equal(submitted.job, 0);
    assert_true(stub_seen(&world->stub).submits >= 2);
    cadre_client_release(client);
}

/* One that knows no ids would make a second job. */
static void at_an_older_coordinator_it_is_made_once(void **state)
{
    struct world *world = *state;
    const cadre_submit_options options = {.program = world->program};
    cadre_submitted submitted = {0};
    world->stub.submit_losses = 1;
    assert_int_equal(
        cadre_client_submit(world->client, &options, &submitted, NULL), CADRE_UNAVAILABLE);
    assert_non_null(strstr(cadre_error_message(), "look there before you submit again"));
    assert_int_equal(stub_seen(&world->stub).submits, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_travels_once, open_world, close_world),
        cmocka_unit_test_setup_teardown(objects_are_left_to_workers, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            an_earlier_coordinator_gets_no_job_with_objects, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            objects_that_cannot_be_are_refused_here, open_world, close_world),
        cmocka_unit_test_setup_teardown(an_elastic_job_says_so, open_world, close_world),
        cmocka_unit_test_setup_teardown(bad_programs_are_refused_here, open_world, close_world),
        cmocka_unit_test_setup_teardown(bad_files_are_refused_here, open_world, close_world),
        cmocka_unit_test_setup_teardown(bad_values_are_refused_here, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_file_that_changes_is_noticed, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            answers_of_the_coordinator_are_passed_on, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            a_submission_without_an_answer_is_repeated, open_world, close_world),
        cmocka_unit_test_setup_teardown(it_is_not_repeated_for_ever, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            at_an_older_coordinator_it_is_made_once, open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
