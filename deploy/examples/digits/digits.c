/* SPDX-License-Identifier: Apache-2.0
 * Learns to read handwritten digits, on as many replicas as it is given:
 *
 *     ./digits                                        by hand
 *     cadre run -n 2 ./digits                         two tasks on this machine
 *     cadre submit --workers 2 --file ... ./digits    on a cluster
 *
 * The loop is the one every Cadre program has: epochs, batches, cadre_run, cadre_reduce. */
#include <stdio.h>
#include <stdlib.h>

#include "data.h"
#include "gpu.h"
#include "model.h"
#include "settings.h"

/* The images of a batch, each moved a little: another way each epoch. */
static cadre_status moved(const cadre_tensor *images, uint64_t epoch, cadre_tensor **ret_images)
{
    CADRE_TRY(cadre_tensor_copy(images, ret_images));
    const float *from = cadre_tensor_const_data(images);
    float *to = cadre_tensor_data(*ret_images);
    for (int64_t row = 0; row < cadre_tensor_rows(images); row++) {
        digits_move(from + row * PIXELS, epoch, to + row * PIXELS);
    }
    return CADRE_OK;
}

/* One replica's part of a step. inputs: images [rows, PIXELS], labels [rows]; rows may be 0. */
static cadre_status train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    if (on_gpu(replica)) {
        return gpu_train_step(replica, inputs, outputs, user);
    }
    struct model *model = user;
    struct gradients gradients;
    cadre_tensor *images;
    CADRE_TRY(moved(inputs[0], model->epoch, &images));
    cadre_status status = gradients_create(model, &gradients);
    if (status != CADRE_OK) {
        cadre_tensor_release(images);
        return status;
    }
    float scale = 1.0f / (float)cadre_replica_global_rows(replica);
    struct score score = model_run(model, replica, cadre_tensor_const_data(images),
        cadre_tensor_const_data(inputs[1]), cadre_tensor_rows(images), scale, &gradients);
    cadre_tensor_release(images);
    status = cadre_optimizer_apply(
        replica, model->optimizer, gradients.tensors, model->weights, PARAMETERS, NULL);
    gradients_release(&gradients);
    CADRE_TRY(status);
    return cadre_tensor_from_f32(score.loss * scale, &outputs[0]);
}

static cadre_status test_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    if (on_gpu(replica)) {
        return gpu_test_step(replica, inputs, outputs, user);
    }
    struct score score = model_run(user, replica, cadre_tensor_const_data(inputs[0]),
        cadre_tensor_const_data(inputs[1]), cadre_tensor_rows(inputs[0]), 1, NULL);
    CADRE_TRY(cadre_tensor_from_i64(score.right, &outputs[0]));
    return cadre_tensor_from_i64(cadre_tensor_rows(inputs[0]), &outputs[1]);
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

/* How the test goes: registered, so that a task that joins in the middle of one, and a job that
 * goes on from a checkpoint, know what was counted before they came. */
struct tally {
    double right;
    double rows;
    double accuracy; /* of the last whole test */
};

/* The share of the test images that are read right, after `epoch` epochs of training. */
static void test(cadre_strategy *strategy, cadre_distributed_dataset *data, uint64_t epoch,
    struct model *model, struct tally *tally)
{
    cadre_per_replica *batch;
    cadre_per_replica *counts[2];
    if (!cadre_next_epoch(data, epoch, NULL)) {
        return; /* done before, or an error: cadre_finish says it */
    }
    if (cadre_step(data) == 0) {
        tally->right = 0;
        tally->rows = 0;
    }
    while (cadre_next(data, &batch) == CADRE_OK) {
        CADRE_CHECK(cadre_run(strategy, test_step, model, batch, 2, counts));
        double right = total(strategy, counts[0]);
        double rows = total(strategy, counts[1]);
        tally->right += right;
        tally->rows += rows;
    }
    CADRE_CHECK(cadre_distributed_status(data));
    tally->accuracy = tally->rows > 0 ? tally->right / tally->rows : 0;
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    struct settings settings;
    if (!settings_read(argc, argv, &settings)) {
        return 2;
    }
#ifdef DIGITS_CUDA
    CADRE_CHECK(cadre_enable_gpus()); /* where there are any: it has steps for them */
#endif
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_show_progress(strategy, settings.progress);
    struct tally tally = {0};
    CADRE_CHECK(cadre_state_register(strategy, "tally", &tally, sizeof tally));

    cadre_dataset *images = digits_open(argv[0], settings.data, "digits-train.bin");
    images = cadre_dataset_shuffle(images, CADRE_SHUFFLE_ALL, settings.seed, NULL);
    images = cadre_dataset_batch(images, settings.batch, false);
    struct model model = {0};
    CADRE_CHECK(model_create(strategy, settings.seed, (double)settings.learning_rate,
        settings.epochs * (uint64_t)cadre_dataset_cardinality(images), &model));
    cadre_dataset *unseen = digits_open(argv[0], settings.data, "digits-test.bin");
    unseen = cadre_dataset_batch(unseen, 128, false);
    cadre_distributed_dataset *training;
    cadre_distributed_dataset *testing;
    CADRE_CHECK(cadre_distribute_dataset(strategy, images,
        &(cadre_input_options){.name = "train", .auto_shard = CADRE_SHARD_DATA}, &training));
    CADRE_CHECK(cadre_distribute_dataset(strategy, unseen,
        &(cadre_input_options){.name = "test", .auto_shard = CADRE_SHARD_DATA}, &testing));

    uint64_t epoch;
    while (cadre_next_epoch(training, settings.epochs, &epoch)) {
        cadre_per_replica *batch;
        cadre_per_replica *loss;
        model.epoch = epoch; /* which moves the images */
        while (cadre_next(training, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, train_step, &model, batch, 1, &loss));
            CADRE_CHECK(cadre_report(strategy, "loss", total(strategy, loss)));
        }
        test(strategy, testing, epoch + 1, &model, &tally);
        CADRE_CHECK(cadre_report(strategy, "accuracy", tally.accuracy));
    }
    bool chief = cadre_strategy_is_chief(strategy);
    cadre_optimizer_release(model.optimizer);
    int status = cadre_finish(strategy);
    if (status == 0 && chief) {
        printf("test accuracy: %.1f%%\n", tally.accuracy * 100);
    }
    return status;
}
