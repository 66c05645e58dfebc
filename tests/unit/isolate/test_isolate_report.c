/* SPDX-License-Identifier: Apache-2.0
 * What a group used, in the words of both versions, and the sentence about an end. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"
#include "worker/host/isolate/cgroup.h"

static const char *folder;

static void put(const char *name, const char *content)
{
    char path[TEST_PATH_BYTES];
    test_write(test_path(path, folder, name), content);
}

static void version_1(void **state)
{
    (void)state;
    folder = test_temp_dir();
    put("memory.max_usage_in_bytes", "4096\n");
    put("memory.limit_in_bytes", "536870912\n");
    put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    put("pids.max", "256\n");
    put("pids.events", "max 17\n");
    put("cpuacct.usage", "5000000\n");
    struct task_cgroup group = {.kind = CGROUP_V1};
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        snprintf(group.folders[i], CGROUP_PATH_BYTES, "%s", folder);
    }
    struct cgroup_usage report;
    cgroup_usage(&group, &report);
    assert_int_equal(report.memory_peak_bytes, 4096);
    assert_int_equal(report.memory_limit_bytes, 536870912);
    assert_int_equal(report.oom_kills, 2);
    assert_int_equal(report.pids_limit, 256);
    assert_int_equal(report.pids_refused, 17);
    assert_int_equal(report.cpu_us, 5000);
    put("memory.limit_in_bytes", "9223372036854771712\n");
    cgroup_usage(&group, &report);
    assert_int_equal(report.memory_limit_bytes, 0);
}

static void version_2(void **state)
{
    (void)state;
    folder = test_temp_dir();
    put("memory.peak", "8192\n");
    put("memory.max", "max\n");
    put("memory.events", "low 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 1\n");
    put("cpu.stat", "usage_usec 123\nuser_usec 100\n");
    struct task_cgroup group = {.kind = CGROUP_V2};
    snprintf(group.folders[0], CGROUP_PATH_BYTES, "%s", folder);
    struct cgroup_usage report;
    cgroup_usage(&group, &report);
    assert_int_equal(report.memory_peak_bytes, 8192);
    assert_int_equal(report.memory_limit_bytes, 0);
    assert_int_equal(report.oom_kills, 1);
    assert_int_equal(report.cpu_us, 123);
    assert_int_equal(report.pids_refused, 0);
}

static void a_sentence_about_the_end(void **state)
{
    (void)state;
    char text[256] = "";
    const struct cgroup_limits asked = {.memory_bytes = 512 << 20, .pids = 9};
    const struct cgroup_limits none = {0};
    struct cgroup_usage report = {.memory_limit_bytes = 512 << 20, .oom_kills = 1};
    assert_true(cgroup_explain(&report, &asked, true, text, sizeof text));
    assert_string_equal(text, "ended by the kernel: it used more than its 512 MiB (--memory)");
    report.memory_limit_bytes = UINT64_C(1610612736);
    assert_true(cgroup_explain(&report, &none, false, text, sizeof text));
    assert_string_equal(text, "a process of it was ended by the kernel: it used more than its 1.5 "
                              "GiB (--task-memory of the worker)");
    report = (struct cgroup_usage){.pids_limit = 9, .pids_refused = 3};
    assert_false(cgroup_explain(&report, &asked, false, text, sizeof text));
    assert_true(cgroup_explain(&report, &asked, true, text, sizeof text));
    assert_string_equal(text, "it had all of its 9 processes and threads (--pids): 3 more were "
                              "refused");
    assert_false(cgroup_explain(&(struct cgroup_usage){0}, &asked, true, text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_1),
        cmocka_unit_test(version_2),
        cmocka_unit_test(a_sentence_about_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
