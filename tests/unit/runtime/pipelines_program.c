/* SPDX-License-Identifier: Apache-2.0 */
#include "pipelines_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "tests/lib/test.h"
#include "training.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/strategy/strategy.h"

static cadre_strategy *strategy;
static cadre_variable *seen;  /* how often each record was consumed */
static cadre_variable *order; /* of all steps, mixed */

void pipelines_write_files(const char *folder)
{
    static const int64_t ends[PIPELINES_FILES] = {31, 32, 70, 97, PIPELINES_RECORDS};
    int64_t record = 0;
    for (int i = 0; i < PIPELINES_FILES; i++) {
        char path[TEST_PATH_BYTES];
        snprintf(path, sizeof path, "%s/part-%d.bin", folder, i);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        for (; record < ends[i]; record++) {
            assert_int_equal(fwrite(&record, sizeof record, 1, file), 1);
        }
        assert_int_equal(fclose(file), 0);
    }
}

/* --- pipelines --- */

static cadre_status open_file(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    (void)user;
    const cadre_string *name = cadre_tensor_const_data(in->tensors[0]);
    char path[TEST_PATH_BYTES];
    snprintf(path, sizeof path, "%.*s", (int)name->size, name->bytes);
    const char *const paths[1] = {path};
    *ret_data = cadre_dataset_fixed_length(paths, 1, sizeof(int64_t), NULL);
    return cadre_dataset_status(*ret_data);
}

static cadre_status decode(const cadre_element *in, cadre_element *ret_out, void *user)
{
    int64_t number = 0;
    (void)user;
    memcpy(&number, cadre_tensor_const_data(in->tensors[0]), sizeof number);
    if (fault_due("BROKEN", (uint64_t)number)) {
        return cadre_fail(CADRE_DATA_LOSS, "record %lld cannot be read", (long long)number);
    }
    ret_out->count = 1;
    return cadre_tensor_from_i64(number, &ret_out->tensors[0]);
}

static cadre_dataset *names(void)
{
    char pattern[TEST_PATH_BYTES];
    snprintf(pattern, sizeof pattern, "%s/part-*.bin", getenv("FILES"));
    const char *const patterns[1] = {pattern};
    return cadre_dataset_list_files(patterns, 1, NULL);
}

/* A source that holds the list of files itself. */
static cadre_dataset *list(void)
{
    char paths[PIPELINES_FILES][TEST_PATH_BYTES];
    const char *pointers[PIPELINES_FILES];
    for (int i = 0; i < PIPELINES_FILES; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/part-%d.bin", getenv("FILES"), i);
        pointers[i] = paths[i];
    }
    return cadre_dataset_fixed_length(pointers, PIPELINES_FILES, sizeof(int64_t), NULL);
}

static int64_t first_filtered = -1; /* where this task began to read */

static cadre_status is_third(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    int64_t number = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    first_filtered = first_filtered < 0 ? number : first_filtered;
    *ret_keep = number % 3 == 0;
    return CADRE_OK;
}

static cadre_dataset *thirds(void)
{
    return cadre_dataset_filter(cadre_dataset_range(0, PIPELINES_RECORDS, 1), is_third, NULL);
}

struct generated {
    int64_t next;
};

static cadre_status generate_begin(uint64_t epoch, void **ret_pass, void *user)
{
    (void)epoch;
    (void)user;
    *ret_pass = calloc(1, sizeof(struct generated));
    return *ret_pass != NULL ? CADRE_OK : CADRE_RESOURCE_EXHAUSTED;
}

static cadre_status generate_next(void *pass, cadre_element *ret_out, void *user)
{
    struct generated *generated = pass;
    (void)user;
    if (generated->next == PIPELINES_RECORDS) {
        return CADRE_OUT_OF_RANGE;
    }
    ret_out->count = 1;
    return cadre_tensor_from_i64(generated->next++, &ret_out->tensors[0]);
}

static void generate_end(void *pass, void *user)
{
    (void)user;
    free(pass);
}

