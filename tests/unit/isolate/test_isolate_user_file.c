/* SPDX-License-Identifier: Apache-2.0
 * Files that are read as the user of a job: by what that user may read, and with no trace in the
 * thread or in others. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "worker/host/isolate/user_file.h"

#define READER      60826 /* not in use: neither of the default range nor of the other tests */
#define LIMIT_BYTES 64

static const struct isolation_user reader = {
    .change = true, .own = true, .uid = READER, .gid = READER};
static char folder[TEST_PATH_BYTES];
static char path[TEST_PATH_BYTES];

static cadre_status read_it(const struct isolation_user *user, struct cadre_error *error)
{
    char *bytes = NULL;
    size_t size = 0;
    cadre_status status = user_file_read(user, path, LIMIT_BYTES, &bytes, &size, error);
    if (status == CADRE_OK) {
        assert_int_equal(size, 5);
        assert_string_equal(bytes, "bytes");
    } else {
        assert_null(bytes);
    }
    free(bytes);
    return status;
}

static int make(void **state)
{
    (void)state;
    const char *above = test_temp_dir();
    test_path(folder, above, "folder");
    (void)mkdir(folder, 0755);
    test_write(test_path(path, folder, "file"), "bytes");
    return chmod(above, 0711) | chmod(folder, 0755) | chmod(path, 0644);
}

static void what_the_user_may_read(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    if (geteuid() != 0) {
        skip();
    }
    assert_ok(read_it(&reader, &error), &error);
    assert_int_equal(chmod(path, 0640), 0);
    assert_error(read_it(&reader, &error), CADRE_PERMISSION_DENIED, &error, path);
    assert_int_equal(chown(path, READER, 0), 0);
    assert_ok(read_it(&reader, &error), &error);
    /* What is in a closed folder is as if it was not there. */
    char closed[sizeof error.text];
    assert_int_equal(chmod(folder, 0700), 0);
    assert_error(read_it(&reader, &error), CADRE_PERMISSION_DENIED, &error, path);
    memcpy(closed, error.text, sizeof closed);
    assert_int_equal(unlink(path), 0);
    assert_error(read_it(&reader, &error), CADRE_PERMISSION_DENIED, &error, path);
    assert_string_equal(error.text, closed);
}

/* The group of the daemon, and its other groups, open nothing. */
static void groups_of_the_daemon(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(chown(path, 0, getegid()), 0);
    assert_int_equal(chmod(path, 0040), 0);
    assert_error(read_it(&reader, &error), CADRE_PERMISSION_DENIED, &error, path);
}

static void the_daemon_s_own_user(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const struct isolation_user same = {.change = false};
    assert_ok(read_it(&same, &error), &error);
    assert_int_equal(truncate(path, LIMIT_BYTES + 1), 0);
    assert_error(read_it(&same, &error), CADRE_OUT_OF_RANGE, &error, path);
    assert_int_equal(unlink(path), 0);
    assert_error(read_it(&same, &error), CADRE_NOT_FOUND, &error, path);
    assert_int_equal(mkfifo(path, 0666), 0); /* nothing ever writes to it */
    assert_error(read_it(&same, &error), CADRE_INVALID_ARGUMENT, &error, path);
    assert_int_equal(unlink(path), 0);
}

static sem_t go;
static sem_t gone;

static void *look(void *user)
{
    uid_t *seen = user;
    while (sem_wait(&go) == 0 && *seen == 0) {
        *seen = geteuid();
        sem_post(&gone);
    }
    return NULL;
}

static void no_trace(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    gid_t before[64];
    gid_t after[64];
    uid_t uids[3];
    gid_t gids[3];
    if (geteuid() != 0) {
        skip();
    }
    int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    int count = getgroups(64, before);
    uid_t seen = 0;
    pthread_t other;
    sem_init(&go, 0, 0);
    sem_init(&gone, 0, 0);
    assert_int_equal(pthread_create(&other, NULL, look, &seen), 0);
    for (int i = 0; i < 50; i++) {
        sem_post(&go); /* the other looks while this one reads, or just before or after */
        assert_ok(read_it(&reader, &error), &error);
        sem_wait(&gone);
        assert_int_equal(seen, 0);
    }
    seen = 1;
    sem_post(&go);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(getresuid(&uids[0], &uids[1], &uids[2]), 0);
    assert_int_equal(getresgid(&gids[0], &gids[1], &gids[2]), 0);
    assert_true(uids[0] == 0 && uids[1] == 0 && uids[2] == 0);
    assert_true(gids[0] == getgid() && gids[1] == gids[0] && gids[2] == gids[0]);
    assert_int_equal(getgroups(64, after), count);
    assert_memory_equal(before, after, (size_t)count * sizeof before[0]);
    assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), dumpable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(what_the_user_may_read, make),
        cmocka_unit_test_setup(groups_of_the_daemon, make),
        cmocka_unit_test_setup(the_daemon_s_own_user, make),
        cmocka_unit_test_setup(no_trace, make)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
