/* SPDX-License-Identifier: Apache-2.0
 * Contents and outputs over the network: brought once, kept whole or not at all, read back from
 * their blocks, and damaged ones never handed out for good. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/rpc/channel.h"
#include "common/wire/methods.h"
#include "coordinator/daemon/contents/artifacts.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/contents/file_store.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/base/disk.h"
#include "tests/lib/speed.h"
#include "tests/unit/coordinator_daemon/fake_engine.h"
#include "tests/unit/coordinator_daemon/vanishing_file.h"

struct stand {
    struct engine engine;
    struct daemon daemon;
    struct rpc_channel *channel;
    struct rpc_call *call;
    /* of the call that was made last: */
    bool ended;
    cadre_status status;
    char text[1024];
    struct wire_buffer got; /* of chunks, their bytes */
    uint64_t announced;     /* by a header */
    char listing[1024];
    size_t missing;
};

static struct stand *stand;

static const struct rpc_method methods[] = {{.path = METHOD_AGENTS_PUT_BLOB,
                                                .client_streams = true,
                                                .request_bytes_max = 2 * LIMIT_BLOB_CHUNK_BYTES,
                                                .ops = &put_blob_ops},
    {.path = METHOD_AGENTS_MISSING_BLOBS,
        .request_bytes_max = LIMIT_SPEC_BYTES,
        .ops = &missing_blobs_ops},
    {.path = METHOD_AGENTS_PUT_OUTPUT,
        .client_streams = true,
        .request_bytes_max = 2 * LIMIT_BLOB_CHUNK_BYTES,
        .ops = &put_output_ops},
    {.path = METHOD_AGENTS_GET_BLOB,
        .server_streams = true,
        .request_bytes_max = LIMIT_FRAME_BYTES,
        .ops = &get_blob_ops},
    {.path = METHOD_JOBS_GET_OUTPUT,
        .server_streams = true,
        .request_bytes_max = LIMIT_FRAME_BYTES,
        .ops = &get_output_ops},
    {.path = METHOD_JOBS_LIST_OUTPUTS,
        .request_bytes_max = LIMIT_FRAME_BYTES,
        .ops = &list_outputs_ops}};

#define METHODS (sizeof methods / sizeof methods[0])

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char address[TEST_PATH_BYTES];
    struct rpc_method own[METHODS];
    stand = calloc(1, sizeof *stand);
    assert_non_null(stand);
    daemon_open(&stand->daemon, &stand->engine);
    add_job(&stand->engine, 1, "program");
    for (size_t i = 0; i < METHODS; i++) {
        own[i] = methods[i];
        own[i].user = &stand->daemon;
    }
    struct rpc_server_options options = {.methods = own, .method_count = METHODS};
    snprintf(address, sizeof address, "unix:%s/s", test_temp_dir());
    assert_ok(rpc_server_open(stand->daemon.loop, &options, &stand->daemon.server, &error), &error);
    assert_ok(rpc_server_listen(stand->daemon.server, address, NULL, NULL, &error), &error);
    rpc_server_start(stand->daemon.server);
    assert_ok(rpc_channel_open(stand->daemon.loop, address, NULL, &stand->channel, &error), &error);
    return 0;
}

static void run_for(uint64_t us)
{
    bool never = false;
    (void)rpc_loop_run_until(stand->daemon.loop, &never, clock_monotonic_us() + us);
}

static int tear_down(void **state)
{
    (void)state;
    rpc_channel_close(stand->channel);
    rpc_server_close(stand->daemon.server);
    daemon_close(&stand->daemon);
    wire_buffer_free(&stand->got);
    free(stand);
    return 0;
}

/* ---- calls ---- */

static void on_chunk(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)call;
    (void)user;
    struct cadre_error error = {0};
    struct blob_chunk chunk;
    wire_arena_reset(stand->daemon.arena);
    assert_ok(wire_unpack_blob_chunk(data, length, stand->daemon.arena, &chunk, &error), &error);
    stand->announced = chunk.has_header ? chunk.size_bytes : stand->announced;
    assert_true(wire_buffer_reserve(&stand->got, chunk.byte_count + 1));
    if (chunk.byte_count > 0) { /* a header may come alone */
        memcpy(stand->got.bytes + stand->got.size, chunk.bytes, chunk.byte_count);
    }
    stand->got.size += chunk.byte_count;
    stand->got.bytes[stand->got.size] = '\0';
}

