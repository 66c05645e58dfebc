/* SPDX-License-Identifier: Apache-2.0
 * Reads TFRecord files from the page cache by Cadre, or objects, by their URLs:
 *     input_read reader FILES...    the reader layer: views of records, both checksums checked
 *     input_read batch FILES...     tfrecord, batches of 64, in order
 *     input_read shuffle FILES...   tfrecord, a shuffle buffer of 10,000, batches of 64
 *     input_read random FILES...    tfrecord, a shuffle of all, batches of 64
 *     input_read threads FILES...   as random, by a thread for each processor
 *     input_read unchecked FILES... the same without looking at checksums, as PyTorch does
 *     input_read worker W FILES...  as random, under CADRE_SHARD_DATA, the first of W workers
 *     input_read restart FILES...   as random; from nothing to a batch in the middle of an epoch
 * Reads once to warm up (and to make the index), then PASSES times; the median pass counts. Prints
 * anonymous memory at its peak and the median of CPU time besides, and for `worker` the bytes that
 * its reads asked for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cadre/sources.h"
#include "cadre/transformations.h"
#include "worker/library/input/distribution/distributed_input.h"
#include "worker/library/input/files/record_reader.h"

#define PASSES     7
#define BATCH      64
#define SLOTS      10000
#define AT_ONCE    64
#define FRAME      16
#define RECORD_MAX ((uint64_t)1 << 30)

struct found {
    uint64_t records;
    uint64_t bytes;
    uint64_t sum;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void count(struct found *found, const cadre_string *records, size_t number)
{
    for (size_t i = 0; i < number; i++) {
        uint64_t id;
        memcpy(&id, records[i].bytes, 8);
        found->sum += id;
        found->bytes += records[i].size + FRAME;
    }
    found->records += number;
}

static void by_reader(char **paths, int path_count, uint64_t pass, struct found *found)
{
    const struct record_options options = {
        .rules = {.record_bytes = RECORD_MAX}, .buffer_bytes = (size_t)1 << 20};
    (void)pass;
    for (int i = 0; i < path_count; i++) {
        struct record_reader *reader = NULL;
        struct cadre_error error = {0};
        const cadre_string *records = NULL;
        size_t number = 0;
        if (record_reader_open(paths[i], &options, &reader, &error) != CADRE_OK) {
            die(paths[i], error.text);
        }
        do {
            if (record_reader_next(reader, AT_ONCE, &records, &number, &error) != CADRE_OK) {
                die(paths[i], error.text);
            }
            count(found, records, number);
        } while (number > 0);
        record_reader_close(reader);
    }
}

static cadre_dataset *dataset;

static void by_dataset(char **paths, int path_count, uint64_t pass, struct found *found)
{
    cadre_iterator *iterator = NULL;
    cadre_element element;
    (void)paths;
    (void)path_count;
    if (cadre_dataset_iterate(dataset, pass, &iterator) != CADRE_OK) {
        die("iterate", cadre_error_message());
    }
    cadre_status status;
    while ((status = cadre_iterator_next(iterator, &element)) == CADRE_OK) {
        count(found, cadre_tensor_const_data(element.tensors[0]),
            (size_t)cadre_tensor_count(element.tensors[0]));
        cadre_element_release(&element);
    }
    if (status != CADRE_OUT_OF_RANGE) {
        die("next", cadre_error_message());
    }
    cadre_iterator_release(iterator);
}

static uint32_t workers;

static void by_worker(char **paths, int path_count, uint64_t pass, struct found *found)
{
    const struct distributed_layout layout = {
        .workers = workers, .replicas = 1, .policy = CADRE_SHARD_DATA, .name = "bench"};
    struct distributed_input *input = NULL;
    struct cadre_error error = {0};
    (void)paths;
    (void)path_count;
    if (distributed_input_open(dataset, &layout, &input, &error) != CADRE_OK) {
        die("open", error.text);
    }
    struct distributed_batch batch;
    cadre_status status;
    for (uint64_t step = 0;
         (status = distributed_input_read(input, pass, step, &batch, &error)) == CADRE_OK; step++) {
        const cadre_tensor *rows = batch.elements[0].tensors[0];
        count(found, cadre_tensor_const_data(rows), (size_t)cadre_tensor_count(rows));
        distributed_batch_clear(&batch);
    }
    if (status != CADRE_OUT_OF_RANGE) {
        die("read", error.text);
    }
    distributed_input_close(input);
}

/* From building the dataset, with its index at hand, to the step at three quarters of epoch 5. */
static void restart(char **paths, int path_count, uint64_t pass, struct found *found)
{
    const struct distributed_layout layout = {
        .workers = 2, .replicas = 1, .policy = CADRE_SHARD_DATA, .name = "bench"};
    struct distributed_input *input = NULL;
    struct cadre_error error = {0};
    struct distributed_batch batch;
    cadre_dataset *data =
        cadre_dataset_tfrecord((const char *const *)paths, (size_t)path_count, NULL);
    data =
        cadre_dataset_batch(cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, 1, NULL), BATCH, false);
    (void)pass;
    if (distributed_input_open(data, &layout, &input, &error) != CADRE_OK) {
        die("open", error.text);
    }
    uint64_t step = (uint64_t)distributed_input_steps(input, 5) * 3 / 4;
    if (distributed_input_read(input, 5, step, &batch, &error) != CADRE_OK) {
        die("read", error.text);
    }
    const cadre_tensor *rows = batch.elements[0].tensors[0];
    count(found, cadre_tensor_const_data(rows), (size_t)cadre_tensor_count(rows));
    found->sum = found->records * (found->records - 1) / 2;
    distributed_batch_clear(&batch);
    distributed_input_close(input);
    cadre_dataset_release(data);
}

