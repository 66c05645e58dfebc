/* SPDX-License-Identifier: Apache-2.0
 * Optimizers in jobs of several tasks, of which some die, come later, or take a step over from
 * others, at each point of an apply; and over checkpoints. The slots are made before the first
 * step, or by the first apply, with all that may happen to a step. What all come to is the same,
 * bit for bit, as one process makes of the same gradients with regular variables: sums are exact
 * here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/runtime/faults.h"
#include "tests/unit/runtime/job.h"
#include "tests/unit/runtime/stage.h"
#include "tests/unit/runtime/training.h"
#include "worker/library/runtime/digests/digests_part.h"
#include "worker/library/runtime/strategy/strategy.h"

enum { WIDTH = 40, ROWS = 8, COLUMNS = 4, BATCH = 4, STEPS = 12 };

static const char *self;

/* ---- the program ---- */

struct learner {
    cadre_optimizer *optimizer;
    cadre_variable *variables[2]; /* f32 [WIDTH], and by rows f32 [ROWS, COLUMNS] */
};

static struct learner open_learner(cadre_strategy *strategy, bool builds)
{
    static const cadre_optimizer_options adam = {.kind = CADRE_OPTIMIZER_ADAM,
        .rate = 0.125,
        .schedule = {.kind = CADRE_RATE_INVERSE_TIME, .decay_rate = 0.5, .decay_steps = 3}};
    static const int64_t dims[3] = {WIDTH, ROWS, COLUMNS};
    struct learner learner;
    CADRE_CHECK(
        cadre_variable_create(strategy, "w", CADRE_F32, 1, dims, NULL, &learner.variables[0]));
    CADRE_CHECK(cadre_variable_create(
        strategy, "table", CADRE_F32, 2, dims + 1, NULL, &learner.variables[1]));
    CADRE_CHECK(cadre_optimizer_create(strategy, &adam, &learner.optimizer));
    if (builds) {
        CADRE_CHECK(cadre_optimizer_build(learner.optimizer, learner.variables, 2));
    }
    return learner;
}

/* What samples come to: small multiples of powers of two. */
static cadre_tensor *dense_gradient(const int64_t *samples, int64_t count)
{
    static const int64_t dims[1] = {WIDTH};
    cadre_tensor *gradient = NULL;
    CADRE_CHECK(cadre_tensor_create(CADRE_F32, 1, dims, &gradient));
    float *values = cadre_tensor_data(gradient);
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < WIDTH; k++) {
            values[k] += (float)((samples[i] * 7 + k * 3) % 17 - 8) / 16;
        }
    }
    return gradient;
}

static cadre_sparse sparse_gradient(const int64_t *samples, int64_t count)
{
    const int64_t dims[2] = {count, COLUMNS};
    cadre_sparse sparse = {.rows = ROWS};
    CADRE_CHECK(cadre_tensor_create(CADRE_F32, 2, dims, &sparse.values));
    CADRE_CHECK(cadre_tensor_create(CADRE_I64, 1, dims, &sparse.indices));
    for (int64_t i = 0; i < count; i++) {
        ((int64_t *)cadre_tensor_data(sparse.indices))[i] = samples[i] * 5 % ROWS;
        for (int64_t k = 0; k < COLUMNS; k++) {
            ((float *)cadre_tensor_data(sparse.values))[i * COLUMNS + k] =
                (float)((samples[i] + k) % 5 - 2) / 4;
        }
    }
    return sparse;
}

/* Bits of both variables and of all slots, as a number. */
static unsigned long long state_of(const struct learner *learner)
{
    static const char *const slots[] = {"m", "v", "updates"};
    unsigned long long mixed = 0;
    for (int i = 0; i < 2; i++) {
        for (int k = -1; k < 3; k++) {
            cadre_variable *variable = learner->variables[i];
            if (k >= 0) {
                CADRE_CHECK(
                    cadre_optimizer_slot(learner->optimizer, variable, slots[k], &variable));
            }
            const unsigned char *bytes = cadre_variable_read(NULL, variable);
            size_t count = (size_t)cadre_variable_count(variable) *
                           cadre_dtype_bytes(cadre_variable_dtype(variable));
            for (size_t at = 0; at < count; at++) {
                mixed = mixed * 1000003 + bytes[at];
            }
        }
    }
    return mixed;
}