static void on_listing(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)call;
    (void)user;
    struct cadre_error error = {0};
    struct list_outputs_response list;
    wire_arena_reset(stand->daemon.arena);
    assert_ok(wire_unpack_list_outputs_response(data, length, stand->daemon.arena, &list, &error),
        &error);
    size_t at = 0;
    stand->listing[0] = '\0';
    for (size_t i = 0; i < list.count; i++) {
        at += (size_t)snprintf(stand->listing + at, sizeof stand->listing - at, "%s %" PRIu64 "\n",
            list.outputs[i].path, list.outputs[i].size_bytes);
    }
}

static void on_missing(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)call;
    (void)user;
    struct cadre_error error = {0};
    struct blob_list list;
    wire_arena_reset(stand->daemon.arena);
    assert_ok(wire_unpack_blob_list(data, length, stand->daemon.arena, &list, &error), &error);
    stand->missing = list.count;
}

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    (void)user;
    stand->call = NULL;
    stand->ended = true;
    stand->status = status;
    snprintf(stand->text, sizeof stand->text, "%s", text);
}

static const struct rpc_client_ops chunk_ops = {.on_message = on_chunk, .on_status = on_status};
static const struct rpc_client_ops list_ops = {.on_message = on_listing, .on_status = on_status};
static const struct rpc_client_ops missing_ops = {.on_message = on_missing, .on_status = on_status};
static const struct rpc_client_ops put_ops = {.on_status = on_status};

static void begin(const char *path, bool streams, const struct rpc_client_ops *ops)
{
    struct cadre_error error = {0};
    struct rpc_call_options options = {
        .path = path, .client_streams = streams, .server_streams = ops == &chunk_ops, .ops = ops};
    stand->ended = false;
    stand->announced = UINT64_MAX;
    stand->got.size = 0;
    assert_ok(rpc_channel_call(stand->channel, &options, &stand->call, &error), &error);
}

static void send_packed(struct wire_buffer *packed)
{
    struct cadre_error error = {0};
    assert_ok(rpc_call_send(stand->call, packed->bytes, packed->size, &error), &error);
    wire_buffer_free(packed);
}

static cadre_status until_ended(void)
{
    assert_int_equal(rpc_loop_run_until(stand->daemon.loop, &stand->ended,
                         clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S)),
        CADRE_OK);
    return stand->status;
}

static void assert_ended(cadre_status wanted, const char *part)
{
    (void)until_ended();
    if (stand->status != wanted || strstr(stand->text, part) == NULL) {
        fail_msg("%d: %s", (int)stand->status, stand->text);
    }
}

static void put_blob(const char *text, const struct sha256 *hash, uint64_t announced)
{
    struct cadre_error error = {0};
    struct wire_buffer packed = {0};
    struct blob_chunk chunk = {.has_header = true,
        .size_bytes = announced,
        .bytes = (const uint8_t *)text,
        .byte_count = strlen(text)};
    memcpy(chunk.sha256, hash->bytes, sizeof chunk.sha256);
    begin(METHOD_AGENTS_PUT_BLOB, true, &put_ops);
    assert_ok(wire_pack_blob_chunk(&chunk, &packed, &error), &error);
    send_packed(&packed);
}

static void put_whole_blob(const char *text)
{
    struct sha256 hash = hash_of_text(text);
    put_blob(text, &hash, strlen(text));
    rpc_call_half_close(stand->call);
}

static void get_output(const char *path)
{
    struct cadre_error error = {0};
    struct wire_buffer packed = {0};
    struct get_output_request request = {.id = {1}, .path = path};
    assert_ok(wire_pack_get_output_request(&request, &packed, &error), &error);
    begin(METHOD_JOBS_GET_OUTPUT, false, &chunk_ops);
    send_packed(&packed);
}