/* A number behind `name` in a file of /proc. */
static uint64_t number_of(const char *path, const char *name)
{
    char line[256];
    uint64_t value = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = strtoull(line + strlen(name), NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return value;
}

static double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef void read_fn(char **paths, int path_count, uint64_t pass, struct found *found);

static void measure(read_fn *read, char **paths, int path_count)
{
    double seconds[PASSES];
    double cpu[PASSES];
    struct found found = {0};
    uint64_t asked = 0;
    uint64_t anonymous = 0;
    for (int pass = -1; pass < PASSES; pass++) {
        found = (struct found){0};
        uint64_t before = number_of("/proc/self/io", "rchar:");
        double begun = now(CLOCK_MONOTONIC);
        double cpu_begun = now(CLOCK_PROCESS_CPUTIME_ID);
        read(paths, path_count, (uint64_t)(pass + 1), &found);
        asked = number_of("/proc/self/io", "rchar:") - before;
        uint64_t held = number_of("/proc/self/status", "RssAnon:");
        anonymous = held > anonymous ? held : anonymous;
        if (pass >= 0) {
            seconds[pass] = now(CLOCK_MONOTONIC) - begun;
            cpu[pass] = now(CLOCK_PROCESS_CPUTIME_ID) - cpu_begun;
        }
    }
    if (workers <= 1 && found.sum != found.records * (found.records - 1) / 2) {
        die("records", "some are lost or doubled");
    }
    qsort(seconds, PASSES, sizeof seconds[0], compare);
    qsort(cpu, PASSES, sizeof cpu[0], compare);
    double median = seconds[PASSES / 2];
    printf("seconds=%.6f\ncpu_seconds=%.6f\n", median, cpu[PASSES / 2]);
    printf("records_s=%.0f\nbytes_s=%.0f\nrecords=%" PRIu64 "\nasked_bytes=%" PRIu64
           "\nanonymous_kb=%" PRIu64 "\n",
        (double)found.records / median, (double)found.bytes / median, found.records, asked,
        anonymous);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr,
            "usage: input_read "
            "reader|batch|shuffle|random|threads|unchecked|restart|worker W FILES...\n");
        return 2;
    }
    const char *mode = argv[1];
    bool is_worker = strcmp(mode, "worker") == 0;
    workers = is_worker ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    char **paths = argv + (is_worker ? 3 : 2);
    int path_count = (int)(argv + argc - paths);
    if (strcmp(mode, "reader") == 0) {
        measure(by_reader, paths, path_count);
        return 0;
    }
    if (strcmp(mode, "restart") == 0) {
        measure(restart, paths, path_count);
        return 0;
    }
    const cadre_tfrecord_options options = {.skip_checksums = strcmp(mode, "unchecked") == 0,
        .parallel = strcmp(mode, "threads") == 0 ? CADRE_PARALLEL_AUTO : 0};
    dataset = cadre_dataset_tfrecord((const char *const *)paths, (size_t)path_count, &options);
    if (strcmp(mode, "shuffle") == 0) {
        dataset = cadre_dataset_shuffle(dataset, SLOTS, 1, NULL);
    } else if (strcmp(mode, "batch") != 0) {
        dataset = cadre_dataset_shuffle(dataset, CADRE_SHUFFLE_ALL, 1, NULL);
    }
    dataset = cadre_dataset_batch(dataset, BATCH, false);
    measure(is_worker ? by_worker : by_dataset, paths, path_count);
    cadre_dataset_release(dataset);
    return 0;
}