/* What one process makes of it, with regular variables: made before there is a strategy. */
static unsigned long long learn_alone(void)
{
    struct learner learner = open_learner(NULL, false);
    for (int64_t step = 0; step < STEPS; step++) {
        int64_t samples[BATCH];
        for (int64_t i = 0; i < BATCH; i++) {
            samples[i] = step * BATCH + i;
        }
        cadre_tensor *dense = dense_gradient(samples, BATCH);
        cadre_sparse sparse[2] = {{0}, sparse_gradient(samples, BATCH)};
        CADRE_CHECK(cadre_optimizer_apply(NULL, learner.optimizer, (cadre_tensor *[]){dense, NULL},
            learner.variables, 2, &(cadre_apply_options){.sparse = sparse}));
        cadre_tensor_release(dense);
        cadre_sparse_release(&sparse[1]);
    }
    unsigned long long state = state_of(&learner);
    cadre_optimizer_release(learner.optimizer);
    cadre_variable_release(learner.variables[0]);
    cadre_variable_release(learner.variables[1]);
    return state;
}

/* The step counts, and one of two variables is written. */
static void while_it_writes(cadre_replica *replica, void *user)
{
    (void)user;
    fault_die("DIE_WRITING", cadre_strategy_position(cadre_replica_strategy(replica)));
}

static void behind_the_writes(cadre_replica *replica, void *user)
{
    (void)user;
    fault_die("DIE_WRITTEN", cadre_strategy_position(cadre_replica_strategy(replica)));
}

static void freeze(cadre_replica *replica, uint64_t position)
{
    const cadre_strategy *strategy = cadre_replica_strategy(replica);
    if (cadre_replica_local_id(replica) == 0 && fault_due("MISS_APPLY", position)) {
        mark_await("applied", position);
        setenv("MISS_APPLY", "", 1); /* once */
        task_peer_error(strategy->task, strategy->roster.generation, "the test froze it");
    }
}

static cadre_status apply_both(cadre_replica *replica, const struct learner *learner,
    cadre_tensor *dense, const cadre_sparse *sparse)
{
    const uint64_t position = cadre_strategy_position(cadre_replica_strategy(replica));
    /* Every other step by the communication thread. */
    const cadre_apply_options options = {.buckets = {.first_bytes = position % 2 == 0 ? 0 : 16}};
    fault_die("DIE_BEFORE", position);
    CADRE_TRY(cadre_optimizer_apply(
        replica, learner->optimizer, &dense, &learner->variables[0], 1, &options));
    CADRE_TRY(cadre_on_apply(replica, while_it_writes, NULL));
    fault_die("DIE_BETWEEN", position);
    CADRE_TRY(cadre_optimizer_apply(replica, learner->optimizer, NULL, &learner->variables[1], 1,
        &(cadre_apply_options){.sparse = sparse}));
    fault_die("DIE_AFTER", position);
    freeze(replica, position);
    return cadre_on_apply(replica, behind_the_writes, NULL);
}

static cadre_status learn(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)outputs;
    const int64_t *samples = cadre_tensor_const_data(inputs[0]);
    cadre_tensor *dense = dense_gradient(samples, cadre_tensor_rows(inputs[0]));
    cadre_sparse sparse = sparse_gradient(samples, cadre_tensor_rows(inputs[0]));
    cadre_status status = apply_both(replica, user, dense, &sparse);
    cadre_tensor_release(dense);
    cadre_sparse_release(&sparse);
    return status;
}

