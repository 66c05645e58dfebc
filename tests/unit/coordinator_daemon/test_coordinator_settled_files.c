/* SPDX-License-Identifier: Apache-2.0
 * Jobs with objects: which bytes one among a job's files has, those of the first worker that says
 * it; and outputs that lie in an object store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/pure/assert.h"
#include "common/rpc/channel.h"
#include "common/wire/methods.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/base/methods.h"
#include "tests/lib/speed.h"
#include "tests/unit/coordinator_daemon/fake_engine.h"

#define CALLS 8

struct asking {
    bool ended;
    cadre_status status;
    char text[1024];
    bool answered;
    uint8_t first; /* byte of the hash that was settled */
    uint64_t size_bytes;
    char version[LIMIT_NAME_BYTES];
};

static struct engine engine;
static struct daemon fixture;
static struct rpc_channel *channel;
static struct asking askings[CALLS];

static const struct job_file files[] = {
    {.name = "content", .url = "", .version = ""},
    {.name = "object", .url = "s3://bucket/object", .version = ""},
};

static int serve(void (*open)(struct daemon *daemon, struct engine *engine))
{
    struct cadre_error error = {0};
    char address[TEST_PATH_BYTES];
    const struct rpc_method methods[] = {{.path = METHOD_AGENTS_SETTLE_FILE,
                                             .request_bytes_max = LIMIT_FRAME_BYTES,
                                             .ops = &settle_file_ops,
                                             .user = &fixture},
        {.path = METHOD_JOBS_GET_OUTPUT,
            .server_streams = true,
            .request_bytes_max = LIMIT_FRAME_BYTES,
            .ops = &get_output_ops,
            .user = &fixture},
        {.path = METHOD_JOBS_LIST_OUTPUTS,
            .request_bytes_max = LIMIT_FRAME_BYTES,
            .ops = &list_outputs_ops,
            .user = &fixture}};
    const struct rpc_server_options options = {
        .methods = methods, .method_count = CADRE_COUNT_OF(methods)};
    engine = (struct engine){0};
    memset(askings, 0, sizeof askings);
    open(&fixture, &engine);
    struct fake_job *job = add_job(&engine, 1, "program");
    job->spec.files = files;
    job->spec.file_count = 2;
    snprintf(address, sizeof address, "unix:%s/s", test_temp_dir());
    assert_ok(rpc_server_open(fixture.loop, &options, &fixture.server, &error), &error);
    assert_ok(rpc_server_listen(fixture.server, address, NULL, NULL, &error), &error);
    rpc_server_start(fixture.server);
    assert_ok(rpc_channel_open(fixture.loop, address, NULL, &channel, &error), &error);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return serve(daemon_open);
}

/* With the contents in an object store. */
static int set_up_store(void **state)
{
    (void)state;
    return serve(daemon_open_objects);
}

static int tear_down(void **state)
{
    (void)state;
    rpc_channel_close(channel);
    rpc_server_close(fixture.server);
    daemon_close(&fixture);
    return 0;
}

static void on_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)call;
    struct asking *asking = user;
    struct cadre_error error = {0};
    struct settled_file settled;
    wire_arena_reset(fixture.arena);
    assert_ok(wire_unpack_settled_file(data, length, fixture.arena, &settled, &error), &error);
    asking->answered = true;
    asking->first = settled.sha256[0];
    asking->size_bytes = settled.size_bytes;
    snprintf(asking->version, sizeof asking->version, "%s", settled.version);
}

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct asking *asking = user;
    asking->ended = true;
    asking->status = status;
    snprintf(asking->text, sizeof asking->text, "%s", text);
}

static void ask(struct asking *asking, uint64_t job, uint32_t file, uint8_t first)
{
    static const struct rpc_client_ops ops = {.on_message = on_message, .on_status = on_status};
    struct cadre_error error = {0};
    struct wire_buffer packed = {0};
    struct rpc_call *call = NULL;
    const struct rpc_call_options options = {
        .path = METHOD_AGENTS_SETTLE_FILE, .ops = &ops, .user = asking};
    const struct settle_file_request request = {.task = {{job}, 0, 1},
        .file = file,
        .found = {.sha256 = {first}, .size_bytes = first * 10U, .version = "\"etag\""}};
    *asking = (struct asking){0};
    assert_ok(wire_pack_settle_file_request(&request, &packed, &error), &error);
    assert_ok(rpc_channel_call(channel, &options, &call, &error), &error);
    assert_ok(rpc_call_send(call, packed.bytes, packed.size, &error), &error);
    wire_buffer_free(&packed);
}

static void until_ended(struct asking *asking)
{
    assert_int_equal(rpc_loop_run_until(fixture.loop, &asking->ended,
                         clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S)),
        CADRE_OK);
}

static void assert_settled(struct asking *asking, uint8_t first)
{
    until_ended(asking);
    if (asking->status != CADRE_OK) {
        fail_msg("%d: %s", (int)asking->status, asking->text);
    }
    assert_true(asking->answered);
    assert_int_equal(asking->first, first);
    assert_int_equal(asking->size_bytes, first * 10U);
    assert_string_equal(asking->version, "\"etag\"");
}

