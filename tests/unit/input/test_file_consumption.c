/* SPDX-License-Identifier: Apache-2.0
 * FILE in a job whose workers come and go: after any number of changes, at any steps, every record
 * of every file was consumed exactly once, and the tables of all workers say so. */
#include "tests/lib/rounds.h"
#include "tests/unit/input/cmocka_unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/unit/input/file_lists.h"
#include "tests/unit/input/inner_datasets.h"
#include "tests/unit/input/reading.h"
#include "tests/unit/input/scratch_folder.h"
#include "worker/library/input/distribution/distributed_input.h"

#define FILES_MAX   12
#define WORKERS_MAX 16

enum chain { PLAIN, SHUFFLED, TURNS, THREADS, FILTERED, REBATCHED, DROPPED, LISTED, CHAINS };

static cadre_status keeps_even(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    *ret_keep = value_of(in) % 2 == 0;
    return CADRE_OK;
}

static cadre_dataset *make_chain(
    enum chain chain, const int64_t records[], size_t files, uint64_t seed)
{
    if (chain == LISTED) {
        return cadre_dataset_batch(
            cadre_dataset_shuffle(file_list(records, files), 7, seed, NULL), 6, false);
    }
    cadre_dataset *names = file_names(records, files);
    names = chain == SHUFFLED ? cadre_dataset_shuffle(names, CADRE_SHUFFLE_ALL, seed, NULL) : names;
    cadre_dataset *data = NULL;
    if (chain == TURNS || chain == THREADS) {
        data =
            cadre_dataset_interleave(names, open_file, NULL, turns(3, 2, chain == THREADS ? 2 : 0));
    } else {
        data = cadre_dataset_flat_map(names, open_file, NULL);
    }
    data = chain == SHUFFLED ? cadre_dataset_shuffle(data, 7, seed, NULL) : data;
    data = chain == FILTERED ? cadre_dataset_filter(data, keeps_even, NULL) : data;
    data = cadre_dataset_batch(data, 6, chain == DROPPED);
    data = chain == PLAIN ? cadre_dataset_map(data, copy_element, NULL, NULL) : data;
    return cadre_dataset_prefetch(data, 1);
}

struct job {
    cadre_dataset *data;
    cadre_rebatch rebatch;
    uint32_t workers;
    uint32_t replicas;
    struct distributed_input *inputs[WORKERS_MAX];
    struct file_shares shares; /* what all of them have */
    int64_t records[FILES_MAX];
    size_t files;
    bool seen[FILES_MAX][64];
    uint64_t rows;
};

static void open_job(struct job *job, bool with_table)
{
    for (uint32_t w = 0; w < job->workers; w++) {
        struct cadre_error error = {0};
        const struct distributed_layout layout = {.workers = job->workers,
            .worker_index = w,
            .replicas = job->replicas,
            .policy = CADRE_SHARD_FILE,
            .rebatch = job->rebatch,
            .name = "files",
            .shares = with_table ? &job->shares : NULL};
        ASSERT_OK(distributed_input_open(job->data, &layout, &job->inputs[w], &error));
        assert_true(distributed_input_can_reshard(job->inputs[w], NULL));
        assert_true(distributed_input_shares(job->inputs[w]));
        assert_int_equal(distributed_input_policy(job->inputs[w]), CADRE_SHARD_FILE);
    }
}

static void close_job(struct job *job)
{
    for (uint32_t w = 0; w < job->workers; w++) {
        distributed_input_close(job->inputs[w]);
    }
}

static void see(struct job *job, const struct distributed_batch *batch)
{
    uint64_t rows = 0;
    for (uint32_t r = 0; r < batch->replicas; r++) {
        struct numbers numbers = {.count = 0};
        numbers_add(&numbers, batch->elements[r].tensors[0]);
        for (size_t i = 0; i < numbers.count; i++) {
            int64_t value = numbers.values[i];
            assert_false(job->seen[value / 1000][value % 1000]);
            job->seen[value / 1000][value % 1000] = true;
        }
        rows += numbers.count;
    }
    assert_int_equal(batch->own_rows, rows);
    job->rows += rows;
    uint64_t in_runs = 0;
    for (size_t i = 0; i < batch->run_count; i++) {
        in_runs += batch->runs[i].count;
    }
    assert_int_equal(in_runs, rows);
    assert_int_equal(batch->samples, rows);
}

