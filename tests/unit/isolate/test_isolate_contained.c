/* SPDX-License-Identifier: Apache-2.0
 * Programs that behave badly: contained, reported, and removed with all they made. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "driver.h"

static struct isolation *isolation;
static const struct cgroup_limits limits = {
    .memory_bytes = 32 << 20, .cpu_thousandths = 1000, .pids = 20};

static void say(char byte)
{
    (void)!write(1, &byte, 1);
}

static void wait_for_ever(void)
{
    for (;;) {
        pause();
    }
}

static bool nothing_runs(void *data)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d", *(const pid_t *)data);
    return access(path, F_OK) != 0;
}

static int fork_bomb(void *data)
{
    (void)data;
    bool was_logged = false;
    for (pid_t pid = 0; pid != 1;) {
        pid = fork();
        if (pid < 0 && errno == EAGAIN && !was_logged) {
            was_logged = true;
            say('!');
        }
    }
    return 0;
}

static void a_fork_bomb(void **state)
{
    (void)state;
    struct driven task;
    struct cgroup_usage report;
    driver_start(isolation, 1, 0, &limits, fork_bomb, NULL, &task);
    assert_int_equal(driver_receive(&task), '!');
    driver_end(isolation, &task, &report);
    assert_true(report.pids_refused > 0);
    assert_int_equal(report.pids_limit, 20);
    char text[256];
    assert_true(cgroup_explain(&report, &limits, true, text, sizeof text));
    assert_non_null(strstr(text, "its 20 processes and threads (--pids)"));
}

static int memory_hog(void *data)
{
    (void)data;
    for (;;) {
        char *bytes =
            mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes == MAP_FAILED) {
            return 1;
        }
        memset(bytes, 1, 1 << 20);
    }
}

static void a_memory_hog(void **state)
{
    (void)state;
    struct driven task;
    struct cgroup_usage report;
    driver_start(isolation, 2, 0, &limits, memory_hog, NULL, &task);
    int status = driver_wait(&task);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    driver_end(isolation, &task, &report);
    assert_true(report.oom_kills > 0);
    assert_in_range(report.memory_peak_bytes, 16 << 20, 32 << 20);
    char text[256];
    assert_true(cgroup_explain(&report, &limits, true, text, sizeof text));
    assert_string_equal(text, "ended by the kernel: it used more than its 32 MiB (--memory)");
}

static int stubborn(void *data)
{
    (void)data;
    signal(SIGTERM, SIG_IGN);
    say('!');
    wait_for_ever();
    return 0;
}

static void one_that_ignores_sigterm(void **state)
{
    (void)state;
    struct driven task;
    driver_start(isolation, 3, 0, &limits, stubborn, NULL, &task);
    assert_int_equal(driver_receive(&task), '!');
    kill(task.pid, SIGTERM);
    assert_false(cgroup_is_empty(&task.confinement.group));
    driver_end(isolation, &task, NULL);
    assert_true(nothing_runs(&task.pid));
}

/* Leaves session and parent behind; only its group still shows it. */
static int daemonizes(void *data)
{
    (void)data;
    if (fork() != 0) {
        wait_for_ever();
    }
    setsid();
    if (fork() != 0) {
        _exit(0);
    }
    setsid();
    char pid[16];
    int size = snprintf(pid, sizeof pid, "%8d", (int)getpid());
    (void)!write(1, pid, (size_t)size);
    wait_for_ever();
    return 0;
}

static void one_that_daemonizes(void **state)
{
    (void)state;
    struct driven task;
    char text[9] = "";
    driver_start(isolation, 4, 0, &limits, daemonizes, NULL, &task);
    for (int i = 0; i < 8; i++) {
        text[i] = driver_receive(&task);
    }
    pid_t stray = (pid_t)strtol(text, NULL, 10);
    assert_true(cgroup_has(&task.confinement.group, stray));
    assert_false(cgroup_has(&task.confinement.group, getpid()));
    driver_end(isolation, &task, NULL);
    assert_true(test_wait(nothing_runs, &stray, 5 * CADRE_US_PER_S));
}

/* Folders that are open to all hold nothing of a job after its end. */
static int litters(void *data)
{
    const char *name = data;
    char path[128];
    snprintf(path, sizeof path, "/tmp/%s", name);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    snprintf(path, sizeof path, "/dev/shm/%s", name);
    bool made = mkdir(path, 0700) == 0;
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    return fd >= 0 && made && id >= 0 ? 0 : 1;
}

static int own_shared_memory(uid_t uid)
{
    struct shm_info info;
    int count = 0;
    int last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);
    for (int i = 0; i <= last; i++) {
        struct shmid_ds about;
        count += shmctl(i, SHM_STAT, &about) >= 0 && about.shm_perm.uid == uid;
    }
    return count;
}

static void one_that_leaves_files(void **state)
{
    (void)state;
    struct driven task;
    char name[64];
    char path[128];
    snprintf(name, sizeof name, "cadre-litter-%d", (int)getpid());
    driver_start(isolation, 5, 0, &limits, litters, name, &task);
    assert_int_equal(driver_wait(&task), 0);
    snprintf(path, sizeof path, "/dev/shm/%s", name);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(own_shared_memory(task.user.uid), 1);
    driver_end(isolation, &task, NULL);
    assert_int_not_equal(access(path, F_OK), 0);
    snprintf(path, sizeof path, "/tmp/%s", name);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(own_shared_memory(task.user.uid), 0);
}

static int burns(void *data)
{
    (void)data;
    volatile uint64_t n = 0;
    say('!');
    while (n < UINT64_MAX) {
        n++;
    }
    return 0;
}

static bool burned(void *data)
{
    const struct driven *task = data;
    struct cgroup_usage report;
    cgroup_usage(&task->confinement.group, &report);
    return report.cpu_us > 20000;
}

static void cpu_time_is_counted(void **state)
{
    (void)state;
    struct driven task;
    struct cgroup_usage report;
    driver_start(isolation, 6, 0, &limits, burns, NULL, &task);
    assert_int_equal(driver_receive(&task), '!');
    assert_true(test_wait(burned, &task, 10 * CADRE_US_PER_S));
    driver_end(isolation, &task, &report);
    assert_true(report.cpu_us > 20000);
}

/* What a worker grants and what it can keep. */
static void limits_over_the_workers(void **state)
{
    (void)state;
    struct cadre_error error;
    struct isolation_user user;
    struct task_confinement confinement;
    const struct task_ref ref = {.job = {9}, .incarnation = 1};
    const struct cgroup_limits much = {.pids = 200};
    assert_ok(isolation_enter_job(isolation, ref.job, false, &user, &error), &error);
    assert_error(isolation_prepare_task(isolation, ref, &user, &much, &confinement, &error),
        CADRE_FAILED_PRECONDITION, &error,
        "the job asks for --pids 200, and this worker allows its tasks 100 (--task-pids)");
    assert_false(isolation_is_clean(isolation, &user));
    assert_true(isolation_leave_job(isolation, ref.job, &user));
    assert_true(isolation_emptied(isolation, &user));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fork_bomb),
        cmocka_unit_test(a_memory_hog),
        cmocka_unit_test(one_that_ignores_sigterm),
        cmocka_unit_test(one_that_daemonizes),
        cmocka_unit_test(one_that_leaves_files),
        cmocka_unit_test(cpu_time_is_counted),
        cmocka_unit_test(limits_over_the_workers),
    };
    isolation = driver_open(&(struct cgroup_limits){.pids = 100}, true);
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    isolation_close(isolation);
    return result;
}
