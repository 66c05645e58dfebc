/* SPDX-License-Identifier: Apache-2.0
 * Files and objects behave the same: each case runs on both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "store_rig.h"

#define PATHS 64

static struct rig rig;

/* Where a case runs. */
struct ground {
    struct storage_client *client;
    bool is_store;
    char root[256]; /* "s3://bucket/7", "/tmp/.../7" */
};

static struct ground ground;
static struct cadre_error error;

/* One of several paths beneath the root, valid for a while. */
static const char *at(const char *name)
{
    static char paths[16][512];
    static unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", ground.root, name);
    return path;
}

static void put(const char *name, const char *text)
{
    assert_ok(storage_put(ground.client, at(name), text, strlen(text), &error), &error);
}

static void check_content(const char *name, const char *text)
{
    struct storage_object *object = NULL;
    char got[4096] = "";
    size_t size = strlen(text);
    assert_ok(storage_open(ground.client, at(name), &object, &error), &error);
    assert_int_equal(storage_info_of(object)->bytes, size);
    assert_ok(storage_read(object, 0, got, size, &error), &error);
    assert_string_equal(got, text);
    storage_close(object);
}

/* --- names that are seen --- */

struct seen {
    char names[PATHS][128];
    bool folders[PATHS];
    uint64_t bytes[PATHS];
    unsigned count, most;
};

static bool see(void *user, const struct storage_entry *entry)
{
    struct seen *seen = user;
    size_t root_bytes = strlen(ground.root);
    assert_true(seen->count < PATHS);
    assert_memory_equal(entry->path, ground.root, root_bytes);
    assert_int_equal(entry->path[root_bytes], '/');
    snprintf(seen->names[seen->count], sizeof seen->names[0], "%s", entry->path + root_bytes + 1);
    seen->folders[seen->count] = entry->is_folder;
    seen->bytes[seen->count++] = entry->info.bytes;
    return seen->most == 0 || seen->count < seen->most;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* All names in order, each with a blank behind. */
static const char *list(const char *folder, const char *starts, bool deep)
{
    static char text[4096];
    struct seen seen = {.count = 0};
    assert_ok(storage_list(ground.client, at(folder), starts, deep, see, &seen, &error), &error);
    if (!ground.is_store) {
        qsort(seen.names, seen.count, sizeof seen.names[0], compare_names);
    }
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < seen.count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s ", seen.names[i]);
    }
    return text;
}

/* --- cases --- */

static void write_and_read(void)
{
    struct storage_object *object = NULL;
    char got[8] = "";
    put("a/b c+d&é", "0123456789");
    assert_ok(storage_open(ground.client, at("a/b c+d&é"), &object, &error), &error);
    const struct storage_info *info = storage_info_of(object);
    assert_int_equal(info->bytes, 10);
    assert_true(info->version[0] == '"');
    int64_t now_us = (int64_t)clock_wall_us();
    assert_true(info->modified_us > now_us - 3600000000 && info->modified_us < now_us + 3600000000);
    assert_string_equal(storage_path_of(object), at("a/b c+d&é"));
    assert_ok(storage_read(object, 3, got, 4, &error), &error);
    assert_string_equal(got, "3456");
    assert_ok(storage_read(object, 10, got, 0, &error), &error);
    assert_error(storage_read(object, 8, got, 3, &error), CADRE_OUT_OF_RANGE, &error, "10 bytes");
    assert_error(
        storage_read(object, UINT64_MAX, got, 1, &error), CADRE_OUT_OF_RANGE, &error, "10 bytes");
    assert_string_equal(got, "3456");
    storage_close(object);
    put("a/b c+d&é", "new");
    check_content("a/b c+d&é", "new");
    put("empty", "");
    check_content("empty", "");
}

static void what_is_not_there(void)
{
    struct storage_object *object = NULL;
    put("folder/x", "x");
    assert_error(
        storage_open(ground.client, at("none"), &object, &error), CADRE_NOT_FOUND, &error, "none");
    assert_error(storage_open(ground.client, at("folder/x/y"), &object, &error), CADRE_NOT_FOUND,
        &error, "folder/x/y");
    assert_error(storage_open(ground.client, at("folder"), &object, &error), CADRE_INVALID_ARGUMENT,
        &error, "folder");
    assert_null(object);
}

static void removed(void)
{
    struct storage_object *object = NULL;
    put("gone", "x");
    assert_ok(storage_remove(ground.client, at("gone"), &error), &error);
    assert_ok(storage_remove(ground.client, at("gone"), &error), &error);
    assert_ok(storage_remove(ground.client, at("no/such/folder"), &error), &error);
    assert_error(
        storage_open(ground.client, at("gone"), &object, &error), CADRE_NOT_FOUND, &error, "gone");
}

