/* SPDX-License-Identifier: Apache-2.0
 * A checkpoint goes to the coordinator, block by block; links break in between, programs lie,
 * coordinators refuse. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/worker_daemon/checkpoint_stand.h"
#include "worker/host/daemon/publish.h"

static void assert_not_published(cadre_status code, const char *part)
{
    assert_int_equal(stand->code, code);
    if (strstr(stand->text, part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, stand->text);
    }
    assert_null(stand->task.publish);
}

static void only_what_is_missing_is_sent(void **state)
{
    (void)state;
    publish();
    assert_published(3); /* equal blocks are one content; and the manifest */
    write_checkpoint(160);
    publish();
    assert_published(4); /* the tensors are the same */
    stand->file[0] ^= 1;
    write_checkpoint(200);
    publish();
    assert_published(6);
    assert_int_equal(stand->published, 3);
    assert_int_equal(stand->resumed, 0);
}

static void the_manifest_comes_last(void **state)
{
    (void)state;
    stand->coordinator.refusal = CADRE_RESOURCE_EXHAUSTED;
    stand->coordinator.good_calls = 3; /* the question and both blocks */
    publish();
    assert_not_published(CADRE_RESOURCE_EXHAUSTED, "says no");
    assert_int_equal(stand->coordinator.puts, 2);
    assert_null(coordinator_find(&stand->coordinator, stand->part.sha256));
}

/* Of many small blocks, no two of them equal. */
static void write_many_blocks(unsigned count)
{
    char whole[SHA256_HEX_BYTES];
    size_t at;
    hex(stand->file, count * SMALL, whole);
    at = (size_t)snprintf(stand->manifest, sizeof stand->manifest,
        "{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":120,"
        "\"file\":{\"name\":\"c.safetensors\",\"bytes\":%zu,\"sha256\":\"%s\"},\"blocks\":[",
        count * SMALL, whole);
    for (unsigned i = 0; i < count; i++) {
        char block[SHA256_HEX_BYTES];
        hex(stand->file + i * SMALL, SMALL, block);
        at += (size_t)snprintf(stand->manifest + at, sizeof stand->manifest - at,
            "%s{\"offset\":%zu,\"bytes\":%zu,\"sha256\":\"%s\"}", i > 0 ? "," : "", i * SMALL,
            SMALL, block);
    }
    at += (size_t)snprintf(stand->manifest + at, sizeof stand->manifest - at, "]}");
    struct sha256 hash;
    assert_int_equal(sha256_of(stand->manifest, at, &hash, NULL), CADRE_OK);
    put_file("out/deep/c.safetensors", stand->file, count * SMALL);
    put_file("out/deep/c.json", stand->manifest, at);
    stand->part.size_bytes = at;
    memcpy(stand->part.sha256, hash.bytes, sizeof hash.bytes);
}

static void several_blocks_travel_at_once(void **state)
{
    (void)state;
    write_many_blocks(20);
    publish();
    assert_published(21);
    assert_true(stand->coordinator.coming_most > 1);
    assert_true(stand->coordinator.coming_most <= 4);
}

/* One that is refused takes the others with it. */
static void a_refusal_ends_them_all(void **state)
{
    (void)state;
    for (unsigned good = 1; good < 12; good++) {
        write_many_blocks(10);
        stand->coordinator.refusal = CADRE_RESOURCE_EXHAUSTED;
        stand->coordinator.good_calls = good;
        publish();
        assert_not_published(CADRE_RESOURCE_EXHAUSTED, "says no");
        assert_null(coordinator_find(&stand->coordinator, stand->part.sha256));
        until_quiet();
        while (stand->coordinator.blob_count > 0) {
            coordinator_lose(&stand->coordinator, stand->coordinator.blobs[0].hash.bytes);
        }
    }
    assert_int_equal(stand->published, 11);
}

/* The link breaks in the middle of them, and the next one may come before their ends are told. */
static void a_link_breaks_under_several(void **state)
{
    (void)state;
    for (unsigned good = 1; good < 12; good++) {
        write_many_blocks(10);
        stand->coordinator.refusal = CADRE_UNAVAILABLE;
        stand->coordinator.good_calls = good;
        stand->coordinator.puts = 0;
        publish_start(&stand->task, &stand->part);
        if (good % 2 == 0) {
            until_quiet();
        } else {
            while (stand->coordinator.good_calls > 0) {
                bool never = false;
                (void)rpc_loop_run_until(stand->daemon.loop, &never, clock_monotonic_us() + 100);
            }
        }
        stand->coordinator.refusal = CADRE_OK;
        publish_resume(&stand->task);
        until_done();
        assert_published(11);
        while (stand->coordinator.blob_count > 0) {
            coordinator_lose(&stand->coordinator, stand->coordinator.blobs[0].hash.bytes);
        }
    }
}