/* SAVES, a position: a checkpoint is taken there, and waited for. */
static void save_where_asked(cadre_strategy *strategy)
{
    const char *where = getenv("SAVES");
    if (where != NULL && strtoull(where, NULL, 10) == cadre_strategy_position(strategy)) {
        CADRE_CHECK(cadre_save(strategy, true));
    }
}

/* A program without an optimizer, and the same with one that counts no updates that matter: what
 * such a checkpoint does not hold begins with its initial value. */
static cadre_status learn_plainly(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct learner *learner = user;
    CADRE_RELEASE_AT_EXIT(tensor) gradient = dense_gradient(&(const int64_t){1}, 1);
    return learner->optimizer == NULL ? CADRE_OK
                                      : cadre_optimizer_apply(replica, learner->optimizer,
                                            &gradient, &learner->variables[0], 1, NULL);
}

static int plain_program(bool optimizes)
{
    static const int64_t dims[1] = {WIDTH};
    static const cadre_optimizer_options sgd = {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.5};
    cadre_strategy *strategy;
    struct learner learner = {.optimizer = NULL};
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(
        cadre_variable_create(strategy, "w", CADRE_F32, 1, dims, NULL, &learner.variables[0]));
    if (optimizes) {
        CADRE_CHECK(cadre_optimizer_create(strategy, &sgd, &learner.optimizer));
        CADRE_CHECK(cadre_optimizer_build(learner.optimizer, learner.variables, 1));
    }
    while (cadre_strategy_position(strategy) < STEPS) {
        CADRE_CHECK(cadre_run(strategy, learn_plainly, &learner, NULL, 0, NULL));
        save_where_asked(strategy);
    }
    printf("learned %s, rate %g, iterations %lld\n",
        cadre_strategy_position(strategy) == STEPS ? "the same" : "something else",
        cadre_optimizer_learning_rate(learner.optimizer),
        (long long)cadre_optimizer_iterations(learner.optimizer));
    fflush(stdout);
    cadre_optimizer_release(learner.optimizer);
    return cadre_finish(strategy);
}

/* Whether there is a next step in which the states of several replicas are compared. */
static bool still_compares(const cadre_strategy *strategy)
{
    return strategy->replica_count == 1 || strategy->digests->next != POSITION_NONE;
}

static int program(bool builds)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_init(NULL, NULL));
    const unsigned long long wanted = learn_alone();
    CADRE_CHECK(cadre_strategy_default(&strategy));
    struct learner learner = open_learner(strategy, builds);
    CADRE_CHECK(cadre_distribute_dataset(strategy,
        cadre_dataset_batch(cadre_dataset_range(0, BATCH * STEPS, 1), BATCH, false), NULL, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, learn, &learner, batch, 0, NULL));
            mark_leave("applied", cadre_strategy_position(strategy) - 1);
            save_where_asked(strategy);
        }
    }
    printf("learned %s\n", state_of(&learner) != wanted ? "something else"
                           : still_compares(strategy)   ? "the same"
                                                        : "what no task compares");
    fflush(stdout);
    cadre_optimizer_release(learner.optimizer);
    return cadre_finish(strategy);
}

/* ---- what becomes of jobs ---- */

/* `dead`: the task that dies before the end; UINT32_MAX: none. */
static void run_job(const struct stage_job *job, uint32_t dead, struct stage_end *ret_end)
{
    stage_run(job, ret_end);
    bool good = ret_end->done;
    for (uint32_t task = 0; task < ret_end->started; task++) {
        good = good && (task == dead || strstr(ret_end->printed[task], "learned the same") != NULL);
    }
    for (uint32_t task = 0; !good && task < ret_end->started; task++) {
        print_error("%s\nlife %u: %d\n%s%s", ret_end->text, task, ret_end->exit_code[task],
            ret_end->printed[task], ret_end->erred[task]);
    }
    assert_true(good);
}

