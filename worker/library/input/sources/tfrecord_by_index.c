/* SPDX-License-Identifier: Apache-2.0
 * TFRecord files by index: the records of all files are numbered in order. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/sources/tfrecord.h"

/* Descriptors one source holds; the files behind the first ones are opened for each long read. */
#define FILES_KEPT_OPEN 64

/* A batch of so many bytes is worth waking other threads for. */
#define SHARED_BYTES ((uint64_t)1 << 20)

/* --- preparing --- */

void tfrecord_close_tables(struct tfrecord_dataset *tfrecord)
{
    for (size_t i = 0; tfrecord->tables != NULL && i < tfrecord->path_count; i++) {
        record_table_close(&tfrecord->tables[i]);
    }
    thread_pool_free(tfrecord->pool);
    tfrecord->pool = NULL;
    free(tfrecord->tables);
    free(tfrecord->ends);
    tfrecord->tables = NULL;
    tfrecord->ends = NULL;
}

static cadre_status open_tables(struct tfrecord_dataset *tfrecord, struct cadre_error *error)
{
    uint64_t end = 0;
    tfrecord->tables = calloc(tfrecord->path_count, sizeof tfrecord->tables[0]);
    tfrecord->ends = calloc(tfrecord->path_count, sizeof tfrecord->ends[0]);
    if (tfrecord->tables == NULL || tfrecord->ends == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "tfrecord: no memory for the positions of records in %zu files", tfrecord->path_count);
    }
    for (size_t i = 0; i < tfrecord->path_count; i++) {
        struct record_table *table = &tfrecord->tables[i];
        input_files_expect((const char *const *)tfrecord->paths, tfrecord->path_count, i);
        CADRE_TRY(record_table_open(table, tfrecord->paths[i], tfrecord->index_folder,
            &tfrecord->options, i < FILES_KEPT_OPEN, error));
        end += table->index.count;
        tfrecord->ends[i] = end;
    }
    CADRE_ASSERT(end <= INT64_MAX); /* a record has 16 bytes of a file */
    if (tfrecord->threads > 1) {
        /* The thread that asks reads too. */
        CADRE_TRY(thread_pool_create(tfrecord->threads - 1, &tfrecord->pool, error));
    }
    atomic_store(&tfrecord->base.cardinality, (int64_t)end);
    return CADRE_OK;
}

cadre_status tfrecord_prepare(cadre_dataset *self, struct cadre_error *error)
{
    struct tfrecord_dataset *tfrecord = (struct tfrecord_dataset *)self;
    if (atomic_load_explicit(&tfrecord->prepared, memory_order_acquire)) {
        return CADRE_OK;
    }
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&tfrecord->lock);
    if (!atomic_load(&tfrecord->prepared)) {
        status = open_tables(tfrecord, error);
        if (status == CADRE_OK) {
            atomic_store_explicit(&tfrecord->prepared, true, memory_order_release);
        } else {
            tfrecord_close_tables(tfrecord);
        }
    }
    pthread_mutex_unlock(&tfrecord->lock);
    return status;
}

/* --- reading --- */

/* The first file that ends behind record `index`. */
static size_t find_file(const struct tfrecord_dataset *tfrecord, uint64_t index)
{
    /* Without a branch that depends on the index, which no processor predicts in a shuffle. */
    size_t first = 0;
    for (size_t left = tfrecord->path_count; left > 1;) {
        size_t half = left / 2;
        first += tfrecord->ends[first + half - 1] <= index ? half : 0;
        left -= half;
    }
    return first;
}

static struct record_run find_record(const struct tfrecord_dataset *tfrecord, uint64_t index)
{
    size_t file = find_file(tfrecord, index);
    uint64_t before = file == 0 ? 0 : tfrecord->ends[file - 1];
    return (struct record_run){
        .table = &tfrecord->tables[file], .first = index - before, .count = 1};
}

/* Turns the places into runs of records that are wanted one after the other and lie so; tells the
 * bytes of all. */
