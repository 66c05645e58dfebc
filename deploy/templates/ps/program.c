/* Learns a table with a row for each of many ids, which lies on parameter servers: workers read the
 * rows of a batch, and send back their gradients.
 *
 *     chief ── closures ──▶ workers ══ rows, gradients ══▶ ps tasks: the table, in shards
 *
 * By hand all of them are threads of one process. */
#include <cadre/cadre.h>
#include <math.h>
#include <stdio.h>

enum { IDS = 10000, BATCH = 256, ROUNDS = 40, BATCHES = 40 };

/* What the table is to hold for an id. Your own samples come from a dataset of each worker: see
 * cadre_create_per_worker_dataset in cadre/cluster_coordinator.h. */
static float truth(int64_t id)
{
    return sinf(0.001f * (float)id);
}

/* On a worker: one batch. argument 0: its number. out: the mean loss, f64. */
static cadre_status train(cadre_closure *closure, cadre_tensor *out[], void *user)
{
    cadre_tensor *number;
    cadre_variable *table;
    cadre_random random;
    double loss = 0;
    int64_t drawn[BATCH];
    const int64_t dims[1] = {BATCH};
    CADRE_RELEASE_AT_EXIT(tensor) ids = NULL;
    CADRE_RELEASE_AT_EXIT(tensor) rows = NULL;
    (void)user;
    CADRE_TRY(cadre_closure_tensor(closure, 0, &number));
    CADRE_TRY(cadre_variable_find(NULL, "table", &table)); /* the chief made it */
    const int64_t batch = *(const int64_t *)cadre_tensor_const_data(number);
    CADRE_TRY(cadre_random_for_sample(1, "ids", 0, (uint64_t)batch, &random));
    for (int i = 0; i < BATCH; i++) {
        drawn[i] = (int64_t)cadre_random_below(&random, IDS);
    }
    CADRE_TRY(cadre_tensor_from_data(CADRE_I64, 1, dims, drawn, &ids));
    CADRE_TRY(cadre_variable_gather(NULL, table, ids, NULL, &rows)); /* [BATCH, 1], a copy */
    float *row = cadre_tensor_data(rows);
    for (int i = 0; i < BATCH; i++) {
        float error = row[i] - truth(drawn[i]);
        loss += (double)(error * error) / BATCH;
        row[i] = error; /* the gradient of error^2 / 2 */
    }
    /* The servers apply it by the optimizer that the chief built: at once, and exactly once. */
    CADRE_TRY(cadre_variable_push(NULL, table, CADRE_ASSIGN_UPDATE, rows, ids, NULL));
    return cadre_tensor_from_f64(loss, &out[0]);
}

/* Schedules a round's batches, by whichever worker is free; their mean loss when all are done. */
static double train_round(cadre_strategy *strategy, uint64_t round)
{
    cadre_remote_value *values[BATCHES];
    double sum = 0;
    for (uint64_t i = 0; i < BATCHES; i++) {
        cadre_closure_argument argument = {NULL, NULL};
        CADRE_CHECK(cadre_tensor_from_i64((int64_t)(round * BATCHES + i), &argument.tensor));
        CADRE_CHECK(cadre_schedule(strategy, "train", &argument, 1, &values[i]));
        cadre_tensor_release(argument.tensor);
    }
    CADRE_CHECK(cadre_join(strategy));
    for (int i = 0; i < BATCHES; i++) {
        cadre_tensor *loss;
        uint32_t count;
        CADRE_CHECK(cadre_fetch(values[i], &loss, 1, &count));
        sum += *(const double *)cadre_tensor_const_data(loss);
        cadre_tensor_release(loss);
        cadre_remote_value_release(values[i]);
    }
    return sum / BATCHES;
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_variable *table;
    cadre_optimizer *optimizer;
    double loss = 0;
    const int64_t dims[2] = {IDS, 1};
    const cadre_optimizer_options sgd = {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.3};
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_function_register("train", train, NULL)); /* in every task */
    if (cadre_task_serves()) {
        return cadre_serve(); /* a worker, or a parameter server: until the chief is done */
    }
    CADRE_CHECK(cadre_strategy_parameter_server(NULL, &strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "table", CADRE_F32, 2, dims, NULL, &table));
    CADRE_CHECK(cadre_optimizer_create(strategy, &sgd, &optimizer));
    CADRE_CHECK(cadre_optimizer_build(optimizer, &table, 1)); /* the servers have it now */
    cadre_optimizer_release(optimizer);
    /* Each round ends with a join, which the ledger counts: a job that goes on from a checkpoint
     * begins with the rounds that are left. */
    while (cadre_strategy_position(strategy) < ROUNDS) {
        loss = train_round(strategy, cadre_strategy_position(strategy));
        CADRE_CHECK(cadre_report(strategy, "loss", loss));
    }
    printf("loss of the last round: %.6f\n", loss);
    return cadre_finish(strategy); /* what main returns; writes the last checkpoint */
}