static void check(
    const char *what, const char *fault, uint32_t tasks, uint32_t replicas, uint32_t dead)
{
    struct stage_end end;
    const char *const environment[] = {fault, NULL};
    const struct stage_job job = {.self = self,
        .what = what,
        .tasks = tasks,
        .replicas = replicas,
        .environment = environment};
    run_job(&job, dead, &end);
    assert_int_equal(end.generations, dead == UINT32_MAX && fault[0] == 'D' ? 1 : 2);
    stage_end_free(&end);
}

static const char *const points[] = {
    "DIE_BEFORE", "DIE_BETWEEN", "DIE_AFTER", "DIE_WRITING", "DIE_WRITTEN"};
enum { POINTS = sizeof points / sizeof points[0] };

static void test_nothing_happens(void **state)
{
    (void)state;
    for (uint32_t tasks = 1; tasks <= 3; tasks++) {
        check("learn", "DIE_NOT=0:0", tasks, tasks == 2 ? 2 : 1, UINT32_MAX);
        check("late", "DIE_NOT=0:0", tasks, tasks == 2 ? 2 : 1, UINT32_MAX);
    }
}

static void test_a_task_dies_at_any_point_of_an_apply(void **state)
{
    (void)state;
    for (size_t i = 0; i < POINTS; i++) {
        for (uint32_t task = 0; task < 2; task++) {
            char fault[32];
            snprintf(fault, sizeof fault, "%s=%u:%zu", points[i], task, 3 + i);
            check("learn", fault, 3, task + 1, task);
        }
    }
}

/* The one that makes the slots: all tasks have them then, or none. */
static void test_a_task_dies_at_any_point_of_the_first_apply(void **state)
{
    (void)state;
    for (size_t i = 0; i < POINTS; i++) {
        for (uint32_t task = 0; task < 2; task++) {
            char fault[32];
            snprintf(fault, sizeof fault, "%s=%u:0", points[i], task);
            check("late", fault, 3, 2 - task, task);
        }
    }
}

static void test_a_step_that_others_applied_is_taken_over(void **state)
{
    (void)state;
    check("learn", "MISS_APPLY=1:5", 2, 1, UINT32_MAX);
    check("learn", "MISS_APPLY=0:7", 3, 2, UINT32_MAX);
    check("learn", "MISS_APPLY=2:0", 3, 1, UINT32_MAX);
    check("late", "MISS_APPLY=2:0", 3, 1, UINT32_MAX); /* with the slots that it made */
    check("late", "MISS_APPLY=0:0", 2, 2, UINT32_MAX);
}

/* Its slots are the job's. */
static void test_a_task_joins(void **state)
{
    (void)state;
    static const char *const whats[] = {"learn", "late"};
    for (int i = 0; i < 2; i++) {
        struct stage_end end;
        const struct stage_job job = {.self = self,
            .what = whats[i],
            .tasks = 2,
            .replicas = 2,
            .grows = 1,
            .grows_at = 3,
            .waits_at = 7};
        run_job(&job, UINT32_MAX, &end);
        assert_int_equal(end.roster, 3);
        stage_end_free(&end);
    }
}

/* ---- checkpoints ---- */

/* Runs `what`, which saves at a position; where that lies. */
static void leave_checkpoint(const char *what, uint64_t position, char path[TEST_PATH_BYTES])
{
    struct stage_end end;
    char saves[32];
    snprintf(saves, sizeof saves, "SAVES=%llu", (unsigned long long)position);
    const char *const environment[] = {saves, NULL};
    const struct stage_job job = {
        .self = self, .what = what, .tasks = 2, .replicas = 1, .environment = environment};
    run_job(&job, UINT32_MAX, &end);
    snprintf(
        path, TEST_PATH_BYTES, "%s/checkpoint-%llu.json", end.folder, (unsigned long long)position);
    stage_end_free(&end);
}

/* With another number of replicas; and whether the slots were, or are, made before the first step
 * or by the first apply. */
