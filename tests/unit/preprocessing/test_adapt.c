/* SPDX-License-Identifier: Apache-2.0
 * Adapting as a job of several tasks: they find the same bits as one alone, also when one of them
 * dies while it reads, and when one comes later.
 *
 * DIE, "attempt:element": the task of this attempt is killed when it reads this element.
 * FAIL, a number: reading this element fails. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/cadre.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/stage.h"

enum { ELEMENTS = 2500, TOKENS = 20000, STEPS = 6 };

static bool is_killed_at(int64_t element)
{
    const char *fault = getenv("DIE");
    unsigned long attempt = 0;
    long long at = 0;
    return fault != NULL && sscanf(fault, "%lu:%lld", &attempt, &at) == 2 && at == element &&
           strtoul(getenv("STAGE_ATTEMPT"), NULL, 10) == attempt;
}

static cadre_status read_number(int64_t number)
{
    if (is_killed_at(number)) {
        raise(SIGKILL);
    }
    const char *torn = getenv("FAIL");
    if (torn != NULL && strtoll(torn, NULL, 10) == number) {
        return cadre_fail(
            CADRE_DATA_LOSS, "numbers.txt, line %lld at offset 77: it is torn", (long long)number);
    }
    return CADRE_OK;
}

/* Numbers whose sum depends on the order in which they are added. */
static cadre_status spread(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t number = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    CADRE_TRY(read_number(number));
    const double values[2] = {1.0 / (double)(number + 3), (double)(number % 17) * 1e5 + 0.1};
    const int64_t dims[1] = {2};
    ret_out->count = 1;
    return cadre_tensor_from_data(CADRE_F64, 1, dims, values, &ret_out->tensors[0]);
}

/* Words, of which some come more often than others, and many equally often. */
static cadre_status say(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t number = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    CADRE_TRY(read_number(number));
    char text[32];
    const cadre_string word = {text,
        (size_t)snprintf(text, sizeof text, "w%lld", (long long)(number * number % 1009 % 501))};
    ret_out->count = 1;
    return cadre_tensor_from_data(CADRE_STRING, 0, NULL, &word, &ret_out->tensors[0]);
}

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    double *count = cadre_variable_write(replica, user);
    *count += 1;
    return CADRE_OK;
}

static void adapt_normalization(cadre_strategy *strategy)
{
    cadre_normalization *normalization;
    cadre_tensor *mean;
    cadre_tensor *variance;
    CADRE_CHECK(cadre_normalization_adapt(strategy,
        cadre_dataset_map(cadre_dataset_range(0, ELEMENTS, 1), spread, NULL, NULL), NULL,
        &normalization));
    CADRE_CHECK(cadre_normalization_moments(normalization, &mean, &variance));
    const double *means = cadre_tensor_const_data(mean);
    const double *variances = cadre_tensor_const_data(variance);
    printf("%a %a %a %a\n", means[0], means[1], variances[0], variances[1]);
    cadre_tensor_release(mean);
    cadre_tensor_release(variance);
    cadre_normalization_release(normalization);
}

/* Its size, and the tokens in their order: the first ones, and a sum over all. */
static void adapt_lookup(cadre_strategy *strategy)
{
    cadre_lookup *lookup;
    cadre_tensor *tokens;
    cadre_tensor *ids;
    const cadre_lookup_options options = {.max_tokens = 200};
    CADRE_CHECK(cadre_lookup_adapt(strategy,
        cadre_dataset_map(cadre_dataset_range(0, TOKENS, 1), say, NULL, NULL), &options, &lookup));
    const int64_t size = cadre_lookup_size(lookup);
    int64_t all[200];
    for (int64_t i = 0; i < size; i++) {
        all[i] = i;
    }
    CADRE_CHECK(cadre_tensor_from_data(CADRE_I64, 1, &size, all, &ids));
    CADRE_CHECK(cadre_lookup_invert(lookup, ids, &tokens));
    const cadre_string *words = cadre_tensor_const_data(tokens);
    uint64_t sum = 0;
    for (int64_t i = 0; i < size; i++) {
        for (size_t k = 0; k < words[i].size; k++) {
            sum = sum * 31 + (uint64_t)words[i].bytes[k];
        }
    }
    printf("%lld %.*s %.*s %llu\n", (long long)size, (int)words[1].size, words[1].bytes,
        (int)words[2].size, words[2].bytes, (unsigned long long)sum);
    cadre_tensor_release(tokens);
    cadre_tensor_release(ids);
    cadre_lookup_release(lookup);
}

static int program(void (*adapt)(cadre_strategy *strategy))
{
    cadre_strategy *strategy;
    cadre_variable *steps;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_multi_worker_mirrored(2, &strategy));
    adapt(strategy);
    CADRE_CHECK(cadre_variable_create(strategy, "steps", CADRE_F64, 0, NULL, NULL, &steps));
    while (cadre_strategy_position(strategy) < STEPS) {
        CADRE_CHECK(cadre_run(strategy, step, steps, NULL, 0, NULL));
    }
    return cadre_finish(strategy);
}

