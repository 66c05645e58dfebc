/* SPDX-License-Identifier: Apache-2.0
 * Going on from a checkpoint: what it holds is there when a variable is created, however it is
 * read, saved or finished next; by hand and as tasks of a job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cadre/cadre.h"
#include "common/base/files.h"
#include "tests/lib/program.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/job.h"

#define STEPS 10

static const char *self;
static const char *first; /* the folder of the first run */

/* --- the program: it counts steps, and prints its values as soon as it has them --- */

static cadre_variable *w;
static cadre_variable *seen;
static cadre_variable *words;
static char mine[8] = "nothing";

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    double *values = cadre_variable_write(replica, w);
    int64_t *sum = cadre_variable_write(replica, seen);
    if (values == NULL || sum == NULL) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < 3; i++) {
        values[i] += 1;
    }
    *sum += 1;
    return CADRE_OK;
}

static void create(cadre_strategy *strategy)
{
    const cadre_variable_options minus = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = -1}};
    const cadre_variable_options summed = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM};
    CADRE_CHECK(cadre_variable_create(strategy, "w", CADRE_F64, 1, &(int64_t){3}, &minus, &w));
    CADRE_CHECK(cadre_variable_create(strategy, "seen", CADRE_I64, 0, NULL, &summed, &seen));
    CADRE_CHECK(
        cadre_variable_create(strategy, "words", CADRE_STRING, 1, &(int64_t){2}, NULL, &words));
    CADRE_CHECK(cadre_state_register(strategy, "mine", mine, sizeof mine));
}

static void send_line(const char *when)
{
    const double *values = cadre_variable_read(NULL, w);
    const cadre_string *strings = cadre_variable_read(NULL, words);
    printf("%s: w %g %g seen %lld words '%.*s' '%.*s' mine %s\n", when, values[0], values[2],
        (long long)*(const int64_t *)cadre_variable_read(NULL, seen), (int)strings[0].size,
        strings[0].size == 0 ? "" : strings[0].bytes, (int)strings[1].size,
        strings[1].size == 0 ? "" : strings[1].bytes, mine);
    fflush(stdout);
}

/* What a program does once, before its first step. */
static void set_up(const char *text)
{
    const cadre_string both[] = {{text, strlen(text)}, {"", 0}};
    cadre_tensor *strings;
    CADRE_CHECK(cadre_tensor_from_data(CADRE_STRING, 1, (const int64_t[]){2}, both, &strings));
    CADRE_CHECK(cadre_variable_assign(NULL, words, CADRE_ASSIGN, strings));
    cadre_tensor_release(strings);
    CADRE_CHECK(cadre_variable_assign_literal(NULL, w, CADRE_ASSIGN, 0));
    CADRE_CHECK(cadre_variable_assign_literal(NULL, seen, CADRE_ASSIGN, 0));
    snprintf(mine, sizeof mine, "%.7s", text);
}

static int refused(cadre_strategy *strategy, const char *how)
{
    cadre_variable *variable;
    const int64_t dims[] = {4};
    cadre_status status =
        strcmp(how, "absent") == 0
            ? cadre_variable_create(strategy, "absent", CADRE_F32, 0, NULL, NULL, &variable)
        : strcmp(how, "shape") == 0
            ? cadre_variable_create(strategy, "w", CADRE_F64, 1, dims, NULL, &variable)
            : cadre_state_register(strategy, "other", mine, sizeof mine);
    printf("%s: %s\n", cadre_status_name(status), cadre_error_message());
    return status == CADRE_OK ? 0 : 3;
}

static void take_epoch(cadre_strategy *strategy)
{
    int32_t numbers[2 * STEPS] = {0};
    const int64_t dims[] = {2 * STEPS};
    cadre_tensor *tensor;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_tensor_from_data(CADRE_I32, 1, dims, numbers, &tensor));
    cadre_dataset *pairs = cadre_dataset_batch(cadre_dataset_tensor_slices(&tensor, 1), 2, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, pairs, NULL, &data));
    cadre_tensor_release(tensor);
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, step, NULL, batch, 0, NULL));
        }
    }
}