static void assert_output(const char *path, const char *wanted)
{
    get_output(path);
    assert_ended(CADRE_OK, "");
    assert_int_equal(stand->announced, strlen(wanted));
    assert_int_equal(stand->got.size, strlen(wanted));
    assert_string_equal(stand->got.bytes, wanted);
}

static void assert_listing(const char *wanted)
{
    struct cadre_error error = {0};
    struct wire_buffer packed = {0};
    assert_ok(wire_pack_job_request(&(struct job_request){.id = {1}}, &packed, &error), &error);
    begin(METHOD_JOBS_LIST_OUTPUTS, false, &list_ops);
    send_packed(&packed);
    assert_ended(CADRE_OK, "");
    assert_string_equal(stand->listing, wanted);
}

static bool is_missing(const char *text)
{
    struct cadre_error error = {0};
    struct wire_buffer packed = {0};
    struct sha256 hash = hash_of_text(text);
    uint8_t hashes[1][LIMIT_SHA256_BYTES];
    memcpy(hashes[0], hash.bytes, sizeof hashes[0]);
    struct blob_list list = {.sha256 = (const uint8_t(*)[LIMIT_SHA256_BYTES])hashes, .count = 1};
    assert_ok(wire_pack_blob_list(&list, &packed, &error), &error);
    begin(METHOD_AGENTS_MISSING_BLOBS, false, &missing_ops);
    send_packed(&packed);
    assert_ended(CADRE_OK, "");
    return stand->missing == 1;
}

/* ---- contents ---- */

static void a_content_is_kept_when_it_is_what_it_should_be(void **state)
{
    (void)state;
    assert_true(is_missing("content"));
    put_whole_blob("content");
    assert_ended(CADRE_OK, "");
    assert_false(is_missing("content"));
    struct sha256 hash = hash_of_text("something else");
    put_blob("content", &hash, 7);
    rpc_call_half_close(stand->call);
    assert_ended(CADRE_DATA_LOSS, "does not have the hash");
    assert_false(is_here(&stand->daemon, "something else"));
    hash = hash_of_text("short");
    put_blob("short", &hash, 6);
    rpc_call_half_close(stand->call);
    assert_ended(CADRE_DATA_LOSS, "after 5 of 6 bytes");
    put_blob("short", &hash, 4);
    assert_ended(CADRE_INVALID_ARGUMENT, "longer than the 4 bytes");
    assert_false(is_here(&stand->daemon, "short"));
}

/* The client goes away before the end, or while it is brought to the disk. */
static void a_client_that_leaves_spoils_nothing(void **state)
{
    (void)state;
    struct sha256 hash = hash_of_text("content");
    for (unsigned turns = 0; turns < 20; turns++) {
        put_blob("content", &hash, 7);
        run_for(100 * turns);
        rpc_call_half_close(stand->call);
        run_for(50 * turns);
        if (stand->call != NULL) {
            rpc_call_cancel(stand->call);
        }
        (void)until_ended();
    }
    put_whole_blob("content");
    assert_ended(CADRE_OK, "");
    assert_true(is_here(&stand->daemon, "content"));
}

/* Whichever call fails, the upload says so, and nothing of it is there. */
static void a_content_that_cannot_be_kept_is_not_there(void **state)
{
    (void)state;
    static const char *const areas[] = {"receive.", "file.write"};
    for (size_t area = 0; area < sizeof areas / sizeof areas[0]; area++) {
        for (uint64_t nth = 1;; nth++) {
            fault_arm(areas[area], nth);
            put_whole_blob(area == 0 ? "one" : "two");
            cadre_status status = until_ended();
            bool met = fault_disarm();
            assert_int_equal(status != CADRE_OK, met);
            assert_int_equal(is_here(&stand->daemon, area == 0 ? "one" : "two"), !met);
            if (!met) {
                assert_true(nth > 1);
                break;
            }
        }
    }
}

static struct sha256 manifest_of(const struct core_checkpoint *checkpoint)
{
    struct sha256 hash;
    memcpy(hash.bytes, checkpoint->manifest_sha256, sizeof hash.bytes);
    return hash;
}

