/* SPDX-License-Identifier: Apache-2.0
 * What tasks and a host use, from files that look like the kernel's: what is there, what is missing
 * and what is wrong. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "worker/host/usage/usage.h"

#define TICK_US (UINT64_C(1000000) / (uint64_t)sysconf(_SC_CLK_TCK))
#define PAGE    ((uint64_t)sysconf(_SC_PAGESIZE))

static const char *folder;

static void put(const char *name, const char *content)
{
    char path[TEST_PATH_BYTES];
    test_write(test_path(path, folder, name), content);
}

static void take_away(const char *name)
{
    char path[TEST_PATH_BYTES];
    assert_int_equal(unlink(test_path(path, folder, name)), 0);
}

/* ---- groups ---- */

static struct task_cgroup group_of(enum cgroup_kind kind)
{
    struct task_cgroup group = {.kind = kind};
    folder = test_temp_dir();
    for (int i = 0; i < (kind == CGROUP_V1 ? CGROUP_CONTROLLERS : 1); i++) {
        snprintf(group.folders[i], CGROUP_PATH_BYTES, "%s", folder);
    }
    return group;
}

/* Each file is missing once: its value alone is unknown. */
static void check_each_file(
    const struct task_cgroup *group, const char *const names[3], const char *const contents[3])
{
    for (int missing = -1; missing < 3; missing++) {
        struct usage_reading reading = {.at_us = 1};
        for (int i = 0; i < 3; i++) {
            put(names[i], contents[i]);
        }
        if (missing >= 0) {
            take_away(names[missing]);
        }
        usage_read_group(group, &reading);
        assert_int_equal(reading.has_cpu, missing != 0);
        assert_int_equal(reading.has_memory, missing != 1);
        assert_int_equal(reading.has_memory_peak, missing != 2);
        assert_int_equal(reading.cpu_us, missing != 0 ? 1234567 : 0);
        assert_int_equal(reading.memory_bytes, missing != 1 ? 4096 : 0);
        assert_int_equal(reading.memory_peak_bytes, missing != 2 ? 8192 : 0);
    }
}

static void groups_of_version_2(void **state)
{
    (void)state;
    static const char *const names[] = {"cpu.stat", "memory.current", "memory.peak"};
    static const char *const contents[] = {
        "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\n", "4096\n", "8192\n"};
    struct task_cgroup group = group_of(CGROUP_V2);
    check_each_file(&group, names, contents);
}

static void groups_of_version_1(void **state)
{
    (void)state;
    static const char *const names[] = {
        "cpuacct.usage", "memory.usage_in_bytes", "memory.max_usage_in_bytes"};
    static const char *const contents[] = {"1234567890\n", "4096\n", "8192\n"};
    struct task_cgroup group = group_of(CGROUP_V1);
    check_each_file(&group, names, contents);
}

static void a_task_without_a_group_and_wrong_files(void **state)
{
    (void)state;
    struct task_cgroup group = {.kind = CGROUP_NONE};
    struct usage_reading reading = {.at_us = 1};
    usage_read_group(&group, &reading);
    assert_false(reading.has_cpu || reading.has_memory || reading.has_memory_peak);
    group = group_of(CGROUP_V2);
    put("cpu.stat", "nothing\n");
    put("memory.current", "max\n");
    put("memory.peak", "99999999999999999999\n");
    usage_read_group(&group, &reading);
    assert_false(reading.has_cpu || reading.has_memory || reading.has_memory_peak);
}

/* ---- sessions ---- */

static void process(const char *pid, const char *text)
{
    char path[TEST_PATH_BYTES];
    char name[64];
    (void)mkdir(test_path(path, folder, pid), 0700);
    snprintf(name, sizeof name, "%s/stat", pid);
    put(name, text);
}

/* utime stime cutime cstime, resident pages. */
#define STAT(name, session, user, system, of_user, of_system, pages)                               \
    "7 (" name ") S 1 7 " #session " 0 -1 4194304 1 2 3 4 " #user " " #system " " #of_user         \
    " " #of_system " 20 0 9 0 100 12345678 " #pages " 18446744073709551615 1 1 0 0 0 0 0\n"

static void processes_are_added_to_their_sessions(void **state)
{
    (void)state;
    folder = test_temp_dir();
    process("7", STAT("train", 7, 100, 20, 3, 1, 50));
    process("8", STAT("a) S 1 9 9 (b", 7, 6, 0, 0, 0, 5)); /* a name as a program may choose it */
    process("9", STAT("other", 9, 1000, 0, 0, 0, 1000));
    process("12", STAT("of no task", 12, 1, 1, 1, 1, 1));
    process("13", "13 (cut off");
    process("14", "");
    process("15", "15 (short) S 1 7 7 0 -1 4194304\n");
    process("self", STAT("no process", 7, 1, 1, 1, 1, 1));
    char path[TEST_PATH_BYTES];
    assert_int_equal(mkdir(test_path(path, folder, "16"), 0700), 0); /* it ended meanwhile */
    struct usage_session sessions[] = {{.leader = 9}, {.leader = 99}, {.leader = 7}};
    for (int again = 0; again < 2; again++) { /* nothing is left of the pass before */
        assert_true(usage_read_sessions(folder, sessions, 3));
        assert_int_equal(sessions[0].leader, 7);
        assert_int_equal(sessions[0].processes, 2);
        assert_int_equal(sessions[0].cpu_us, 130 * TICK_US);
        assert_int_equal(sessions[0].memory_bytes, 55 * PAGE);
        assert_int_equal(sessions[1].leader, 9);
        assert_int_equal(sessions[1].cpu_us, 1000 * TICK_US);
        assert_int_equal(sessions[2].leader, 99);
        assert_int_equal(sessions[2].processes, 0);
        assert_int_equal(sessions[2].memory_bytes, 0);
    }
}

