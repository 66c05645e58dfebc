/* SPDX-License-Identifier: Apache-2.0
 * Replicas of two GPUs each (the stand-in's): assignments, pieces in the memory of logical devices,
 * functions there, and steps that fail on a GPU that is not the replica's own. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/fault.h"
#include "step_kernels.h"
#include "step_pairs.h"
#include "tests/gpu/standin/standin.h"
#include "tests/lib/program.h"

static const char *self;

static void assignments_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = step_strategy_gpus();
    assert_public_error(pairs_assign(strategy, 4, 2), CADRE_INVALID_ARGUMENT,
        "logical device 0 of local replica 1 is GPU:2 by the assignment, and the replica is on "
        "GPU:1; make the strategy on GPU:0, GPU:2");
    cadre_strategy_release(strategy);
    strategy = step_strategy((const char *const[]){"GPU:0", "GPU:2", "CPU:4"}, 3);
    assert_public_error(pairs_assign(strategy, 4, 2), CADRE_INVALID_ARGUMENT, "is for 2 replicas");
    assert_public_ok(pairs_assign(strategy, 8, 3)); /* of the third one CPU:4 and CPU:5 */
    cadre_strategy_release(strategy);
    strategy = step_strategy((const char *const[]){"GPU:3"}, 1);
    assert_public_error(
        pairs_assign(strategy, 4, 1), CADRE_INVALID_ARGUMENT, "make the strategy on GPU:0");
    cadre_strategy_release(strategy);
    strategy = step_strategy((const char *const[]){"GPU:0", "GPU:2", "GPU:3"}, 3);
    assert_public_error(pairs_assign(strategy, 6, 3), CADRE_FAILED_PRECONDITION,
        "gives GPU:4 to local replica 2, and this process can use 4 GPUs");
    cadre_strategy_release(strategy);
}

/* --- tensors --- */

/* The block of `rows` by `columns` at an offset in what `numbers` made. */
static cadre_status check_block(
    cadre_tensor *piece, int64_t row, int64_t column, int64_t of_columns, uint32_t id)
{
    cadre_tensor *here;
    CADRE_TRY(cadre_tensor_copy_to_host(piece, &here));
    bool same = true;
    int64_t columns = cadre_tensor_dim(here, 1);
    for (int64_t i = 0; i < cadre_tensor_count(here); i++) {
        int64_t at = (row + i / columns) * of_columns + column + i % columns;
        same = same && ((const float *)cadre_tensor_const_data(here))[i] == pairs_number(at, id);
    }
    cadre_tensor_release(here);
    REQUIRE(same);
    return CADRE_OK;
}

/* Splits as `pieces` has it: each block is on its GPU. */
static cadre_status check_split(
    cadre_replica *replica, cadre_tensor *tensor, int32_t along_rows, int32_t along_columns)
{
    cadre_placement placement;
    CADRE_TRY(cadre_split_to_logical_devices(
        replica, tensor, (const int32_t[]){along_rows, along_columns}, 2, &placement));
    int64_t rows = cadre_tensor_dim(tensor, 0) / along_rows;
    int64_t columns = cadre_tensor_dim(tensor, 1) / along_columns;
    for (uint32_t d = 0; d < PAIR; d++) {
        cadre_tensor *piece;
        CADRE_TRY(cadre_placement_piece(tensor, &placement, d, &piece));
        REQUIRE(training_gpu_of(piece) == cadre_replica_gpu(replica) + (int32_t)d);
        REQUIRE(cadre_tensor_dim(piece, 0) == rows && cadre_tensor_dim(piece, 1) == columns);
        CADRE_TRY(check_block(piece, d / (uint32_t)along_columns * rows,
            d % (uint32_t)along_columns * columns, cadre_tensor_dim(tensor, 1),
            cadre_replica_id(replica)));
        cadre_tensor_release(piece);
    }
    return CADRE_OK;
}

static cadre_status check_whole(cadre_replica *replica, cadre_tensor *tensor)
{
    cadre_placement placement;
    cadre_tensor *piece;
    uint32_t id = cadre_replica_id(replica);
    CADRE_TRY(cadre_replicate_to_logical_devices(replica, tensor, &placement));
    CADRE_TRY(cadre_placement_piece(tensor, &placement, 0, &piece));
    REQUIRE(piece == tensor);
    cadre_tensor_release(piece);
    CADRE_TRY(cadre_placement_piece(tensor, &placement, 1, &piece));
    REQUIRE(piece != tensor && training_gpu_of(piece) == cadre_replica_gpu(replica) + 1);
    CADRE_TRY(check_block(piece, 0, 0, cadre_tensor_dim(tensor, 1), id));
    cadre_tensor *back;
    CADRE_TRY(cadre_tensor_copy_to(replica, piece, &back));
    cadre_tensor_release(piece);
    REQUIRE(training_gpu_of(back) == cadre_replica_gpu(replica));
    CADRE_TRY(check_block(back, 0, 0, cadre_tensor_dim(tensor, 1), id));
    cadre_tensor_release(back);
    CADRE_TRY(cadre_assign_to_logical_device(replica, tensor, 1, &placement));
    REQUIRE_ERROR(
        cadre_placement_piece(tensor, &placement, 0, &piece), CADRE_NOT_FOUND, "assigned to 1");
    CADRE_TRY(cadre_placement_piece(tensor, &placement, 1, &piece));
    REQUIRE(training_gpu_of(piece) == cadre_replica_gpu(replica) + 1);
    cadre_tensor_release(piece);
    return CADRE_OK;
}