static int count(const char *how)
{
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    if (strcmp(how, "absent") == 0 || strcmp(how, "shape") == 0 || strcmp(how, "state") == 0) {
        return refused(strategy, how);
    }
    create(strategy);
    send_line("created");
    if (strcmp(how, "again") == 0 || strcmp(how, "first") == 0) {
        set_up(how);
    }
    if (strcmp(how, "save") == 0) {
        CADRE_CHECK(cadre_save(strategy, true));
    }
    if (strcmp(how, "dataset") == 0) {
        take_epoch(strategy);
    } else {
        uint64_t last = STEPS + (strcmp(how, "further") == 0 ? 1 : 0);
        while (cadre_strategy_position(strategy) < last) {
            CADRE_CHECK(cadre_run(strategy, step, NULL, NULL, 0, NULL));
        }
    }
    if (strcmp(how, "save") == 0 || strcmp(how, "further") == 0) {
        send_line("at the end");
    }
    return cadre_finish(strategy);
}

/* --- the same with a dataset; what it counts is registered, and changed all over its loop --- */

#define LOOP_LINE "all is counted once\n"

static int loop(const char *how)
{
    struct {
        uint64_t epochs, before_next, before_run, behind_run;
    } passes = {0};
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    create(strategy);
    CADRE_CHECK(cadre_state_register(strategy, "passes", &passes, sizeof passes));
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 20, 1), 2, false), NULL, &data));
    uint64_t epochs = strcmp(how, "epochs preempt") == 0
                          ? UINT64_MAX
                          : cadre_strategy_position(strategy) / STEPS + 2;
    while (cadre_next_epoch(data, epochs, NULL)) {
        passes.epochs += cadre_step(data) == 0 ? 1 : 0;
        while (passes.before_next++, cadre_next(data, &batch) == CADRE_OK) {
            passes.before_run++;
            CADRE_CHECK(cadre_run(strategy, step, NULL, batch, 0, NULL));
            passes.behind_run++;
            uint64_t position = cadre_strategy_position(strategy);
            if (position == 4 && strcmp(how, "epochs save") == 0) {
                CADRE_CHECK(cadre_save(strategy, true));
            }
            if (position == 4 && strcmp(how, "epochs preempt") == 0) {
                CADRE_CHECK(cadre_preempt(strategy));
            }
        }
        if (cadre_preempted(strategy)) {
            return cadre_finish(strategy);
        }
    }
    if (passes.epochs == epochs && passes.before_next == epochs * (STEPS + 1) &&
        passes.before_run == epochs * STEPS && passes.behind_run == epochs * STEPS &&
        cadre_strategy_position(strategy) == epochs * STEPS) {
        printf(LOOP_LINE);
    } else {
        printf("%llu epochs, %llu before next, %llu before run, %llu behind run, of %llu\n",
            (unsigned long long)passes.epochs, (unsigned long long)passes.before_next,
            (unsigned long long)passes.before_run, (unsigned long long)passes.behind_run,
            (unsigned long long)epochs);
    }
    return cadre_finish(strategy);
}

/* --- running it --- */

/* As `cadre run`; `from` NULL: from the beginning. */
static void as_job(uint32_t tasks, uint32_t replicas, const char *how, const char *from,
    const char *folder, struct job_end *ret_end)
{
    char path[TEST_PATH_BYTES];
    const struct local_options options = {.program = self,
        .arguments = &how,
        .argument_count = 1,
        .tasks = tasks,
        .replicas = replicas,
        .output = folder,
        .restore_path = from == NULL ? NULL : test_path(path, from, "checkpoint-10.json"),
        .grace_us = 1000000};
    job_run(&options, ret_end);
}

static void by_hand(uint32_t replicas, const char *how, const char *from, const char *folder,
    struct job_end *ret_end)
{
    char restore[TEST_PATH_BYTES + 32] = "CADRE_RESTORE=";
    char output[TEST_PATH_BYTES + 32];
    char many[32];
    if (from != NULL) {
        snprintf(restore, sizeof restore, "CADRE_RESTORE=%s/checkpoint-10.json", from);
    }
    snprintf(output, sizeof output, "CADRE_OUTPUT_DIR=%s", folder);
    snprintf(many, sizeof many, "CADRE_REPLICAS=%u", replicas);
    const char *environment[] = {output, many, restore, NULL};
    const char *argv[] = {self, how, NULL};
    struct program_result result;
    if (from == NULL) {
        environment[2] = NULL;
    }
    program_run(&(struct program_spec){.argv = argv, .environment = environment}, &result);
    memset(ret_end, 0, sizeof *ret_end);
    snprintf(ret_end->printed, sizeof ret_end->printed, "%s%s", result.out, result.err);
    ret_end->exit_code = result.exit_code;
    program_result_free(&result);
}

