/* SPDX-License-Identifier: Apache-2.0
 * Click prediction with a table of ids that no worker holds:
 *
 *     ./recsys                                                            all in one process
 *     cadre run --strategy parameter_server --workers 2 --ps 2 ./recsys   on this machine
 *     cadre submit --strategy parameter_server --workers 2 --ps 2 --evaluators 1 ./recsys
 *
 * Workers train asynchronously: each pulls the rows of its batch, and pushes their gradients. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine.h"
#include "settings.h"

enum { TEST_SAMPLES = 4096 };

/* Each worker's samples are its own, and none of them is a test's. */
static int64_t first_sample(uint32_t worker)
{
    return ((int64_t)worker + 1) << 40;
}

static cadre_status worker_clicks(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    const struct settings *settings = user;
    uint32_t worker;
    (void)context;
    CADRE_TRY(cadre_worker_index(&worker));
    *ret_data = clicks(&settings->rows, first_sample(worker), settings->batch);
    return CADRE_OK;
}

/* A worker's own, made when it comes: the memory for a batch. */
static cadre_status make_machine(void **ret_machine, void *user)
{
    const struct settings *settings = user;
    struct machine *machine = malloc(sizeof *machine);
    if (machine == NULL) {
        return cadre_fail(CADRE_RESOURCE_EXHAUSTED, "there is no memory for a worker");
    }
    cadre_status status = machine_create(machine, settings->batch);
    if (status != CADRE_OK) {
        free(machine);
        return status;
    }
    *ret_machine = machine;
    return CADRE_OK;
}

static void free_machine(void *machine, void *user)
{
    (void)user;
    machine_free(machine);
    free(machine);
}

/* arguments: the worker's clicks, its machine. output: the loss of the batch, f64. */
static cadre_status train(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_tensor *batch[COMPONENTS];
    uint32_t count;
    void *machine;
    double loss;
    (void)user;
    CADRE_TRY(cadre_closure_resource(closure, 1, &machine));
    CADRE_TRY(cadre_closure_next(closure, 0, batch, COMPONENTS, &count));
    double rows = (double)cadre_tensor_rows(batch[CLICKED]);
    cadre_status status = machine_forward(machine, batch[IDS], batch[CLICKED], &loss);
    if (status == CADRE_OK) {
        status = machine_backward(machine, batch[CLICKED]);
    }
    for (uint32_t i = 0; i < count; i++) {
        cadre_tensor_release(batch[i]);
    }
    CADRE_TRY(status);
    return cadre_tensor_from_f64(loss / rows, &outputs[0]);
}

/* On samples of no training batch. *ret_best: the loss of the truth itself. */
static cadre_status test(const struct settings *settings, double *ret_loss, double *ret_best)
{
    struct machine machine;
    cadre_element batch;
    cadre_iterator *iterator = NULL;
    cadre_dataset *data = clicks(&settings->rows, 0, TEST_SAMPLES);
    CADRE_TRY(machine_create(&machine, TEST_SAMPLES));
    cadre_status status = cadre_dataset_iterate(data, 0, &iterator);
    if (status == CADRE_OK) {
        status = cadre_iterator_next(iterator, &batch);
    }
    if (status == CADRE_OK) {
        status = machine_forward(&machine, batch.tensors[IDS], batch.tensors[CLICKED], ret_loss);
        const float *clicked = cadre_tensor_const_data(batch.tensors[CLICKED]);
        const float *chance = cadre_tensor_const_data(batch.tensors[CHANCE]);
        *ret_loss /= TEST_SAMPLES;
        *ret_best = 0;
        for (int i = 0; i < TEST_SAMPLES; i++) {
            *ret_best -=
                log(clicked[i] > 0 ? (double)chance[i] : 1 - (double)chance[i]) / TEST_SAMPLES;
        }
        cadre_element_release(&batch);
    }
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    machine_free(&machine);
    return status;
}

static int evaluate(const struct settings *settings)
{
    uint64_t round;
    while (cadre_next_evaluation(1.0, &round)) {
        double loss;
        double best;
        CADRE_CHECK(test(settings, &loss, &best));
        CADRE_CHECK(cadre_report_evaluation("test_loss", loss));
        printf("round %llu: test loss %.4f, of the truth itself %.4f\n", (unsigned long long)round,
            loss, best);
        fflush(stdout);
    }
    return cadre_evaluator_finish();
}

