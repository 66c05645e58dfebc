/* SPDX-License-Identifier: Apache-2.0
 * perceptron, an MPI program: each process adds up the gradients of its share of every batch, and
 * MPI_Allreduce those of all.
 *
 *     mpirun -n 2 perceptron-mpi [EPOCHS [CHECKPOINT]] */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "model.h"

#define BATCH 64

/* All that the training is, at the end of an epoch. */
struct training {
    uint64_t epoch;
    float weights[WEIGHTS];
    float velocity[WEIGHTS];
};

static struct training training;

/* Whole or not at all, whenever the process is ended. */
static void save(const char *path)
{
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.new", path);
    FILE *file = fopen(beside, "wb");
    bool written = file != NULL && fwrite(&training, sizeof training, 1, file) == 1;
    if (!written || fclose(file) != 0 || rename(beside, path) != 0) {
        fprintf(stderr, "perceptron: %s cannot be written\n", path);
        exit(1);
    }
}

static void restore(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL && errno == ENOENT) {
        return; /* there is none yet */
    }
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    if (fread(&training, sizeof training, 1, file) != 1) {
        fprintf(stderr, "perceptron: %s is no checkpoint of this program\n", path);
        exit(1);
    }
    fclose(file);
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
    MPI_Allreduce(MPI_IN_PLACE, sums, SUMS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank;
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t epochs = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
    const char *checkpoint = argc > 2 ? argv[2] : NULL;
    struct images train = images_read(argv[0], "digits-train.bin");
    struct images test = images_read(argv[0], "digits-test.bin");
    size_t most = train.count > test.count ? train.count : test.count;
    uint32_t *order = calloc(most, sizeof *order);
    struct sums *sums = malloc(sizeof *sums);
    if (order == NULL || sums == NULL) {
        return 1;
    }
    model_start(training.weights);
    if (rank == 0 && checkpoint != NULL) {
        restore(checkpoint);
    }
    MPI_Bcast(&training, sizeof training, MPI_BYTE, 0, MPI_COMM_WORLD);
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
            fflush(stdout);
            if (checkpoint != NULL) {
                save(checkpoint);
            }
        }
    }
    images_order(test.count, 0, order);
    sum_up(&test, order, 0, test.count, rank, size, sums);
    if (rank == 0) {
        printf("test accuracy: %.1f%%\n", 100 * sums->right / (float)test.count);
    }
    MPI_Finalize();
    return 0;
}
