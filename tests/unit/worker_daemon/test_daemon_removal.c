/* SPDX-License-Identifier: Apache-2.0
 * However long it takes to remove what a task left, others start and end meanwhile. */
#include <dirent.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/isolate.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/removal.h"
#include "worker/host/daemon/task_files.h"
#include "worker/host/daemon/tasks.h"

#define TASKS_MAX 8

static struct daemon fixture;
static struct agent_start starts[TASKS_MAX];
static unsigned prepared;
static unsigned collected;
static char tasks[TEST_PATH_BYTES];
static char blobs[TEST_PATH_BYTES];

/* ---- a removal that ends when the test allows it ---- */

#define SLOW_JOB 1

static sem_t reached;
static sem_t let_go;
static bool slow_is_dirty;
static bool slow_is_emptied;
static unsigned emptied;
static atomic_bool in_vain; /* no test released it */

static bool take(sem_t *semaphore)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += (time_t)(speed_scaled_us(30 * CADRE_US_PER_S) / CADRE_US_PER_S);
    return sem_timedwait(semaphore, &end) == 0;
}

cadre_status isolate_enter(struct task_files *task, struct cadre_error *error)
{
    (void)error;
    task->entered = true;
    task->user.own = true;
    task->user.uid = (uid_t)task->ref.job.n;
    return CADRE_OK;
}

cadre_status isolate_prepare(
    struct task_files *task, struct task_confinement *ret_confinement, struct cadre_error *error)
{
    (void)task;
    (void)error;
    *ret_confinement = (struct task_confinement){0};
    return CADRE_OK;
}

cadre_status isolate_adopt(struct task_files *task, struct cadre_error *error)
{
    (void)task;
    (void)error;
    fail();
    return CADRE_OK;
}

bool isolate_leave(struct task_files *task)
{
    return task->entered;
}

enum uid_state isolate_uid_state(struct task_files *task)
{
    if (task->ref.job.n != SLOW_JOB || !slow_is_dirty) {
        return UID_CLEAN;
    }
    enum uid_state state = slow_is_emptied ? UID_BEING_EMPTIED : UID_DIRTY;
    slow_is_emptied = true;
    return state;
}

void isolate_empty(const struct task_files *task)
{
    if (task->user.uid == SLOW_JOB) {
        sem_post(&reached);
        in_vain = !take(&let_go) || in_vain;
    }
}

bool isolate_emptied(struct task_files *task)
{
    emptied++;
    if (task->user.uid == SLOW_JOB) {
        slow_is_dirty = false;
    }
    return true;
}

static atomic_bool rename_is_slow;

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    if (rename_is_slow) {
        sem_post(&reached);
        in_vain = !take(&let_go) || in_vain;
    }
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

/* ---- the agent and the link ---- */

void agent_task_collected(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text)
{
    (void)agent;
    (void)task;
    (void)text;
    assert_int_equal(code, CADRE_OK);
    collected++;
}

void agent_set_output_paused(struct agent *agent, struct task_ref task, bool held)
{
    (void)agent;
    (void)task;
    (void)held;
}

void agent_task_prepared(
    struct agent *agent, struct task_ref task, const struct agent_launch *launch)
{
    (void)agent;
    (void)task;
    close(launch->listener);
    prepared++;
}

void agent_task_failed(
    struct agent *agent, struct task_ref task, int exit_code, const struct cadre_error *cause)
{
    (void)agent;
    (void)task;
    fail_msg("%d: %s", exit_code, cause->text);
}

void agent_task_published(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text)
{
    (void)agent;
    (void)task;
    (void)code;
    (void)text;
    fail();
}

void link_send(struct daemon *daemon, const struct agent_up *up)
{
    (void)daemon;
    assert_int_equal(up->type, AGENT_UP_HEARTBEAT); /* a fetch took longer than a moment */
}

