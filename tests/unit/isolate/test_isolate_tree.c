/* SPDX-License-Identifier: Apache-2.0
 * Where groups go, by the kernel's two files; against a tree of plain files. What a kernel would
 * make in a new folder is made beforehand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "tests/lib/test.h"
#include "worker/host/isolate/cgroup_tree.h"

static struct cadre_error error;
static const char *root; /* of this test's tree */
static const struct task_ref task = {.job = {7}, .slot = 0, .incarnation = 5};

static void put(const char *name, const char *content)
{
    char path[TEST_PATH_BYTES];
    char folder[TEST_PATH_BYTES];
    test_path(path, root, name);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_ok(folder_make(folder, 0755, &error), &error);
    test_write(path, content);
}

static void assert_file(const char *name, const char *content)
{
    char path[TEST_PATH_BYTES];
    char *bytes;
    size_t size;
    assert_ok(file_read(test_path(path, root, name), 4096, &bytes, &size, &error), &error);
    assert_string_equal(bytes, content);
    free(bytes);
}

static void open_tree(const char *parent, struct cgroup_tree *ret_tree)
{
    char mounts[TEST_PATH_BYTES];
    char membership[TEST_PATH_BYTES];
    cgroup_tree_open(&(struct cgroup_tree_options){.mounts = test_path(mounts, root, "mountinfo"),
                         .membership = test_path(membership, root, "cgroup"),
                         .name = "w1",
                         .parent = parent},
        ret_tree);
}

static void put_mounts(const char *format)
{
    char text[4096];
    size_t size = 0;
    for (const char *at = format; *at != '\0'; at++) { /* each @ is the tree's folder */
        if (*at == '@') {
            size += (size_t)snprintf(text + size, sizeof text - size, "%s", root);
        } else {
            text[size++] = *at;
        }
    }
    text[size] = '\0';
    put("mountinfo", text);
}

