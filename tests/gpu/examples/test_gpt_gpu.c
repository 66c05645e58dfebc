/* SPDX-License-Identifier: Apache-2.0
 * The example gpt on a GPU and on the CPU: one batch has the same loss and the same gradients, and
 * an update the same weights, to rounding. Compiled for the stand-in, and where there is a toolkit
 * for CUDA: then it needs a GPU. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/unit/examples/gpt_case.h"

/* Of the largest gradient of a kind, and of the loss. */
#define TOLERANCE 2e-5

static void check_cuda(cudaError_t status)
{
    if (status != cudaSuccess) {
        fail_msg("CUDA: %s", cudaGetErrorString(status));
    }
}

static void *on_gpu(const void *data, size_t bytes)
{
    void *memory = NULL;
    check_cuda(cudaMalloc(&memory, bytes));
    if (data != NULL) {
        check_cuda(cudaMemcpy(memory, data, bytes, cudaMemcpyHostToDevice));
    }
    return memory;
}

static float *floats_on_gpu(const float *data, int64_t count)
{
    return on_gpu(data, (size_t)count * sizeof *data);
}

static void from_gpu(float *to, const float *from, int64_t count)
{
    check_cuda(cudaMemcpy(to, from, (size_t)count * sizeof *to, cudaMemcpyDeviceToHost));
}

static void check_close(
    const char *what, int kind, const float *seen, const float *wanted, int64_t count)
{
    double largest = 1e-6;
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)wanted[i]));
    }
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs((double)seen[i] - (double)wanted[i]) <= TOLERANCE * largest)) {
            fail_msg("%s of kind %d, element %lld: %g on the GPU, %g on the CPU", what, kind,
                (long long)i, (double)seen[i], (double)wanted[i]);
        }
    }
}

/* A pass of the case on the GPU: its memory is all there. */
struct there {
    struct pass pass;
    float *weights[KINDS];
    float *loss;
};

static struct there there_make(const struct gpt_case *one, struct compute *compute)
{
    const size_t bytes = (size_t)(one->rows * (one->shape.length + 1));
    struct there there = {
        .pass = {.shape = &one->shape,
            .compute = compute,
            .windows = {on_gpu(one->bytes, bytes), one->rows, one->shape.length}}};
    for (int kind = 0; kind < KINDS; kind++) {
        const int64_t count = shape_count(&one->shape, (enum kind)kind);
        there.weights[kind] = floats_on_gpu(one->weights[kind], count);
        there.pass.weights[kind] = there.weights[kind];
        there.pass.slopes[kind] = floats_on_gpu(NULL, count);
    }
    there.loss = floats_on_gpu(NULL, 1);
    pass_lay_out(&there.pass, floats_on_gpu(NULL, pass_room(&one->shape, one->rows)));
    return there;
}

static void there_free(struct there *there)
{
    for (int kind = 0; kind < KINDS; kind++) {
        check_cuda(cudaFree(there->weights[kind]));
        check_cuda(cudaFree(there->pass.slopes[kind]));
    }
    check_cuda(cudaFree((void *)(uintptr_t)there->pass.windows.bytes));
    check_cuda(cudaFree(there->pass.streams)); /* the room's beginning */
    check_cuda(cudaFree(there->loss));
}

static void learn(const struct there *there, float scale)
{
    network_forward(&there->pass);
    network_loss(&there->pass, scale, there->loss);
    network_back_head(&there->pass);
    for (int64_t layer = there->pass.shape->layers - 1; layer >= 0; layer--) {
        network_back_layer(&there->pass, layer);
    }
    network_back_embedding(&there->pass);
}

/* The update of one kind on both sides, from what has just been learnt. */
static void check_update(
    struct gpt_case *one, struct compute *cpu, const struct there *there, int kind)
{
    const struct adamw step = {0.01f, 0.9f, 0.99f, 1e-3f, 0.1f, 0.1f, 0.01f};
    const int64_t count = shape_count(&one->shape, (enum kind)kind);
    float *zeros = calloc((size_t)count, sizeof *zeros);
    float *moments = calloc((size_t)(2 * count), sizeof *moments);
    assert_non_null(zeros);
    assert_non_null(moments);
    float *first = floats_on_gpu(zeros, count);
    float *second = floats_on_gpu(zeros, count);
    there->pass.compute->does->adamw(there->pass.compute, &step, count, there->weights[kind], first,
        second, there->pass.slopes[kind]);
    cpu->does->adamw(
        cpu, &step, count, one->weights[kind], moments, moments + count, one->slopes[kind]);
    check_cuda(cudaDeviceSynchronize());
    from_gpu(zeros, there->weights[kind], count);
    check_close("weights after an update", kind, zeros, one->weights[kind], count);
    check_cuda(cudaFree(first));
    check_cuda(cudaFree(second));
    free(moments);
    free(zeros);
}

static void check_shape(struct shape shape, int64_t rows)
{
    cudaStream_t stream;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct compute *gpu = compute_cuda_open(stream, PRECISION_F32);
    struct compute *cpu = compute_cpu_open();
    assert_non_null(gpu);
    assert_non_null(cpu);
    struct gpt_case *one = gpt_case_new(shape, rows);
    struct there there = there_make(one, gpu);
    const float scale = 1 / (float)(rows * shape.length);
    gpt_case_run(one, cpu, scale, true);
    check_cuda(cudaDeviceSynchronize());
    learn(&there, scale);
    check_cuda(cudaDeviceSynchronize());
    assert_int_equal(gpu->status, CADRE_OK);
    float loss = 0;
    from_gpu(&loss, there.loss, 1);
    check_close("the loss", -1, &loss, &one->loss, 1);
    for (int kind = 0; kind < KINDS; kind++) {
        const int64_t count = shape_count(&shape, (enum kind)kind);
        float *slopes = malloc((size_t)count * sizeof *slopes);
        assert_non_null(slopes);
        from_gpu(slopes, there.pass.slopes[kind], count);
        check_close("gradients", kind, slopes, one->slopes[kind], count);
        free(slopes);
        check_update(one, cpu, &there, kind);
    }
    there_free(&there);
    gpt_case_free(one);
    compute_close(gpu);
    compute_close(cpu);
    check_cuda(cudaStreamDestroy(stream));
}

static void test_agreement(void **state)
{
    (void)state;
    check_shape((struct shape){2, 2, 8, 5}, 3);
}

/* More channels and more bytes than a warp has lanes, and no multiple of it. */
static void test_agreement_beyond_a_warp(void **state)
{
    (void)state;
    check_shape((struct shape){1, 2, 36, 34}, 1);
}

/* The first failure is kept, with its operation; all calls after it do nothing. */
static void test_a_failure_is_kept(void **state)
{
    (void)state;
    struct compute *gpu = compute_cuda_open(NULL, PRECISION_F32);
    assert_non_null(gpu);
    const struct product nonsense = {.m = 1, .n = 1, .k = 1, .batch = 1, .ldc = 0};
    gpu->does->product(gpu, &nonsense);
    assert_int_equal(compute_status(gpu), CADRE_INTERNAL);
    assert_non_null(strstr(gpu->message, "a matrix product failed on the GPU: "));
    gpu->does->zero(gpu, 1000, NULL);
    gpu->does->gelu(gpu, 1000, NULL, NULL);
    check_cuda(cudaDeviceSynchronize());
    compute_close(gpu);
}

int main(void)
{
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0) {
        test_skip(status != cudaSuccess ? cudaGetErrorString(status) : "there is no GPU");
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agreement),
        cmocka_unit_test(test_agreement_beyond_a_warp),
        cmocka_unit_test(test_a_failure_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