static void assert_refused(uint64_t job, uint32_t file, cadre_status status, const char *part)
{
    ask(&askings[0], job, file, 1);
    until_ended(&askings[0]);
    assert_int_equal(askings[0].status, status);
    assert_non_null(strstr(askings[0].text, part));
}

static void the_first_one_counts(void **state)
{
    (void)state;
    ask(&askings[0], 1, 1, 7);
    assert_settled(&askings[0], 7);
    for (uint8_t other = 1; other < 4; other++) {
        ask(&askings[0], 1, 1, other);
        assert_settled(&askings[0], 7);
    }
}

/* Whichever was first, all get the same. */
static void of_many_at_one_time_one_counts(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < CALLS; i++) {
        ask(&askings[i], 1, 1, (uint8_t)(i + 1));
    }
    until_ended(&askings[0]);
    assert_in_range(askings[0].first, 1, CALLS);
    for (uint8_t i = 0; i < CALLS; i++) {
        assert_settled(&askings[i], askings[0].first);
    }
}

/* One file is left of them. */
static void of_many_at_one_time_one_is_kept(void **state)
{
    of_many_at_one_time_one_counts(state);
    CADRE_FREE_AT_EXIT char *path = path_of_settled(&fixture, (struct job_id){1}, 1);
    assert_int_equal(access(path, F_OK), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), -1); /* there is one ... */
    path[strlen(path)] = '/';
    assert_int_equal(unlink(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0); /* ... and no other */
}

static void what_is_no_object_is_refused(void **state)
{
    (void)state;
    assert_refused(1, 0, CADRE_INVALID_ARGUMENT, "file 0 of job 1 is no object");
    assert_refused(1, 2, CADRE_INVALID_ARGUMENT, "file 2 of job 1 is no object");
    assert_refused(2, 1, CADRE_FAILED_PRECONDITION, "job 2 has ended");
    engine.jobs[0].state = JOB_SUCCEEDED;
    assert_refused(1, 1, CADRE_FAILED_PRECONDITION, "job 1 has ended");
}

static void a_damaged_file_is_no_answer(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *path = path_of_settled(&fixture, (struct job_id){1}, 1);
    CADRE_FREE_AT_EXIT char *folder = strndup(path, (size_t)(strrchr(path, '/') - path));
    assert_ok(folder_make(folder, 0700, &error), &error);
    test_write(path, "\xff\xff");
    assert_refused(1, 1, CADRE_DATA_LOSS, path);
}

/* ---- outputs that lie elsewhere ---- */

static void on_listing(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)call;
    struct asking *asking = user;
    struct cadre_error error = {0};
    struct list_outputs_response list;
    wire_arena_reset(fixture.arena);
    assert_ok(
        wire_unpack_list_outputs_response(data, length, fixture.arena, &list, &error), &error);
    asking->answered = true;
    asking->size_bytes = list.count;
    snprintf(asking->version, sizeof asking->version, "%s", list.folder);
}

static void ask_for_outputs(
    const char *path, const struct rpc_client_ops *ops, struct wire_buffer *packed)
{
    struct cadre_error error = {0};
    struct rpc_call *call = NULL;
    const struct rpc_call_options options = {.path = path,
        .server_streams = strcmp(path, METHOD_JOBS_GET_OUTPUT) == 0,
        .ops = ops,
        .user = &askings[0]};
    askings[0] = (struct asking){0};
    assert_ok(rpc_channel_call(channel, &options, &call, &error), &error);
    assert_ok(rpc_call_send(call, packed->bytes, packed->size, &error), &error);
    wire_buffer_free(packed);
    until_ended(&askings[0]);
}

/* They are not looked for here: a client gets the folder instead of "left no file". */
static void the_folder_of_outputs_is_named(void **state)
{
    (void)state;
    static const struct rpc_client_ops list_ops = {
        .on_message = on_listing, .on_status = on_status};
    static const struct rpc_client_ops get_ops = {.on_status = on_status};
    struct cadre_error error = {0};
    struct wire_buffer packed = {0};
    engine.jobs[0].spec.outputs_folder = "s3://bucket/runs";
    assert_ok(wire_pack_job_request(&(struct job_request){.id = {1}}, &packed, &error), &error);
    ask_for_outputs(METHOD_JOBS_LIST_OUTPUTS, &list_ops, &packed);
    assert_int_equal(askings[0].status, CADRE_OK);
    assert_int_equal(askings[0].size_bytes, 0);
    assert_string_equal(askings[0].version, "s3://bucket/runs");
    const struct get_output_request request = {.id = {1}, .path = "0/model"};
    assert_ok(wire_pack_get_output_request(&request, &packed, &error), &error);
    ask_for_outputs(METHOD_JOBS_GET_OUTPUT, &get_ops, &packed);
    assert_int_equal(askings[0].status, CADRE_NOT_FOUND);
    assert_non_null(strstr(askings[0].text, "lies in the object store, at s3://bucket/runs/1; "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_one_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_many_at_one_time_one_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_one_counts, set_up_store, tear_down),
        cmocka_unit_test_setup_teardown(of_many_at_one_time_one_counts, set_up_store, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_object_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_no_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_folder_of_outputs_is_named, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("objects of jobs", tests, NULL, NULL);
}
