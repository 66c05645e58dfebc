/* SPDX-License-Identifier: Apache-2.0
 * What a job's uid leaves is removed after it, with no more rights than the daemon's service
 * has. */
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/host/isolate/uid_cleanup.h"

/* Not in use: neither of the default range nor of the other tests. */
#define OWNER 60825

#define CHAIN_US (20 * CADRE_US_PER_S) /* ends by itself when a test does not end it */

#define REFUSED 42

static char name[TEST_PATH_BYTES];
static int others[2];
static int ready[2];

/* As the unit's CapabilityBoundingSet. */
static bool keep_few_rights(void)
{
    const unsigned kept[] = {CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_CHOWN, CAP_FOWNER,
        CAP_DAC_OVERRIDE, CAP_SYS_PTRACE, CAP_SYS_RESOURCE};
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0) {
        return false;
    }
    uint32_t mask = 0;
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        mask |= 1U << kept[i];
    }
    data[0].effective &= mask;
    data[0].permitted &= mask;
    data[1] = (struct __user_cap_data_struct){0};
    return syscall(SYS_capset, &header, data) == 0;
}

static int litter(void)
{
    int fd = open(name, O_CREAT | O_WRONLY, 0600);
    return fd >= 0 && shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0 &&
                   msgget(IPC_PRIVATE, IPC_CREAT | 0600) >= 0 &&
                   semget(IPC_PRIVATE, 1, IPC_CREAT | 0600) >= 0
               ? 0
               : 1;
}

/* Each process has exited before its number can be read. */
static int fork_and_end(void)
{
    uint64_t end_us = clock_monotonic_us() + CHAIN_US;
    signal(SIGCHLD, SIG_IGN);
    while (clock_monotonic_us() < end_us) {
        if (fork() > 0) {
            _exit(0);
        }
    }
    return 0;
}

/* A worker daemon of its own: what it does not start is not its own. */
static int clear(void)
{
    struct uid_holder holder = {0};
    if (!keep_few_rights()) {
        return 1;
    }
    uid_cleanup_remove(OWNER, &holder);
    return 0;
}

static int claim(void)
{
    struct uid_holder holder = {0};
    return keep_few_rights() && uid_cleanup_claim(OWNER, &holder) ? 0 : REFUSED;
}

/* In a container, which does not show what runs outside. */
static int claim_contained(void)
{
    if (unshare(CLONE_NEWPID) != 0) {
        return 2;
    }
    pid_t pid = fork();
    int status = -1;
    if (pid == 0) {
        _exit(claim());
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

static int end_of(int (*body)(void), bool as_owner)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(!as_owner || setresuid(OWNER, OWNER, OWNER) == 0 ? body() : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void run(int (*body)(void), bool as_owner)
{
    assert_int_equal(end_of(body, as_owner), 0);
}

/* Everybody may read these lists. */
static unsigned objects_in(const char *path)
{
    char line[512];
    char pattern[32];
    unsigned count = 0;
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    snprintf(pattern, sizeof pattern, " %d ", OWNER);
    while (fgets(line, sizeof line, file) != NULL) {
        count += strstr(line, pattern) != NULL;
    }
    fclose(file);
    return count;
}

static unsigned objects(void)
{
    return objects_in("/proc/sysvipc/shm") + objects_in("/proc/sysvipc/msg") +
           objects_in("/proc/sysvipc/sem");
}

static void objects_and_files(void **state)
{
    (void)state;
    snprintf(name, sizeof name, "/dev/shm/cadre-belongings-%d", (int)getpid());
    run(clear, false); /* of a run that failed */
    run(litter, true);
    assert_int_equal(objects(), 3);
    assert_int_equal(access(name, F_OK), 0);
    run(clear, false);
    assert_int_equal(objects(), 0);
    assert_int_equal(access(name, F_OK), -1);
}

static int start_chain_and_clear(void)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 || end_of(fork_and_end, true) != 0) {
        return 1;
    }
    signal(SIGCHLD, SIG_IGN); /* as a daemon, which waits for all that become its children */
    return clear();
}

static void a_chain_of_processes(void **state)
{
    (void)state;
    int held[2]; /* by each of the chain: the other end is closed when none is left */
    assert_int_equal(pipe2(held, O_CLOEXEC), 0);
    struct pollfd end = {.fd = held[0]};
    run(start_chain_and_clear, false);
    close(held[1]);
    assert_int_equal(
        poll(&end, 1, (int)(speed_scaled_us(5 * CADRE_US_PER_S) / CADRE_US_PER_MS)), 1);
    close(held[0]);
    while (waitpid(-1, NULL, 0) > 0) {
    }
}

/* A task of another daemon of this kernel, until the pipe is closed. */
static int wait_for_the_end(void)
{
    char byte = 0;
    close(others[1]);
    return write(ready[1], &byte, 1) == 1 && read(others[0], &byte, 1) == 0 ? 0 : 1;
}

static pid_t start_another(void)
{
    char byte;
    assert_int_equal(pipe2(others, O_CLOEXEC), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(setresuid(OWNER, OWNER, OWNER) == 0 && litter() == 0 ? wait_for_the_end() : 2);
    }
    close(others[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    return pid;
}

/* Not before it has ended is anything of the uid ours. */
static void what_another_daemon_runs_stays(void **state)
{
    (void)state;
    int status = 0;
    snprintf(name, sizeof name, "/dev/shm/cadre-belongings-%d", (int)getpid());
    run(clear, false);
    pid_t pid = start_another();
    assert_int_equal(WEXITSTATUS(end_of(claim, false)), REFUSED);
    assert_int_equal(WEXITSTATUS(end_of(claim_contained, false)), REFUSED);
    run(clear, false);
    assert_int_equal(objects(), 3);
    assert_int_equal(access(name, F_OK), 0);
    assert_int_equal(kill(pid, 0), 0);
    close(others[1]);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0); /* and not by a signal */
    run(claim_contained, false);
    assert_int_equal(objects(), 0);
    assert_int_equal(access(name, F_OK), -1);
}

/* Between two tasks of a job nothing but its holder runs. */
static void one_that_is_held_is_not_taken(void **state)
{
    (void)state;
    struct uid_holder holder = {0};
    struct uid_holder second = {0};
    assert_true(uid_cleanup_claim(OWNER, &holder));
    assert_int_equal(WEXITSTATUS(end_of(claim, false)), REFUSED);
    assert_int_equal(WEXITSTATUS(end_of(claim_contained, false)), REFUSED);
    assert_int_equal(uid_holder_check(&holder), UID_HOLDER_ALONE);
    assert_int_equal(kill(holder.pid, SIGKILL), 0); /* as a task of the job can */
    assert_int_equal(uid_holder_check(&holder), UID_HOLDER_GONE);
    uid_cleanup_remove(OWNER, &holder);
    assert_int_equal(holder.pid, 0);
    assert_true(uid_cleanup_claim(OWNER, &second));
    uid_cleanup_remove(OWNER, &second);
    run(claim, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_and_files),
        cmocka_unit_test(a_chain_of_processes),
        cmocka_unit_test(what_another_daemon_runs_stays),
        cmocka_unit_test(one_that_is_held_is_not_taken),
    };
    if (geteuid() != 0) {
        test_skip("not root: nothing of another user can be made");
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* a container's first process may reap no child */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
