/* SPDX-License-Identifier: Apache-2.0
 * A uid for each job: never two at one time, and none while something runs under it. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "worker/host/isolate/uids.h"

/* Not the default range: a daemon may be at work beside us. */
#define FIRST 60800
#define LAST  60802

static struct cadre_error error;

static struct uids *open_uids(const char *claims)
{
    struct uids *uids = NULL;
    assert_ok(uids_open(FIRST, LAST, claims, &uids, &error), &error);
    return uids;
}

static uid_t take(struct uids *uids, uint64_t job)
{
    uid_t uid = 0;
    assert_ok(uids_acquire(uids, (struct job_id){job}, &uid, &error), &error);
    assert_in_range(uid, FIRST, LAST);
    return uid;
}

static void emptied(struct uids *uids, uid_t uid)
{
    uid_t had = 0;
    assert_true(uids_emptied(uids, uid, &had));
    assert_int_equal(had, uid);
}

static bool give(struct uids *uids, uint64_t job, uid_t uid)
{
    uid_t given = 0;
    bool ours = false;
    bool last = uids_release(uids, (struct job_id){job}, &given, &ours);
    assert_int_equal(given, uid);
    if (last) {
        assert_true(ours);
        emptied(uids, uid);
    }
    return last;
}

static void one_for_each_job(void **state)
{
    (void)state;
    struct uids *uids = open_uids(NULL);
    uid_t one = take(uids, 1);
    uid_t two = take(uids, 2);
    uid_t three = take(uids, 3);
    uid_t none;
    assert_true(one != two && two != three && one != three);
    assert_int_equal(take(uids, 2), two); /* its second task */
    assert_error(uids_acquire(uids, (struct job_id){4}, &none, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "all 3 uids of --job-uids 60800-60802");
    assert_false(give(uids, 2, two));
    assert_true(give(uids, 2, two));
    assert_int_equal(take(uids, 4), two);
    uids_close(uids);
}

static void the_longest_free_comes_first(void **state)
{
    (void)state;
    struct uids *uids = open_uids(NULL);
    uid_t one = take(uids, 1);
    assert_true(give(uids, 1, one));
    assert_int_not_equal(take(uids, 2), one);
    assert_int_not_equal(take(uids, 3), one);
    assert_int_equal(take(uids, 4), one);
    uids_close(uids);
}

static void other_daemons_are_seen(void **state)
{
    (void)state;
    const char *claims = test_temp_dir();
    struct uids *here = open_uids(claims);
    struct uids *there = open_uids(claims);
    uid_t one = take(here, 1);
    uid_t two = take(there, 1);
    uid_t three = take(here, 2);
    uid_t none;
    assert_true(one != two && two != three && one != three);
    assert_error(uids_acquire(there, (struct job_id){2}, &none, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "uids");
    uids_close(here);
    take(there, 2);
    uids_close(there);
}

/* Neither here nor in another daemon: what is removed would be a new job's. */
static void none_while_it_is_emptied(void **state)
{
    (void)state;
    const char *claims = test_temp_dir();
    struct uids *here = open_uids(claims);
    struct uids *there = open_uids(claims);
    uid_t one = take(here, 1);
    uid_t two = take(here, 2);
    uid_t three = take(here, 3);
    uid_t none;
    bool ours = false;
    assert_true(uids_release(here, (struct job_id){1}, &none, &ours) && ours);
    assert_error(uids_acquire(here, (struct job_id){1}, &none, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "uids");
    assert_error(uids_acquire(there, (struct job_id){1}, &none, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "uids");
    emptied(here, one);
    assert_int_equal(take(there, 1), one);
    assert_true(two != one && three != one);
    uids_close(here);
    uids_close(there);
}

/* A task ended while its daemon was away, another daemon gave its uid to a job, and then the task
 * is taken over: nothing of that job may be touched. */
static void one_that_another_daemon_has_by_now(void **state)
{
    (void)state;
    const char *claims = test_temp_dir();
    struct uids *here = open_uids(claims);
    uid_t one = take(here, 1);
    uids_close(here);
    struct uids *there = open_uids(claims);
    assert_int_equal(take(there, 7), one);
    here = open_uids(claims);
    uids_adopt(here, (struct job_id){1}, one);
    assert_int_equal(take(here, 1), one);
    uid_t given = 0;
    bool ours = true;
    assert_true(uids_release(here, (struct job_id){1}, &given, &ours));
    assert_int_equal(given, one);
    assert_false(ours);
    assert_int_not_equal(take(here, 2), one);
    assert_true(give(there, 7, one));
    uids_close(there);
    uids_close(here);
}

/* The daemon that had it may have been killed before it came to remove anything. */
static void one_that_was_free_is_emptied_first(void **state)
{
    (void)state;
    struct uids *uids = open_uids(NULL);
    uid_t one = take(uids, 1);
    assert_false(uids_is_clean(uids, one));
    assert_int_equal(take(uids, 1), one); /* its second task */
    assert_true(uids_begin_empty(uids, one));
    assert_false(uids_begin_empty(uids, one)); /* nor twice */
    assert_false(uids_is_clean(uids, one));
    emptied(uids, one);
    assert_true(uids_is_clean(uids, one));
    assert_false(uids_begin_empty(uids, one));
    assert_int_equal(take(uids, 1), one); /* it is still the job's */
    assert_false(give(uids, 1, one));
    assert_false(give(uids, 1, one));
    assert_true(give(uids, 1, one));
    assert_int_not_equal(take(uids, 2), one); /* the longest free */
    assert_int_not_equal(take(uids, 3), one);
    assert_int_equal(take(uids, 4), one);
    assert_false(uids_is_clean(uids, one));
    uids_close(uids);
}

static void what_is_wrong_is_reported(void **state)
{
    (void)state;
    struct uids *uids;
    assert_error(uids_open(0, 5, NULL, &uids, &error), CADRE_INVALID_ARGUMENT, &error, "0-5");
    assert_error(uids_open(9, 5, NULL, &uids, &error), CADRE_INVALID_ARGUMENT, &error, "9-5");
    assert_error(uids_open(1, 100, NULL, &uids, &error), CADRE_INVALID_ARGUMENT, &error,
        "is the user daemon of this host");
}

/* A process of that uid; ends when the pipe's other end is closed. */
static pid_t run_as(uid_t uid, int pipe_fds[2])
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(pipe_fds[1]);
        bool done = setresuid(uid, uid, uid) == 0 && write(ready[1], &byte, 1) == 1;
        _exit(done && read(pipe_fds[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(pipe_fds[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void none_while_something_runs(void **state)
{
    (void)state;
    int fds[2];
    if (geteuid() != 0) {
        print_message("not root: no process of another user can be made\n");
        skip();
    }
    pid_t pid = run_as(FIRST + 1, fds);
    struct uids *uids = open_uids(NULL);
    uids_adopt(uids, (struct job_id){7}, FIRST + 1);
    assert_int_not_equal(take(uids, 1), FIRST + 1);
    assert_int_not_equal(take(uids, 2), FIRST + 1);
    uid_t none;
    assert_error(uids_acquire(uids, (struct job_id){3}, &none, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "uids");
    assert_int_equal(take(uids, 7), FIRST + 1);  /* its own job goes on with it */
    assert_true(uids_is_clean(uids, FIRST + 1)); /* all there is is the job's */
    assert_true(give(uids, 7, FIRST + 1));
    assert_error(uids_acquire(uids, (struct job_id){3}, &none, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "uids"); /* given back, but not free */
    close(fds[1]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(take(uids, 3), FIRST + 1);
    uids_close(uids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_for_each_job),
        cmocka_unit_test(the_longest_free_comes_first),
        cmocka_unit_test(other_daemons_are_seen),
        cmocka_unit_test(none_while_it_is_emptied),
        cmocka_unit_test(one_that_another_daemon_has_by_now),
        cmocka_unit_test(one_that_was_free_is_emptied_first),
        cmocka_unit_test(what_is_wrong_is_reported),
        cmocka_unit_test(none_while_something_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
