/* SPDX-License-Identifier: Apache-2.0
 * Jobs of several tasks on devices (the stand-in's): their results without faults, when a task dies
 * in the middle of a collective of its device, when one joins, when some replicas are on the CPU.
 * The tasks are this test, run again. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/gpu.h"
#include "nccl.h"
#include "step_kernels.h"
#include "step_program.h"
#include "tests/unit/runtime/stage.h"

#define COUNT   5
#define SAMPLES 90
#define BATCH   8
#define EPOCHS  2
#define STEPS   12 /* of an epoch */

static const char *self;

/* --- the program --- */

struct model {
    cadre_variable *weights;
    cadre_tensor *gradients[4];
    unsigned kill_attempt; /* this attempt dies ... */
    unsigned kill_at;      /* ... in this step */
};

static void update(cadre_replica *replica, void *user)
{
    struct model *model = user;
    cadre_tensor **gradient = &model->gradients[cadre_replica_local_id(replica)];
    step_kernel_add(cadre_replica_stream(replica), cadre_variable_write(replica, model->weights),
        cadre_tensor_const_data(*gradient), 1, COUNT);
    cadre_tensor_release(*gradient);
    *gradient = NULL;
}

static bool dies(const cadre_replica *replica, const struct model *model)
{
    const char *attempt = getenv("STAGE_ATTEMPT");
    return attempt != NULL && model->kill_at > 0 &&
           strtoul(attempt, NULL, 10) == model->kill_attempt &&
           cadre_strategy_position(cadre_replica_strategy(replica)) == model->kill_at;
}

/* The sum of all replicas by the program's own call, on the second device of each. */
static cadre_status sum_on_second(
    cadre_replica *replica, const struct model *model, cadre_tensor *from, cadre_tensor **ret_sum)
{
    void *comm;
    cadre_tensor *there;
    CADRE_TRY(cadre_logical_nccl_comm(replica, 1, CADRE_LOGICAL_ACROSS_REPLICAS, &comm));
    CADRE_TRY(cadre_tensor_copy_to_logical(replica, 1, from, &there));
    if (dies(replica, model)) {
        raise(SIGKILL);
    }
    void *data = cadre_tensor_data(there);
    ncclResult_t result = ncclAllReduce(
        data, data, COUNT, ncclFloat, ncclSum, comm, cadre_logical_stream(replica, 1));
    cadre_status status =
        result == ncclSuccess || result == ncclInProgress
            ? cadre_tensor_copy_to(replica, there, ret_sum)
            : cadre_fail(CADRE_INTERNAL, "ncclAllReduce: %s", ncclGetErrorString(result));
    cadre_tensor_release(there);
    return status;
}

static cadre_status keep(cadre_replica *replica, struct model *model, cadre_tensor *gradient)
{
    cadre_tensor **kept = &model->gradients[cadre_replica_local_id(replica)];
    cadre_tensor_release(*kept); /* of an attempt before */
    *kept = cadre_tensor_retain(gradient);
    return cadre_on_apply(replica, update, model);
}

/* The gradient of all replicas, and once more from the first, which changes nothing. */
static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct model *model = user;
    void *stream = cadre_replica_stream(replica);
    const int64_t dims[1] = {COUNT};
    cadre_tensor *gradient;
    cadre_collective *handle;
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, 1, dims, &gradient));
    outputs[0] = gradient;
    if (step_kernel_sum(stream, cadre_tensor_data(gradient), cadre_tensor_const_data(inputs[0]),
            cadre_tensor_rows(inputs[0]), COUNT) != 0) {
        return cadre_fail(CADRE_INTERNAL, "a launch failed");
    }
    if (cadre_logical_devices(replica) > 1) {
        cadre_tensor *sum;
        CADRE_TRY(sum_on_second(replica, model, gradient, &sum));
        outputs[0] = sum;
        cadre_tensor_release(gradient);
        return keep(replica, model, outputs[0]);
    }
    CADRE_TRY(cadre_all_reduce_start(replica, CADRE_SUM, &gradient, 1, NULL, &handle));
    if (dies(replica, model)) {
        raise(SIGKILL);
    }
    CADRE_TRY(cadre_collective_wait(handle));
    CADRE_TRY(cadre_broadcast(replica, 0, &gradient, 1));
    return keep(replica, model, gradient);
}

