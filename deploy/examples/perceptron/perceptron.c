/* SPDX-License-Identifier: Apache-2.0
 * perceptron, a plain program: each task adds up the gradients of its share of every batch, and
 * cadre_plain_all_reduce those of all.
 *
 *     cadre run -n 2 ./perceptron [EPOCHS [COPY-OF-THE-STATE]] */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cadre/cadre.h>

#include "model.h"

#define BATCH      64
#define SAVE_EVERY 10 /* epochs */

/* All that the training is, at the end of an epoch. */
struct training {
    uint64_t epoch;
    float weights[WEIGHTS];
    float velocity[WEIGHTS];
};

static struct training training;

/* For people: whole or not at all. */
static void write_copy(const char *path)
{
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.new", path);
    FILE *file = fopen(beside, "wb");
    bool written = file != NULL && fwrite(&training, sizeof training, 1, file) == 1;
    if (!written || fclose(file) != 0 || rename(beside, path) != 0) {
        perror(path);
        exit(1);
    }
}

/* The job keeps it, and has it for all tasks when they are started again; `path` is a copy. */
static void save(const char *path)
{
    bool chief = cadre_rank() == 0;
    CADRE_CHECK(
        cadre_plain_save("training", chief ? &training : NULL, chief ? sizeof training : 0));
    if (chief && path != NULL) {
        write_copy(path);
    }
}

static void go_on(void)
{
    void *bytes;
    size_t size;
    cadre_status status = cadre_plain_load("training", 0, &bytes, &size);
    if (status == CADRE_NOT_FOUND) {
        return; /* nothing was saved, and the training begins */
    }
    CADRE_CHECK(status); /* a state that cannot be read is no beginning */
    if (size != sizeof training) {
        fprintf(stderr, "perceptron: the state is of another model\n");
        exit(1);
    }
    memcpy(&training, bytes, size);
    free(bytes);
}

/* Of the images first to first + rows - 1 of `order`, over all processes. */
static void sum_up(const struct images *images, const uint32_t *order, size_t first, size_t rows,
    int rank, int size, struct sums *sums)
{
    memset(sums, 0, sizeof *sums);
    for (size_t i = (size_t)rank; i < rows; i += (size_t)size) {
        model_add(
            training.weights, images->records + (size_t)order[first + i] * RECORD_BYTES, sums);
    }
    CADRE_CHECK(cadre_plain_all_reduce(NULL, sums, SUMS, CADRE_F32, CADRE_SUM));
}

int main(int argc, char **argv)
{
    CADRE_CHECK(cadre_plain_init(&argc, &argv));
    int rank = (int)cadre_rank();
    int size = (int)cadre_world_size();
    uint64_t epochs = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
    const char *copy = argc > 2 ? argv[2] : NULL;
    struct images train = images_read(argv[0], "digits-train.bin");
    struct images test = images_read(argv[0], "digits-test.bin");
    size_t most = train.count > test.count ? train.count : test.count;
    uint32_t *order = calloc(most, sizeof *order);
    struct sums *sums = cadre_plain_alloc(sizeof *sums);
    if (order == NULL || sums == NULL) {
        return 1;
    }
    model_start(training.weights);
    go_on();
    while (training.epoch < epochs) {
        float loss = 0;
        images_order(train.count, training.epoch, order);
        for (size_t first = 0; first < train.count; first += BATCH) {
            size_t rows = train.count - first < BATCH ? train.count - first : BATCH;
            sum_up(&train, order, first, rows, rank, size, sums);
            model_update(training.weights, training.velocity, sums, (float)rows);
            loss += sums->loss;
        }
        training.epoch++;
        if (rank == 0) {
            printf("epoch %llu: loss %.4f\n", (unsigned long long)training.epoch,
                loss / (float)train.count);
            CADRE_CHECK(cadre_plain_report("loss", loss / (float)train.count));
            CADRE_CHECK(cadre_plain_progress(training.epoch, epochs));
        }
        if (training.epoch % SAVE_EVERY == 0 || training.epoch == epochs) {
            save(copy);
        }
    }
    images_order(test.count, 0, order);
    sum_up(&test, order, 0, test.count, rank, size, sums);
    if (rank == 0) {
        printf("test accuracy: %.1f%%\n", 100 * sums->right / (float)test.count);
    }
    return cadre_plain_finish();
}