/* A content without references is removed while a client uploads it again: whichever comes first,
 * the content of an acknowledged upload is there. */
static void what_comes_while_it_goes_is_there(void **state)
{
    (void)state;
    struct sha256 hash = hash_of_text("content");
    for (unsigned turn = 0; turn < 60; turn++) {
        put_old_content(&stand->daemon, "content");
        put_blob("content", &hash, 7);
        run_for(turn % 3 == 0 ? 0 : 20 * turn);
        if (turn % 2 == 0) {
            contents_remove(stand->daemon.contents, &hash, true);
            assert_false(contents_find(stand->daemon.contents, &hash, NULL));
        }
        rpc_call_half_close(stand->call);
        run_for(turn % 5 == 0 ? 0 : 10 * turn);
        contents_remove(stand->daemon.contents, &hash, true);
        assert_ended(CADRE_OK, "");
        assert_int_equal(
            is_here(&stand->daemon, "content"), contents_find(stand->daemon.contents, &hash, NULL));
        if (turn % 2 == 0 && turn % 5 == 0) { /* removed before it came, and not since */
            assert_true(is_here(&stand->daemon, "content"));
        }
    }
}

/* Its file was removed by hand: MissingBlobs lists it as missing. */
static void a_file_that_is_gone_is_missing(void **state)
{
    (void)state;
    struct sha256 hash = hash_of_text("content");
    put_whole_blob("content");
    assert_ended(CADRE_OK, "");
    assert_false(is_missing("content"));
    CADRE_FREE_AT_EXIT char *path = path_of_blob(&stand->daemon, hash.bytes);
    assert_int_equal(unlink(path), 0);
    assert_true(contents_find(stand->daemon.contents, &hash, NULL));
    assert_true(is_missing("content"));
    assert_false(contents_find(stand->daemon.contents, &hash, NULL));
    assert_int_equal(contents_bytes(stand->daemon.contents), 0);
    put_whole_blob("content");
    assert_ended(CADRE_OK, "");
    assert_false(is_missing("content"));
    assert_int_equal(contents_bytes(stand->daemon.contents), 7);
}

/* It is removed while it is read: the reader gets all of it, and a later one NOT_FOUND. */
static void what_is_being_read_may_go(void **state)
{
    (void)state;
    static const char *const blocks[] = {"first ", "second", NULL};
    for (unsigned turn = 0; turn < 20; turn++) {
        struct core_checkpoint checkpoint = put_checkpoint(&stand->daemon, 10, blocks);
        struct sha256 hash = manifest_of(&checkpoint);
        publish(&stand->engine.jobs[0], &checkpoint);
        get_output("checkpoints/c-10.json");
        run_for(20 * turn);
        contents_remove(stand->daemon.contents, &hash, false);
        (void)until_ended();
        bool whole = stand->status == CADRE_OK;
        assert_true(whole || stand->status == CADRE_NOT_FOUND);
        assert_int_equal(whole, stand->got.size == checkpoint.manifest_bytes);
        get_output("checkpoints/c-10.json");
        assert_ended(CADRE_NOT_FOUND, "c-10.json");
        drop_oldest(&stand->engine.jobs[0]);
    }
}

/* Between the reading of the manifest for what it lists, and its opening for the reader. */
static void what_goes_before_it_is_opened_is_named_as_requested(void **state)
{
    (void)state;
    struct core_checkpoint checkpoint =
        put_checkpoint(&stand->daemon, 10, (const char *const[]){"first ", "second", NULL});
    struct sha256 hash = manifest_of(&checkpoint);
    CADRE_FREE_AT_EXIT char *path = path_of_blob(&stand->daemon, hash.bytes);
    publish(&stand->engine.jobs[0], &checkpoint);
    vanish_at_open(path, 2);
    get_output("checkpoints/c-10.json");
    assert_ended(CADRE_NOT_FOUND, "job 1 keeps no checkpoint file c-10.json: see `cadre get 1");
    assert_int_equal(access(path, F_OK), -1); /* it did go then */
}

