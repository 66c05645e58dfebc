/* SPDX-License-Identifier: Apache-2.0
 * One model, trained by any strategy: model.c is the same, only the loop differs.
 *
 *     ./anywhere mirrored                 a copy of the variables on each replica (CADRE_REPLICAS)
 *     ./anywhere central_storage          one copy for all replicas
 *     cadre run -n 2 ./anywhere multi_worker
 *     ./anywhere parameter_server         variables on servers, all in one process
 *     cadre run --strategy parameter_server --workers 2 --ps 2 ./anywhere parameter_server */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

/* --- replicas that step together --- */

static int train_in_steps(cadre_strategy *strategy)
{
    struct model model;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    double distance;
    CADRE_CHECK(model_open(strategy, &model));
    CADRE_CHECK(cadre_distribute_dataset(strategy, model_data(false), NULL, &data));
    while (cadre_next_epoch(data, EPOCHS, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, model_step, &model, batch, 0, NULL));
        }
        CADRE_CHECK(cadre_distributed_status(data));
    }
    CADRE_CHECK(model_distance(&model, &distance));
    if (cadre_strategy_is_chief(strategy)) {
        printf("the weights are %.2e from the true ones\n", distance);
    }
    model_close(&model);
    return cadre_finish(strategy);
}

/* --- workers that run what the chief schedules --- */

static cadre_status make_data(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)context;
    (void)user;
    *ret_data = model_data(true);
    return CADRE_OK;
}

/* Once for each worker: it finds the model that the chief has made. */
static cadre_status find_model(void **ret_model, void *user)
{
    struct model *model = malloc(sizeof *model);
    (void)user;
    if (model == NULL) {
        return cadre_fail(CADRE_RESOURCE_EXHAUSTED, "there is no memory for a model");
    }
    cadre_status status = model_open(NULL, model);
    if (status != CADRE_OK) {
        model_close(model);
        free(model);
        return status;
    }
    *ret_model = model;
    return CADRE_OK;
}

static void leave_model(void *model, void *user)
{
    (void)user;
    model_close(model);
    free(model);
}

/* arguments: the worker's data, its model. A step of this worker's replicas alone. */
static cadre_status train(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    void *model;
    cadre_per_replica *batch;
    (void)outputs;
    (void)user;
    CADRE_TRY(cadre_closure_resource(closure, 1, &model));
    CADRE_TRY(cadre_closure_batch(closure, 0, CADRE_FEED_PARTS, &batch));
    cadre_status status = cadre_run(cadre_strategy_current(), model_step, model, batch, 0, NULL);
    cadre_per_replica_release(batch);
    return status;
}

static int train_in_closures(void)
{
    struct model model;
    cadre_strategy *strategy;
    cadre_closure_argument arguments[2] = {{0}};
    double distance;
    CADRE_CHECK(cadre_strategy_parameter_server(NULL, &strategy));
    CADRE_CHECK(model_open(strategy, &model));
    CADRE_CHECK(cadre_create_per_worker_dataset(strategy, "samples", &arguments[0].per_worker));
    CADRE_CHECK(cadre_create_per_worker_resource(strategy, "model", &arguments[1].per_worker));
    while (cadre_strategy_position(strategy) < EPOCHS) {
        for (int step = 0; step < STEPS; step++) {
            CADRE_CHECK(cadre_schedule(strategy, "train", arguments, 2, NULL));
        }
        CADRE_CHECK(cadre_join(strategy));
    }
    CADRE_CHECK(model_distance(&model, &distance));
    printf("the weights are %.2e from the true ones\n", distance);
    model_close(&model);
    return cadre_finish(strategy);
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    const char *kind = argc == 2 ? argv[1] : "";
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_function_register("train", train, NULL));
    CADRE_CHECK(cadre_dataset_register("samples", make_data, NULL));
    CADRE_CHECK(cadre_resource_register("model", find_model, leave_model, NULL));
    if (cadre_task_serves()) {
        return cadre_serve();
    }
    if (strcmp(kind, "parameter_server") == 0) {
        return train_in_closures();
    }
    if (strcmp(kind, "mirrored") == 0) {
        CADRE_CHECK(cadre_strategy_mirrored(0, &strategy));
    } else if (strcmp(kind, "multi_worker") == 0) {
        CADRE_CHECK(cadre_strategy_multi_worker_mirrored(0, &strategy));
    } else if (strcmp(kind, "central_storage") == 0) {
        CADRE_CHECK(cadre_strategy_central_storage(NULL, 0, NULL, &strategy));
    } else {
        fprintf(stderr, "usage: anywhere mirrored|multi_worker|central_storage|parameter_server\n");
        return 2;
    }
    return train_in_steps(strategy);
}
