/* SPDX-License-Identifier: Apache-2.0
 * What a writer shows of the parts of an object, and how often it hashes their bytes. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/storage/writer.h"
#include "store_rig.h"

#define PARTS_MAX 4

static struct rig rig;
static struct storage_client *client;
static struct cadre_error error;

static const char *body; /* of the object that is written */
static size_t body_bytes;
static atomic_size_t hashed_bytes; /* of it */

/* Signing hashes a request's text, too. */
static bool is_part(const void *bytes, size_t size)
{
    for (size_t at = 0; at < body_bytes; at += STORAGE_PART_BYTES) {
        size_t left = body_bytes - at;
        if (size == (left < STORAGE_PART_BYTES ? left : STORAGE_PART_BYTES) &&
            memcmp(bytes, &body[at], size) == 0) {
            return true;
        }
    }
    return false;
}

cadre_status __real_sha256_of(
    const void *bytes, size_t size, struct sha256 *ret_hash, struct cadre_error *failure);
cadre_status __wrap_sha256_of(
    const void *bytes, size_t size, struct sha256 *ret_hash, struct cadre_error *failure);
cadre_status __wrap_sha256_of(
    const void *bytes, size_t size, struct sha256 *ret_hash, struct cadre_error *failure)
{
    hashed_bytes += is_part(bytes, size) ? size : 0;
    return __real_sha256_of(bytes, size, ret_hash, failure);
}

/* What a watcher was shown; a part by its place in the object. */
struct watched {
    size_t part_bytes[PARTS_MAX];
    struct sha256 hashes[PARTS_MAX];
    cadre_status answer;
};

static cadre_status watch(void *user, uint64_t offset, const void *bytes, size_t size,
    const struct sha256 *hash, struct cadre_error *failure)
{
    struct watched *watched = user;
    size_t part = (size_t)offset / STORAGE_PART_BYTES;
    assert_int_equal(offset % STORAGE_PART_BYTES, 0);
    assert_true(part < PARTS_MAX);
    assert_non_null(bytes);
    watched->part_bytes[part] = size;
    watched->hashes[part] = *hash;
    return watched->answer == CADRE_OK ? CADRE_OK
                                       : cadre_error_set(failure, watched->answer, "refused");
}

static char *make_bytes(size_t size)
{
    char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)(i * 2654435761u >> 21);
    }
    return bytes;
}

/* Writes the object in steps; `watched` NULL: no one watches. *ret_hashed: bytes it hashed. */
static cadre_status write_object(
    const char *path, const char *bytes, size_t size, struct watched *watched, size_t *ret_hashed)
{
    struct storage_writer *writer = NULL;
    body = bytes;
    body_bytes = size;
    hashed_bytes = 0;
    assert_ok(storage_writer_open(client, path, &writer, &error), &error);
    if (watched != NULL) {
        storage_writer_watch(writer, watch, watched);
    }
    for (size_t at = 0; at < size;) {
        size_t step = size - at < 1000003 ? size - at : 1000003;
        assert_ok(storage_writer_add(writer, &bytes[at], step, &error), &error);
        at += step;
    }
    cadre_status status = storage_writer_finish(writer, &error);
    *ret_hashed = hashed_bytes;
    return status;
}

static void assert_object(const char *path, const char *bytes, size_t size)
{
    char *got = NULL;
    size_t count = 0;
    assert_ok(storage_get(client, path, 2 * size + 1, &got, &count, &error), &error);
    assert_int_equal(count, size);
    assert_memory_equal(got, bytes, size);
    free(got);
}

static void each_byte_is_hashed_once(void **state)
{
    static const size_t sizes[] = {
        1, 5000, STORAGE_PART_BYTES - 1, STORAGE_PART_BYTES, 2 * STORAGE_PART_BYTES + 7};
    (void)state;
    char *bytes = make_bytes(sizes[CADRE_COUNT_OF(sizes) - 1]);
    for (size_t i = 0; i < CADRE_COUNT_OF(sizes); i++) {
        struct watched watched = {.answer = CADRE_OK};
        size_t hashed = 0;
        assert_ok(write_object(RIG_BUCKET "a", bytes, sizes[i], &watched, &hashed), &error);
        assert_int_equal(hashed, sizes[i]);
        assert_object(RIG_BUCKET "a", bytes, sizes[i]);
        size_t shown = 0;
        for (size_t part = 0; part * STORAGE_PART_BYTES < sizes[i]; part++) {
            struct sha256 hash;
            assert_ok(sha256_of(&bytes[part * STORAGE_PART_BYTES], watched.part_bytes[part], &hash,
                          &error),
                &error);
            assert_true(sha256_equal(&hash, &watched.hashes[part]));
            shown += watched.part_bytes[part];
        }
        assert_int_equal(shown, sizes[i]);
        assert_ok(write_object(RIG_BUCKET "b", bytes, sizes[i], NULL, &hashed), &error);
        assert_int_equal(hashed, sizes[i]);
    }
    free(bytes);
}

static void a_file_is_hashed_for_its_watcher_alone(void **state)
{
    static const size_t sizes[] = {5000, STORAGE_PART_BYTES + 7};
    char path[TEST_PATH_BYTES + 8];
    (void)state;
    char *bytes = make_bytes(sizes[1]);
    snprintf(path, sizeof path, "%s/a", test_temp_dir());
    for (size_t i = 0; i < CADRE_COUNT_OF(sizes); i++) {
        struct watched watched = {.answer = CADRE_OK};
        size_t hashed = 0;
        assert_ok(write_object(path, bytes, sizes[i], &watched, &hashed), &error);
        assert_int_equal(hashed, sizes[i]);
        assert_int_equal(watched.part_bytes[0] + watched.part_bytes[1], sizes[i]);
        assert_ok(write_object(path, bytes, sizes[i], NULL, &hashed), &error);
        assert_int_equal(hashed, 0);
        assert_object(path, bytes, sizes[i]);
    }
    free(bytes);
}

static void what_a_watcher_refuses_is_not_written(void **state)
{
    static const size_t sizes[] = {5000, STORAGE_PART_BYTES + 7};
    (void)state;
    char *bytes = make_bytes(sizes[1]);
    for (size_t i = 0; i < CADRE_COUNT_OF(sizes); i++) {
        struct watched watched = {.answer = CADRE_DATA_LOSS};
        struct storage_object *object = NULL;
        size_t hashed = 0;
        assert_error(write_object(RIG_BUCKET "none", bytes, sizes[i], &watched, &hashed),
            CADRE_DATA_LOSS, &error, "refused");
        assert_error(storage_open(client, RIG_BUCKET "none", &object, &error), CADRE_NOT_FOUND,
            &error, "none");
    }
    free(bytes);
}

static int start(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_DFL);
    rig_start(&rig, NULL, NULL);
    client = rig_client(&rig, &(struct storage_options){0});
    return 0;
}

static int stop(void **state)
{
    (void)state;
    storage_client_close(client);
    rig_stop(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_is_hashed_once),
        cmocka_unit_test(a_file_is_hashed_for_its_watcher_alone),
        cmocka_unit_test(what_a_watcher_refuses_is_not_written),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
