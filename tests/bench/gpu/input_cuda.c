/* SPDX-License-Identifier: Apache-2.0
 * Copies of batches to the GPU: how fast they are beside bare ones from page-locked memory, and how
 * much longer steps take that consume batches than steps that use one batch again. */
#include "tests/bench/gpu/rows.h"

#define BATCH_ROWS 64
#define COPIES     8
#define WORK       ((size_t)1 << 24) /* floats that a step's kernels go over */

struct consumption {
    int64_t row_floats;
    int passes; /* of a step's kernels: longer than its batch takes to come */
    int steps;  /* of a block */
    cadre_distributed_dataset *input;
    float *work;
    uint64_t epochs;
};

static struct consumption input_runs[] = {
    {.row_floats = 784, .passes = 8, .steps = 500},       /* 200 KB, some 0.3 ms */
    {.row_floats = 1 << 16, .passes = 160, .steps = 40}}; /* 16 MiB, some 5 ms */

static cadre_strategy *used;

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct consumption *consumption = user;
    for (int i = 0; i < consumption->passes; i++) {
        bench_cuda(bench_pass(consumption->work, WORK, cadre_replica_stream(replica)), "a kernel");
    }
    return CADRE_OK;
}

static double again_us(void *user)
{
    struct consumption *consumption = user;
    double began_s = bench_now_s();
    for (int i = 0; i < consumption->steps; i++) {
        CADRE_CHECK(cadre_run(used, step, consumption, NULL, 0, NULL));
    }
    return (bench_now_s() - began_s) * 1e6 / consumption->steps;
}

/* Without the epoch's first batch, which nothing could hide. */
static double input_us(void *user)
{
    struct consumption *consumption = user;
    cadre_per_replica *batch;
    double began_s = 0;
    int steps = -1;
    (void)cadre_next_epoch(consumption->input, ++consumption->epochs, NULL);
    while (cadre_next(consumption->input, &batch) == CADRE_OK) {
        CADRE_CHECK(cadre_run(used, step, consumption, batch, 0, NULL));
        if (++steps == 0) {
            began_s = bench_now_s();
        }
    }
    CADRE_CHECK(cadre_distributed_status(consumption->input));
    return (bench_now_s() - began_s) * 1e6 / steps;
}

static cadre_distributed_dataset *distribute(int64_t row_floats, int steps, bool keep_on_host)
{
    cadre_tensor *rows;
    cadre_distributed_dataset *input;
    const int64_t dims[2] = {(int64_t)BATCH_ROWS * 4, row_floats};
    const cadre_input_options options = {
        .steps_per_epoch = (uint64_t)steps, .keep_on_host = keep_on_host};
    CADRE_CHECK(cadre_tensor_create(CADRE_F32, 2, dims, &rows));
    cadre_dataset *data = cadre_dataset_tensor_slices(&rows, 1);
    data = cadre_dataset_batch(cadre_dataset_repeat(data, -1), BATCH_ROWS, true);
    cadre_tensor_release(rows);
    CADRE_CHECK(cadre_distribute_dataset(used, data, &options, &input));
    return input;
}

/* --- copies alone: a batch that was read for a GPU, but kept on the host --- */

static struct {
    cadre_distributed_dataset *input;
    uint64_t epochs;
    size_t bytes;
    void *pinned;
    void *landing;
    cudaStream_t stream;
} copies;

static double bare_copy_gbs(void *user)
{
    (void)user;
    double began_s = bench_now_s();
    for (int i = 0; i < COPIES; i++) {
        bench_cuda(cudaMemcpyAsync(copies.landing, copies.pinned, copies.bytes,
                       cudaMemcpyHostToDevice, copies.stream),
            "a copy");
    }
    bench_cuda(cudaStreamSynchronize(copies.stream), "copies");
    return COPIES * (double)copies.bytes / 1e9 / (bench_now_s() - began_s);
}

static cadre_status copy(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)outputs;
    (void)user;
    for (int i = 0; i < COPIES; i++) {
        cadre_tensor *there;
        cadre_status status = cadre_tensor_copy_to(replica, inputs[0], &there);
        if (status != CADRE_OK) {
            return status;
        }
        cadre_tensor_release(there);
    }
    return CADRE_OK;
}

static double cadre_copy_gbs(void *user)
{
    (void)user;
    cadre_per_replica *batch;
    (void)cadre_next_epoch(copies.input, ++copies.epochs, NULL);
    CADRE_CHECK(cadre_next(copies.input, &batch));
    double began_s = bench_now_s();
    CADRE_CHECK(cadre_run(used, copy, NULL, batch, 0, NULL));
    return COPIES * (double)copies.bytes / 1e9 / (bench_now_s() - began_s);
}

void bench_input(cadre_strategy *strategy)
{
    static const char *const names[][2] = {
        {"feed_small_again_us", "feed_small_new_us"}, {"feed_large_again_us", "feed_large_new_us"}};
    used = strategy;
    for (size_t i = 0; i < sizeof input_runs / sizeof input_runs[0]; i++) {
        struct consumption *consumption = &input_runs[i];
        consumption->input = distribute(consumption->row_floats, consumption->steps, false);
        bench_cuda(cudaMalloc((void **)&consumption->work, WORK * sizeof(float)), "memory");
        bench_add(names[i][0], again_us, consumption);
        bench_add(names[i][1], input_us, consumption);
    }
    const int64_t row_floats = 1 << 18; /* a batch of 64 MiB */
    copies.bytes = (size_t)BATCH_ROWS * (size_t)row_floats * sizeof(float);
    copies.input = distribute(row_floats, 2, true);
    bench_cuda(cudaMallocHost(&copies.pinned, copies.bytes), "page-locked memory");
    bench_cuda(cudaMalloc(&copies.landing, copies.bytes), "memory");
    bench_cuda(cudaStreamCreateWithFlags(&copies.stream, cudaStreamNonBlocking), "a stream");
    bench_add("copy_bare_gbs", bare_copy_gbs, NULL);
    bench_add("copy_cadre_gbs", cadre_copy_gbs, NULL);
}
