/* SPDX-License-Identifier: Apache-2.0
 * A checkpoint goes to the coordinator, block by block; links break in between, programs lie,
 * coordinators refuse. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/worker_daemon/checkpoint_fixture.h"
#include "worker/host/daemon/publish.h"

static void assert_not_published(cadre_status code, const char *part)
{
    assert_int_equal(fixture->code, code);
    if (strstr(fixture->text, part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, fixture->text);
    }
    assert_null(fixture->task.publish);
}

static void only_what_is_missing_is_sent(void **state)
{
    (void)state;
    publish();
    assert_published(3); /* equal blocks are one content; and the manifest */
    write_checkpoint(160);
    publish();
    assert_published(4); /* the tensors are the same */
    fixture->file[0] ^= 1;
    write_checkpoint(200);
    publish();
    assert_published(6);
    assert_int_equal(fixture->published, 3);
    assert_int_equal(fixture->resumed, 0);
}

static void the_manifest_comes_last(void **state)
{
    (void)state;
    fixture->coordinator.refusal = CADRE_RESOURCE_EXHAUSTED;
    fixture->coordinator.good_calls = 3; /* the question and both blocks */
    publish();
    assert_not_published(CADRE_RESOURCE_EXHAUSTED, "refuses it");
    assert_int_equal(fixture->coordinator.puts, 2);
    assert_null(coordinator_find(&fixture->coordinator, fixture->part.sha256));
}

/* Of many small blocks, no two of them equal. */
static void write_many_blocks(unsigned count)
{
    char whole[SHA256_HEX_BYTES];
    size_t at;
    hex(fixture->file, count * SMALL, whole);
    at = (size_t)snprintf(fixture->manifest, sizeof fixture->manifest,
        "{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":120,"
        "\"file\":{\"name\":\"c.safetensors\",\"bytes\":%zu,\"sha256\":\"%s\"},\"blocks\":[",
        count * SMALL, whole);
    for (unsigned i = 0; i < count; i++) {
        char block[SHA256_HEX_BYTES];
        hex(fixture->file + i * SMALL, SMALL, block);
        at += (size_t)snprintf(fixture->manifest + at, sizeof fixture->manifest - at,
            "%s{\"offset\":%zu,\"bytes\":%zu,\"sha256\":\"%s\"}", i > 0 ? "," : "", i * SMALL,
            SMALL, block);
    }
    at += (size_t)snprintf(fixture->manifest + at, sizeof fixture->manifest - at, "]}");
    struct sha256 hash;
    assert_int_equal(sha256_of(fixture->manifest, at, &hash, NULL), CADRE_OK);
    put_file("out/deep/c.safetensors", fixture->file, count * SMALL);
    put_file("out/deep/c.json", fixture->manifest, at);
    fixture->part.size_bytes = at;
    memcpy(fixture->part.sha256, hash.bytes, sizeof hash.bytes);
}

static void several_blocks_travel_at_once(void **state)
{
    (void)state;
    write_many_blocks(20);
    publish();
    assert_published(21);
    assert_true(fixture->coordinator.coming_max > 1);
    assert_true(fixture->coordinator.coming_max <= 4);
}

/* One that is refused takes the others with it. */
static void a_refusal_ends_them_all(void **state)
{
    (void)state;
    for (unsigned good = 1; good < 12; good++) {
        write_many_blocks(10);
        fixture->coordinator.refusal = CADRE_RESOURCE_EXHAUSTED;
        fixture->coordinator.good_calls = good;
        publish();
        assert_not_published(CADRE_RESOURCE_EXHAUSTED, "refuses it");
        assert_null(coordinator_find(&fixture->coordinator, fixture->part.sha256));
        until_quiet();
        while (fixture->coordinator.blob_count > 0) {
            coordinator_lose(&fixture->coordinator, fixture->coordinator.blobs[0].hash.bytes);
        }
    }
    assert_int_equal(fixture->published, 11);
}

/* The link breaks in the middle of them, and the next one may come before their ends are
 * reported. */
