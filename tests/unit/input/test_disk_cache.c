/* SPDX-License-Identifier: Apache-2.0
 * Blocks of objects on the disk: which make room, what is damaged, who shares them, and a second
 * epoch that asks the store for nothing. */
#include "tests/unit/input/cmocka_unit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "tests/unit/input/fake_storage.h"
#include "worker/library/input/objects/disk_cache.h"
#include "worker/library/input/objects/disk_cache_index.h"
#include "worker/library/input/objects/disk_cache_space.h"
#include "worker/library/input/objects/object.h"
#include "worker/library/input/objects/object_fetch.h"
#include "worker/library/input/objects/object_memory.h"

#define HEAD    96 /* bytes of a file before those of the block */
#define PATH    "s3://bucket/data"
#define WAIT_US (20 * CADRE_US_PER_S)

static const char *folder;

/* --- which make room --- */

static void oldest_make_room(void **state)
{
    (void)state;
    struct disk_block blocks[1000];
    struct prng random = {.state = 7};
    for (size_t turn = 0; turn < 200; turn++) {
        size_t count = (size_t)prng_uniform(&random, 1000);
        uint64_t all = 0;
        for (size_t i = 0; i < count; i++) {
            blocks[i] = (struct disk_block){.used_us = (int64_t)prng_uniform(&random, 50),
                .bytes = 1 + prng_uniform(&random, 100),
                .number = prng_uniform(&random, 30),
                .object = (uint32_t)prng_uniform(&random, 5)};
            all += blocks[i].bytes;
        }
        uint64_t limit = prng_uniform(&random, all + 10);
        uint64_t left = 0;
        size_t chosen = disk_cache_choose(blocks, count, limit, &left);
        uint64_t kept = 0;
        for (size_t i = chosen; i < count; i++) {
            kept += blocks[i].bytes;
            for (size_t k = chosen > 0 ? chosen - 1 : 0; k < chosen; k++) {
                assert_true(blocks[k].used_us <= blocks[i].used_us);
            }
        }
        assert_int_equal(kept, left);
        assert_true(left <= limit);
        /* No more than must. */
        assert_true(chosen == 0 || left + blocks[chosen - 1].bytes > limit);
        assert_int_equal(chosen == 0, all <= limit);
    }
}

/* --- files --- */

static void set_environment(const char *path, const char *mib)
{
    setenv("CADRE_CACHE_FOLDER", path, 1);
    if (mib != NULL) {
        setenv("CADRE_CACHE_MIB", mib, 1);
    } else {
        unsetenv("CADRE_CACHE_MIB");
    }
    disk_cache_reset();
}

static bool written(void *user)
{
    static char bytes[5000];
    const struct disk_cache_key *key = user;
    disk_cache_write(key, 9, bytes, sizeof bytes);
    return disk_cache_read(key, 9, bytes, sizeof bytes, NULL);
}

/* Of an empty folder of its own; writes are kept from now on. */
static int setup(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct disk_cache_key key;
    object_table_clear();
    fake_storage_clear();
    folder = test_temp_dir();
    set_environment(folder, NULL);
    ASSERT_OK(disk_cache_prepare(&error));
    disk_cache_key_make(PATH, "ready", 1, &key);
    return test_wait(written, &key, WAIT_US) ? 0 : -1;
}

static void kept_and_found(void **state)
{
    (void)state;
    static char bytes[3][OBJECT_BLOCK_BYTES];
    static char to[OBJECT_BLOCK_BYTES];
    struct disk_cache_key key;
    struct disk_cache_key other;
    disk_cache_key_make(PATH, "\"etag\"", 700000, &key);
    assert_int_equal(strlen(key.text), 64);
    for (size_t i = 0; i < 3; i++) {
        memset(bytes[i], (int)i + 1, sizeof bytes[i]);
        assert_false(disk_cache_read(&key, i, to, sizeof to, NULL));
        disk_cache_write(&key, i, bytes[i], i == 2 ? 1000 : sizeof bytes[i]);
    }
    disk_cache_reset(); /* another process, or a start to come */
    struct cadre_error error = {0};
    ASSERT_OK(disk_cache_prepare(&error));
    for (size_t i = 0; i < 3; i++) {
        assert_true(disk_cache_read(&key, i, to, i == 2 ? 1000 : sizeof to, NULL));
        assert_memory_equal(to, bytes[i], i == 2 ? 1000 : sizeof to);
    }
    assert_false(disk_cache_read(&key, 3, to, sizeof to, NULL));
    disk_cache_key_make(PATH, "\"other\"", 700000, &other);
    assert_false(disk_cache_read(&other, 0, to, sizeof to, NULL));
    disk_cache_key_make(PATH "2", "\"etag\"", 700000, &other);
    assert_false(disk_cache_read(&other, 0, to, sizeof to, NULL));
    disk_cache_key_make(PATH, "", 700000, &other); /* it could be any state */
    assert_string_equal(other.text, "");
    disk_cache_write(&other, 0, bytes[0], 10);
    assert_false(disk_cache_read(&other, 0, to, 10, NULL));
}