static void it_waits_for_the_link(void **state)
{
    (void)state;
    stand->daemon.linked = false;
    publish_start(&stand->task, &stand->part);
    until_quiet();
    assert_int_equal(stand->coordinator.asks, 0);
    stand->daemon.linked = true;
    publish_resume(&stand->task);
    until_done();
    assert_published(3);
}

/* Wherever the link breaks, the next one brings the rest, and no more. */
static void a_broken_link_costs_nothing(void **state)
{
    (void)state;
    for (unsigned good = 0; good < 4; good++) {
        stand->coordinator.refusal = CADRE_UNAVAILABLE;
        stand->coordinator.good_calls = good;
        stand->coordinator.puts = 0;
        publish_start(&stand->task, &stand->part);
        until_quiet();
        assert_non_null(stand->task.publish);
        stand->coordinator.refusal = CADRE_OK;
        publish_resume(&stand->task);
        publish_resume(&stand->task); /* it is under way already */
        until_done();
        assert_published(3);
        while (stand->coordinator.blob_count > 0) {
            coordinator_lose(&stand->coordinator, stand->coordinator.blobs[0].hash.bytes);
        }
    }
}

static void a_newer_one_takes_its_place(void **state)
{
    (void)state;
    stand->daemon.linked = false;
    publish_start(&stand->task, &stand->part);
    until_quiet();
    write_checkpoint(160);
    stand->daemon.linked = true;
    publish();
    until_quiet();
    assert_published(3);
    assert_int_equal(stand->published, 1);
}

/* Cancelled at whatever point, it ends without a word. */
static void it_can_be_cancelled(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 30; turns++) {
        publish_start(&stand->task, &stand->part);
        for (unsigned i = 0; i < turns && stand->task.publish != NULL; i++) {
            bool never = false;
            (void)rpc_loop_run_until(stand->daemon.loop, &never, clock_monotonic_us() + 200);
        }
        publish_cancel(&stand->task);
        while (stand->coordinator.blob_count > 0) {
            coordinator_lose(&stand->coordinator, stand->coordinator.blobs[0].hash.bytes);
        }
    }
    stand->done = false;
    stand->published = 0;
    until_quiet();
    assert_int_equal(stand->published, 0);
}

static void a_collection_goes_on_after_it(void **state)
{
    (void)state;
    stand->task.collecting = true;
    publish();
    assert_int_equal(stand->resumed, 1);
}

static void what_was_changed_is_not_published(void **state)
{
    (void)state;
    put_file("out/deep/c.json", "other", 5);
    publish();
    assert_not_published(CADRE_DATA_LOSS, "changed since");
    write_checkpoint(120);
    put_file("out/deep/c.safetensors", stand->file, FILE_BYTES - 1);
    publish();
    assert_not_published(CADRE_DATA_LOSS, "its manifest says");
    write_checkpoint(120);
    stand->file[5] ^= 1;
    put_file("out/deep/c.safetensors", stand->file, FILE_BYTES);
    publish();
    assert_not_published(CADRE_DATA_LOSS, "hash");
}

static void nothing_but_the_tasks_own_is_read(void **state)
{
    (void)state;
    char other[TEST_PATH_BYTES];
    test_path(other, stand->folder, "out/deep/c.json");
    assert_int_equal(symlink(other, in("out/link.json")), 0);
    stand->part.path = "link.json";
    publish();
    assert_int_not_equal(stand->code, CADRE_OK);
    stand->part.path = "../out/deep/c.json";
    publish();
    assert_not_published(CADRE_INVALID_ARGUMENT, "..");
    stand->part.path = other;
    publish();
    assert_int_equal(stand->code, CADRE_INVALID_ARGUMENT);
    stand->part.path = "deep";
    publish();
    assert_int_not_equal(stand->code, CADRE_OK);
    assert_int_equal(stand->coordinator.asks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(only_what_is_missing_is_sent),
        TEST(the_manifest_comes_last), TEST(it_waits_for_the_link),
        TEST(a_broken_link_costs_nothing), TEST(a_newer_one_takes_its_place),
        TEST(several_blocks_travel_at_once), TEST(a_refusal_ends_them_all),
        TEST(a_link_breaks_under_several), TEST(it_can_be_cancelled),
        TEST(a_collection_goes_on_after_it), TEST(what_was_changed_is_not_published),
        TEST(nothing_but_the_tasks_own_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