static void run_it(uint32_t tasks, uint32_t replicas, const char *how, const char *from,
    const char *folder, struct job_end *ret_end)
{
    if (tasks == 0) {
        by_hand(replicas, how, from, folder, ret_end);
    } else {
        as_job(tasks, replicas, how, from, folder, ret_end);
    }
}

/* Where the chief, whichever task it was, left its last checkpoint. */
static void find_last(const char *folder, uint32_t tasks, char path[TEST_PATH_BYTES])
{
    test_path(path, folder, "checkpoint-10.safetensors");
    for (uint32_t slot = 0; slot < tasks; slot++) {
        char name[64];
        snprintf(name, sizeof name, "%u/checkpoint-10.safetensors", slot);
        test_path(path, folder, name);
        if (access(path, F_OK) == 0) {
            return;
        }
    }
}

static void assert_same_file(const char *folder, uint32_t tasks)
{
    struct cadre_error error;
    char path[TEST_PATH_BYTES];
    char *bytes[2];
    size_t sizes[2];
    const char *folders[] = {first, folder};
    for (int i = 0; i < 2; i++) {
        find_last(folders[i], i == 0 ? 0 : tasks, path);
        assert_ok(file_read(path, 65536, &bytes[i], &sizes[i], &error), &error);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    free(bytes[0]);
    free(bytes[1]);
}

static unsigned times_printed(const struct job_end *end, const char *line)
{
    unsigned times = 0;
    for (const char *at = end->printed; (at = strstr(at, line)) != NULL; at++) {
        times++;
    }
    return times;
}

static const struct shape {
    uint32_t tasks; /* 0: by hand */
    uint32_t replicas;
} shapes[] = {{0, 1}, {0, 2}, {1, 1}, {3, 2}};

#define HELD "w 10 10 seen 20 words 'first' '' mine first\n"

static int make_first(void **state)
{
    (void)state;
    struct job_end end;
    first = test_temp_dir();
    by_hand(2, "first", NULL, first, &end);
    if (end.exit_code != 0 || strstr(end.printed, "created: w -1 -1 seen 0 words '' ''") == NULL) {
        print_error("exit code %d: %s\n", end.exit_code, end.printed);
        return -1;
    }
    return 0;
}

/* The checkpoint that each writes at its end is the one that it went on from. */
static void a_job_that_takes_no_step_keeps_what_it_was_given(void **state)
{
    static const char *const ways[] = {"loop", "save", "again", "dataset"};
    struct job_end end;
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
            const struct shape *shape = &shapes[i];
            const char *from = first;
            const char *folder = test_temp_dir();
            if (strcmp(ways[way], "dataset") == 0) { /* first one that is past its epoch */
                from = test_temp_dir();
                by_hand(1, "dataset", NULL, from, &end);
                assert_int_equal(end.exit_code, 0);
            }
            run_it(shape->tasks, shape->replicas, ways[way], from, folder, &end);
            uint32_t tasks = shape->tasks == 0 ? 1 : shape->tasks;
            const char *held = from == first ? "created: " HELD
                                             : "created: w 9 9 seen 10 words '' '' mine nothing\n";
            if (end.exit_code != 0 || times_printed(&end, held) != tasks) {
                fail_msg("%u tasks of %u replicas, %s: exit code %d, said\n%s", shape->tasks,
                    shape->replicas, ways[way], end.exit_code, end.printed);
            }
            if (strcmp(ways[way], "save") == 0) {
                assert_int_equal(times_printed(&end, "at the end: " HELD), tasks);
            }
            if (from == first) {
                assert_same_file(folder, shape->tasks);
            }
        }
    }
}