/* Any byte of the file: what is damaged is none, and is removed. */
static void damaged(void **state)
{
    (void)state;
    char bytes[300];
    char to[300];
    char path[600];
    struct disk_cache_key key;
    memset(bytes, 'x', sizeof bytes);
    disk_cache_key_make(PATH, "\"etag\"", 300, &key);
    snprintf(path, sizeof path, "%s/%s/0", folder, key.text);
    for (long at = -2; at < HEAD + 300; at++) {
        disk_cache_write(&key, 0, bytes, sizeof bytes);
        assert_true(disk_cache_read(&key, 0, to, sizeof to, NULL));
        int fd = open(path, O_RDWR);
        struct stat facts;
        assert_int_equal(fstat(fd, &facts), 0);
        assert_int_equal(facts.st_size, HEAD + 300);
        if (at == -2) {
            assert_int_equal(ftruncate(fd, HEAD + 299), 0);
        } else if (at == -1) {
            assert_int_equal(ftruncate(fd, HEAD - 1), 0);
        } else {
            char byte = 0;
            assert_int_equal(pread(fd, &byte, 1, at), 1);
            byte = (char)(byte ^ 4);
            assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        }
        close(fd);
        assert_false(disk_cache_read(&key, 0, to, sizeof to, NULL));
        assert_int_equal(access(path, F_OK), -1);
    }
}

/* A part of a block, with the pieces that it lies in checked. */
static void in_pieces(void **state)
{
    (void)state;
    static char bytes[100001];
    static char to[100001];
    struct prng random = {.state = 5};
    struct disk_cache_key key;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)prng_next(&random);
    }
    disk_cache_key_make(PATH, "\"pieces\"", sizeof bytes, &key);
    assert_false(disk_cache_read_range(&key, 0, sizeof bytes, 0, to, 1, NULL));
    assert_true(disk_cache_write(&key, 0, bytes, sizeof bytes));
    for (size_t i = 0; i < 500; i++) {
        size_t offset = (size_t)prng_uniform(&random, sizeof bytes);
        size_t most = sizeof bytes - offset;
        most = i % 2 == 0 && most > 20000 ? 20000 : most;
        size_t count = i % 5 == 0 ? most : (size_t)prng_uniform(&random, most + 1);
        offset = i % 7 == 0 ? offset / 16384 * 16384 : offset;
        assert_true(disk_cache_read_range(&key, 0, sizeof bytes, offset, to, count, NULL));
        assert_memory_equal(to, bytes + offset, count);
    }
    char path[600];
    char byte = (char)(bytes[50000] + 1);
    snprintf(path, sizeof path, "%s/%s/0", folder, key.text);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &byte, 1, HEAD + 50000), 1);
    close(fd);
    assert_true(disk_cache_read_range(&key, 0, sizeof bytes, 70000, to, 100, NULL));
    assert_false(disk_cache_read_range(&key, 0, sizeof bytes, 49900, to, 200, NULL));
    assert_false(disk_cache_read_range(&key, 0, sizeof bytes, 70000, to, 100, NULL)); /* removed */
}

static void flip_byte(const struct disk_cache_key *key, off_t at)
{
    char path[600];
    char byte = 0;
    snprintf(path, sizeof path, "%s/%s/0", folder, key->text);
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, HEAD + at), 1);
    byte = (char)(byte ^ 4);
    assert_int_equal(pwrite(fd, &byte, 1, HEAD + at), 1);
    close(fd);
}

/* What a process has checked of a file is believed, and checked again now and then; what it has
 * not, and another file in its place, is checked. */