static void put_v2(const char *folder, const char *controllers)
{
    static const char *const names[] = {"cgroup.type", "cgroup.procs", "cgroup.subtree_control",
        "memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "pids.max"};
    char name[TEST_PATH_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        put(name, "");
    }
    snprintf(name, sizeof name, "%s/cgroup.subtree_control", folder);
    put(name, controllers);
    snprintf(name, sizeof name, "%s/cgroup.controllers", folder);
    put(name, controllers);
}

static void v2_is_divided_below_a_leaf(void **state)
{
    (void)state;
    root = test_temp_dir();
    put_mounts("30 23 0:26 / /proc rw - proc proc rw\n"
               "31 23 0:27 / @ rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
    put("cgroup", "0::/system.slice/cadre-worker.service\n");
    put_v2("system.slice/cadre-worker.service", "cpu io memory pids\n");
    put_v2("system.slice/cadre-worker.service/cadre-daemon", "");
    put_v2("system.slice/cadre-worker.service/w1", "cpu memory pids\n");
    put_v2("system.slice/cadre-worker.service/w1/job-7", "cpu memory pids\n");
    put_v2("system.slice/cadre-worker.service/w1/job-7/task-0.5", "");
    struct cgroup_tree tree;
    open_tree(NULL, &tree);
    assert_int_equal(tree.kind, CGROUP_V2);
    assert_string_equal(tree.why, "");
    assert_true(tree.has[CGROUP_MEMORY] && tree.has[CGROUP_PIDS] && tree.has[CGROUP_CPU]);
    assert_file("system.slice/cadre-worker.service/cadre-daemon/cgroup.procs", "0");

    struct task_cgroup group;
    const struct cgroup_limits limits = {
        .memory_bytes = 1 << 20, .cpu_thousandths = 1500, .pids = 256};
    assert_ok(cgroup_tree_make(&tree, task, &limits, &group, &error), &error);
    char folder[TEST_PATH_BYTES];
    assert_string_equal(group.folders[0],
        test_path(folder, root, "system.slice/cadre-worker.service/w1/job-7/task-0.5"));
    assert_file("system.slice/cadre-worker.service/w1/job-7/task-0.5/memory.max", "1048576");
    assert_file("system.slice/cadre-worker.service/w1/job-7/task-0.5/memory.swap.max", "0");
    assert_file("system.slice/cadre-worker.service/w1/job-7/task-0.5/memory.oom.group", "1");
    assert_file("system.slice/cadre-worker.service/w1/job-7/task-0.5/cpu.max", "150000 100000");
    assert_file("system.slice/cadre-worker.service/w1/job-7/task-0.5/pids.max", "256");

    put("cgroup", "0::/system.slice/cadre-worker.service/cadre-daemon\n"); /* started again */
    open_tree(NULL, &tree);
    assert_string_equal(
        tree.folders[0], test_path(folder, root, "system.slice/cadre-worker.service/w1"));
}

static void v2_of_a_container_and_one_that_is_named(void **state)
{
    (void)state;
    root = test_temp_dir();
    put_mounts("31 23 0:27 /docker/abc @ rw - cgroup2 cgroup rw\n");
    put("cgroup", "0::/docker/abc\n");
    put_v2(".", "cpu memory pids\n");
    struct cgroup_tree tree;
    char folder[TEST_PATH_BYTES];
    open_tree(NULL, &tree);
    assert_int_equal(tree.kind, CGROUP_V2);
    put_v2("tasks", "memory\n");
    put_v2("tasks/w1", "memory\n");
    open_tree("/tasks", &tree);
    assert_string_equal(tree.folders[0], test_path(folder, root, "tasks/w1"));
    assert_true(tree.has[CGROUP_MEMORY]);
    assert_false(tree.has[CGROUP_CPU]);

    put("cgroup", "0::/docker/abc/system.slice/cadre-worker.service\n");
    put_v2("system.slice/cadre-tasks.service", "pids\n");
    put_v2("system.slice/cadre-tasks.service/w1", "pids\n");
    open_tree("../cadre-tasks.service", &tree);
    assert_string_equal(
        tree.folders[0], test_path(folder, root, "system.slice/cadre-tasks.service/w1"));
    assert_true(tree.has[CGROUP_PIDS]);
    open_tree("../../tasks", &tree);
    assert_string_equal(tree.folders[0], test_path(folder, root, "tasks/w1"));
    open_tree("../../../../../tasks", &tree); /* not above what is mounted */
    assert_string_equal(tree.folders[0], test_path(folder, root, "tasks/w1"));
}

static void v1_has_a_hierarchy_each(void **state)
{
    (void)state;
    root = test_temp_dir();
    put_mounts("32 23 0:28 / @/v2 rw - cgroup2 cgroup2 rw\n"
               "33 23 0:29 / @/memory rw - cgroup cgroup rw,memory\n"
               "34 23 0:30 / @/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    put("cgroup", "4:memory:/here\n3:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n");
    put("v2/cgroup.controllers", "hugetlb\n"); /* a hybrid: without the controllers that are
                                                * needed */
    put("memory/here/w1/cgroup.procs", "");
    put("memory/here/w1/job-7/task-0.5/memory.limit_in_bytes", "");
    put("memory/here/w1/job-7/task-0.5/memory.memsw.limit_in_bytes", "");
    put("cpu/w1/cgroup.procs", "");
    put("cpu/w1/job-7/task-0.5/cpu.cfs_quota_us", "");
    put("cpu/w1/job-7/task-0.5/cpu.cfs_period_us", "");
    struct cgroup_tree tree;
    struct task_cgroup group;
    open_tree(NULL, &tree);
    assert_int_equal(tree.kind, CGROUP_V1);
    assert_true(tree.has[CGROUP_MEMORY] && tree.has[CGROUP_CPU] && tree.has[CGROUP_CPUACCT]);
    assert_false(tree.has[CGROUP_PIDS]);
    assert_non_null(strstr(tree.why, "no cgroup controller pids"));
    const struct cgroup_limits limits = {
        .memory_bytes = 1 << 20, .cpu_thousandths = 500, .pids = 9};
    assert_ok(cgroup_tree_make(&tree, task, &limits, &group, &error), &error);
    assert_file("memory/here/w1/job-7/task-0.5/memory.limit_in_bytes", "1048576");
    assert_file("memory/here/w1/job-7/task-0.5/memory.memsw.limit_in_bytes", "1048576");
    assert_file("cpu/w1/job-7/task-0.5/cpu.cfs_quota_us", "50000");
    assert_file("cpu/w1/job-7/task-0.5/cpu.cfs_period_us", "100000");
}

static void a_limit_that_is_refused_is_reported(void **state)
{
    (void)state;
    root = test_temp_dir();
    put_mounts("33 23 0:29 / @/memory rw - cgroup cgroup rw,memory\n");
    put("cgroup", "4:memory:/\n");
    put("memory/w1/cgroup.procs", ""); /* and the task's folder has no file for a limit */
    struct cgroup_tree tree;
    struct task_cgroup group;
    open_tree(NULL, &tree);
    assert_error(
        cgroup_tree_make(&tree, task, &(struct cgroup_limits){.memory_bytes = 9}, &group, &error),
        CADRE_NOT_FOUND, &error, "cannot write 9 into memory.limit_in_bytes");
    assert_int_equal(group.kind, CGROUP_NONE);
}

static void nothing_is_no_error(void **state)
{
    (void)state;
    root = test_temp_dir();
    put_mounts("30 23 0:26 / /proc rw - proc proc rw\n");
    put("cgroup", "");
    struct cgroup_tree tree;
    struct task_cgroup group;
    open_tree(NULL, &tree);
    assert_int_equal(tree.kind, CGROUP_NONE);
    assert_non_null(strstr(tree.why, "controller memory"));
    assert_ok(
        cgroup_tree_make(&tree, task, &(struct cgroup_limits){.pids = 9}, &group, &error), &error);
    assert_true(cgroup_kill(&group, 0) && cgroup_remove(&group) && !cgroup_has(&group, getpid()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v2_is_divided_below_a_leaf),
        cmocka_unit_test(v2_of_a_container_and_one_that_is_named),
        cmocka_unit_test(v1_has_a_hierarchy_each),
        cmocka_unit_test(a_limit_that_is_refused_is_reported),
        cmocka_unit_test(nothing_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