static void too_many_processes_are_not_read(void **state)
{
    (void)state;
    folder = test_temp_dir();
    process("7", STAT("train", 7, 100, 20, 3, 1, 50));
    struct usage_session session = {.leader = 7};
    assert_true(usage_read_sessions(folder, &session, 1));
    assert_int_equal(session.processes, 1);
    for (int pid = 1000; pid < 1000 + USAGE_PROCESSES_MAX; pid++) {
        char path[TEST_PATH_BYTES];
        char name[16];
        snprintf(name, sizeof name, "%d", pid);
        assert_int_equal(symlink("nowhere", test_path(path, folder, name)), 0);
    }
    assert_false(usage_read_sessions(folder, &session, 1));
    assert_int_equal(session.processes, 0);
    assert_int_equal(session.cpu_us, 0);
    assert_false(usage_read_sessions("/nowhere", &session, 1));
}

static void this_process_is_found(void **state)
{
    (void)state;
    struct usage_session session = {.leader = getsid(0)};
    assert_true(usage_read_sessions("/proc", &session, 1));
    assert_true(session.processes >= 1);
    assert_true(session.memory_bytes >= PAGE);
}

/* ---- the host ---- */

static void a_host_is_read(void **state)
{
    (void)state;
    struct usage_reading reading = {.at_us = 1};
    folder = test_temp_dir();
    usage_read_host(folder, &reading);
    assert_false(reading.has_cpu || reading.has_memory);
    put("stat", "cpu  100 10 20 9999 77 3 2 1 50 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n");
    put("meminfo", "MemTotal:        1000 kB\nMemFree:  1 kB\nMemAvailable:     400 kB\n");
    usage_read_host(folder, &reading);
    assert_int_equal(reading.cpu_us, 136 * TICK_US);
    assert_true(reading.has_memory);
    assert_int_equal(reading.memory_bytes, 600 * 1024);
    assert_false(reading.has_memory_peak);
    static const char *const wrong[] = {"", "MemTotal:  1000 kB\n",
        "MemTotal: 1 kB\nMemAvailable: 2 kB\n",
        "MemTotal: 18446744073709551615 kB\nMemAvailable: 0 kB\n",
        "MemTotal: x\nMemAvailable: y\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        reading = (struct usage_reading){.at_us = 1};
        put("meminfo", wrong[i]);
        put("stat", i % 2 == 0 ? "cpu 1 2 3\n" : "intr 1 2 3 4 5 6 7 8\n");
        usage_read_host(folder, &reading);
        assert_false(reading.has_memory || reading.has_cpu);
    }
}

/* ---- between two readings ---- */

static void use_is_between_two_readings(void **state)
{
    (void)state;
    struct usage_reading before = {0};
    struct usage_reading now = {.at_us = 3000000,
        .has_cpu = true,
        .has_memory = true,
        .cpu_us = 500000,
        .memory_bytes = 77};
    struct resource_usage usage = usage_between(&before, &now);
    assert_false(usage.has_cpu); /* of the first reading it is not known */
    assert_int_equal(usage.memory_bytes, 77);
    assert_false(usage.has_memory_peak || usage.has_gpu || usage.has_gpu_memory);
    before = now;
    now.at_us = 5000000;
    now.cpu_us = 3500000;
    assert_int_equal(usage_between(&before, &now).cpu_thousandths, 1500);
    now.cpu_us = 400000; /* a process with its children has left */
    usage = usage_between(&before, &now);
    assert_true(usage.has_cpu);
    assert_int_equal(usage.cpu_thousandths, 0);
    now.cpu_us = UINT64_MAX;
    assert_int_equal(usage_between(&before, &now).cpu_thousandths, LIMIT_CPU_MAX);
    now.at_us = before.at_us;
    assert_false(usage_between(&before, &now).has_cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups_of_version_2),
        cmocka_unit_test(groups_of_version_1),
        cmocka_unit_test(a_task_without_a_group_and_wrong_files),
        cmocka_unit_test(processes_are_added_to_their_sessions),
        cmocka_unit_test(too_many_processes_are_not_read), cmocka_unit_test(this_process_is_found),
        cmocka_unit_test(a_host_is_read), cmocka_unit_test(use_is_between_two_readings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
