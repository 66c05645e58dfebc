/* SPDX-License-Identifier: Apache-2.0
 * What the coordinator gets of the use of tasks: of those that run, with what a group does not tell
 * from the session, and of their GPUs what a child says. Two processes of this test are the
 * tasks', a script is the child. */
#include "worker/host/daemon/usage_report.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/task_files.h"
#include "worker/host/probe/slot_gpus.h"

static struct slot_gpus gpus = {.host = {.count = 3, .usable = 3}};
static struct daemon fixture = {.gpus = &gpus};
static struct task_files tasks[3];
static struct task_cgroup groups[2];
static struct agent_usage sent[4];
static size_t sent_count;
static struct resource_usage sent_host;
static bool reported;
static bool any_runs;
static pid_t pids[2];

/* One that leads a session of its own, as a task does. */
static pid_t start_leader(void)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setsid();
        (void)!write(ready[1], &byte, 1);
        for (;;) {
            pause();
        }
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

void link_send(struct daemon *daemon, const struct agent_up *up)
{
    assert_ptr_equal(daemon, &fixture);
    assert_int_equal(up->type, AGENT_UP_HEARTBEAT);
    assert_int_equal(up->heartbeat.fetch_count, 0);
    assert_in_range(up->heartbeat.usage_count, 0, 4);
    sent_count = up->heartbeat.usage_count;
    for (size_t i = 0; i < sent_count; i++) {
        sent[i] = up->heartbeat.usages[i];
    }
    sent_host = up->heartbeat.host;
    reported = true;
}

struct task_files *tasks_find(struct daemon *daemon, struct task_ref ref)
{
    struct task_files *task = daemon->tasks;
    while (task != NULL && !task_ref_equal(task->ref, ref)) {
        task = task->next;
    }
    return task;
}

uint32_t agent_task_count(const struct agent *agent)
{
    assert_ptr_equal(agent, fixture.agent);
    return 3;
}

/* Tasks 0 and 1 of job 7 run, task 0 of job 8 is being prepared. */
bool agent_task_process(
    struct agent *agent, struct task_ref task, struct agent_process *ret_process)
{
    assert_ptr_equal(agent, fixture.agent);
    *ret_process = (struct agent_process){.pid = pids[task.slot % 2],
        .group = &groups[task.slot % 2],
        .gpu_slot = (int32_t)task.slot};
    return any_runs && task.job.n == 7;
}

static void until_reported(void)
{
    reported = false;
    assert_int_equal(rpc_loop_run_until(fixture.loop, &reported,
                         clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S)),
        CADRE_OK);
}

/* One that answers for three GPUs, of which slot 0 has the first and slot 1 the others. */
static void set_gpus(void)
{
    char path[TEST_PATH_BYTES];
    test_write(test_path(path, test_temp_dir(), "cadre-devices"),
        "#!/bin/sh\nwhile read -r request; do echo '10,1000 20,24 31,1000'; done\n");
    assert_int_equal(chmod(path, 0755), 0);
    setenv("CADRE_DEVICES_PROGRAM", path, 1);
    fixture.options.slots = 2;
    fixture.options.gpu_timeout_us = 600 * CADRE_US_PER_S;
}

static void gpus_are_those_of_the_slot(void)
{
    for (struct patience patience = patience_begin(60 * CADRE_US_PER_S); !sent[0].usage.has_gpu;) {
        assert_false(patience_is_over(&patience));
        until_reported();
    }
    assert_int_equal(sent[0].task.slot, 1);
    assert_int_equal(sent[0].usage.gpu_percent, 26); /* 25.5 */
    assert_int_equal(sent[0].usage.gpu_memory_bytes, 1024);
    assert_int_equal(sent[1].usage.gpu_percent, 10);
    assert_int_equal(sent[1].usage.gpu_memory_bytes, 1000);
    assert_true(sent_host.has_gpu && sent_host.has_gpu_memory);
    assert_int_equal(sent_host.gpu_percent, 20);
    assert_int_equal(sent_host.gpu_memory_bytes, 2024);
    assert_int_equal(tasks[0].usage.usage.gpu_percent, 10); /* for /metrics */
}

static void tasks_that_run_are_measured(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    pids[0] = start_leader();
    pids[1] = start_leader();
    test_write(test_path(path, folder, "memory.current"), "4096\n");
    groups[1] = (struct task_cgroup){.kind = CGROUP_V2};
    memcpy(groups[1].folders[0], folder, strlen(folder) + 1);
    fixture.agent = (struct agent *)(void *)&fixture;
    fixture.linked = true;
    fixture.options.heartbeat_us = 10 * CADRE_US_PER_MS;
    set_gpus();
    const struct task_ref refs[] = {{{7}, 0, 1}, {{7}, 1, 2}, {{8}, 0, 1}};
    for (size_t i = 0; i < 3; i++) {
        tasks[i] = (struct task_files){.daemon = &fixture, .ref = refs[i], .next = fixture.tasks};
        fixture.tasks = &tasks[i];
    }
    assert_ok(rpc_loop_open(&fixture.loop, &error), &error);
    fixture.file_pool.loop = fixture.loop;
    assert_ok(usage_report_open(&fixture, &error), &error);
    until_reported();
    assert_int_equal(sent_count, 0);
    assert_true(sent_host.has_memory);
    assert_false(sent_host.has_cpu); /* of one reading it is not known */
    any_runs = true;
    until_reported();
    assert_true(sent_host.has_cpu);
    assert_false(sent_host.has_memory_peak);
    assert_int_equal(sent_count, 2);
    assert_int_equal(sent[1].task.slot, 0);
    assert_true(sent[1].usage.has_memory && sent[1].usage.memory_bytes > 4096);
    assert_false(sent[1].usage.has_cpu);
    assert_int_equal(sent[0].task.slot, 1);
    assert_int_equal(sent[0].usage.memory_bytes, 4096); /* its group's */
    until_reported();
    assert_true(sent[0].usage.has_cpu); /* of the session, because its group does not tell */
    assert_true(sent[1].usage.has_cpu);
    test_write(test_path(path, folder, "memory.current"), "1024\n");
    until_reported();
    assert_int_equal(sent[0].usage.memory_bytes, 1024);
    assert_int_equal(sent[0].usage.memory_peak_bytes, 4096); /* the most that was read */
    assert_int_equal(tasks[1].usage.usage.memory_bytes, 1024);
    assert_int_equal(tasks[2].usage.reading.at_us, 0);
    assert_true(usage_report_host(fixture.usage_report)->reading.has_cpu);
    assert_true(usage_report_cost_us(fixture.usage_report) > 0);
    gpus_are_those_of_the_slot();
    any_runs = false; /* its process has ended: the list of tasks may be empty by then, too */
    fixture.tasks = NULL;
    until_reported();
    assert_int_equal(sent_count, 0);
    fixture.linked = false;
    fixture.closes = true;
    file_work_pool_wait(&fixture.file_pool);
    usage_report_close(&fixture);
    rpc_loop_close(fixture.loop);
    usage_report_free(fixture.usage_report);
    usage_report_free(NULL);
    for (int i = 0; i < 2; i++) {
        kill(pids[i], SIGKILL);
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
    }
    while (waitpid(-1, NULL, 0) > 0) { /* the child */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tasks_that_run_are_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