static cadre_dataset *generate(void)
{
    static const cadre_element_spec spec = {.count = 1, .tensors = {{.dtype = CADRE_I64}}};
    return cadre_dataset_generator(&(cadre_generator){
        .output = &spec, .begin = generate_begin, .next = generate_next, .end = generate_end});
}

static cadre_status make_own(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)user;
    int64_t first = 0;
    for (int64_t i = 0; i < context->input_pipeline_id; i++) {
        first += 10 * (i + 1);
    }
    int64_t end = first + 10 * ((int64_t)context->input_pipeline_id + 1);
    *ret_data = cadre_dataset_batch(
        cadre_dataset_range(first, end < PIPELINES_RECORDS ? end : PIPELINES_RECORDS, 1), 4, false);
    return CADRE_OK;
}

static cadre_distributed_dataset *distribute_own(const char *name)
{
    cadre_distributed_dataset *data;
    const cadre_input_options options = {
        .name = name, .steps_per_epoch = fault_due("DIFFERS_OPTION", 0) ? 5 : 0};
    CADRE_CHECK(cadre_distribute_datasets_from_function(strategy, make_own, NULL, &options, &data));
    return data;
}

/* Records below PIPELINES_ZIPPED in one dataset, the others in one with batches twice as large; one
 * of the two is longer, with what is no record. */
#define ZIP_BATCH 2

static cadre_status keep(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)in;
    (void)user;
    *ret_keep = true;
    return CADRE_OK;
}

static cadre_distributed_dataset *distribute_zip(bool in_order)
{
    cadre_distributed_dataset *data;
    const cadre_input_options options = {.name = "train", .auto_shard = CADRE_SHARD_DATA};
    cadre_dataset *first = cadre_dataset_range(0, PIPELINES_ZIPPED, 1);
    cadre_dataset *second = cadre_dataset_range(
        PIPELINES_ZIPPED, in_order ? PIPELINES_RECORDS : 10 * PIPELINES_RECORDS, 1);
    if (in_order) {
        first = cadre_dataset_filter(first, keep, NULL);
        first = cadre_dataset_concatenate(first, cadre_dataset_range(1000, 1100, 1));
    }
    cadre_dataset *const two[] = {cadre_dataset_batch(first, ZIP_BATCH, false),
        cadre_dataset_batch(second, 2 * (int64_t)ZIP_BATCH, false)};
    CADRE_CHECK(cadre_distribute_dataset(strategy, cadre_dataset_zip(two, 2), &options, &data));
    return data;
}

static cadre_distributed_dataset *distribute(const char *kind)
{
    cadre_input_options options = {.name = "train", .auto_shard = CADRE_SHARD_DATA};
    const int64_t size = fault_due("DIFFERS", 0) ? 6 : 8;
    options.steps_per_epoch = fault_due("DIFFERS_OPTION", 0) ? 5 : 0;
    cadre_distributed_dataset *distributed;
    cadre_dataset *data = NULL;
    if (strcmp(kind, "own") == 0) {
        return distribute_own("train");
    }
    if (strncmp(kind, "zip", strlen("zip")) == 0) {
        return distribute_zip(strcmp(kind, "zip_in_order") == 0);
    }
    if (strcmp(kind, "all") == 0) {
        options.auto_shard = CADRE_SHARD_OFF;
        data = thirds();
    } else if (strcmp(kind, "filter") == 0) {
        data = cadre_dataset_shuffle(thirds(), 7, 3, NULL);
    } else if (strcmp(kind, "generated") == 0) {
        options.auto_shard = getenv("AUTO") != NULL ? CADRE_SHARD_AUTO : CADRE_SHARD_DATA;
        data = generate();
    } else {
        options.auto_shard = getenv("AUTO") != NULL      ? CADRE_SHARD_AUTO
                             : getenv("SAMPLES") != NULL ? CADRE_SHARD_DATA
                                                         : CADRE_SHARD_FILE;
        data = strcmp(kind, "list") == 0 ? list()
               : strcmp(kind, "flat") == 0
                   ? cadre_dataset_flat_map(names(), open_file, NULL)
                   : cadre_dataset_interleave(names(), open_file, NULL,
                         &(cadre_interleave_options){.cycle_length = 2, .block_length = 3});
        if (strcmp(kind, "piled") == 0) {
            data = cadre_dataset_take(data, 10 * PIPELINES_RECORDS);
        }
        data = cadre_dataset_map(data, decode, NULL, NULL);
    }
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(data, size, false), &options, &distributed));
    return distributed;
}