static void only_if_absent(void)
{
    bool was_there = true;
    assert_ok(
        storage_put_if_absent(ground.client, at("f/once"), "one", 3, &was_there, &error), &error);
    assert_false(was_there);
    assert_ok(
        storage_put_if_absent(ground.client, at("f/once"), "two", 3, &was_there, &error), &error);
    assert_true(was_there);
    check_content("f/once", "one");
    assert_string_equal(list("f", NULL, true), "f/once ");
}

static void listed(void)
{
    static const char *const names[] = {
        "l/a", "l/b.1", "l/b/1", "l/b/2/x", "l/bc", "l/z é+&\"'<%20", "m/l/a"};
    for (size_t i = 0; i < CADRE_COUNT_OF(names); i++) {
        put(names[i], "xyz");
    }
    assert_string_equal(list("l", NULL, false), "l/a l/b.1 l/b/ l/bc l/z é+&\"'<%20 ");
    assert_string_equal(list("l/", NULL, false), "l/a l/b.1 l/b/ l/bc l/z é+&\"'<%20 ");
    assert_string_equal(list("l", NULL, true), "l/a l/b.1 l/b/1 l/b/2/x l/bc l/z é+&\"'<%20 ");
    assert_string_equal(list("l", "b", false), "l/b.1 l/b/ l/bc ");
    assert_string_equal(list("l", "b", true), "l/b.1 l/b/1 l/b/2/x l/bc ");
    assert_string_equal(list("l", "q", true), "");
    assert_string_equal(list("nowhere", NULL, true), "");
    struct seen seen = {.most = 2};
    assert_ok(storage_list(ground.client, at("l"), NULL, true, see, &seen, &error), &error);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.bytes[0], 3);
    assert_error(storage_list(ground.client, at("l"), "b/", true, see, &seen, &error),
        CADRE_INVALID_ARGUMENT, &error, "\"/\"");
}

static bool see_folder(void *user, const struct storage_entry *entry)
{
    size_t length = strlen(entry->path);
    assert_int_equal(entry->is_folder, entry->path[length - 1] == '/');
    *(unsigned *)user += entry->is_folder ? 1 : 0;
    return true;
}

static void folders_end_with_a_slash(void)
{
    unsigned folders = 0;
    put("l/a/1", "");
    put("l/b", "");
    assert_ok(
        storage_list(ground.client, at("l"), NULL, false, see_folder, &folders, &error), &error);
    assert_int_equal(folders, 1);
}

/* --- large ones --- */

static char *large_bytes(size_t size)
{
    char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)(i * 2654435761u >> 24);
    }
    return bytes;
}

static void read_in_ranges(void)
{
    const size_t size = 3 * STORAGE_PART_BYTES + 12345;
    char *bytes = large_bytes(size);
    char *got = calloc(1, size);
    struct storage_object *object = NULL;
    assert_ok(storage_put(ground.client, at("large"), bytes, size, &error), &error);
    assert_ok(storage_open(ground.client, at("large"), &object, &error), &error);
    assert_ok(storage_read(object, 0, got, size, &error), &error);
    assert_memory_equal(got, bytes, size);
    memset(got, 0, size);
    assert_ok(storage_read(object, 777, got, size - 777, &error), &error);
    assert_memory_equal(got, bytes + 777, size - 777);
    storage_close(object);
    free(bytes);
    free(got);
}

/* Each piece to a place of its own, in an order of theirs, and nothing behind the last. */
static void read_to_pieces(void)
{
    enum { PIECE = 1 << 18, PIECES = 70 };
    const size_t size = (size_t)(PIECES - 1) * PIECE + 777;
    char *bytes = large_bytes(size + 5);
    char *got = calloc(1, (size_t)PIECES * PIECE);
    void *pieces[PIECES];
    struct storage_object *object = NULL;
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = got + (i * 37 % PIECES) * PIECE;
    }
    assert_ok(storage_put(ground.client, at("pieces"), bytes, size + 5, &error), &error);
    assert_ok(storage_open(ground.client, at("pieces"), &object, &error), &error);
    assert_ok(storage_read_pieces(object, 5, pieces, PIECE, size, &error), &error);
    for (size_t i = 0; i < PIECES; i++) {
        size_t count = i + 1 < PIECES ? PIECE : 777;
        assert_memory_equal(pieces[i], bytes + 5 + i * PIECE, count);
    }
    assert_int_equal(((const char *)pieces[PIECES - 1])[777], 0);
    assert_error(storage_read_pieces(object, 6, pieces, PIECE, size, &error), CADRE_OUT_OF_RANGE,
        &error, "there are no");
    storage_close(object);
    free(bytes);
    free(got);
}