/* Tensors in the memory of the host stay there. */
static cadre_status check_host(cadre_replica *replica)
{
    cadre_placement placement = {0};
    cadre_tensor *tensor;
    cadre_tensor *piece;
    CADRE_TRY(cadre_tensor_from_f32(3, &tensor));
    CADRE_TRY(cadre_placement_piece(tensor, &placement, 0, &piece));
    REQUIRE(piece == tensor);
    cadre_tensor_release(piece);
    CADRE_TRY(cadre_replicate_to_logical_devices(replica, tensor, &placement));
    CADRE_TRY(cadre_placement_piece(tensor, &placement, 1, &piece));
    REQUIRE(piece == tensor);
    cadre_tensor_release(piece);
    CADRE_TRY(cadre_tensor_copy_to_logical(replica, 1, tensor, &piece));
    REQUIRE(training_gpu_of(piece) == cadre_replica_gpu(replica) + 1);
    cadre_tensor_release(piece);
    cadre_tensor_release(tensor);
    REQUIRE_ERROR(cadre_tensor_create_on_logical(replica, 2, CADRE_F32, 0, NULL, &piece),
        CADRE_INVALID_ARGUMENT, "logical device 2 was named");
    REQUIRE(piece == NULL);
    return CADRE_OK;
}

static cadre_status place(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    cadre_tensor *tensor;
    CADRE_TRY(pairs_numbers(replica, 6, 4, cadre_replica_id(replica), &tensor));
    CADRE_TRY(check_split(replica, tensor, 1, 2));
    CADRE_TRY(check_split(replica, tensor, 2, 1));
    CADRE_TRY(check_whole(replica, tensor));
    cadre_tensor_release(tensor);
    CADRE_TRY(
        pairs_numbers(replica, 1100, 2, cadre_replica_id(replica), &tensor)); /* several lists */
    CADRE_TRY(check_split(replica, tensor, 1, 2));
    cadre_tensor_release(tensor);
    return check_host(replica);
}