static void create(cadre_strategy *strategy, const struct settings *settings)
{
    cadre_variable *table;
    cadre_variable *bias;
    cadre_optimizer *optimizer;
    const int64_t table_dims[2] = {settings->rows, WIDTH};
    const int64_t bias_dims[1] = {1};
    const cadre_optimizer_options adagrad = {.kind = CADRE_OPTIMIZER_ADAGRAD,
        .rate = settings->rate,
        .initial_accumulator = 1e-5}; /* gradients of a mean are small */
    const cadre_variable_options of_table = {
        .initializer = {.kind = CADRE_INITIALIZER_NORMAL, .stddev = 0.02, .seed = 1}};
    CADRE_CHECK(
        cadre_variable_create(strategy, "table", CADRE_F32, 2, table_dims, &of_table, &table));
    CADRE_CHECK(cadre_variable_create(strategy, "bias", CADRE_F32, 1, bias_dims, NULL, &bias));
    CADRE_CHECK(cadre_optimizer_create(strategy, &adagrad, &optimizer));
    CADRE_CHECK(cadre_optimizer_build(optimizer, (cadre_variable *[]){table, bias}, 2));
    cadre_optimizer_release(optimizer); /* the servers have it */
    printf("table: %lld rows of %d in %u shards, %.0f MB and as much for Adagrad; a batch needs "
           "%.0f KB of it at most\n",
        (long long)settings->rows, WIDTH, cadre_variable_components(table),
        (double)cadre_variable_count(table) * sizeof(float) * 1e-6,
        (double)settings->batch * FIELDS * WIDTH * sizeof(float) * 1e-3);
    fflush(stdout);
}

/* The mean loss of a round's batches. */
static double train_round(cadre_strategy *strategy, const struct settings *settings,
    const cadre_closure_argument arguments[2], cadre_remote_value *values[])
{
    double sum = 0;
    for (int64_t i = 0; i < settings->closures; i++) {
        CADRE_CHECK(cadre_schedule(strategy, "train", arguments, 2, &values[i]));
    }
    CADRE_CHECK(cadre_join(strategy));
    for (int64_t i = 0; i < settings->closures; i++) {
        cadre_tensor *loss;
        uint32_t count;
        CADRE_CHECK(cadre_fetch(values[i], &loss, 1, &count));
        sum += *(const double *)cadre_tensor_const_data(loss);
        cadre_tensor_release(loss);
        cadre_remote_value_release(values[i]);
    }
    return sum / (double)settings->closures;
}

static int coordinate(const struct settings *settings)
{
    cadre_strategy *strategy;
    cadre_closure_argument arguments[2] = {{0}};
    /* Shards of 4 MiB at least, at most 64. */
    const cadre_parameter_server_options options = {
        .partitioner = {
            .kind = CADRE_PARTITIONER_MIN_SIZE, .bytes = UINT64_C(4) << 20, .shards = 64}};
    double first;
    double last;
    double best;
    cadre_remote_value **values = calloc((size_t)settings->closures, sizeof *values);
    if (values == NULL) {
        fprintf(stderr, "recsys: there is no memory for the values of a round\n");
        return 1;
    }
    CADRE_CHECK(cadre_strategy_parameter_server(&options, &strategy));
    create(strategy, settings);
    CADRE_CHECK(cadre_create_per_worker_dataset(strategy, "clicks", &arguments[0].per_worker));
    CADRE_CHECK(cadre_create_per_worker_resource(strategy, "machine", &arguments[1].per_worker));
    CADRE_CHECK(test(settings, &first, &best));
    /* Each round ends with a join, which the ledger counts: a job that goes on from a checkpoint
     * begins with the round that is left. */
    while (cadre_strategy_position(strategy) < (uint64_t)settings->rounds) {
        double loss = train_round(strategy, settings, arguments, values);
        CADRE_CHECK(cadre_report(strategy, "loss", loss));
    }
    CADRE_CHECK(test(settings, &last, &best));
    free(values);
    int status = cadre_finish(strategy);
    if (status == 0) {
        printf("test loss: %.4f at first, %.4f now; of the truth itself %.4f\n", first, last, best);
    }
    return status;
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    static struct settings settings;
    if (!settings_read(argc, argv, &settings)) {
        return 2;
    }
    CADRE_CHECK(cadre_function_register("train", train, NULL));
    CADRE_CHECK(cadre_dataset_register("clicks", worker_clicks, &settings));
    CADRE_CHECK(cadre_resource_register("machine", make_machine, free_machine, &settings));
    if (cadre_task_serves()) {
        return cadre_serve();
    }
    return cadre_task_type_of() == CADRE_TASK_EVALUATOR ? evaluate(&settings)
                                                        : coordinate(&settings);
}
