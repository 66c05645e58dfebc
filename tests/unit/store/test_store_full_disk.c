/* SPDX-License-Identifier: Apache-2.0
 * A disk that fills up while the store writes: a commit is refused as a whole, and what was
 * acknowledged is there when the store is opened again. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/unit/store/store_fixture.h"

#define DISK_BYTES "size=192k"

static const char *disk;

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return written;
}

static bool become_root_of_a_namespace(void)
{
    char users[64];
    char groups[64];
    snprintf(users, sizeof users, "0 %u 1", (unsigned)geteuid());
    snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getegid());
    return unshare(CLONE_NEWUSER) == 0 && write_text("/proc/self/uid_map", users) &&
           write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/gid_map", groups);
}

/* A small file system of our own, in a mount namespace of our own. */
static bool make_disk(void)
{
    disk = test_temp_dir();
    if (geteuid() != 0 && !become_root_of_a_namespace()) {
        return false;
    }
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", disk, "tmpfs", 0, DISK_BYTES) == 0;
}

static void a_full_disk_spoils_nothing(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    assert_ok(store_sqlite_open(test_path(path, disk, "ledger.db"), &store, &error), &error);
    uint64_t jobs = 0;
    cadre_status status;
    do {
        status = COMMIT(store, jobs % 2 == 0, &error, record_job(jobs + 1, 1),
            record_ended(jobs + 1, JOB_FAILED, "a text that takes room on the disk"));
        jobs += status == CADRE_OK ? 1 : 0;
    } while (status == CADRE_OK && jobs < 10000);
    assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
    assert_true(jobs > 0);
    char *before = store_text(store);
    store->ops->close(store);
    store = NULL;
    /* Opening needs a little room: an operator makes some. */
    assert_int_equal(mount(NULL, disk, NULL, MS_REMOUNT, "size=1m"), 0);
    assert_ok(store_sqlite_open(path, &store, &error), &error);
    assert_store_text(store, before);
    assert_int_equal(store->ops->job_id_max(store), jobs);
    assert_ok(COMMIT(store, true, &error, record_job(jobs + 1, 1)), &error);
    store->ops->close(store);
    free(before);
}

static void a_disk_that_is_full_from_the_start_is_told(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct store *store = NULL;
    char path[TEST_PATH_BYTES];
    char filler[4096] = {0};
    int fd = open(test_path(path, disk, "filler"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, filler, sizeof filler) > 0) {
    }
    close(fd);
    cadre_status status = store_sqlite_open(test_path(path, disk, "second.db"), &store, &error);
    assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
    assert_null(store);
    assert_int_equal(unlink(test_path(path, disk, "filler")), 0);
    assert_ok(store_sqlite_open(test_path(path, disk, "second.db"), &store, &error), &error);
    store->ops->close(store);
}

int main(void)
{
    if (!make_disk()) {
        test_skip("this user may not mount a small file system of its own");
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_full_disk_spoils_nothing),
        cmocka_unit_test(a_disk_that_is_full_from_the_start_is_told)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    umount2(disk, MNT_DETACH);
    return failed;
}
