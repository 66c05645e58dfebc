/* SPDX-License-Identifier: Apache-2.0
 * Trains a network of dense layers with OpenBLAS, on as many replicas as it is given:
 *
 *     ./mlp                                        by hand
 *     cadre run -n 2 ./mlp -- --model big          two tasks on this machine
 *     cadre submit --workers 2 --file ... ./mlp    on a cluster
 *
 * Each replica computes with one thread: more replicas, not more threads, use more CPUs. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data.h"
#include "exchange.h"
#include "network.h"
#include "settings.h"

struct training {
    struct network network;
    size_t bucket_bytes;
    struct workspace *spaces; /* one for each local replica, made in its first step */
};

static cadre_status space_of(
    struct training *training, const cadre_replica *replica, struct workspace **ret_space)
{
    *ret_space = &training->spaces[cadre_replica_local_id(replica)];
    return (*ret_space)->loss != NULL ? CADRE_OK : workspace_create(&training->network, *ret_space);
}

/* When the step cannot fail any more: no copy of the old weights is made. */
static void update(cadre_replica *replica, void *user)
{
    struct training *training = user;
    network_update(&training->network, replica, &training->spaces[cadre_replica_local_id(replica)]);
}

/* inputs: images [rows, pixels], labels [rows]; rows may be 0. outputs: the loss of the step. */
static cadre_status train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct training *training = user;
    struct network *network = &training->network;
    struct workspace *space;
    struct exchange exchange;
    CADRE_TRY(space_of(training, replica, &space));
    network_forward(network, replica, inputs[0], space);
    network_loss(network, replica, inputs[1], space);
    exchange_begin(&exchange, replica, training->bucket_bytes);
    exchange_add(&exchange, space->loss);
    for (int layer = LAYERS - 1; layer > 0; layer--) {
        network_slopes(network, layer, space);
        exchange_add(&exchange, space->slopes[layer][WEIGHTS]);
        exchange_add(&exchange, space->slopes[layer][BIASES]);
        CADRE_TRY(exchange_go(&exchange));
        network_pass_back(network, replica, layer, space);
    }
    network_slopes(network, 0, space);
    exchange_add(&exchange, space->slopes[0][WEIGHTS]);
    exchange_add(&exchange, space->slopes[0][BIASES]);
    CADRE_TRY(exchange_end(&exchange));
    CADRE_TRY(cadre_on_apply(replica, update, training));
    return cadre_tensor_copy(space->loss, &outputs[0]);
}

/* outputs: how many rows are read right, how many there are. */
static cadre_status test_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct training *training = user;
    struct workspace *space;
    CADRE_TRY(space_of(training, replica, &space));
    network_forward(&training->network, replica, inputs[0], space);
    CADRE_TRY(
        cadre_tensor_from_i64(network_right(&training->network, inputs[1], space), &outputs[0]));
    return cadre_tensor_from_i64(space->rows, &outputs[1]);
}

/* What is counted between steps. Registered: a task that joins, and a job that goes on from a
 * checkpoint, get it. */
struct tally {
    double loss; /* sum of the epoch's steps */
    int64_t steps;
    int64_t right;
    int64_t rows;
};

static int64_t total(cadre_strategy *strategy, const cadre_per_replica *value)
{
    CADRE_RELEASE_AT_EXIT(tensor) sum = NULL;
    CADRE_CHECK(cadre_reduce(strategy, CADRE_SUM, value, CADRE_AXIS_NONE, &sum));
    return *(const int64_t *)cadre_tensor_const_data(sum);
}