static void checked_once(void **state)
{
    (void)state;
    static char bytes[100000];
    static char to[100000];
    struct disk_cache_key key;
    disk_checked checked = 0;
    struct statx facts = {0};
    assert_int_equal(statx(AT_FDCWD, folder, 0, STATX_BTIME, &facts), 0);
    if ((facts.stx_mask & STATX_BTIME) == 0) {
        skip(); /* all is checked there */
    }
    disk_cache_key_make(PATH, "\"checked\"", sizeof bytes, &key);
    assert_true(disk_cache_write(&key, 0, bytes, sizeof bytes));
    /* Pieces 1 and 2 were checked, 0 and 3 were not. */
    assert_true(disk_cache_read_range(&key, 0, sizeof bytes, 20000, to, 20000, &checked));
    flip_byte(&key, 60000);
    assert_false(disk_cache_read_range(&key, 0, sizeof bytes, 20000, to, 40001, &checked));
    for (unsigned place = 0; place < 2; place++) { /* in the file, and in one in its place */
        assert_true(disk_cache_write(&key, 0, bytes, sizeof bytes));
        if (place == 0) {
            assert_true(disk_cache_read(&key, 0, to, sizeof to, &checked));
        }
        flip_byte(&key, 30000);
        unsigned believed = 0;
        while (disk_cache_read(&key, 0, to, sizeof to, &checked)) {
            assert_int_equal(to[30000], 4);
            believed++;
            assert_true(believed < 100);
        }
        assert_true(place == 0 ? believed <= 16 : believed == 0);
        assert_false(disk_cache_read(&key, 0, to, sizeof to, &checked)); /* it is removed */
    }
    bool saved = false; /* of sixteen reads most look at no checksum */
    assert_true(disk_cache_write(&key, 0, bytes, sizeof bytes));
    assert_true(disk_cache_read(&key, 0, to, sizeof to, &checked));
    flip_byte(&key, 0);
    saved = disk_cache_read(&key, 0, to, sizeof to, &checked) ||
            (disk_cache_write(&key, 0, bytes, sizeof bytes) &&
                disk_cache_read(&key, 0, to, sizeof to, &checked) && (flip_byte(&key, 0), true) &&
                disk_cache_read(&key, 0, to, sizeof to, &checked));
    assert_true(saved);
}

static void a_full_disk(void **state)
{
    (void)state;
    char bytes[300] = "x";
    char to[300];
    struct disk_cache_key key;
    disk_cache_key_make(PATH, "\"etag\"", 300, &key);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        fault_arm("input.disk-cache", nth);
        disk_cache_write(&key, nth, bytes, sizeof bytes);
        assert_true(fault_disarm());
        assert_false(disk_cache_read(&key, nth, to, sizeof to, NULL));
        /* Nothing is tried for a while. */
        disk_cache_write(&key, nth, bytes, sizeof bytes);
        assert_false(disk_cache_read(&key, nth, to, sizeof to, NULL));
        disk_cache_reset();
        struct cadre_error error = {0};
        ASSERT_OK(disk_cache_prepare(&error));
        assert_true(test_wait(written, &key, WAIT_US));
    }
}