static void put_in_pieces(void)
{
    const size_t size = ((size_t)64 << 20) + 5;
    char *bytes = large_bytes(size);
    char *got = calloc(1, size);
    struct storage_object *object = NULL;
    assert_ok(storage_put(ground.client, at("larger"), bytes, size, &error), &error);
    assert_ok(storage_open(ground.client, at("larger"), &object, &error), &error);
    assert_ok(storage_read(object, 0, got, size, &error), &error);
    assert_memory_equal(got, bytes, size);
    storage_close(object);
    free(bytes);
    free(got);
}

/* --- uploads --- */

struct joiner {
    char name[STORAGE_UPLOAD_BYTES];
    const char *bytes;
    cadre_status status;
    struct cadre_error error;
};

/* Another process, as it were: it knows the name of the upload only. */
static void *write_odd_ones(void *argument)
{
    struct joiner *joiner = argument;
    struct storage_upload *upload = NULL;
    joiner->status =
        storage_upload_join(ground.client, at("up/x"), joiner->name, &upload, &joiner->error);
    for (uint32_t number = 1; number <= 3 && joiner->status == CADRE_OK; number += 2) {
        joiner->status =
            storage_upload_part(upload, number, joiner->bytes + (number - 1) * STORAGE_PART_BYTES,
                number == 3 ? 100 : STORAGE_PART_BYTES, &joiner->error);
    }
    storage_upload_leave(upload);
    return NULL;
}

static void written_by_two(void)
{
    const size_t size = 2 * STORAGE_PART_BYTES + 100;
    char *bytes = large_bytes(size);
    struct storage_upload *upload = NULL;
    pthread_t thread;
    assert_ok(storage_upload_begin(ground.client, at("up/x"), &upload, &error), &error);
    struct joiner joiner = {.bytes = bytes};
    snprintf(joiner.name, sizeof joiner.name, "%s", storage_upload_name(upload));
    assert_int_equal(thread_start(&thread, write_odd_ones, &joiner), 0);
    assert_ok(storage_upload_part(upload, 2, "wrong", 5, &error), &error);
    assert_ok(
        storage_upload_part(upload, 2, bytes + STORAGE_PART_BYTES, STORAGE_PART_BYTES, &error),
        &error);
    pthread_join(thread, NULL);
    assert_ok(joiner.status, &joiner.error);
    assert_string_equal(list("up", NULL, true), ""); /* nothing is seen of it */
    assert_ok(storage_upload_finish(upload, 3, &error), &error);
    assert_string_equal(list("up", NULL, true), "up/x ");
    struct storage_object *object = NULL;
    char *got = calloc(1, size);
    assert_ok(storage_open(ground.client, at("up/x"), &object, &error), &error);
    assert_int_equal(storage_info_of(object)->bytes, size);
    assert_ok(storage_read(object, 0, got, size, &error), &error);
    assert_memory_equal(got, bytes, size);
    storage_close(object);
    free(got);
    free(bytes);
}

static void a_part_is_missing(void)
{
    struct storage_upload *upload = NULL;
    char *bytes = large_bytes(STORAGE_PART_BYTES);
    assert_ok(storage_upload_begin(ground.client, at("up/x"), &upload, &error), &error);
    assert_ok(storage_upload_part(upload, 1, bytes, STORAGE_PART_BYTES, &error), &error);
    assert_ok(storage_upload_part(upload, 3, "end", 3, &error), &error);
    assert_error(storage_upload_finish(upload, 3, &error), CADRE_DATA_LOSS, &error, "part 2");
    assert_string_equal(list("up", NULL, true), "");
    free(bytes);
}

static void numbers_of_parts(void)
{
    struct storage_upload *upload = NULL;
    assert_ok(storage_upload_begin(ground.client, at("x"), &upload, &error), &error);
    assert_error(
        storage_upload_part(upload, 0, "", 0, &error), CADRE_INVALID_ARGUMENT, &error, "10000");
    assert_error(storage_upload_part(upload, STORAGE_PARTS_MAX + 1, "", 0, &error),
        CADRE_INVALID_ARGUMENT, &error, "10001");
    assert_error(
        storage_upload_finish(upload, 0, &error), CADRE_INVALID_ARGUMENT, &error, "1 to 10000");
}