/* --- steps --- */

static cadre_status all_of(cadre_replica *replica, cadre_tensor *tensor)
{
    return cadre_all_reduce(replica, CADRE_SUM, &tensor, 1, NULL);
}

static cadre_status check_rows(cadre_replica *replica, int64_t rows)
{
    cadre_tensor *tensor;
    CADRE_TRY(cadre_tensor_from_i64(rows, &tensor));
    cadre_status status = all_of(replica, tensor);
    int64_t all = *(const int64_t *)cadre_tensor_const_data(tensor);
    cadre_tensor_release(tensor);
    int64_t printed = cadre_replica_global_rows(replica);
    if (status == CADRE_OK && all != printed && !(all == 0 && printed == 1)) {
        return cadre_fail(CADRE_INTERNAL, "%lld rows of %lld", (long long)all, (long long)printed);
    }
    return status;
}

static bool is_published(void *data)
{
    (void)data;
    return cadre_checkpoint_latest(strategy) != CADRE_POSITION_NONE;
}

static void die_once_published(uint64_t position)
{
    if (fault_due("DIE_WAITING", position)) {
        test_wait(is_published, NULL, MARK_WAIT_US);
        fault_die("DIE_WAITING", position);
    }
}

static cadre_status count_records(const cadre_tensor *tensor, int64_t counts[PIPELINES_RECORDS])
{
    const int64_t *records = cadre_tensor_const_data(tensor);
    for (int64_t i = 0; i < cadre_tensor_rows(tensor); i++) {
        if (records[i] < 0 || records[i] >= PIPELINES_RECORDS) {
            return cadre_fail(CADRE_INTERNAL, "record %lld", (long long)records[i]);
        }
        counts[records[i]]++;
    }
    return CADRE_OK;
}

static cadre_status count(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    uint64_t position = cadre_strategy_position(strategy);
    int64_t counts[PIPELINES_RECORDS] = {0};
    const int64_t dims[1] = {PIPELINES_RECORDS};
    cadre_tensor *tensor;
    (void)outputs;
    (void)user;
    for (uint32_t input = 0; input < cadre_replica_input_count(replica); input++) {
        CADRE_TRY(count_records(inputs[input], counts));
    }
    fault_die("DIE_BEFORE", position);
    die_once_published(position);
    CADRE_TRY(check_rows(replica, cadre_tensor_rows(inputs[0])));
    fault_die("DIE_BETWEEN", position);
    CADRE_TRY(cadre_tensor_from_data(CADRE_I64, 1, dims, counts, &tensor));
    cadre_status status = all_of(replica, tensor);
    if (fault_due("MISS_APPLY", position) && cadre_replica_local_id(replica) == 0) {
        mark_await("applied", position);
        setenv("MISS_APPLY", "", 1); /* once */
        task_peer_error(strategy->task, strategy->roster.generation, "the test froze it");
    }
    if (status == CADRE_OK) {
        const int64_t *all = cadre_tensor_const_data(tensor);
        int64_t *so_far = cadre_variable_write(replica, seen);
        uint64_t *mixed = cadre_variable_write(replica, order);
        for (int64_t i = 0; i < PIPELINES_RECORDS; i++) {
            so_far[i] += all[i];
            *mixed = *mixed * UINT64_C(1000003) + (uint64_t)all[i];
        }
    }
    cadre_tensor_release(tensor);
    return status;
}

static cadre_status look(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)outputs;
    (void)user;
    return check_rows(replica, cadre_tensor_rows(inputs[0]));
}

/* --- what others have had, and this task not --- */