static void pieces_are_in_the_memory_of_their_devices(void **state)
{
    (void)state;
    cadre_strategy *strategy = pairs_strategy();
    assert_public_ok(cadre_run(strategy, place, NULL, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

/* The source may be written to, and released, behind the copy: in the order of its stream, whose
 * GPU waits meanwhile. */
static cadre_status overwrite(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    cadre_tensor *tensor;
    cadre_tensor *copy;
    void *stream = cadre_replica_stream(replica);
    void *other = cadre_logical_stream(replica, 1);
    CADRE_TRY(pairs_numbers(replica, 6, 4, cadre_replica_id(replica), &tensor));
    standin_hold(other); /* what the other GPU does first does not matter to this one */
    CADRE_TRY(cadre_tensor_copy_to_logical(replica, 1, tensor, &copy));
    float *data = cadre_tensor_data(tensor);
    REQUIRE(step_kernel_add(stream, data, data, 1, 24) == 0);
    cadre_tensor_release(tensor);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    standin_release(other);
    CADRE_TRY(check_block(copy, 0, 0, 4, cadre_replica_id(replica)));
    cadre_tensor_release(copy);
    return CADRE_OK;
}

static void a_copy_is_in_the_order_of_both_streams(void **state)
{
    (void)state;
    cadre_strategy *strategy = pairs_strategy();
    for (int i = 0; i < 5; i++) {
        assert_public_ok(cadre_run(strategy, overwrite, NULL, NULL, 0, NULL));
    }
    cadre_strategy_release(strategy);
}

/* --- functions --- */

static cadre_status look(cadre_replica *replica, uint32_t logical_device, void *user)
{
    (void)user;
    int device = -1;
    char name[CADRE_DEVICE_NAME_BYTES];
    char wanted[16];
    int gpu = cadre_replica_gpu(replica) + (int)logical_device;
    REQUIRE(cudaGetDevice(&device) == cudaSuccess && device == gpu);
    CADRE_TRY(cadre_logical_device_name(replica, logical_device, name));
    snprintf(wanted, sizeof wanted, "device:GPU:%d", gpu);
    REQUIRE(strstr(name, wanted) != NULL);
    cadre_tensor *zeros;
    CADRE_TRY(cadre_tensor_create_on_logical(
        replica, logical_device, CADRE_F32, 1, (const int64_t[]){4}, &zeros));
    REQUIRE(training_gpu_of(zeros) == gpu);
    int failed = step_kernel_add(cadre_logical_stream(replica, logical_device),
        cadre_tensor_data(zeros), cadre_tensor_data(zeros), 1, 4);
    cadre_tensor_release(zeros);
    REQUIRE(failed == 0);
    return CADRE_OK;
}

static cadre_status look_everywhere(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    REQUIRE(cudaSetDevice(3) == cudaSuccess); /* whatever the program does */
    CADRE_TRY(cadre_logical_run(replica, 1, look, user));
    CADRE_TRY(cadre_logical_run(replica, 0, look, user));
    CADRE_TRY(cadre_logical_run_all(replica, look, user));
    REQUIRE(cadre_logical_stream(replica, 0) == cadre_replica_stream(replica));
    REQUIRE(cadre_logical_stream(replica, 2) == NULL && cadre_logical_stream(NULL, 0) == NULL);
    return CADRE_OK;
}

static void functions_run_with_their_device_bound(void **state)
{
    (void)state;
    cadre_strategy *strategy = pairs_strategy();
    assert_public_ok(cadre_run(strategy, look_everywhere, NULL, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

struct breaking {
    bool wild;  /* replica 1's second GPU fails */
    bool hangs; /* ... or waits, while replica 0 fails */
};

static cadre_status launch(cadre_replica *replica, uint32_t logical_device, void *user)
{
    const struct breaking *breaking = user;
    void *stream = cadre_logical_stream(replica, logical_device);
    cadre_tensor *tensor;
    CADRE_TRY(cadre_tensor_create_on_logical(
        replica, logical_device, CADRE_F32, 1, (const int64_t[]){4}, &tensor));
    if (breaking->hangs) {
        standin_hold(stream);
    }
    if (breaking->wild) {
        standin_fail("kernel", 1, cudaErrorIllegalAddress);
    }
    int failed =
        step_kernel_add(stream, cadre_tensor_data(tensor), cadre_tensor_data(tensor), 1, 4);
    cadre_tensor_release(tensor);
    REQUIRE(failed == 0);
    return CADRE_OK;
}

static cadre_status break_second(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct breaking *breaking = user;
    bool second = cadre_replica_id(replica) == 1;
    if (second) {
        CADRE_TRY(cadre_logical_run(replica, 1, launch, user));
    }
    CADRE_TRY(cadre_barrier());
    return breaking->hangs && !second ? cadre_fail(CADRE_DATA_LOSS, "it is damaged") : CADRE_OK;
}

static void a_kernel_that_fails_on_the_second_device_fails_the_step(void **state)
{
    (void)state;
    cadre_strategy *strategy = pairs_strategy();
    struct breaking breaking = {.wild = true};
    assert_public_error(cadre_run(strategy, break_second, &breaking, NULL, 0, NULL), CADRE_INTERNAL,
        "replica 1: work on its GPU 3 failed");
    assert_non_null(strstr(cadre_error_message(), "GPU 3 takes no more work of this process"));
    cadre_strategy_release(strategy);
    standin_heal();
}

static int hang(void)
{
    cadre_strategy *strategy = pairs_strategy();
    struct breaking breaking = {.hangs = true};
    fault_arm("replica.rest", 1); /* a short patience */
    cadre_run(strategy, break_second, &breaking, NULL, 0, NULL);
    return 0;
}

static void a_second_device_that_does_not_come_to_rest_ends_the_process(void **state)
{
    (void)state;
    const char *const argv[] = {self, step_connected ? "hang" : "staged", "hang", NULL};
    struct program_result result;
    program_run(&(struct program_spec){.argv = argv}, &result);
    if (result.signal != SIGKILL || strstr(result.err, "GPU 3 goes on with work") == NULL) {
        fail_msg("signal %d, exit code %d: %s", result.signal, result.exit_code, result.err);
    }
    program_result_free(&result);
}

int main(int argc, char **argv)
{
    pairs_begin(argc, argv);
    self = argv[0];
    if (argc > 1 && strcmp(argv[argc - 1], "hang") == 0) {
        return hang();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(assignments_that_do_not_fit_are_refused),
        cmocka_unit_test(pieces_are_in_the_memory_of_their_devices),
        cmocka_unit_test(a_copy_is_in_the_order_of_both_streams),
        cmocka_unit_test(functions_run_with_their_device_bound),
        cmocka_unit_test(a_kernel_that_fails_on_the_second_device_fails_the_step),
        cmocka_unit_test(a_second_device_that_does_not_come_to_rest_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