static void aborted(void)
{
    struct storage_upload *upload = NULL;
    struct storage_upload *other = NULL;
    char name[STORAGE_UPLOAD_BYTES];
    assert_ok(storage_upload_begin(ground.client, at("up/x"), &upload, &error), &error);
    assert_ok(storage_upload_part(upload, 1, "one", 3, &error), &error);
    snprintf(name, sizeof name, "%s", storage_upload_name(upload));
    assert_ok(storage_upload_join(ground.client, at("up/x"), name, &other, &error), &error);
    storage_upload_abort(upload);
    assert_error(storage_upload_part(other, 2, "two", 3, &error), CADRE_NOT_FOUND, &error, "up/x");
    storage_upload_leave(other);
    assert_string_equal(list("up", NULL, true), "");
    uint32_t count = 1;
    assert_ok(storage_uploads_clear(ground.client, at("up"), INT64_MAX, &count, &error), &error);
    assert_int_equal(count, 0);
}

static void dead_writers(void)
{
    struct storage_upload *uploads[4] = {NULL};
    static const char *const names[] = {"up/x", "up/x", "up/y", "other"};
    uint32_t count = 0;
    for (size_t i = 0; i < 4; i++) {
        assert_ok(storage_upload_begin(ground.client, at(names[i]), &uploads[i], &error), &error);
        assert_ok(storage_upload_part(uploads[i], 1, "one", 3, &error), &error);
    }
    int64_t hour_us = INT64_C(3600000000);
    int64_t now_us = (int64_t)clock_wall_us();
    assert_ok(
        storage_uploads_clear(ground.client, at("up/"), now_us - hour_us, &count, &error), &error);
    assert_int_equal(count, 0);
    assert_ok(
        storage_uploads_clear(ground.client, at("up/x"), now_us + hour_us, &count, &error), &error);
    assert_int_equal(count, 2);
    assert_ok(
        storage_uploads_clear(ground.client, at("up/"), now_us + hour_us, &count, &error), &error);
    assert_int_equal(count, 1);
    assert_error(storage_upload_finish(uploads[0], 1, &error), CADRE_NOT_FOUND, &error, "up/x");
    assert_ok(storage_upload_finish(uploads[3], 1, &error), &error);
    check_content("other", "one");
    storage_upload_leave(uploads[1]);
    storage_upload_leave(uploads[2]);
}

static void stopped(void)
{
    struct storage_object *object = NULL;
    storage_client_stop(ground.client);
    assert_error(
        storage_open(ground.client, at("x"), &object, &error), CADRE_CANCELLED, &error, "stopped");
    assert_error(
        storage_put(ground.client, at("x"), "", 0, &error), CADRE_CANCELLED, &error, "stopped");
}

/* --- each on both --- */

static void run_on(bool is_store, void (*one)(void))
{
    static unsigned number;
    rig_reset(&rig);
    rig_setting(&rig, "'page': 2");
    ground = (struct ground){.is_store = is_store, .client = rig_client(&rig, NULL)};
    snprintf(ground.root, sizeof ground.root, "%s/%u", is_store ? "s3://bucket" : test_temp_dir(),
        ++number);
    one();
    storage_client_close(ground.client);
}

#define BOTH(name)                                                                                 \
    static void name##_of_files(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        run_on(false, name);                                                                       \
    }                                                                                              \
    static void name##_of_objects(void **state)                                                    \
    {                                                                                              \
        (void)state;                                                                               \
        run_on(true, name);                                                                        \
    }
BOTH(write_and_read)
BOTH(what_is_not_there)
BOTH(removed)
BOTH(only_if_absent)
BOTH(listed)
BOTH(folders_end_with_a_slash)
BOTH(read_in_ranges)
BOTH(read_to_pieces)
BOTH(put_in_pieces)
BOTH(written_by_two)
BOTH(a_part_is_missing)
BOTH(numbers_of_parts)
BOTH(aborted)
BOTH(dead_writers)
BOTH(stopped)

static int start(void **state)
{
    (void)state;
    rig_start(&rig, NULL, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rig_stop(&rig);
    return 0;
}

#define TESTS(name) cmocka_unit_test(name##_of_files), cmocka_unit_test(name##_of_objects)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TESTS(write_and_read),
        TESTS(what_is_not_there),
        TESTS(removed),
        TESTS(only_if_absent),
        TESTS(listed),
        TESTS(folders_end_with_a_slash),
        TESTS(read_in_ranges),
        TESTS(read_to_pieces),
        TESTS(put_in_pieces),
        TESTS(written_by_two),
        TESTS(a_part_is_missing),
        TESTS(numbers_of_parts),
        TESTS(aborted),
        TESTS(dead_writers),
        TESTS(stopped),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