static void train(cadre_strategy *strategy, struct model *model)
{
    const int64_t dims[1] = {COUNT};
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    cadre_per_replica *output;
    CADRE_CHECK(
        cadre_variable_create(strategy, "weights", CADRE_F32, 1, dims, NULL, &model->weights));
    CADRE_CHECK(cadre_distribute_dataset(strategy,
        cadre_dataset_batch(cadre_dataset_range(0, SAMPLES, 1), BATCH, false), NULL, &data));
    while (cadre_next_epoch(data, EPOCHS, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, step, model, batch, 1, &output));
        }
    }
}

/* A replica on each task's first device, which may have the second one too. */
static cadre_strategy *make_strategy(bool pair)
{
    const cadre_topology mesh = {.rank = 1, .shape = {2}};
    const cadre_assignment_options options = {.rank = 1, .computation_shape = {2}};
    cadre_device_assignment *assignment;
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    if (!pair) {
        return strategy;
    }
    CADRE_CHECK(cadre_device_assignment_build(&mesh, &options, &assignment));
    CADRE_CHECK(cadre_strategy_set_device_assignment(strategy, assignment));
    cadre_device_assignment_release(assignment);
    return strategy;
}

/* Each incarnation has a device of its own, two with PAIRS, unless ONE_GPU is set; that of
 * CPU_ATTEMPT has none. */
static int program(void)
{
    const char *attempt = getenv("STAGE_ATTEMPT");
    const char *cpu = getenv("CPU_ATTEMPT");
    const char *kill_at = getenv("KILL");
    struct model model = {0};
    char device[16];
    unsigned long number = strtoul(attempt, NULL, 10);
    bool pairs = getenv("PAIRS") != NULL;
    snprintf(device, sizeof device, pairs ? "%lu,%lu" : "%lu", pairs ? 2 * number : number % 4,
        2 * number + 1);
    setenv("CADRE_PLUGIN", STANDIN_PLUGIN, 0);
    setenv("CADRE_NCCL", STANDIN_NCCL, 0);
    setenv("CADRE_STANDIN_DEVICES", pairs ? "16" : "4", 1);
    if (getenv("ONE_GPU") == NULL) {
        setenv("CUDA_VISIBLE_DEVICES", device, 1);
    }
    if (cpu != NULL && strcmp(cpu, attempt) == 0) {
        setenv("CADRE_DEVICES", "cpu", 1);
    }
    if (kill_at != NULL && sscanf(kill_at, "%u:%u", &model.kill_attempt, &model.kill_at) != 2) {
        return 2;
    }
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_enable_gpus());
    cadre_strategy *strategy = make_strategy(pairs);
    train(strategy, &model);
    const float *weights = cadre_variable_read(NULL, model.weights);
    printf("weights");
    for (int i = 0; weights != NULL && i < COUNT; i++) {
        printf(" %.0f", (double)weights[i]);
    }
    printf("\n");
    fflush(stdout);
    int code = cadre_finish(strategy);
    for (int i = 0; i < 4; i++) {
        cadre_tensor_release(model.gradients[i]);
    }
    return code;
}

/* --- what it comes to --- */

/* Each sample once in an epoch, consumed by any task. */
static void check(struct stage_job *job, uint32_t dead, struct stage_end *ret_end)
{
    char wanted[128];
    double sum = EPOCHS * SAMPLES * (SAMPLES - 1) / 2.0;
    snprintf(wanted, sizeof wanted, "weights %.0f %.0f %.0f %.0f %.0f\n", sum, 2 * sum, 3 * sum,
        4 * sum, 5 * sum);
    job->self = self;
    job->what = "train";
    stage_run(job, ret_end);
    bool good = ret_end->done && ret_end->position == EPOCHS * STEPS;
    for (uint32_t i = 0; i < ret_end->started; i++) {
        good =
            good &&
            (i == dead || (ret_end->exit_code[i] == 0 && strcmp(ret_end->printed[i], wanted) == 0));
    }
    for (uint32_t i = 0; !good && i < ret_end->started; i++) {
        print_error("attempt %u: exit code %d\n%s%s", i, ret_end->exit_code[i], ret_end->printed[i],
            ret_end->erred[i]);
    }
    if (!good) {
        fail_msg("done %d at %llu, %llu generations, %s; wanted %s", ret_end->done,
            (unsigned long long)ret_end->position, (unsigned long long)ret_end->generations,
            ret_end->text, wanted);
    }
}