/* MissingBlobs listed a content as here: from then on it stays, also without references. */
static void who_asks_may_count_on_it(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    put_old_content(&stand->daemon, "program");
    struct core_checkpoint checkpoint =
        put_checkpoint(&stand->daemon, 10, (const char *const[]){"asked", "not asked", NULL});
    publish(&stand->engine.jobs[0], &checkpoint);
    assert_ok(refresh_references(&stand->daemon, &error), &error);
    assert_false(is_missing("asked"));
    drop_oldest(&stand->engine.jobs[0]);
    assert_ok(refresh_references(&stand->daemon, &error), &error);
    assert_true(is_here(&stand->daemon, "asked"));
    assert_false(is_here(&stand->daemon, "not asked"));
    assert_true(is_missing("not asked"));
}

/* ---- checkpoints ---- */

static void a_checkpoint_is_read_back_from_its_blocks(void **state)
{
    (void)state;
    char manifest[2048];
    const char *const blocks[] = {"first ", "second ", "third", NULL};
    struct core_checkpoint checkpoint = put_checkpoint(&stand->daemon, 10, blocks);
    publish(&stand->engine.jobs[0], &checkpoint);
    size_t size = manifest_text(10, blocks, manifest);
    char expected[256];
    snprintf(expected, sizeof expected,
        "checkpoints/c-10.json %zu\ncheckpoints/c-10.safetensors 18\n", size);
    assert_listing(expected);
    assert_output("checkpoints/c-10.safetensors", "first second third");
    assert_output("checkpoints/c-10.json", manifest);
    get_output("checkpoints/c-11.json");
    assert_ended(CADRE_NOT_FOUND, "c-11.json");
}

static void spoil(const char *text, const char *with)
{
    struct sha256 hash = hash_of_text(text);
    CADRE_FREE_AT_EXIT char *path = path_of_blob(&stand->daemon, hash.bytes);
    if (with != NULL) {
        test_write(path, with);
    } else {
        assert_int_equal(unlink(path), 0);
    }
}

static void a_damaged_block_is_a_loss(void **state)
{
    (void)state;
    static const char *const blocks[] = {"first ", "second ", "third", NULL};
    struct core_checkpoint checkpoint = put_checkpoint(&stand->daemon, 10, blocks);
    publish(&stand->engine.jobs[0], &checkpoint);
    for (size_t i = 0; blocks[i] != NULL; i++) {
        char other[16];
        snprintf(other, sizeof other, "%s", blocks[i]);
        other[2] ^= 1;
        const char *const damages[] = {other, "", "x", "much longer than it was", NULL};
        for (size_t k = 0; k < sizeof damages / sizeof damages[0]; k++) {
            spoil(blocks[i], damages[k]);
            get_output("checkpoints/c-10.safetensors");
            assert_ended(CADRE_DATA_LOSS, "");
            put_old_content(&stand->daemon, blocks[i]);
        }
        assert_output("checkpoints/c-10.safetensors", "first second third");
        assert_int_equal(stand->engine.damaged_job.n, stand->engine.jobs[0].id);
        assert_int_equal(stand->engine.damaged_position, 10);
        stand->engine.damaged_position = 0;
    }
}

/* ---- outputs ---- */

static void put_output(
    const char *path, const char *bytes, const uint8_t *checkpoint, uint64_t announced)
{
    struct cadre_error error = {0};
    struct wire_buffer packed = {0};
    struct output_chunk chunk = {.has_header = true,
        .task = {.job = {1}, .slot = 0, .incarnation = 1},
        .path = path,
        .size_bytes = announced,
        .refers = checkpoint != NULL,
        .bytes = (const uint8_t *)bytes,
        .byte_count = strlen(bytes)};
    if (checkpoint != NULL) {
        memcpy(chunk.checkpoint, checkpoint, sizeof chunk.checkpoint);
    }
    assert_ok(wire_pack_output_chunk(&chunk, &packed, &error), &error);
    begin(METHOD_AGENTS_PUT_OUTPUT, true, &put_ops);
    send_packed(&packed);
    rpc_call_half_close(stand->call);
}