static void a_link_breaks_under_several(void **state)
{
    (void)state;
    for (unsigned good = 1; good < 12; good++) {
        write_many_blocks(10);
        fixture->coordinator.refusal = CADRE_UNAVAILABLE;
        fixture->coordinator.good_calls = good;
        fixture->coordinator.puts = 0;
        publish_start(&fixture->task, &fixture->part);
        if (good % 2 == 0) {
            until_quiet();
        } else {
            while (fixture->coordinator.good_calls > 0) {
                bool never = false;
                (void)rpc_loop_run_until(fixture->daemon.loop, &never, clock_monotonic_us() + 100);
            }
        }
        fixture->coordinator.refusal = CADRE_OK;
        publish_resume(&fixture->task);
        until_done();
        assert_published(11);
        while (fixture->coordinator.blob_count > 0) {
            coordinator_lose(&fixture->coordinator, fixture->coordinator.blobs[0].hash.bytes);
        }
    }
}

static void it_waits_for_the_link(void **state)
{
    (void)state;
    fixture->daemon.linked = false;
    publish_start(&fixture->task, &fixture->part);
    until_quiet();
    assert_int_equal(fixture->coordinator.asks, 0);
    fixture->daemon.linked = true;
    publish_resume(&fixture->task);
    until_done();
    assert_published(3);
}

/* Wherever the link breaks, the next one brings the rest, and no more. */
static void a_broken_link_costs_nothing(void **state)
{
    (void)state;
    for (unsigned good = 0; good < 4; good++) {
        fixture->coordinator.refusal = CADRE_UNAVAILABLE;
        fixture->coordinator.good_calls = good;
        fixture->coordinator.puts = 0;
        publish_start(&fixture->task, &fixture->part);
        until_quiet();
        assert_non_null(fixture->task.publish);
        fixture->coordinator.refusal = CADRE_OK;
        publish_resume(&fixture->task);
        publish_resume(&fixture->task); /* it is under way already */
        until_done();
        assert_published(3);
        while (fixture->coordinator.blob_count > 0) {
            coordinator_lose(&fixture->coordinator, fixture->coordinator.blobs[0].hash.bytes);
        }
    }
}

static void a_newer_one_takes_its_place(void **state)
{
    (void)state;
    fixture->daemon.linked = false;
    publish_start(&fixture->task, &fixture->part);
    until_quiet();
    write_checkpoint(160);
    fixture->daemon.linked = true;
    publish();
    until_quiet();
    assert_published(3);
    assert_int_equal(fixture->published, 1);
}

/* Cancelled at whatever point, it ends without a word. */
static void it_can_be_cancelled(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 30; turns++) {
        publish_start(&fixture->task, &fixture->part);
        for (unsigned i = 0; i < turns && fixture->task.publish != NULL; i++) {
            bool never = false;
            (void)rpc_loop_run_until(fixture->daemon.loop, &never, clock_monotonic_us() + 200);
        }
        publish_cancel(&fixture->task);
        while (fixture->coordinator.blob_count > 0) {
            coordinator_lose(&fixture->coordinator, fixture->coordinator.blobs[0].hash.bytes);
        }
    }
    fixture->done = false;
    fixture->published = 0;
    until_quiet();
    assert_int_equal(fixture->published, 0);
}

static void a_collection_goes_on_after_it(void **state)
{
    (void)state;
    fixture->task.collecting = true;
    publish();
    assert_int_equal(fixture->resumed, 1);
}

static void what_was_changed_is_not_published(void **state)
{
    (void)state;
    put_file("out/deep/c.json", "other", 5);
    publish();
    assert_not_published(CADRE_DATA_LOSS, "changed since");
    write_checkpoint(120);
    put_file("out/deep/c.safetensors", fixture->file, FILE_BYTES - 1);
    publish();
    assert_not_published(CADRE_DATA_LOSS, "of its manifest");
    write_checkpoint(120);
    fixture->file[5] ^= 1;
    put_file("out/deep/c.safetensors", fixture->file, FILE_BYTES);
    publish();
    assert_not_published(CADRE_DATA_LOSS, "hash");
}

static void nothing_but_the_tasks_own_is_read(void **state)
{
    (void)state;
    char other[TEST_PATH_BYTES];
    test_path(other, fixture->folder, "out/deep/c.json");
    assert_int_equal(symlink(other, in("out/link.json")), 0);
    fixture->part.path = "link.json";
    publish();
    assert_int_not_equal(fixture->code, CADRE_OK);
    fixture->part.path = "../out/deep/c.json";
    publish();
    assert_not_published(CADRE_INVALID_ARGUMENT, "..");
    fixture->part.path = other;
    publish();
    assert_int_equal(fixture->code, CADRE_INVALID_ARGUMENT);
    fixture->part.path = "deep";
    publish();
    assert_int_not_equal(fixture->code, CADRE_OK);
    assert_int_equal(fixture->coordinator.asks, 0);
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