static bool warned(const struct stage_end *end, const char *why)
{
    bool found = false;
    for (uint32_t i = 0; i < end->started; i++) {
        const char *at = strstr(end->erred[i], "the GPUs of this job are not connected");
        found = found || (at != NULL && strstr(at, why) != NULL);
    }
    return found;
}

static void tasks_on_devices_of_their_own_are_connected(void **state)
{
    (void)state;
    for (uint32_t tasks = 1; tasks <= 3; tasks++) {
        struct stage_end end;
        struct stage_job job = {.tasks = tasks, .replicas = 1};
        check(&job, UINT32_MAX, &end);
        assert_false(warned(&end, ""));
        stage_end_free(&end);
    }
}

static void a_task_that_dies_in_a_collective_is_survived(void **state)
{
    (void)state;
    static const char *const kills[] = {"KILL=1:3", "KILL=0:15"};
    for (int i = 0; i < 2; i++) {
        struct stage_end end;
        const char *const environment[] = {kills[i], NULL};
        struct stage_job job = {.tasks = 3, .replicas = 1, .environment = environment};
        check(&job, i == 0 ? 1 : 0, &end);
        assert_int_equal(end.generations, 2);
        assert_int_equal(end.roster, 2);
        assert_false(warned(&end, ""));
        stage_end_free(&end);
    }
}

static void one_that_is_started_again_joins(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"KILL=1:5", NULL};
    struct stage_job job = {
        .tasks = 2, .replicas = 1, .replaces = true, .waits_at = 9, .environment = environment};
    check(&job, 1, &end);
    assert_int_equal(end.roster, 2);
    assert_int_equal(end.started, 3);
    assert_false(warned(&end, ""));
    stage_end_free(&end);
}

static void a_task_on_the_cpu_is_reported_and_waited_for(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct stage_end end;
        const char *const environment[] = {i == 0 ? "CPU_ATTEMPT=1" : "CPU_ATTEMPT=0", NULL};
        struct stage_job job = {.tasks = 2, .replicas = 1, .environment = environment};
        check(&job, UINT32_MAX, &end);
        assert_true(warned(&end, i == 0 ? "the task of rank 1" : "the task of rank 0"));
        stage_end_free(&end);
    }
}

static void tasks_that_share_a_device_are_reported(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"ONE_GPU=1", NULL};
    struct stage_job job = {.tasks = 2, .replicas = 1, .environment = environment};
    check(&job, UINT32_MAX, &end);
    assert_true(warned(&end, "GPU"));
    stage_end_free(&end);
}

static void without_a_library_for_them_sums_go_through_the_hosts(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"CADRE_NCCL=/nowhere/libnccl.so", "KILL=1:4", NULL};
    struct stage_job job = {.tasks = 3, .replicas = 1, .environment = environment};
    check(&job, 1, &end);
    assert_true(warned(&end, "/nowhere/libnccl.so"));
    stage_end_free(&end);
}

/* Of the tasks' second devices: formed again by those that are left, and with one that joins. */
static void second_devices_are_connected_again(void **state)
{
    (void)state;
    const char *const fine[] = {"PAIRS=1", NULL};
    const char *const killed[] = {"PAIRS=1", "KILL=1:3", NULL};
    for (int i = 0; i < 3; i++) {
        struct stage_end end;
        struct stage_job job = {.tasks = 3,
            .replicas = 1,
            .environment = i == 0 ? fine : killed,
            .replaces = i == 2,
            .waits_at = i == 2 ? 8 : 0};
        check(&job, i == 0 ? UINT32_MAX : 1, &end);
        assert_int_equal(end.roster, i == 1 ? 2 : 3);
        stage_end_free(&end);
    }
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1) {
        return program();
    }
    step_program_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_on_devices_of_their_own_are_connected),
        cmocka_unit_test(a_task_that_dies_in_a_collective_is_survived),
        cmocka_unit_test(one_that_is_started_again_joins),
        cmocka_unit_test(a_task_on_the_cpu_is_reported_and_waited_for),
        cmocka_unit_test(tasks_that_share_a_device_are_reported),
        cmocka_unit_test(without_a_library_for_them_sums_go_through_the_hosts),
        cmocka_unit_test(second_devices_are_connected_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