/* ---- the fixture ---- */

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    test_path(blobs, folder, "blobs");
    test_path(tasks, folder, "tasks");
    fixture = (struct daemon){.blob_dir = blobs, .task_dir = tasks};
    prepared = collected = emptied = 0;
    slow_is_dirty = slow_is_emptied = false;
    in_vain = false;
    rename_is_slow = false;
    sem_init(&reached, 0, 0);
    sem_init(&let_go, 0, 0);
    assert_ok(folder_make(blobs, 0700, &error), &error);
    assert_ok(folder_make(tasks, 0711, &error), &error);
    assert_ok(rpc_loop_open(&fixture.loop, &error), &error);
    fixture.file_pool.loop = fixture.loop;
    fixture.store_pool.loop = fixture.loop;
    fetch_report_open(&fixture);
    struct job_spec spec = {.program = {.name = "program", .size_bytes = 9}, .workers = 1};
    struct sha256 hash;
    assert_ok(sha256_of("#!/bin/sh", 9, &hash, &error), &error);
    memcpy(spec.program.sha256, hash.bytes, sizeof hash.bytes);
    char *blob = sha256_path(blobs, spec.program.sha256);
    snprintf(path, sizeof path, "%s", blob);
    free(blob);
    test_write(path, "#!/bin/sh"); /* nothing is to be fetched */
    for (unsigned i = 0; i < TASKS_MAX; i++) {
        starts[i] = (struct agent_start){.task_count = 1, .spec = spec};
    }
    return 0;
}

static void run_until(bool (*condition)(void))
{
    uint64_t end_us = clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S);
    bool never = false;
    while (!condition()) {
        assert_true(clock_monotonic_us() < end_us);
        (void)rpc_loop_run_until(fixture.loop, &never, clock_monotonic_us() + CADRE_US_PER_MS);
    }
}

static bool nothing_works(void)
{
    return fixture.file_pool.count == 0;
}

static bool two_work(void)
{
    return fixture.file_pool.count == 2;
}

static bool one_works(void)
{
    return fixture.file_pool.count == 1;
}

static int tear_down(void **state)
{
    (void)state;
    tasks_free_all(&fixture);
    run_until(nothing_works);
    fetch_report_close(&fixture);
    rpc_loop_close(fixture.loop);
    wire_buffer_free(&fixture.packed);
    sem_destroy(&reached);
    sem_destroy(&let_go);
    return 0;
}

static struct task_ref ref_of(uint64_t job, uint32_t slot)
{
    return (struct task_ref){.job = {job}, .slot = slot, .incarnation = 1};
}

static void prepare(unsigned i, uint64_t job, uint32_t slot)
{
    starts[i].task = ref_of(job, slot);
    worker_agent_callbacks.prepare(&fixture, &starts[i]);
}

static bool is_reached(void)
{
    return sem_trywait(&reached) == 0;
}

static bool is_collected(void)
{
    return collected == 1;
}

static unsigned wanted;

static bool are_prepared(void)
{
    return prepared == wanted;
}

static void until_prepared(unsigned count)
{
    wanted = count;
    run_until(are_prepared);
}

static unsigned folders(void)
{
    unsigned count = 0;
    DIR *entries = opendir(tasks);
    assert_non_null(entries);
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    closedir(entries);
    return count;
}

static bool is_there(const char *name)
{
    char path[TEST_PATH_BYTES];
    return access(test_path(path, tasks, name), F_OK) == 0;
}

/* ---- the tests ---- */

static void others_start_while_one_is_removed(void **state)
{
    (void)state;
    prepare(0, SLOW_JOB, 0);
    prepare(1, 2, 0);
    until_prepared(2);
    worker_agent_callbacks.forget(&fixture, ref_of(SLOW_JOB, 0));
    run_until(is_reached);
    worker_agent_callbacks.forget(&fixture, ref_of(2, 0));
    prepare(2, 3, 0);
    prepare(3, 2, 0); /* the same again */
    until_prepared(4);
    prepare(4, 4, 0);
    until_prepared(5);
    worker_agent_callbacks.forget(&fixture, ref_of(4, 0));
    run_until(one_works); /* one at a time: a thread is kept, not the pool */
    assert_int_equal(emptied, 0);
    assert_true(is_there("3.0.1") && is_there("2.0.1") && !is_there("4.0.1"));
    sem_post(&let_go);
    run_until(nothing_works);
    assert_false(in_vain);
    assert_int_equal(emptied, 3);
    assert_int_equal(folders(), 2);
    assert_true(is_there("3.0.1") && is_there("2.0.1/work/program"));
}

/* However long the disk takes to rename the folder of a task that ended, the loop goes on, and
 * only a start of the same name waits for that. */
