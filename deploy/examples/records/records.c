/* SPDX-License-Identifier: Apache-2.0
 * Learns to read handwritten digits from TFRecord files, tests itself on others, and predicts each
 * of those in order.
 *
 *     ./records-make                                  makes the files
 *     ./records                                       by hand
 *     cadre run -n 2 ./records                        two tasks on this machine
 *     cadre submit --workers 2 --file ... ./records   on a cluster */
#include <stdio.h>

#include "model.h"
#include "pipeline.h"
#include "predict.h"
#include "settings.h"

#define LEARNING_RATE 0.2f

/* One replica's part of a step. inputs: images [rows, PIXELS], labels [rows]; rows may be 0. */
static cadre_status train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const struct model *model = user;
    cadre_tensor *gradients[PARAMETERS];
    float loss;
    CADRE_TRY(model_gradients(model, replica, inputs[0], inputs[1], gradients, &loss));
    float scale = 1.0f / (float)cadre_replica_global_rows(replica);
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, gradients, PARAMETERS, NULL);
    if (status == CADRE_OK) {
        status = model_update(model, replica, gradients, scale);
    }
    for (int i = 0; i < PARAMETERS; i++) {
        cadre_tensor_release(gradients[i]);
    }
    CADRE_TRY(status);
    return cadre_tensor_from_f32(loss * scale, &outputs[0]);
}

static cadre_status test_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const float *images = cadre_tensor_const_data(inputs[0]);
    const int64_t *labels = cadre_tensor_const_data(inputs[1]);
    int64_t rows = cadre_tensor_rows(inputs[0]);
    int64_t right = 0;
    for (int64_t row = 0; row < rows; row++) {
        float odds[CLASSES];
        right += model_classify(user, replica, images + row * PIXELS, odds) == labels[row];
    }
    CADRE_TRY(cadre_tensor_from_i64(right, &outputs[0]));
    return cadre_tensor_from_i64(rows, &outputs[1]);
}

/* The sum of an output over all replicas of all tasks. */
static double total(cadre_strategy *strategy, const cadre_per_replica *value)
{
    CADRE_RELEASE_AT_EXIT(tensor) sum = NULL;
    CADRE_CHECK(cadre_reduce(strategy, CADRE_SUM, value, CADRE_AXIS_NONE, &sum));
    return cadre_tensor_dtype(sum) == CADRE_F32
               ? (double)*(const float *)cadre_tensor_const_data(sum)
               : (double)*(const int64_t *)cadre_tensor_const_data(sum);
}

/* What is counted between steps. Registered: a task that joins, and a job that goes on from a
 * checkpoint, know what was counted before. */
struct outcome {
    double right;
    double rows;
    struct predictions predictions;
};

static void train_epoch(cadre_strategy *strategy, cadre_distributed_dataset *data,
    const struct settings *settings, uint64_t epoch, struct model *model)
{
    cadre_per_replica *batch;
    cadre_per_replica *loss;
    /* A function of the epoch: a job that is resumed goes on with the right rate. */
    model->learning_rate = LEARNING_RATE * (1.0f - (float)epoch / (float)settings->epochs);
    while (cadre_next(data, &batch) == CADRE_OK) {
        CADRE_CHECK(cadre_run(strategy, train_step, model, batch, 1, &loss));
        CADRE_CHECK(cadre_report(strategy, "loss", total(strategy, loss)));
    }
}

static void test(cadre_strategy *strategy, cadre_distributed_dataset *data, struct model *model,
    struct outcome *outcome)
{
    cadre_per_replica *batch;
    cadre_per_replica *counts[2];
    if (!cadre_next_epoch(data, 1, NULL)) {
        return; /* done before, or an error: cadre_finish says it */
    }
    while (cadre_next(data, &batch) == CADRE_OK) {
        CADRE_CHECK(cadre_run(strategy, test_step, model, batch, 2, counts));
        double right = total(strategy, counts[0]);
        double rows = total(strategy, counts[1]);
        outcome->right += right;
        outcome->rows += rows;
    }
    CADRE_CHECK(cadre_distributed_status(data));
}

static void print(const struct outcome *outcome)
{
    const struct predictions *predictions = &outcome->predictions;
    printf("test accuracy: %.1f%%\n", 100 * outcome->right / outcome->rows);
    printf("predictions:\n");
    for (int64_t i = 0; i < predictions->count; i += 60) {
        int64_t left = predictions->count - i;
        printf("%.*s\n", (int)(left < 60 ? left : 60), predictions->digits + i);
    }
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    struct settings settings;
    if (!settings_read(argc, argv, &settings)) {
        return 2;
    }
    cadre_strategy *strategy;
    struct model model;
    struct pipeline pipeline;
    static struct outcome outcome; /* zeroed */
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(model_create(strategy, &model));
    CADRE_CHECK(cadre_state_register(strategy, "outcome", &outcome, sizeof outcome));
    CADRE_CHECK(pipeline_create(strategy, &settings, &pipeline));

    cadre_distributed_dataset *training;
    cadre_distributed_dataset *testing;
    cadre_distributed_dataset *numbered;
    const cadre_input_options by_policy = {.name = "train", .auto_shard = settings.shard};
    const cadre_input_options by_record = {.auto_shard = CADRE_SHARD_DATA};
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, pipeline_training(&pipeline, &settings), &by_policy, &training));
    CADRE_CHECK(
        cadre_distribute_dataset(strategy, pipeline_test(&pipeline, 128), &by_record, &testing));
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, pipeline_numbered(&pipeline, PREDICT_BATCH), &by_record, &numbered));

    uint64_t epoch;
    while (cadre_next_epoch(training, settings.epochs, &epoch)) {
        train_epoch(strategy, training, &settings, epoch, &model);
    }
    test(strategy, testing, &model, &outcome);
    predict(strategy, numbered, &model, &outcome.predictions);

    bool chief = cadre_strategy_is_chief(strategy);
    int status = cadre_finish(strategy);
    pipeline_release(&pipeline);
    if (status == 0 && chief) {
        print(&outcome);
    }
    return status;
}