static void files_that_tasks_left_are_served(void **state)
{
    (void)state;
    put_output("deep/notes", "text", NULL, 4);
    assert_ended(CADRE_OK, "");
    put_output("big", "text", NULL, 2000000);
    assert_ended(CADRE_RESOURCE_EXHAUSTED, "--output-limit");
    assert_listing("0/deep/notes 4\n");
    assert_output("0/deep/notes", "text");
    get_output("0/deep");
    assert_ended(CADRE_NOT_FOUND, "left no file");
    stand->engine.jobs[0].state = JOB_SUCCEEDED;
    put_output("late", "text", NULL, 4);
    assert_ended(CADRE_FAILED_PRECONDITION, "takes no more outputs");
}

/* Another coordinator may lead already, and have received a newer file. */
static void who_may_not_lead_any_more_replaces_no_file(void **state)
{
    (void)state;
    leading_set(&stand->daemon.leading, UINT64_MAX);
    put_output("model", "old", NULL, 3);
    assert_ended(CADRE_OK, "");
    leading_set(&stand->daemon.leading, 1);
    put_output("model", "new", NULL, 3);
    assert_ended(CADRE_UNAVAILABLE, "whether it leads still");
    assert_output("0/model", "old");
    struct sha256 hash = hash_of_text("content");
    char path[TEST_PATH_BYTES]; /* no file of the other one: */
    stand->engine.nonce = 0xab;
    test_path(path, stand->daemon.blob_dir, "upload-00000000000000ab-3");
    put_blob("content", &hash, 7);
    while (access(path, F_OK) != 0) {
        run_for(1000);
    }
    rpc_call_half_close(stand->call);
    assert_ended(CADRE_UNAVAILABLE, "whether it leads still");
    assert_false(is_here(&stand->daemon, "content"));
}

static void a_referred_file_is_shown_as_long_as_it_is_kept(void **state)
{
    (void)state;
    struct core_checkpoint checkpoint =
        put_checkpoint(&stand->daemon, 10, (const char *const[]){"first ", "second", NULL});
    put_output("c-10.safetensors", "", checkpoint.manifest_sha256, 12);
    assert_ended(CADRE_NOT_FOUND, "send the bytes"); /* it was not published */
    publish(&stand->engine.jobs[0], &checkpoint);
    put_output("c-10.safetensors", "", checkpoint.manifest_sha256, 12);
    assert_ended(CADRE_OK, "");
    put_output("c-10.safetensors", "", checkpoint.manifest_sha256, 13);
    assert_ended(CADRE_NOT_FOUND, "send the bytes");
    assert_output("0/c-10.safetensors", "first second");
    char expected[256];
    snprintf(expected, sizeof expected,
        "0/c-10.safetensors 12\ncheckpoints/c-10.json %u\ncheckpoints/c-10.safetensors 12\n",
        (unsigned)checkpoint.manifest_bytes);
    assert_listing(expected);
    drop_oldest(&stand->engine.jobs[0]);
    assert_listing("");
    get_output("0/c-10.safetensors");
    assert_ended(CADRE_NOT_FOUND, "keeps no checkpoint file");
    put_output("c-10.safetensors", "bytes", NULL, 5); /* then its bytes come after all */
    assert_ended(CADRE_OK, "");
    assert_listing("0/c-10.safetensors 5\n");
    assert_output("0/c-10.safetensors", "bytes");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_content_is_kept_when_it_is_what_it_should_be),
        TEST(a_client_that_leaves_spoils_nothing), TEST(a_content_that_cannot_be_kept_is_not_there),
        TEST(what_comes_while_it_goes_is_there), TEST(a_file_that_is_gone_is_missing),
        TEST(what_is_being_read_may_go), TEST(what_goes_before_it_is_opened_is_named_as_requested),
        TEST(who_asks_may_count_on_it), TEST(a_checkpoint_is_read_back_from_its_blocks),
        TEST(a_damaged_block_is_a_loss), TEST(files_that_tasks_left_are_served),
        TEST(who_may_not_lead_any_more_replaces_no_file),
        TEST(a_referred_file_is_shown_as_long_as_it_is_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