static const struct mesh_ops *whole_ops;
static unsigned calls_left;
static const char *until; /* another task leaves this mark */

static cadre_status missed_sum(struct mesh *mesh, uint32_t local, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t buffer_count, const struct mesh_note *note,
    struct cadre_error *error)
{
    CADRE_TRY(whole_ops->all_reduce(mesh, local, op, buffers, buffer_count, note, error));
    if (local != 0 || --calls_left > 0) {
        return CADRE_OK;
    }
    mark_await(until, cadre_strategy_position(strategy));
    for (size_t i = 0; i < buffer_count; i++) {
        memset(buffers[i].data, 0, buffers[i].bytes);
    }
    mesh->ops = whole_ops;
    return cadre_error_set(error, CADRE_ABORTED, "the test froze it");
}

static void miss(const char *fault, const char *mark)
{
    static struct mesh_ops ops;
    if (fault_due(fault, cadre_strategy_position(strategy))) {
        calls_left = (unsigned)strtoul(getenv("MISS_AGREE_CALL"), NULL, 10);
        until = mark;
        setenv(fault, "", 1); /* once */
        whole_ops = strategy->mesh->ops;
        ops = *whole_ops;
        ops.all_reduce = missed_sum;
        strategy->mesh->ops = &ops;
    }
}

/* --- the program --- */

static bool take(cadre_distributed_dataset *data, cadre_per_replica **ret_batch)
{
    uint64_t position = cadre_strategy_position(strategy);
    fault_die("DIE_NEXT", position);
    miss("MISS_AGREE", "agreed");
    bool taken = cadre_next(data, ret_batch) == CADRE_OK;
    mark_leave("agreed", position);
    fault_die("DIE_RUN", position);
    return taken;
}

static void evaluate(cadre_distributed_dataset *tests, uint64_t epochs)
{
    cadre_per_replica *batch;
    if (tests != NULL && cadre_next_epoch(tests, epochs, NULL)) {
        while (take(tests, &batch)) {
            CADRE_CHECK(cadre_run(strategy, look, NULL, batch, 0, NULL));
        }
    }
}

static void print_sample_counts(void)
{
    const int64_t *counts = cadre_variable_read(NULL, seen);
    int64_t least = INT64_MAX;
    int64_t most = 0;
    int64_t all = 0;
    for (int64_t i = 0; i < PIPELINES_RECORDS; i++) {
        least = counts[i] < least ? counts[i] : least;
        most = counts[i] > most ? counts[i] : most;
        all += counts[i];
    }
    printf("consumed %lld records, each %lld to %lld times; order %llu; position %llu\n",
        (long long)all,
        (long long)least, (long long)most,
        (unsigned long long)*(const uint64_t *)cadre_variable_read(NULL, order),
        (unsigned long long)cadre_strategy_position(strategy));
    printf("read from %lld on\n", (long long)first_filtered);
    fflush(stdout);
}

int pipelines_program(void)
{
    static const int64_t dims[1] = {PIPELINES_RECORDS};
    cadre_distributed_dataset *tests = NULL;
    cadre_per_replica *batch;
    uint64_t epoch;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "seen", CADRE_I64, 1, dims, NULL, &seen));
    CADRE_CHECK(cadre_variable_create(strategy, "order", CADRE_I64, 0, NULL, NULL, &order));
    miss("MISS_COMPARE", "distributed");
    cadre_distributed_dataset *data = distribute(getenv("PIPELINE"));
    mark_leave("distributed", 0);
    if (getenv("EVALUATES") != NULL) {
        tests = distribute_own("test");
    }
    while (cadre_next_epoch(data, PIPELINES_EPOCHS, &epoch)) {
        while (take(data, &batch)) {
            uint64_t position = cadre_strategy_position(strategy);
            CADRE_CHECK(cadre_run(strategy, count, NULL, batch, 0, NULL));
            mark_leave("applied", position);
        }
        evaluate(tests, epoch + 1);
    }
    print_sample_counts();
    return cadre_finish(strategy);
}