static const char *self;

/* What is adapted, and what one task alone finds. */
static struct kind {
    const char *name;
    char alone[256];
} kinds[] = {{.name = "adapt"}, {.name = "count"}};

#define KINDS (sizeof kinds / sizeof kinds[0])

static struct stage_job job_of(
    const struct kind *kind, uint32_t tasks, const char *const environment[])
{
    return (struct stage_job){.self = self,
        .what = kind->name,
        .tasks = tasks,
        .replicas = 2,
        .environment = environment};
}

static void check(const struct kind *kind, const struct stage_job *job, uint32_t dead)
{
    struct stage_end end;
    stage_run(job, &end);
    /* A task of the first round may die before the others have begun: a cluster starts such a job
     * again, the stage does not. */
    for (int i = 0; i < 20 && !end.done && strstr(end.text, "no task has its state") != NULL; i++) {
        stage_end_free(&end);
        stage_run(job, &end);
    }
    if (!end.done) {
        for (uint32_t i = 0; i < end.started; i++) {
            print_error("attempt %u: %s%s\n", i, end.printed[i], end.erred[i]);
        }
        fail_msg("%s", end.text);
    }
    for (uint32_t i = 0; i < end.started; i++) {
        if (i == dead) {
            assert_string_equal(end.printed[i], "");
            assert_int_equal(end.exit_code[i], -1);
        } else {
            assert_string_equal(end.printed[i], kind->alone);
        }
    }
    stage_end_free(&end);
}

static int find_alone(void **state)
{
    (void)state;
    bool done = true;
    for (size_t i = 0; i < KINDS; i++) {
        struct stage_end end;
        const struct stage_job job = job_of(&kinds[i], 1, NULL);
        stage_run(&job, &end);
        snprintf(kinds[i].alone, sizeof kinds[i].alone, "%s", end.printed[0]);
        done = done && end.done && strlen(kinds[i].alone) > 20;
        stage_end_free(&end);
    }
    return done ? 0 : -1;
}

static void all_tasks_find_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        for (uint32_t tasks = 2; tasks <= 3; tasks++) {
            const struct stage_job job = job_of(&kinds[i], tasks, NULL);
            check(&kinds[i], &job, UINT32_MAX);
        }
    }
}

/* In each of the three rounds, of 1024 elements (blocks of 4) and of 8192 (of 32); the last one is
 * the chief. */
static void a_task_that_dies_while_it_reads_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        size_t kind;
        const char *fault;
        uint32_t dead;
    } faults[] = {{0, "DIE=1:392", 1}, {0, "DIE=2:1424", 2}, {0, "DIE=0:2072", 0},
        {1, "DIE=1:3136", 1}, {1, "DIE=2:11392", 2}, {1, "DIE=0:16580", 0}};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        /* The task that reads that element, of 3 tasks with 2 replicas; others may read it
         * afterwards. */
        const char *const environment[] = {faults[i].fault, NULL};
        const struct kind *kind = &kinds[faults[i].kind];
        const struct stage_job job = job_of(kind, 3, environment);
        check(kind, &job, faults[i].dead);
    }
}

/* Whichever task ends first, the job's reason is that of the one that could not. */
static void what_cannot_be_read_is_the_reason_on_all_tasks(void **state)
{
    (void)state;
    static const char *const torn[] = {"FAIL=3", "FAIL=1430", "FAIL=2499", "FAIL=19999"};
    for (size_t i = 0; i < sizeof torn / sizeof torn[0]; i++) {
        const char *const environment[] = {torn[i], NULL};
        const struct stage_job job = job_of(&kinds[i < 3 ? 0 : 1], 3, environment);
        struct stage_end end;
        stage_run(&job, &end);
        assert_false(end.done);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "line %s at offset 77", torn[i] + strlen("FAIL="));
        for (uint32_t task = 0; task < 3; task++) {
            if (strstr(end.erred[task], wanted) == NULL) {
                fail_msg("task %u: %s", task, end.erred[task]);
            }
        }
        stage_end_free(&end);
    }
}

static void a_task_that_comes_later_finds_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        struct stage_job job = job_of(&kinds[i], 2, NULL);
        job.grows = 1;
        job.grows_at = 2;
        job.waits_at = 4;
        check(&kinds[i], &job, UINT32_MAX);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "adapt") == 0) {
        return program(adapt_normalization);
    }
    if (argc == 2 && strcmp(argv[1], "count") == 0) {
        return program(adapt_lookup);
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_tasks_find_the_same_bits),
        cmocka_unit_test(a_task_that_dies_while_it_reads_changes_nothing),
        cmocka_unit_test(a_task_that_comes_later_finds_the_same),
        cmocka_unit_test(what_cannot_be_read_is_the_reason_on_all_tasks),
    };
    return cmocka_run_group_tests(tests, find_alone, NULL);
}
