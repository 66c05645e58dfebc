/* SPDX-License-Identifier: Apache-2.0
 * What a task of one job can do to one of another: nothing. And what confine_self makes of a
 * process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"
#include "worker/host/isolate/process_stat.h"

static struct isolation *isolation;
static const struct cgroup_limits no_limits = {0};

static int waits(void *data)
{
    (void)data;
    (void)!write(1, "!", 1);
    while (pause() != 0) {
    }
    return 0;
}

/* A bit for each thing that went through. */
static int attacks(void *data)
{
    pid_t victim = *(const pid_t *)data;
    char path[64];
    int done = 0;
    done |= kill(victim, 0) == 0 ? 1 : 0;
    done |= kill(victim, SIGKILL) == 0 ? 2 : 0;
    done |= ptrace(PTRACE_ATTACH, victim, NULL, NULL) == 0 ? 4 : 0;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)victim);
    done |= open(path, O_RDONLY) >= 0 ? 8 : 0;
    snprintf(path, sizeof path, "/proc/%d/fd/1", (int)victim);
    done |= open(path, O_RDONLY) >= 0 ? 16 : 0;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)victim);
    done |= open(path, O_RDONLY) >= 0 ? 32 : 0;
    snprintf(path, sizeof path, "/proc/%d/cwd/x", (int)victim);
    done |= open(path, O_RDONLY) >= 0 || errno != EACCES ? 64 : 0;
    return done;
}

static void jobs_do_not_reach_each_other(void **state)
{
    (void)state;
    struct driven victim;
    struct driven attacker;
    driver_start(isolation, 1, 0, &no_limits, waits, NULL, &victim);
    assert_int_equal(driver_receive(&victim), '!');
    driver_start(isolation, 2, 0, &no_limits, attacks, &victim.pid, &attacker);
    assert_int_not_equal(attacker.user.uid, victim.user.uid);
    assert_int_equal(driver_wait(&attacker), 0);
    driver_end(isolation, &attacker, NULL);
    assert_int_equal(kill(victim.pid, 0), 0);
    driver_end(isolation, &victim, NULL);
}

/* The test can see an attack go through: by a task of the same job, which may. */
static void tasks_of_a_job_do(void **state)
{
    (void)state;
    struct driven victim;
    struct driven attacker;
    driver_start(isolation, 1, 0, &no_limits, waits, NULL, &victim);
    assert_int_equal(driver_receive(&victim), '!');
    driver_start(isolation, 1, 1, &no_limits, attacks, &victim.pid, &attacker);
    assert_int_equal(attacker.user.uid, victim.user.uid);
    int status = driver_wait(&attacker);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) & 3) == 3);
    driver_end(isolation, &attacker, NULL);
    driver_end(isolation, &victim, NULL);
}

static int looks_at_itself(void *data)
{
    (void)data;
    uid_t uids[3];
    gid_t gids[3];
    gid_t groups[8];
    bool mine = getresuid(&uids[0], &uids[1], &uids[2]) == 0 && uids[0] >= DRIVER_UID_FIRST &&
                uids[0] <= DRIVER_UID_LAST && uids[1] == uids[0] && uids[2] == uids[0];
    bool group = getresgid(&gids[0], &gids[1], &gids[2]) == 0 && gids[0] == (gid_t)uids[0] &&
                 gids[1] == gids[0] && gids[2] == gids[0] && getgroups(8, groups) == 0;
    bool stuck = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    return mine && group && stuck && umask(0) == 077 && setuid(0) != 0 ? 0 : 1;
}

static void a_task_has_no_privileges(void **state)
{
    (void)state;
    struct driven task;
    driver_start(isolation, 1, 0, &no_limits, looks_at_itself, NULL, &task);
    assert_int_equal(driver_wait(&task), 0);
    driver_end(isolation, &task, NULL);
}

