/* SPDX-License-Identifier: Apache-2.0
 * What a machine that lost its power leaves of a database: the file, and the log up to what had
 * reached the disk, or with bytes in it that never did. What is read is always what had been
 * committed up to some point, and never less for more of the log. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "tests/unit/store/entries_store.h"
#include "tests/unit/store/store_fixture.h"

/* Cuts of the log: a page of the log has 4096 bytes and a head of 24, the log a head of 32. */
#define CUT_BYTES 1031

struct image {
    char *file;
    size_t file_size;
    char *log;
    size_t log_size;
};

static char *stories[STORY_COMMITS + 1];

/* Each commit of the story is an entry of a log, so that its number is the position. */
static struct store *open_entries(const char *path)
{
    struct cadre_error error = {0};
    struct store *store = NULL;
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    return entries_store_open(store, "sqlite of entries");
}

static void read_whole(const char *path, char **ret_bytes, size_t *ret_size)
{
    struct cadre_error error = {0};
    assert_ok(file_read(path, 1U << 24, ret_bytes, ret_size, &error), &error);
}

/* The files as they are while the store is open: nothing is tidied up. */
static void take_image(struct image *image)
{
    char path[TEST_PATH_BYTES];
    char log[TEST_PATH_BYTES + 8];
    struct cadre_error error = {0};
    test_path(path, test_temp_dir(), "ledger.db");
    snprintf(log, sizeof log, "%s-wal", path);
    struct store *store = open_entries(path);
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(store, i, &error), &error);
    }
    read_whole(path, &image->file, &image->file_size);
    read_whole(log, &image->log, &image->log_size);
    store->ops->close(store);
}

/* How many commits of the history are reported. */
static unsigned commits_of(const struct image *image, size_t log_size, size_t spoiled)
{
    static const char *folder;
    static unsigned count;
    char path[TEST_PATH_BYTES];
    char log[TEST_PATH_BYTES + 8];
    char name[32];
    struct cadre_error error = {0};
    struct store_position position;
    folder = folder != NULL ? folder : test_temp_dir();
    snprintf(name, sizeof name, "%u.db", count++);
    test_path(path, folder, name);
    snprintf(log, sizeof log, "%s-wal", path);
    char *bytes = malloc(log_size + 1);
    assert_non_null(bytes);
    memcpy(bytes, image->log, log_size);
    memset(bytes + (spoiled < log_size ? spoiled : log_size), 0x5a,
        spoiled < log_size ? log_size - spoiled : 0);
    assert_ok(file_write_atomic(path, image->file, image->file_size, 0600, &error), &error);
    assert_ok(file_write_atomic(log, bytes, log_size, 0600, &error), &error);
    free(bytes);
    struct store *store = open_entries(path);
    char *text = store_text(store);
    unsigned reported = 0;
    while (reported <= STORY_COMMITS && strcmp(stories[reported], text) != 0) {
        reported++;
    }
    if (reported > STORY_COMMITS) {
        fail_msg("%zu of %zu bytes of the log: %s", log_size, image->log_size, text);
    }
    free(text);
    store->ops->position(store, &position);
    assert_int_equal(position.index, reported);
    for (unsigned i = reported; i < STORY_COMMITS; i++) { /* and it goes on from there */
        assert_ok(story_commit(store, i, &error), &error);
    }
    assert_store_text(store, stories[STORY_COMMITS]);
    store->ops->close(store);
    unlink(path);
    return reported;
}

static void a_part_of_the_log_is_a_part_of_the_story(void **state)
{
    (void)state;
    struct image image = {0};
    unsigned before = 0;
    unsigned seen = 0;
    take_image(&image);
    /* The tables are there from the first: a coordinator that dies before that has sent nothing. */
    size_t from = image.log_size;
    while (from > 0 && commits_of(&image, from, from) > 0 && from > CUT_BYTES) {
        from -= CUT_BYTES;
    }
    for (size_t size = from; size < image.log_size; size += CUT_BYTES) {
        unsigned reported = commits_of(&image, size, size);
        assert_true(reported >= before);
        seen += reported > before ? 1 : 0;
        before = reported;
        /* What follows never came to the disk, but something did. */
        assert_int_equal(commits_of(&image, image.log_size, size), reported);
    }
    assert_int_equal(commits_of(&image, image.log_size, image.log_size), STORY_COMMITS);
    assert_true(seen >= STORY_COMMITS - 2);
    free(image.file);
    free(image.log);
}

static int run_stories(void **state)
{
    (void)state;
    for (unsigned i = 0; i <= STORY_COMMITS; i++) {
        stories[i] = story_text(i);
    }
    return 0;
}

static int forget_stories(void **state)
{
    (void)state;
    for (unsigned i = 0; i <= STORY_COMMITS; i++) {
        free(stories[i]);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_part_of_the_log_is_a_part_of_the_story)};
    return cmocka_run_group_tests(tests, run_stories, forget_stories);
}