static void test(cadre_strategy *strategy, cadre_distributed_dataset *data,
    struct training *training, struct tally *tally)
{
    cadre_per_replica *batch;
    cadre_per_replica *counts[2];
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, test_step, training, batch, 2, counts));
            int64_t right = total(strategy, counts[0]);
            int64_t rows = total(strategy, counts[1]);
            tally->right += right;
            tally->rows += rows;
        }
    }
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Trains all epochs; returns the steps per second of those after the first, or 0. */
static double train(cadre_strategy *strategy, cadre_distributed_dataset *data, uint64_t epochs,
    struct training *training, struct tally *tally)
{
    double began_s = 0;
    uint64_t steps = 0;
    uint64_t epoch;
    while (cadre_next_epoch(data, epochs, &epoch)) {
        cadre_per_replica *batch;
        cadre_per_replica *loss;
        if (cadre_step(data) == 0) {
            tally->loss = 0;
            tally->steps = 0;
        }
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, train_step, training, batch, 1, &loss));
            cadre_tensor *const *losses = cadre_local_results(loss, 0); /* all are equal */
            tally->loss += (double)*(const float *)cadre_tensor_const_data(losses[0]);
            tally->steps++;
            steps += began_s > 0;
        }
        CADRE_CHECK(cadre_distributed_status(data));
        const double mean = tally->loss / (double)tally->steps;
        CADRE_CHECK(cadre_report(strategy, "loss", mean));
        if (cadre_strategy_is_chief(strategy)) {
            printf("epoch %llu loss %.6f\n", (unsigned long long)epoch, mean);
            fflush(stdout); /* also into a pipe, as it happens */
        }
        began_s = began_s > 0 ? began_s : now_s();
    }
    return steps > 0 ? (double)steps / (now_s() - began_s) : 0;
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_init(&argc, &argv));
    struct settings settings;
    if (!settings_read(argc, argv, &settings)) {
        return 2;
    }
    openblas_set_num_threads(1);
    const bool digits = strcmp(settings.preset->name, "digits") == 0;
    cadre_strategy *strategy;
    CADRE_CHECK(cadre_strategy_default(&strategy));
    cadre_show_progress(strategy, false);
    const uint32_t replicas = cadre_strategy_local_replicas(strategy);
    struct training training = {
        .bucket_bytes = settings.bucket_bytes, .spaces = calloc(replicas, sizeof *training.spaces)};
    struct tally tally = {0};
    if (training.spaces == NULL) {
        fprintf(stderr, "mlp: no memory\n");
        return 1;
    }
    CADRE_CHECK(network_create(strategy, settings.preset, settings.seed, &training.network));
    training.network.learning_rate = settings.learning_rate;
    training.network.momentum = settings.momentum;
    CADRE_CHECK(cadre_state_register(strategy, "tally", &tally, sizeof tally));

    cadre_dataset *images = digits ? data_digits(argv[0], settings.data, "digits-train.bin")
                                   : data_synthetic(settings.preset);
    images = cadre_dataset_shuffle(images, CADRE_SHUFFLE_ALL, settings.seed, NULL);
    images = cadre_dataset_batch(images, settings.preset->batch, false);
    cadre_dataset *unseen = digits ? data_digits(argv[0], settings.data, "digits-test.bin")
                                   : data_synthetic(settings.preset);
    unseen = cadre_dataset_batch(unseen, settings.preset->batch, false);
    cadre_distributed_dataset *training_data;
    cadre_distributed_dataset *test_data;
    CADRE_CHECK(cadre_distribute_dataset(strategy, images,
        &(cadre_input_options){.name = "train", .auto_shard = CADRE_SHARD_DATA}, &training_data));
    CADRE_CHECK(cadre_distribute_dataset(strategy, unseen,
        &(cadre_input_options){.name = "test", .auto_shard = CADRE_SHARD_DATA}, &test_data));

    const double rate = train(strategy, training_data, settings.epochs, &training, &tally);
    test(strategy, test_data, &training, &tally);
    if (cadre_strategy_is_chief(strategy) && tally.rows > 0) {
        printf("test accuracy: %.1f%%\n", 100 * (double)tally.right / (double)tally.rows);
        printf("steps per second after the first epoch: %.2f\n", rate);
    }
    for (uint32_t i = 0; i < replicas; i++) {
        workspace_free(&training.spaces[i]);
    }
    free(training.spaces);
    return cadre_finish(strategy);
}