/* Once more from a checkpoint of position 4, or that of a preemption, by hand: everything is
 * counted once, wherever in the loop it was taken. */
static void check_loop(const char *how, const char *every)
{
    struct job_end end;
    char restore[TEST_PATH_BYTES + 32];
    char output[TEST_PATH_BYTES + 32];
    const char *folder = test_temp_dir();
    bool preempts = strcmp(how, "epochs preempt") == 0;
    setenv("CADRE_CHECKPOINT_EVERY", every, 1);
    setenv("CADRE_CHECKPOINTS_KEPT", "100", 1);
    by_hand(2, how, NULL, folder, &end);
    unsetenv("CADRE_CHECKPOINT_EVERY");
    unsetenv("CADRE_CHECKPOINTS_KEPT");
    bool good = end.exit_code == (preempts ? CADRE_EXIT_PREEMPTED : 0) &&
                (strstr(end.printed, LOOP_LINE) != NULL) == !preempts;
    const char *saved = strstr(end.printed, "saved at step ");
    unsigned long position =
        saved == NULL ? 4 : strtoul(saved + strlen("saved at step "), NULL, 10);
    snprintf(restore, sizeof restore, "CADRE_RESTORE=%s/checkpoint-%lu.json", folder, position);
    snprintf(output, sizeof output, "CADRE_OUTPUT_DIR=%s", test_temp_dir());
    const char *environment[] = {restore, output, NULL};
    const char *argv[] = {self, "epochs", NULL};
    struct program_result result;
    program_run(&(struct program_spec){.argv = argv, .environment = environment}, &result);
    if (!good || result.exit_code != 0 || strstr(result.out, LOOP_LINE) == NULL) {
        fail_msg("%s: exit code %d, said\n%s\nthen exit code %d, said\n%s%s", how, end.exit_code,
            end.printed, result.exit_code, result.out, result.err);
    }
    program_result_free(&result);
}

static void what_a_loop_changes_is_counted_once(void **state)
{
    (void)state;
    check_loop("epochs", "4");
    check_loop("epochs save", "0");
    check_loop("epochs preempt", "0");
}

/* What each replica holds of a sum adds up to it, whatever their number. */
static void a_step_goes_on_from_it(void **state)
{
    struct job_end end;
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char line[128];
        const struct shape *shape = &shapes[i];
        uint32_t tasks = shape->tasks == 0 ? 1 : shape->tasks;
        run_it(shape->tasks, shape->replicas, "further", first, test_temp_dir(), &end);
        snprintf(line, sizeof line, "at the end: w 11 11 seen %u words 'first' '' mine first\n",
            20 + tasks * shape->replicas);
        if (end.exit_code != 0 || times_printed(&end, line) != tasks) {
            fail_msg("%u tasks of %u replicas: exit code %d, said\n%s", shape->tasks,
                shape->replicas, end.exit_code, end.printed);
        }
    }
}

static void what_it_does_not_hold_is_named_when_it_is_asked_for(void **state)
{
    static const struct {
        const char *how;
        const char *reported;
    } cases[] = {{"absent", "checkpoint-10.json: it holds no 'absent', which the program has"},
        {"shape", "checkpoint-10.json: it holds 'w' as f64 [3], and the program has f64 [4]"},
        {"state", "checkpoint-10.json: it holds no 'state/other', which the program has"}};
    struct job_end end;
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
            const struct shape *shape = &shapes[i];
            run_it(shape->tasks, shape->replicas, cases[at].how, first, test_temp_dir(), &end);
            if (end.exit_code == 0 || !job_reported(&end, cases[at].reported)) {
                fail_msg("%u tasks of %u replicas, %s: exit code %d, said\n%s", shape->tasks,
                    shape->replicas, cases[at].how, end.exit_code, end.printed);
            }
        }
    }
}

/* --- its hashes --- */

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static char *last_of(char *bytes, const char *part)
{
    char *last = NULL;
    for (char *at = bytes; (at = strstr(at, part)) != NULL; at++) {
        last = at;
    }
    return last;
}

/* The one folder with another copy of the first run's checkpoint, whose manifest has `now` in place
 * of the bytes from the last `is` on to the end of `until`. */
