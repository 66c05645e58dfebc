/* SPDX-License-Identifier: Apache-2.0
 * Reads files or objects once, from the first byte to the last, by what Cadre has for it:
 *     object_read stream PATHS...     as a dataset's source in order does, 1 MiB at a time
 *     object_read ahead PATHS...      as a checkpoint is read, 4 MiB at a time
 *     object_read records PATHS...    tfrecord, batches of 64, in order
 *     object_read shuffled PATHS...   tfrecord, a shuffle of all, batches of 64
 *     object_read list FOLDER         all keys beneath it
 * Records are read in two epochs. Prints their seconds, what was read, and how much more memory
 * the process had at its peak than at its beginning. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cadre/sources.h"
#include "cadre/transformations.h"
#include "common/storage/ahead.h"
#include "common/storage/storage.h"
#include "worker/library/input/files/input_file.h"

#define BATCH        64
#define STREAM_BYTES ((size_t)1 << 20)
#define AHEAD_BYTES  ((size_t)4 << 20)
#define EPOCHS       2

static uint64_t count; /* bytes, records or keys */
static uint64_t sum;   /* of the records' numbers */

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* KiB of /proc/self/status. */
static uint64_t memory(const char *name)
{
    char line[256];
    uint64_t found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            found = strtoull(line + strlen(name), NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* --- bytes --- */

static void stream(const char *path)
{
    static char piece[STREAM_BYTES];
    struct cadre_error error = {0};
    struct input_file file;
    struct object_ahead ahead = {.object = NULL};
    if (input_file_open(&file, path, true, &error) != CADRE_OK) {
        die(path, error.text);
    }
    for (int64_t at = 0; at < file.bytes;) {
        int64_t left = file.bytes - at;
        size_t bytes = left < (int64_t)sizeof piece ? (size_t)left : sizeof piece;
        if (input_file_read_on(&file, &ahead, at, piece, bytes, &error) != CADRE_OK) {
            die(path, error.text);
        }
        at += (int64_t)bytes;
        count += bytes;
    }
    object_ahead_end(&ahead);
    input_file_close(&file);
}

static void read_ahead(const char *path)
{
    static char piece[AHEAD_BYTES];
    struct cadre_error error = {0};
    struct storage_object *object = NULL;
    struct storage_ahead *ahead = NULL;
    if (storage_open(NULL, path, &object, &error) != CADRE_OK ||
        storage_ahead_open(object, &ahead, &error) != CADRE_OK) {
        die(path, error.text);
    }
    uint64_t size = storage_info_of(object)->bytes;
    for (uint64_t at = 0; at < size;) {
        size_t bytes = size - at < sizeof piece ? (size_t)(size - at) : sizeof piece;
        if (storage_ahead_read(ahead, at, piece, bytes, &error) != CADRE_OK) {
            die(path, error.text);
        }
        at += bytes;
        count += bytes;
    }
    storage_ahead_close(ahead);
    storage_close(object);
}

/* --- records --- */

static void read_records(cadre_dataset *dataset, uint64_t pass)
{
    cadre_iterator *iterator = NULL;
    cadre_element element;
    if (cadre_dataset_iterate(dataset, pass, &iterator) != CADRE_OK) {
        die("iterate", cadre_error_message());
    }
    cadre_status status;
    while ((status = cadre_iterator_next(iterator, &element)) == CADRE_OK) {
        const cadre_string *records = cadre_tensor_const_data(element.tensors[0]);
        size_t rows = (size_t)cadre_tensor_count(element.tensors[0]);
        for (size_t i = 0; i < rows; i++) {
            uint64_t number;
            memcpy(&number, records[i].bytes, sizeof number);
            sum += number;
        }
        count += rows;
        cadre_element_release(&element);
    }
    if (status != CADRE_OUT_OF_RANGE) {
        die("next", cadre_error_message());
    }
    cadre_iterator_release(iterator);
}

static void records(char **paths, int path_count, bool shuffled)
{
    const cadre_tfrecord_options options = {.skip_checksums = false};
    cadre_dataset *dataset =
        cadre_dataset_tfrecord((const char *const *)paths, (size_t)path_count, &options);
    if (shuffled) {
        dataset = cadre_dataset_shuffle(dataset, CADRE_SHUFFLE_ALL, 1, NULL);
    }
    dataset = cadre_dataset_batch(dataset, BATCH, false);
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        double begun = now();
        count = 0;
        sum = 0;
        read_records(dataset, epoch);
        if (count == 0 || sum != count * (count - 1) / 2) {
            die("records", "some are lost or doubled");
        }
        double seconds = now() - begun;
        printf("epoch_%" PRIu64 "_s=%.6f\n", epoch + 1, seconds);
    }
    cadre_dataset_release(dataset);
}

/* --- keys --- */

static bool count_key(void *user, const struct storage_entry *entry)
{
    (void)user;
    (void)entry;
    count++;
    return true;
}

static void list(const char *folder)
{
    struct cadre_error error = {0};
    if (storage_list(NULL, folder, NULL, true, count_key, NULL, &error) != CADRE_OK) {
        die(folder, error.text);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: object_read stream|ahead|records|shuffled|list PATHS...\n");
        return 2;
    }
    const char *mode = argv[1];
    char **paths = argv + 2;
    uint64_t before = memory("VmRSS:");
    double begun = now();
    if (strcmp(mode, "records") == 0 || strcmp(mode, "shuffled") == 0) {
        records(paths, argc - 2, strcmp(mode, "shuffled") == 0);
    } else if (strcmp(mode, "list") == 0) {
        list(paths[0]);
    } else {
        for (int i = 0; i < argc - 2; i++) {
            if (strcmp(mode, "stream") == 0) {
                stream(paths[i]);
            } else {
                read_ahead(paths[i]);
            }
        }
    }
    double seconds = now() - begun;
    uint64_t peak = memory("VmHWM:");
    printf("seconds=%.6f\ncount=%" PRIu64 "\nmore_kb=%" PRIu64 "\n", seconds, count,
        peak > before ? peak - before : 0);
    return 0;
}
