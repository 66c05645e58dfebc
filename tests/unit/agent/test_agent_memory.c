/* SPDX-License-Identifier: Apache-2.0
 * The memory of parameter servers: kept between attempts, given to no other task, freed with the
 * job. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/agent/stage.h"

/* Slots: 0 chief, 1 worker, 2 and 3 servers. Lives 2 and 6 are of slot 2, with incarnations 3 and
 * 7. */
static const struct ps_job ps_job = {.workers = 1, .servers = 2};

static void start_incarnation(
    struct stage *stage, uint32_t attempt, const char *verb, const char *text, uint64_t predecessor)
{
    const char *const arguments[] = {verb, text};
    agent_down(stage->agent, &(struct agent_down){.type = AGENT_DOWN_START,
                                 .start = {.task = task_of(attempt),
                                     .task_count = SLOTS_MAX,
                                     .spec = {.name = "a job",
                                         .program = {.name = "program", .executable = true},
                                         .arguments = arguments,
                                         .argument_count = text != NULL ? 2 : 1,
                                         .workers = SLOTS_MAX,
                                         .workers_min = SLOTS_MAX,
                                         .strategy = PS_JOB_STRATEGY,
                                         .ps_job = ps_job},
                                     .predecessor = predecessor}});
}

static void play_incarnation(
    struct stage *stage, uint32_t attempt, const char *text, uint64_t predecessor)
{
    start_incarnation(stage, attempt, "memory", text, predecessor);
    until_collected(stage, attempt);
    assert_int_equal(stage->tasks[attempt].exit.signal, 9);
}

static unsigned memories_here(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        char path[300];
        char target[300] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t got = readlink(path, target, sizeof target - 1);
        count += got > 0 && strstr(target, "memfd:cadre-server") != NULL;
    }
    closedir(folder);
    return count;
}

static void forget(struct stage *stage)
{
    agent_down(
        stage->agent, &(struct agent_down){.type = AGENT_DOWN_FORGET, .forget = task_of(0).job});
}

static void the_next_attempt_finds_the_memory_of_the_last(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    play_incarnation(stage, 2, "of the first", 0);
    assert_string_equal(printed(&stage->tasks[2]), "had \"\"\n");
    play_incarnation(stage, 3, "of another", 0);
    assert_string_equal(printed(&stage->tasks[3]), "had \"\"\n");
    assert_int_equal(memories_here(), 2);
    play_incarnation(stage, 6, "of the second", 3);
    assert_string_equal(printed(&stage->tasks[6]), "had \"of the first\"\n");
    assert_int_equal(memories_here(), 2);
    forget(stage);
    assert_int_equal(memories_here(), 0);
    stage_close(stage);
}

/* The slot ran elsewhere meanwhile, or begins again: the memory here is out of date. */
static void another_predecessor_is_not_believed(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    play_incarnation(stage, 2, "of the first", 0);
    play_incarnation(stage, 6, "of the second", 5);
    assert_string_equal(printed(&stage->tasks[6]), "had \"\"\n");
    assert_int_equal(memories_here(), 1);
    stage_close(stage);
    assert_int_equal(memories_here(), 0); /* and it goes with the daemon */
}

static void what_was_forgotten_is_gone(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    play_incarnation(stage, 2, "of the first", 0);
    forget(stage);
    play_incarnation(stage, 6, "of the second", 3);
    assert_string_equal(printed(&stage->tasks[6]), "had \"\"\n");
    stage_close(stage);
}

static void each_task_gets_its_type_and_index(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    for (uint32_t attempt = 0; attempt < SLOTS_MAX; attempt++) {
        start_incarnation(stage, attempt, "environment", NULL, 0);
        until_collected(stage, attempt);
    }
    static const char *const types[] = {"chief", "worker", "ps", "ps"};
    static const char *const indices[] = {"0", "0", "0", "1"};
    for (uint32_t attempt = 0; attempt < SLOTS_MAX; attempt++) {
        char line[64];
        const char *text = printed(&stage->tasks[attempt]);
        snprintf(line, sizeof line, "CADRE_TASK_TYPE=%s\n", types[attempt]);
        assert_non_null(strstr(text, line));
        snprintf(line, sizeof line, "CADRE_TASK_INDEX=%s\n", indices[attempt]);
        assert_non_null(strstr(text, line));
        assert_non_null(strstr(text, "CADRE_WORKERS=1\n"));
        assert_non_null(strstr(text, "CADRE_SERVERS=2\n"));
        assert_non_null(strstr(text, "CADRE_EVALUATORS=0\n"));
        assert_non_null(strstr(text, "CADRE_TASKS=1\n"));
        assert_non_null(strstr(text, "CADRE_TASKS_MIN=1\n"));
        assert_null(strstr(text, "CADRE_SERVER_BACKUPS"));
        assert_true((strstr(text, "CADRE_SERVER_MEMORY=") != NULL) == (attempt >= 2));
    }
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_attempt_finds_the_memory_of_the_last),
        cmocka_unit_test(another_predecessor_is_not_believed),
        cmocka_unit_test(what_was_forgotten_is_gone),
        cmocka_unit_test(each_task_gets_its_type_and_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