static void only_its_own_name_waits_for_a_folder(void **state)
{
    (void)state;
    prepare(0, 2, 0);
    until_prepared(1);
    rename_is_slow = true;
    worker_agent_callbacks.forget(&fixture, ref_of(2, 0));
    run_until(is_reached);
    assert_true(is_there("2.0.1/work/program"));
    prepare(1, 2, 0); /* the same again */
    prepare(2, 3, 0);
    until_prepared(2);                      /* the last */
    worker_link_callbacks.linked(&fixture); /* changes nothing */
    worker_agent_callbacks.forget(&fixture, ref_of(2, 0));
    prepare(1, 2, 0);
    run_until(two_work); /* in vain, each at its renaming */
    assert_int_equal(prepared, 2);
    rename_is_slow = false;
    sem_post(&let_go);
    sem_post(&let_go);
    until_prepared(3);
    run_until(nothing_works);
    assert_false(in_vain);
    assert_true(is_there("2.0.1/work/program") && is_there("3.0.1/work/program"));
    assert_int_equal(folders(), 2);
}

static void only_its_own_job_waits_for_a_uid(void **state)
{
    (void)state;
    slow_is_dirty = true;
    prepare(0, SLOW_JOB, 0);
    run_until(is_reached);
    prepare(1, SLOW_JOB, 1);
    prepare(2, SLOW_JOB, 2);
    prepare(3, 2, 0);
    until_prepared(1); /* the last */
    assert_false(is_there("1.0.1/work") || is_there("1.1.1/work"));
    worker_link_callbacks.linked(&fixture); /* changes nothing */
    worker_agent_callbacks.collect(&fixture, ref_of(SLOW_JOB, 2));
    run_until(is_collected);
    assert_int_equal(fixture.file_pool.count, 1);
    assert_int_equal(prepared, 1);
    sem_post(&let_go);
    until_prepared(3);
    run_until(nothing_works);
    assert_false(in_vain);
    assert_int_equal(emptied, 1);
    assert_true(is_there("1.0.1/work/program") && is_there("1.1.1/work/program"));
    assert_false(is_there("1.2.1/work"));
    sem_post(&let_go); /* at the end */
    sem_post(&let_go);
    sem_post(&let_go);
}

/* It counts as a task of its job until then: no other job has the uid. */
static void one_that_is_stopped_as_its_uid_is_emptied(void **state)
{
    (void)state;
    slow_is_dirty = true;
    prepare(0, SLOW_JOB, 0);
    run_until(is_reached);
    prepare(1, SLOW_JOB, 1);
    worker_agent_callbacks.collect(&fixture, ref_of(SLOW_JOB, 0));
    run_until(is_collected);
    worker_agent_callbacks.forget(&fixture, ref_of(SLOW_JOB, 0));
    assert_true(is_there("1.0.1"));
    sem_post(&let_go);
    until_prepared(1);
    sem_post(&let_go); /* the first one's end */
    run_until(nothing_works);
    assert_false(in_vain);
    assert_false(is_there("1.0.1"));
    assert_true(is_there("1.1.1/work/program"));
    sem_post(&let_go);
}

static void a_folder_of_an_earlier_incarnation(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct cadre_error error = {0};
    assert_ok(folder_make(test_path(path, tasks, "gone-1/many"), 0700, &error), &error);
    assert_ok(folder_make(test_path(path, tasks, "5.0.1/many"), 0700, &error), &error);
    assert_ok(removal_folder(&fixture, test_path(path, tasks, "5.0.1"), &error), &error);
    prepare(0, 5, 0);
    until_prepared(1);
    assert_true(is_there("5.0.1/work/program") && !is_there("5.0.1/many"));
    assert_ok(removal_folder(&fixture, test_path(path, tasks, "gone-1"), &error), &error);
    run_until(nothing_works);
    assert_int_equal(folders(), 1);
    assert_true(is_there("5.0.1/work/program"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(others_start_while_one_is_removed),
        TEST(only_its_own_name_waits_for_a_folder), TEST(only_its_own_job_waits_for_a_uid),
        TEST(one_that_is_stopped_as_its_uid_is_emptied), TEST(a_folder_of_an_earlier_incarnation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