static void set_time(const char *name, const char *number, time_t seconds)
{
    char path[700];
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    snprintf(path, sizeof path, "%s/%s/%s", folder, name, number);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void bounded(void **state)
{
    (void)state;
    static char bytes[10000];
    struct disk_cache_key keys[2];
    disk_cache_key_make(PATH, "a", 1, &keys[0]);
    disk_cache_key_make(PATH, "b", 1, &keys[1]);
    for (size_t i = 0; i < 20; i++) {
        char number[24];
        disk_cache_write(&keys[i % 2], i, bytes, sizeof bytes);
        assert_true(disk_cache_read(&keys[i % 2], i, bytes, sizeof bytes, NULL));
        snprintf(number, sizeof number, "%zu", i);
        set_time(keys[i % 2].text, number, 1000000 + (time_t)i);
    }
    /* Read since: the newest. */
    assert_true(disk_cache_read(&keys[0], 4, bytes, sizeof bytes, NULL));
    char part[700];
    snprintf(part, sizeof part, "%s/%s/part-1-1", folder, keys[0].text);
    test_write(part, "rest");
    set_time(keys[0].text, "part-1-1", 1000000);
    assert_true(disk_cache_space_tidy(folder, 60000) <= 60000);
    for (size_t i = 0; i < 20; i++) {
        bool kept = disk_cache_read(&keys[i % 2], i, bytes, sizeof bytes, NULL);
        assert_int_equal(kept, i == 4 || i >= 16);
    }
    assert_int_equal(access(part, F_OK), -1);
    assert_int_equal(disk_cache_space_tidy(folder, 0), 0);
    assert_int_equal(disk_cache_space_tidy(folder, 0), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static bool is_wide(void *unused)
{
    (void)unused;
    return disk_cache_space_is_wide();
}

struct writing {
    const struct disk_cache_key *key;
    uint64_t kept;
};

/* One block more, if there is room for it now. */
static bool written_until_narrow(void *user)
{
    static char bytes[OBJECT_BLOCK_BYTES];
    struct writing *writing = user;
    for (int i = 0; i < 10 && disk_cache_space_is_wide(); i++) {
        writing->kept += disk_cache_write(writing->key, writing->kept, bytes, sizeof bytes);
    }
    return !disk_cache_space_is_wide();
}

/* Less than half of the 64 MiB: what was written since counts, too. */
static void wide_room(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct disk_cache_key key;
    set_environment(folder, "64");
    ASSERT_OK(disk_cache_prepare(&error));
    disk_cache_key_make(PATH, "w", 1, &key);
    assert_true(test_wait(is_wide, NULL, WAIT_US));
    struct writing writing = {.key = &key};
    assert_true(test_wait(written_until_narrow, &writing, WAIT_US));
    assert_in_range(writing.kept * OBJECT_BLOCK_BYTES, (size_t)31 << 20, (size_t)33 << 20);
}

static void settings(void **state)
{
    (void)state;
    static const char *const wrong[] = {"0", "63", "much", "64x", "-64", "9999999999999"};
    struct cadre_error error = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        set_environment(folder, wrong[i]);
        assert_error(disk_cache_prepare(&error), CADRE_INVALID_ARGUMENT, &error, wrong[i]);
    }
    set_environment("relative/folder", NULL);
    assert_error(disk_cache_prepare(&error), CADRE_INVALID_ARGUMENT, &error, "relative/folder");
    set_environment("/dev/null/folder", NULL);
    assert_int_not_equal(disk_cache_prepare(&error), CADRE_OK);
    assert_non_null(strstr(error.text, "CADRE_CACHE_FOLDER"));
    set_environment("", NULL);
    ASSERT_OK(disk_cache_prepare(&error));
    struct disk_cache_key key;
    disk_cache_key_make(PATH, "a", 1, &key);
    assert_string_equal(key.text, "");
}

/* --- objects --- */

static void read_all(const char *bytes, size_t size)
{
    struct object *object = NULL;
    struct object_ahead ahead = {0};
    struct cadre_error error = {0};
    static char to[100000];
    ASSERT_OK(object_open(PATH, &object, &error));
    for (size_t at = 0; at < size; at += sizeof to) {
        size_t count = size - at < sizeof to ? size - at : sizeof to;
        ASSERT_OK(object_read_on(object, &ahead, at, to, count, &error));
        assert_memory_equal(to, bytes + at, count);
    }
    object_ahead_end(&ahead);
    object_close(object);
    object_table_clear();
}

static bool nothing_held(void *unused)
{
    (void)unused;
    object_table_clear();
    return object_memory_held() == 0;
}

static void a_second_epoch(void **state)
{
    (void)state;
    size_t size = 33 * OBJECT_BLOCK_BYTES + 5;
    char *bytes = malloc(size);
    struct prng random = {.state = 3};
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)prng_next(&random);
    }
    object_memory_set_limit(16 * OBJECT_BLOCK_BYTES);
    fake_storage_set(PATH, bytes, size);
    read_all(bytes, size);
    assert_int_equal(fake_storage_counts().bytes, size);
    fake_storage_clear_counts();
    read_all(bytes, size);
    assert_int_equal(fake_storage_counts().reads, 0);
    /* Some are gone, some damaged: these come from the store again, and are kept again. */
    struct disk_cache_key key;
    struct object *object = NULL;
    struct cadre_error error = {0};
    ASSERT_OK(object_open(PATH, &object, &error));
    disk_cache_key_make(PATH, object_version(object), size, &key);
    object_close(object);
    for (size_t i = 0; i < 33; i += 3) {
        char path[700];
        snprintf(path, sizeof path, "%s/%s/%zu", folder, key.text, i);
        if (i % 2 == 0) {
            assert_int_equal(unlink(path), 0);
        } else {
            test_write(path, "damaged");
        }
    }
    assert_true(test_wait(nothing_held, NULL, WAIT_US));
    read_all(bytes, size);
    assert_int_equal(fake_storage_counts().bytes, 11 * OBJECT_BLOCK_BYTES);
    fake_storage_clear_counts();
    assert_true(test_wait(nothing_held, NULL, WAIT_US));
    read_all(bytes, size);
    assert_int_equal(fake_storage_counts().reads, 0);
    /* Another state of the object. */
    bytes[77]++;
    fake_storage_set(PATH, bytes, size);
    assert_true(test_wait(nothing_held, NULL, WAIT_US));
    read_all(bytes, size);
    assert_int_equal(fake_storage_counts().bytes, size);
    free(bytes);
}

