/* SPDX-License-Identifier: Apache-2.0 */
#include "space.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- making it --- */

static cadre_status open_compute(
    cadre_replica *replica, enum precision precision, struct compute **ret_compute)
{
    void *stream = cadre_replica_stream(replica);
    if (stream == NULL) {
        *ret_compute = compute_cpu_open();
        return *ret_compute != NULL
                   ? CADRE_OK
                   : cadre_fail(CADRE_RESOURCE_EXHAUSTED, "no memory for products");
    }
#ifdef GPT_CUDA
    *ret_compute = compute_cuda_open(stream, precision);
    return *ret_compute != NULL ? CADRE_OK : CADRE_INTERNAL; /* it left the message */
#else
    (void)precision;
    return cadre_fail(CADRE_UNIMPLEMENTED,
        "the replica is on %s, and this gpt was built without CUDA; build it where CMake finds the "
        "CUDA Toolkit, or set CADRE_DEVICES=cpu",
        cadre_replica_device(replica));
#endif
}

static cadre_status floats_on(cadre_replica *replica, int64_t count, cadre_tensor **ret_tensor)
{
    return cadre_tensor_create_on(replica, CADRE_F32, 1, &count, ret_tensor);
}

/* A reference of the next tensor that travels. */
static void travels(struct space *space, cadre_tensor *tensor)
{
    space->travelling[space->travelling_count++] = tensor;
}

static cadre_status list_travelling(const struct shape *shape, struct space *space)
{
    space->travelling = calloc(travelling_embedding(shape) + 2, sizeof *space->travelling);
    if (space->travelling == NULL) {
        return cadre_fail(CADRE_RESOURCE_EXHAUSTED, "no memory for a list of gradients");
    }
    travels(space, cadre_tensor_retain(space->loss));
    travels(space, cadre_tensor_retain(space->slopes[HEAD]));
    travels(space, cadre_tensor_retain(space->slopes[NORM]));
    for (int64_t layer = shape->layers - 1; layer >= 0; layer--) {
        for (int kind = DOWN; kind >= NORM1; kind--) {
            cadre_tensor *view;
            CADRE_TRY(cadre_tensor_view_rows(space->slopes[kind], layer, 1, &view));
            travels(space, view);
        }
    }
    travels(space, cadre_tensor_retain(space->slopes[EMBED]));
    travels(space, cadre_tensor_retain(space->slopes[POSITIONS]));
    return CADRE_OK;
}

cadre_status space_create(cadre_replica *replica, const struct model *model,
    enum precision precision, struct space *space)
{
    if (space->ready) {
        return CADRE_OK;
    }
    space_free(space);
    CADRE_TRY(open_compute(replica, precision, &space->compute));
    CADRE_TRY(floats_on(replica, 1, &space->loss));
    for (enum kind kind = 0; kind < KINDS; kind++) {
        const cadre_variable *of = model->weights[kind];
        CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, cadre_variable_rank(of),
            cadre_variable_dims(of), &space->slopes[kind]));
    }
    CADRE_TRY(list_travelling(&model->shape, space));
    space->ready = true;
    return CADRE_OK;
}

void space_free(struct space *space)
{
    for (size_t i = 0; i < space->travelling_count; i++) {
        cadre_tensor_release(space->travelling[i]);
    }
    free(space->travelling);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        cadre_tensor_release(space->slopes[kind]);
    }
    cadre_tensor_release(space->loss);
    cadre_tensor_release(space->room);
    compute_close(space->compute);
    memset(space, 0, sizeof *space);
}

cadre_status space_pass(cadre_replica *replica, const struct model *model, struct space *space,
    const cadre_tensor *windows, struct pass *ret_pass)
{
    const int64_t rows = cadre_tensor_rows(windows);
    *ret_pass = (struct pass){.shape = &model->shape,
        .compute = space->compute,
        .windows = {cadre_tensor_const_data(windows), rows, model->shape.length}};
    if (rows > space->room_rows) {
        cadre_tensor_release(space->room);
        space->room = NULL;
        space->room_rows = 0;
        CADRE_TRY(floats_on(replica, pass_room(&model->shape, rows), &space->room));
        space->room_rows = rows;
    }
    if (rows > 0) {
        pass_lay_out(ret_pass, cadre_tensor_data(space->room));
    }
    for (enum kind kind = 0; kind < KINDS; kind++) {
        ret_pass->weights[kind] = cadre_variable_read(replica, model->weights[kind]);
        ret_pass->slopes[kind] = cadre_tensor_data(space->slopes[kind]);
    }
    return CADRE_OK;
}

/* --- the ceiling --- */

double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Two matrices of random numbers, for zeros cost a GPU less power, and room for a third. */
static cadre_status matrices_on(cadre_replica *replica, int64_t side, cadre_tensor **ret_matrices)
{
    cadre_random random;
    cadre_tensor *drawn;
    const int64_t dims[2] = {3 * side, side};
    CADRE_TRY(cadre_random_stream(replica, 1, "ceiling", &random));
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 2, dims, &drawn));
    cadre_status status = cadre_random_fill_uniform(&random, -1, 1, drawn);
    if (status == CADRE_OK) {
        status = cadre_tensor_copy_to(replica, drawn, ret_matrices);
    }
    if (status == CADRE_OK) {
        status = cadre_replica_synchronize(replica); /* `drawn` is read until then */
    }
    cadre_tensor_release(drawn);
    return status;
}

cadre_status space_measure(cadre_replica *replica, struct space *space)
{
    const int64_t side = cadre_replica_stream(replica) == NULL ? 512 : 4096;
    cadre_tensor *matrices = NULL;
    CADRE_TRY(matrices_on(replica, side, &matrices));
    float *floats = cadre_tensor_data(matrices);
    const struct product product = {.m = side,
        .n = side,
        .k = side,
        .a = {.data = floats, .ld = side},
        .b = {.data = floats + side * side, .ld = side},
        .c = floats + 2 * side * side,
        .ldc = side,
        .batch = 1};
    space->compute->does->product(space->compute, &product); /* the first one loads code */
    cadre_status status = cadre_replica_synchronize(replica);
    double took_s = 0;
    for (int64_t times = 1; took_s < 0.1 && status == CADRE_OK; times *= 2) {
        const double began_s = now_s();
        for (int64_t i = 0; i < times; i++) {
            space->compute->does->product(space->compute, &product);
        }
        status = cadre_replica_synchronize(replica);
        took_s = now_s() - began_s;
        space->ceiling = 2.0 * (double)(side * side * side) * (double)times / took_s;
    }
    cadre_tensor_release(matrices);
    return status == CADRE_OK ? compute_status(space->compute) : status;
}
