/* SPDX-License-Identifier: Apache-2.0
 * What a step costs beside the same kernels in a bare loop, which never waits for the GPU but at
 * its end: microseconds a step. */
#include "tests/bench/gpu/rows.h"

struct load {
    size_t floats; /* of a pass */
    int passes;    /* of a step */
    int steps;     /* of a block */
    float *data;
    cudaStream_t stream;
    cadre_strategy *strategy;
};

/* Some 20 us, 1 ms and 20 ms of work on a GPU of 4 TB/s. */
static struct load loads[] = {
    {.floats = (size_t)1 << 16, .passes = 8, .steps = 2000},
    {.floats = (size_t)1 << 26, .passes = 8, .steps = 200},
    {.floats = (size_t)1 << 28, .passes = 40, .steps = 10},
};

static void launch(const struct load *load, float *data, cudaStream_t stream)
{
    for (int i = 0; i < load->passes; i++) {
        bench_cuda(bench_pass(data, load->floats, stream), "a kernel");
    }
}

static double bare_us(void *user)
{
    struct load *load = user;
    double began_s = bench_now_s();
    for (int i = 0; i < load->steps; i++) {
        launch(load, load->data, load->stream);
    }
    bench_cuda(cudaStreamSynchronize(load->stream), "the bare loop");
    return (bench_now_s() - began_s) * 1e6 / load->steps;
}

/* The same, with the wait at the end of each step that knowing of its success takes. */
static double waiting_us(void *user)
{
    struct load *load = user;
    double began_s = bench_now_s();
    for (int i = 0; i < load->steps; i++) {
        launch(load, load->data, load->stream);
        bench_cuda(cudaStreamSynchronize(load->stream), "the waiting loop");
    }
    return (bench_now_s() - began_s) * 1e6 / load->steps;
}

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct load *load = user;
    launch(load, load->data, cadre_replica_stream(replica));
    return CADRE_OK;
}

static double cadre_us(void *user)
{
    struct load *load = user;
    double began_s = bench_now_s();
    for (int i = 0; i < load->steps; i++) {
        CADRE_CHECK(cadre_run(load->strategy, step, load, NULL, 0, NULL));
    }
    return (bench_now_s() - began_s) * 1e6 / load->steps;
}

void bench_steps(cadre_strategy *strategy)
{
    static const char *const names[][3] = {
        {"step_small_bare_us", "step_small_waiting_us", "step_small_cadre_us"},
        {"step_middle_bare_us", "step_middle_waiting_us", "step_middle_cadre_us"},
        {"step_large_bare_us", "step_large_waiting_us", "step_large_cadre_us"}};
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        struct load *load = &loads[i];
        load->strategy = strategy;
        bench_cuda(cudaMalloc((void **)&load->data, load->floats * sizeof(float)), "memory");
        bench_cuda(cudaMemset(load->data, 0, load->floats * sizeof(float)), "memory");
        bench_cuda(cudaStreamCreateWithFlags(&load->stream, cudaStreamNonBlocking), "a stream");
        bench_add(names[i][0], bare_us, load);
        bench_add(names[i][1], waiting_us, load);
        bench_add(names[i][2], cadre_us, load);
    }
}