/* One step of all; false when none of them has anything. */
static bool run_step(struct job *job, uint64_t epoch, uint64_t step, bool counts)
{
    struct distributed_batch batches[WORKERS_MAX] = {{0}};
    struct cadre_error error = {0};
    uint32_t present = 0;
    for (uint32_t w = 0; w < job->workers; w++) {
        cadre_status status =
            distributed_input_read(job->inputs[w], epoch, step, &batches[w], &error);
        if (status == CADRE_OUT_OF_RANGE && job->workers == 1) {
            return false;
        }
        ASSERT_OK(status);
        present += batches[w].present;
    }
    for (uint32_t w = 0; w < job->workers; w++) {
        for (size_t i = 0; counts && i < batches[w].run_count; i++) {
            ASSERT_OK(file_shares_consumed(&job->shares, &batches[w].runs[i], &error));
        }
        for (size_t i = 0; counts && i < batches[w].done_count; i++) {
            ASSERT_OK(file_shares_done(&job->shares, batches[w].done[i], &error));
        }
        if (counts) {
            see(job, &batches[w]);
            job->shares.step = step + 1;
        }
        distributed_batch_clear(&batches[w]);
    }
    return present > 0;
}

/* Once the table went through bytes, as in a checkpoint. */
static void through_bytes(struct file_shares *shares)
{
    struct cadre_error error = {0};
    uint8_t *bytes = NULL;
    size_t count = 0;
    ASSERT_OK(file_shares_encode(shares, &bytes, &count, &error));
    file_shares_clear(shares);
    ASSERT_OK(file_shares_decode(bytes, count, shares, &error));
    free(bytes);
}

static void check_all_seen(const struct job *job, enum chain chain)
{
    uint64_t rows = 0;
    for (size_t f = 0; f < job->files; f++) {
        for (int64_t r = 0; r < job->records[f]; r++) {
            bool expected = chain != FILTERED || (f * 1000 + (uint64_t)r) % 2 == 0;
            assert_true(chain == DROPPED || job->seen[f][r] == expected);
            rows += expected ? 1 : 0;
        }
    }
    assert_true(chain == DROPPED ? job->rows <= rows : job->rows == rows);
}

static void run_epoch(enum chain chain, uint64_t seed)
{
    struct prng prng = {.state = prng_mix(seed * CHAINS + chain)};
    struct cadre_error error = {0};
    struct job job = {.files = 1 + prng_uniform(&prng, FILES_MAX),
        .replicas = 1 + (uint32_t)prng_uniform(&prng, 3),
        .rebatch = chain == REBATCHED ? CADRE_REBATCH_TENSORFLOW : CADRE_REBATCH_SPLIT};
    for (size_t f = 0; f < job.files; f++) {
        job.records[f] = (int64_t)prng_uniform(&prng, 30);
    }
    job.records[0] = 5; /* something to see the elements by */
    job.workers = 1 + (uint32_t)prng_uniform(&prng, job.files);
    job.data = make_chain(chain, job.records, job.files, seed);
    const uint64_t epoch = prng_uniform(&prng, 3);
    open_job(&job, false);
    ASSERT_OK(distributed_input_fresh_shares(job.inputs[0], epoch, &job.shares, &error));
    for (uint64_t step = 0;; step++) {
        if (prng_chance(&prng, 1, 4)) {
            /* Some are lost in the middle of a step, which counts for nothing. */
            run_step(&job, epoch, step, false);
            close_job(&job);
            job.workers = 1 + (uint32_t)prng_uniform(&prng, WORKERS_MAX);
            ASSERT_OK(file_shares_assign(&job.shares, job.workers, &error));
            through_bytes(&job.shares);
            open_job(&job, true);
        }
        if (!run_step(&job, epoch, step, true)) {
            break;
        }
        assert_true(step < 1000);
    }
    check_all_seen(&job, chain);
    close_job(&job);
    file_shares_clear(&job.shares);
    cadre_dataset_release(job.data);
}

static void every_record_once_whatever_dies(void **state)
{
    (void)state;
    for (int chain = 0; chain < CHAINS; chain++) {
        for (uint64_t seed = 0; seed < TEST_ROUNDS(25); seed++) {
            run_epoch((enum chain)chain, seed);
        }
    }
}

/* The end of a file is found, and it is not dealt again. */
static void files_are_done(void **state)
{
    (void)state;
    for (int chain = PLAIN; chain <= THREADS; chain++) {
        struct cadre_error error = {0};
        struct job job = {
            .files = 6, .workers = 2, .replicas = 1, .records = {12, 12, 12, 12, 12, 12}};
        job.data = make_chain((enum chain)chain, job.records, job.files, 1);
        open_job(&job, false);
        ASSERT_OK(distributed_input_fresh_shares(job.inputs[0], 0, &job.shares, &error));
        uint64_t step = 0;
        for (; file_shares_count(&job.shares).samples < 72; step++) {
            assert_true(run_step(&job, 0, step, true));
        }
        if (chain == PLAIN) { /* of the last ones the ends may not have been looked for yet */
            assert_true(file_shares_count(&job.shares).done >= 4);
        }
        assert_false(run_step(&job, 0, step, true));
        assert_int_equal(file_shares_count(&job.shares).done, 6);
        ASSERT_OK(file_shares_assign(&job.shares, 3, &error));
        close_job(&job);
        job.workers = 3;
        open_job(&job, true);
        assert_false(run_step(&job, 0, job.shares.step, true));
        /* The next epoch is fresh. */
        memset(job.seen, 0, sizeof job.seen);
        file_shares_clear(&job.shares);
        ASSERT_OK(distributed_input_fresh_shares(job.inputs[0], 1, &job.shares, &error));
        job.rows = 0;
        for (step = 0; run_step(&job, 1, step, true); step++) {
        }
        assert_int_equal(job.rows, 72);
        close_job(&job);
        file_shares_clear(&job.shares);
        cadre_dataset_release(job.data);
    }
}