/* Where not all fits into memory, little is read from the disk without the rest of its block: from
 * the store comes each byte once, however often here and there is read. */
static void here_and_there(void **state)
{
    (void)state;
    size_t size = 40 * OBJECT_BLOCK_BYTES + 5;
    char *bytes = malloc(size);
    struct prng random = {.state = 9};
    struct object *object = NULL;
    struct cadre_error error = {0};
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)prng_next(&random);
    }
    assert_true(test_wait(nothing_held, NULL, WAIT_US));
    object_memory_set_limit(8 * OBJECT_BLOCK_BYTES);
    fake_storage_set(PATH, bytes, size);
    read_all(bytes, size);
    fake_storage_clear_counts();
    ASSERT_OK(object_open(PATH, &object, &error));
    for (size_t i = 0; i < 5000; i++) {
        char to[300];
        size_t offset = (size_t)prng_uniform(&random, size - sizeof to);
        object_ask(object, offset, sizeof to);
        ASSERT_OK(object_read(object, offset, to, sizeof to, &error));
        assert_memory_equal(to, bytes + offset, sizeof to);
    }
    assert_int_equal(fake_storage_counts().reads, 0);
    assert_true(object_memory_held() <= 8);
    object_close(object);
    free(bytes);
}

static bool last_stays_on_disk(void *object)
{
    return object_fetch_stays_on_disk(object, 40);
}

/* What an earlier process left on the disk is known when the object is opened. While the disk keeps
 * readers waiting it is read to memory, ahead of them. */
static void left_by_another_process(void **state)
{
    (void)state;
    size_t size = 40 * OBJECT_BLOCK_BYTES + 5;
    char *bytes = calloc(1, size);
    char to[300];
    struct object *object = NULL;
    struct cadre_error error = {0};
    assert_true(test_wait(nothing_held, NULL, WAIT_US));
    object_memory_set_limit(8 * OBJECT_BLOCK_BYTES);
    fake_storage_set(PATH, bytes, size);
    read_all(bytes, size);
    assert_true(test_wait(nothing_held, NULL, WAIT_US));
    fake_storage_clear_counts();
    ASSERT_OK(object_open(PATH, &object, &error));
    assert_false(object_fetch_stays_on_disk(object, 20)); /* there is room */
    for (size_t i = 0; i < 8; i++) {
        ASSERT_OK(object_read(object, i * OBJECT_BLOCK_BYTES, to, sizeof to, &error));
    }
    assert_int_equal(object_memory_held(), 8);
    assert_true(test_wait(last_stays_on_disk, object, WAIT_US)); /* it may have been slow */
    assert_true(object_fetch_stays_on_disk(object, 20));
    fault_arm("input.disk-slow", 1);
    ASSERT_OK(object_read(object, 20 * OBJECT_BLOCK_BYTES, to, sizeof to, &error));
    assert_true(fault_disarm());
    assert_false(object_fetch_stays_on_disk(object, 21));
    ASSERT_OK(object_read(object, 21 * OBJECT_BLOCK_BYTES, to, sizeof to, &error));
    assert_int_equal(fake_storage_counts().reads, 0);
    object_close(object);
    free(bytes);
}

/* --- folders that others remove --- */

static unsigned removals; /* of folders that are made: another process found them empty */

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);

int __wrap_mkdir(const char *path, mode_t mode)
{
    int result = __real_mkdir(path, mode);
    if (removals > 0) {
        removals--;
        assert_int_equal(rmdir(path), 0);
    }
    return result;
}

static void a_folder_that_goes_is_made_again(void **state)
{
    (void)state;
    static char bytes[5000];
    struct disk_cache_key key;
    disk_cache_key_make(PATH, "another", 5000, &key);
    removals = 1;
    assert_true(disk_cache_write(&key, 0, bytes, sizeof bytes));
    assert_true(disk_cache_read(&key, 0, bytes, sizeof bytes, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oldest_make_room),
        cmocka_unit_test_setup(kept_and_found, setup),
        cmocka_unit_test_setup(damaged, setup),
        cmocka_unit_test_setup(in_pieces, setup),
        cmocka_unit_test_setup(checked_once, setup),
        cmocka_unit_test_setup(a_full_disk, setup),
        cmocka_unit_test_setup(bounded, setup),
        cmocka_unit_test_setup(wide_room, setup),
        cmocka_unit_test_setup(settings, setup),
        cmocka_unit_test_setup(a_second_epoch, setup),
        cmocka_unit_test_setup(here_and_there, setup),
        cmocka_unit_test_setup(left_by_another_process, setup),
        cmocka_unit_test_setup(a_folder_that_goes_is_made_again, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