static const char *changed_copy(const char *is, const char *until, const char *now)
{
    static const char *const names[] = {"checkpoint-10.safetensors", "checkpoint-10.json"};
    static const char *folder;
    folder = folder == NULL ? test_temp_dir() : folder;
    for (int i = 0; i < 2; i++) {
        struct cadre_error error;
        char path[TEST_PATH_BYTES];
        char *bytes;
        size_t size;
        test_path(path, first, names[i]);
        assert_ok(file_read(path, 65536, &bytes, &size, &error), &error);
        test_path(path, folder, names[i]);
        if (i == 0) {
            write_file(path, bytes, size);
        } else {
            char *from = last_of(bytes, is);
            assert_non_null(from);
            char *end = strstr(from + strlen(is), until);
            assert_non_null(end);
            char text[65536];
            int length = snprintf(text, sizeof text, "%.*s%s%s", (int)(from - bytes), bytes, now,
                end + strlen(until));
            assert_true(length > 0 && (size_t)length < sizeof text);
            write_file(path, text, (size_t)length);
        }
        free(bytes);
    }
    return folder;
}

static void what_is_not_what_was_written_is_refused(void **state)
{
    static const struct {
        const char *is;
        const char *until;
        const char *now;
        const char *reported;
    } cases[] = {
        {"\"w\":\"", "\"", "\"w\":\"0123456789abcdef\"",
            "variable 'w' has another hash than was written"},
        {"\"seen\":\"", "\"", "\"seen\":\"0123456789abcdef\"",
            "variable 'seen' has another hash than was written"},
        {"\"words\":[\"", "\"", "\"words\":[\"fisrt\"",
            "variable 'words' has another hash than was written; use another checkpoint"},
        {"\"state/mine\":\"", "\"", "\"state/mine\":\"0123456789abcdef\"",
            "the registered state 'mine' has another hash than was written"},
        {"\"w\":\"", "\"", "\"w\":\"01234\"", "the hash of 'w' is not 16 hexadecimal digits"}};
    struct job_end end;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t at = 0; at < sizeof shapes / sizeof shapes[0]; at++) {
            const struct shape *shape = &shapes[at];
            const char *from = changed_copy(cases[i].is, cases[i].until, cases[i].now);
            run_it(shape->tasks, shape->replicas, "further", from, from, &end);
            if (end.exit_code == 0 || !job_reported(&end, cases[i].reported) ||
                !job_reported(&end, "checkpoint-10.json")) {
                fail_msg("%u tasks of %u replicas, '%s': exit code %d, said\n%s", shape->tasks,
                    shape->replicas, cases[i].now, end.exit_code, end.printed);
            }
        }
    }
}

/* As versions before wrote them, and programs that compare nothing. */
static void one_without_hashes_is_taken(void **state)
{
    struct job_end end;
    (void)state;
    const char *from = changed_copy("\"hashes\":{", "}", "\"other\":{}");
    by_hand(2, "further", from, from, &end);
    assert_int_equal(end.exit_code, 0);
    from = changed_copy("\"hash\":\"", "\"", "\"hash\":\"another\",\"was\":\"\"");
    by_hand(2, "further", from, from, &end); /* they are right */
    assert_int_equal(end.exit_code, 0);
    from = changed_copy("\"w\":\"", "\"", "\"w\":\"0123456789abcdef\"");
    setenv("CADRE_VERIFY_STATE", "off", 1);
    by_hand(2, "further", from, from, &end);
    unsetenv("CADRE_VERIFY_STATE");
    assert_int_equal(end.exit_code, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        return strncmp(argv[1], "epochs", 6) == 0 ? loop(argv[1]) : count(argv[1]);
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_takes_no_step_keeps_what_it_was_given),
        cmocka_unit_test(what_a_loop_changes_is_counted_once),
        cmocka_unit_test(a_step_goes_on_from_it),
        cmocka_unit_test(what_it_does_not_hold_is_named_when_it_is_asked_for),
        cmocka_unit_test(what_is_not_what_was_written_is_refused),
        cmocka_unit_test(one_without_hashes_is_taken),
    };
    return cmocka_run_group_tests(tests, make_first, NULL);
}