static void expect_no_reshard(cadre_dataset *data, const char *part)
{
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    struct file_shares shares = {0};
    struct distributed_layout layout = {
        .workers = 2, .replicas = 1, .policy = CADRE_SHARD_FILE, .name = "files"};
    ASSERT_OK(distributed_input_open(data, &layout, &input, &error));
    struct cadre_error reason = {0};
    assert_false(distributed_input_can_reshard(input, &reason));
    assert_int_equal(reason.code, CADRE_FAILED_PRECONDITION);
    if (strstr(reason.text, part) == NULL) {
        fail_msg("'%s' is not in '%s'", part, reason.text);
    }
    assert_false(distributed_input_shares(input));
    assert_int_equal(
        distributed_input_fresh_shares(input, 0, &shares, &error), CADRE_FAILED_PRECONDITION);
    struct distributed_batch batch = {0};
    ASSERT_OK(distributed_input_read(input, 0, 0, &batch, &error));
    assert_null(batch.runs);
    distributed_batch_clear(&batch);
    distributed_input_close(input);
    ASSERT_OK(file_shares_init(&shares, 0, 4, 2, &error));
    layout.shares = &shares;
    assert_int_equal(
        distributed_input_open(data, &layout, &input, &error), CADRE_FAILED_PRECONDITION);
    file_shares_clear(&shares);
    cadre_dataset_release(data);
}

static cadre_dataset *flat(void)
{
    return cadre_dataset_flat_map(alike_file_names(4, 6), open_file, NULL);
}

static void what_cannot_be_resharded(void **state)
{
    (void)state;
    expect_no_reshard(cadre_dataset_batch(cadre_dataset_take(flat(), 9), 2, false), "what take");
    expect_no_reshard(
        cadre_dataset_batch(cadre_dataset_repeat(flat(), 2), 2, false), "what repeat");
    cadre_dataset *const both[] = {flat(), flat()};
    expect_no_reshard(cadre_dataset_batch(cadre_dataset_zip(both, 2), 2, false), "what zip");
    cadre_dataset *names = cadre_dataset_repeat(alike_file_names(4, 6), 2);
    expect_no_reshard(
        cadre_dataset_batch(cadre_dataset_flat_map(names, open_file, NULL), 2, false), "list");
}

static void tables_that_do_not_fit(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    struct distributed_batch batch = {0};
    struct file_shares shares = {0};
    cadre_dataset *data = cadre_dataset_batch(flat(), 2, false);
    struct distributed_layout layout = {
        .workers = 2, .replicas = 1, .policy = CADRE_SHARD_FILE, .shares = &shares};
    ASSERT_OK(file_shares_init(&shares, 3, 4, 3, &error));
    assert_int_equal(distributed_input_open(data, &layout, &input, &error), CADRE_INVALID_ARGUMENT);
    file_shares_clear(&shares);
    ASSERT_OK(file_shares_init(&shares, 3, 5, 2, &error));
    assert_int_equal(distributed_input_open(data, &layout, &input, &error), CADRE_INVALID_ARGUMENT);
    file_shares_clear(&shares);
    ASSERT_OK(file_shares_init(&shares, 3, 4, 2, &error));
    shares.step = 7;
    ASSERT_OK(distributed_input_open(data, &layout, &input, &error));
    assert_int_equal(
        distributed_input_read(input, 3, 6, &batch, &error), CADRE_FAILED_PRECONDITION);
    ASSERT_OK(distributed_input_read(input, 3, 7, &batch, &error));
    distributed_batch_clear(&batch);
    ASSERT_OK(distributed_input_read(input, 4, 0, &batch, &error));
    distributed_batch_clear(&batch);
    distributed_input_close(input);
    file_shares_clear(&shares);
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_once_whatever_dies),
        cmocka_unit_test(files_are_done),
        cmocka_unit_test(what_cannot_be_resharded),
        cmocka_unit_test(tables_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