/* Files that several hosts see belong to the common user. */
static void a_job_with_a_shared_folder(void **state)
{
    (void)state;
    struct cadre_error error;
    struct isolation_user user;
    assert_ok(isolation_enter_job(isolation, (struct job_id){5}, true, &user, &error), &error);
    assert_true(user.change && !user.own);
    assert_int_equal(user.uid, 65534);
    assert_true(isolation_is_clean(isolation, &user)); /* others have it, too */
    assert_false(isolation_begin_empty(isolation, &user));
    assert_false(isolation_leave_job(isolation, (struct job_id){5}, &user));
}

/* A wrong coordinator may send different values for two tasks of a job. Each leaves with the
 * value that it came with. */
static void a_job_that_is_both(void **state)
{
    (void)state;
    struct cadre_error error;
    struct isolation_user common;
    struct isolation_user own;
    const struct job_id job = {6};
    for (int first = 0; first < 2; first++) {
        assert_ok(isolation_enter_job(isolation, job, true, &common, &error), &error);
        assert_ok(isolation_enter_job(isolation, job, false, &own, &error), &error);
        assert_true(own.own && !common.own && own.uid != common.uid);
        const bool due = isolation_leave_job(isolation, job, first == 0 ? &common : &own);
        assert_int_equal(due, first != 0);
        assert_int_equal(isolation_leave_job(isolation, job, first == 0 ? &own : &common), !due);
        assert_true(isolation_emptied(isolation, &own));
    }
}

static struct sockaddr_un address;

static int connects(void *data)
{
    (void)data;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        return 1;
    }
    char byte;
    return (int)read(fd, &byte, 1); /* until the other end is closed */
}

static int connects_by_a_child(void *data)
{
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        _exit(connects(data));
    }
    int status = 1;
    waitpid(pid, &status, 0);
    return status;
}

static void only_its_own_may_connect(void **state)
{
    (void)state;
    struct driven own;
    struct driven child;
    struct driven other;
    struct peer peer;
    const char *folder = test_temp_dir();
    assert_int_equal(chmod(folder, 0711), 0);
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(chmod(address.sun_path, 0666), 0); /* worse than it will be */

    driver_start(isolation, 1, 0, &no_limits, connects, NULL, &own);
    int fd = accept(listener, NULL, NULL);
    assert_true(peer_is_task(fd, own.user.uid, own.pid, &own.confinement.group, &peer));
    assert_int_equal(peer.pid, own.pid);
    assert_true(peer_is_task(fd, own.user.uid, own.pid, NULL, NULL)); /* by its session */
    assert_false(peer_is_task(fd, own.user.uid + 1, own.pid, &own.confinement.group, NULL));

    driver_start(isolation, 1, 1, &no_limits, connects_by_a_child, NULL, &child);
    int child_fd = accept(listener, NULL, NULL);
    assert_true(peer_is_task(child_fd, child.user.uid, child.pid, &child.confinement.group, NULL));
    assert_true(peer_is_task(child_fd, child.user.uid, child.pid, NULL, NULL));
    assert_false(peer_is_task(child_fd, own.user.uid, own.pid, &own.confinement.group, NULL));
    assert_false(peer_is_task(child_fd, own.user.uid, own.pid, NULL, NULL));

    driver_start(isolation, 2, 0, &no_limits, connects, NULL, &other);
    int other_fd = accept(listener, NULL, NULL);
    assert_false(peer_is_task(other_fd, own.user.uid, own.pid, &own.confinement.group, &peer));
    assert_int_equal(peer.pid, other.pid);
    assert_int_equal(peer.uid, other.user.uid);
    close(fd);
    close(child_fd);
    close(other_fd);
    close(listener);
    driver_end(isolation, &own, NULL);
    driver_end(isolation, &child, NULL);
    driver_end(isolation, &other, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_do_not_reach_each_other),
        cmocka_unit_test(tasks_of_a_job_do),
        cmocka_unit_test(a_task_has_no_privileges),
        cmocka_unit_test(a_job_with_a_shared_folder),
        cmocka_unit_test(a_job_that_is_both),
        cmocka_unit_test(only_its_own_may_connect),
    };
    isolation = driver_open(&no_limits, true);
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    isolation_close(isolation);
    return result;
}