static size_t find_runs(const struct tfrecord_dataset *tfrecord,
    const struct element_position positions[], size_t count, struct record_run runs[],
    uint64_t *ret_bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        struct record_run next = find_record(tfrecord, positions[i].index);
        struct record_run *last = used == 0 ? NULL : &runs[used - 1];
        if (last != NULL && last->table == next.table && last->first + last->count == next.first) {
            last->count++;
            continue;
        }
        record_table_prefetch_offset(next.table, next.first);
        runs[used++] = next;
    }
    *ret_bytes = 0;
    for (size_t i = 0; i < used; i++) {
        record_table_locate(&runs[i]);
        *ret_bytes += runs[i].bytes;
    }
    return used;
}

/* Runs that threads read each to its place; the first failure counts. */
struct shared_reading {
    struct record_run *runs;
    pthread_mutex_t lock;
    size_t failed; /* the first run that failed; none: their number */
    struct cadre_error error;
};

static void read_shared(void *user, size_t i)
{
    struct shared_reading *reading = user;
    struct record_run *run = &reading->runs[i];
    struct cadre_error error = {0};
    if (record_table_read(run, 1, run->text, run->records, &error) != CADRE_OK) {
        pthread_mutex_lock(&reading->lock);
        if (i < reading->failed) {
            reading->failed = i;
            reading->error = error;
        }
        pthread_mutex_unlock(&reading->lock);
    }
}

static cadre_status read_by_threads(struct thread_pool *pool, struct record_run runs[],
    size_t count, char *text, cadre_string *records, struct cadre_error *error)
{
    struct shared_reading reading = {
        .runs = runs, .lock = PTHREAD_MUTEX_INITIALIZER, .failed = count};
    for (size_t i = 0; i < count; i++) {
        runs[i].text = (uint8_t *)text;
        runs[i].records = records;
        text += runs[i].bytes;
        records += runs[i].count;
    }
    thread_pool_run(pool, count, read_shared, &reading);
    pthread_mutex_destroy(&reading.lock);
    if (reading.failed == count) {
        return CADRE_OK;
    }
    *error = reading.error;
    return error->code;
}

/* Reads the runs into a tensor of the given shape, which has as many elements as they records. */
static cadre_status read_runs(struct thread_pool *pool, struct record_run runs[], size_t count,
    uint64_t bytes, uint32_t rank, const int64_t *dims, cadre_tensor **ret_tensor,
    struct cadre_error *error)
{
    char *text = NULL;
    cadre_tensor *tensor = NULL;
    CADRE_TRY(tensor_strings_create(rank, dims, (size_t)bytes, &tensor, &text, error));
    cadre_string *records = cadre_tensor_data(tensor);
    cadre_status status;
    if (pool != NULL && bytes >= SHARED_BYTES) {
        status = read_by_threads(pool, runs, count, text, records, error);
    } else {
        status = record_table_read(runs, count, (uint8_t *)text, records, error);
    }
    if (status != CADRE_OK) {
        cadre_tensor_release(tensor);
        return status;
    }
    *ret_tensor = tensor;
    return CADRE_OK;
}

cadre_status tfrecord_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    struct record_run run = find_record((const struct tfrecord_dataset *)self, position.index);
    record_table_locate(&run);
    CADRE_TRY(id_list_add(ids, position.index, error));
    CADRE_TRY(read_runs(NULL, &run, 1, run.bytes, 0, NULL, &ret_element->tensors[0], error));
    ret_element->count = 1;
    return CADRE_OK;
}

cadre_status tfrecord_gather(cadre_dataset *self, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const struct tfrecord_dataset *tfrecord = (const struct tfrecord_dataset *)self;
    const int64_t rows = (int64_t)count;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(id_list_add(ids, positions[i].index, error));
    }
    /* In the memory of tensors, which is kept: a batch asks the system for nothing. */
    struct record_run *runs = tensor_memory_get(TENSOR_MEMORY_HOST, count * sizeof runs[0]);
    if (runs == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "tfrecord: no memory for %zu places", count);
    }
    size_t run_count = find_runs(tfrecord, positions, count, runs, &bytes);
    cadre_status status = read_runs(
        tfrecord->pool, runs, run_count, bytes, 1, &rows, &ret_element->tensors[0], error);
    tensor_memory_give(TENSOR_MEMORY_HOST, runs, count * sizeof runs[0]);
    ret_element->count = status == CADRE_OK ? 1 : 0;
    return status;
}