static void test_a_checkpoint_is_gone_on_from(void **state)
{
    (void)state;
    static const struct {
        const char *writes;
        const char *reads;
        uint32_t tasks;
    } cases[] = {{"learn", "learn", 1}, {"learn", "learn", 3}, {"late", "late", 3},
        {"late", "learn", 2}, {"learn", "late", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[TEST_PATH_BYTES];
        struct stage_end end;
        const uint32_t tasks = cases[i].tasks;
        leave_checkpoint(cases[i].writes, 5, path);
        const struct stage_job job = {.self = self,
            .what = cases[i].reads,
            .tasks = tasks,
            .replicas = tasks,
            .resume = 5,
            .restore = path};
        run_job(&job, UINT32_MAX, &end);
        stage_end_free(&end);
    }
}

static void test_what_a_checkpoint_need_not_hold_begins_again(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct stage_end end;
    leave_checkpoint("without", 5, path);
    const struct stage_job job = {
        .self = self, .what = "with", .tasks = 2, .replicas = 1, .resume = 5, .restore = path};
    run_job(&job, UINT32_MAX, &end);
    assert_non_null(strstr(end.printed[0], "rate 0.5, iterations 7"));
    assert_non_null(strstr(end.printed[1], "rate 0.5, iterations 7"));
    stage_end_free(&end);
}

/* As parameter servers write it: a count for each shard. */
static void test_of_several_counts_the_largest_is_read(void **state)
{
    (void)state;
    static const int64_t dims[1] = {3};
    static const cadre_optimizer_options sgd = {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.5};
    char path[TEST_PATH_BYTES];
    cadre_variable *w = NULL;
    cadre_variable *updates = NULL;
    cadre_tensor *counts = NULL;
    cadre_optimizer *optimizer = NULL;
    cadre_strategy *strategy = training_strategy(2);
    snprintf(path, sizeof path, "%s/shards.safetensors", training_folder());
    assert_public_ok(cadre_variable_create(strategy, "w", CADRE_F32, 1, dims, NULL, &w));
    assert_public_ok(
        cadre_variable_create(strategy, "w/updates", CADRE_I64, 1, dims, NULL, &updates));
    assert_public_ok(
        cadre_tensor_from_data(CADRE_I64, 1, dims, (const int64_t[]){2, 5, 4}, &counts));
    assert_public_ok(cadre_variable_assign(NULL, updates, CADRE_ASSIGN, counts));
    assert_public_ok(cadre_export(strategy, path, NULL, 0));
    cadre_tensor_release(counts);
    cadre_strategy_release(strategy);

    strategy = training_strategy(2);
    assert_public_ok(cadre_restore(strategy, path, NULL));
    assert_public_ok(cadre_variable_create(strategy, "w", CADRE_F32, 1, dims, NULL, &w));
    assert_public_ok(cadre_optimizer_create(strategy, &sgd, &optimizer));
    assert_public_ok(cadre_optimizer_build(optimizer, &w, 1));
    assert_int_equal(cadre_optimizer_iterations(optimizer), 5);
    cadre_optimizer_release(optimizer);
    cadre_strategy_release(strategy);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_happens),
        cmocka_unit_test(test_a_task_dies_at_any_point_of_an_apply),
        cmocka_unit_test(test_a_task_dies_at_any_point_of_the_first_apply),
        cmocka_unit_test(test_a_step_that_others_applied_is_taken_over),
        cmocka_unit_test(test_a_task_joins),
        cmocka_unit_test(test_a_checkpoint_is_gone_on_from),
        cmocka_unit_test(test_what_a_checkpoint_need_not_hold_begins_again),
        cmocka_unit_test(test_of_several_counts_the_largest_is_read),
    };
    self = argv[0];
    if (argc > 1 && argv[1][0] == 'l') {
        return program(strcmp(argv[1], "learn") == 0);
    }
    if (argc > 1 && strncmp(argv[1], "with", 4) == 0) {
        return plain_program(strcmp(argv[1], "with") == 0);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
