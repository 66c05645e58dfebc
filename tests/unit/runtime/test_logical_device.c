/* SPDX-License-Identifier: Apache-2.0
 * Replicas that own several logical devices: assignments, placements, and what runs there. */
#include <pthread.h>
#include <string.h>

#include "training.h"

/* --- assignments --- */

static void check_coordinates(const cadre_device_assignment *assignment, uint32_t replica,
    uint32_t logical, uint32_t rank, const int32_t wanted[])
{
    int32_t coordinates[CADRE_TOPOLOGY_RANK_MAX];
    assert_public_ok(
        cadre_device_assignment_coordinates(assignment, replica, logical, coordinates));
    assert_memory_equal(coordinates, wanted, rank * sizeof wanted[0]);
}

static void blocks_lie_side_by_side(void **state)
{
    (void)state;
    const cadre_topology mesh = {.rank = 3, .shape = {2, 2, 2}};
    cadre_device_assignment *assignment;
    assert_public_ok(cadre_device_assignment_build(&mesh,
        &(cadre_assignment_options){.rank = 3, .computation_shape = {1, 1, 2}, .num_replicas = 4},
        &assignment));
    for (int32_t r = 0; r < 4; r++) {
        for (int32_t l = 0; l < 2; l++) {
            check_coordinates(
                assignment, (uint32_t)r, (uint32_t)l, 3, (const int32_t[]){r % 2, r / 2, l});
        }
    }
    int32_t unused[CADRE_TOPOLOGY_RANK_MAX];
    assert_public_error(cadre_device_assignment_coordinates(assignment, 4, 0, unused),
        CADRE_INVALID_ARGUMENT, "there are 4 replicas of 2");
    cadre_device_assignment_release(assignment);
}

/* A stride of 2 leaves every other device to another replica. */
static void strides_interleave(void **state)
{
    (void)state;
    const cadre_topology mesh = {.rank = 1, .shape = {8}};
    cadre_device_assignment *assignment;
    assert_public_ok(cadre_device_assignment_build(&mesh,
        &(cadre_assignment_options){
            .rank = 1, .computation_shape = {2}, .computation_stride = {2}, .num_replicas = 4},
        &assignment));
    static const int32_t wanted[4][2] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}};
    for (uint32_t r = 0; r < 4; r++) {
        for (uint32_t l = 0; l < 2; l++) {
            check_coordinates(assignment, r, l, 1, &wanted[r][l]);
        }
    }
    cadre_device_assignment_release(assignment);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const struct {
        cadre_topology mesh;
        cadre_assignment_options options;
        const char *part;
    } rows[] = {
        {{.rank = 0}, {0}, "0 axes"},
        {{.rank = 9}, {0}, "9 axes"},
        {{.rank = 2, .shape = {2, 0}}, {0}, "0 along axis 1"},
        {{.rank = 2, .shape = {2, 2}}, {.rank = 1, .computation_shape = {1}}, "1 axes"},
        {{.rank = 1, .shape = {2}}, {.rank = 1, .computation_shape = {0}}, "0 along axis 0"},
        {{.rank = 1, .shape = {2}},
            {.rank = 1, .computation_shape = {1}, .computation_stride = {-1}}, "stride is -1"},
        {{.rank = 1, .shape = {4}},
            {.rank = 1, .computation_shape = {3}, .computation_stride = {2}}, "takes 6 devices"},
        {{.rank = 1, .shape = {4}}, {.rank = 1, .computation_shape = {2}, .num_replicas = 3},
            "room for 2"},
        {{.rank = 1, .shape = {1024}}, {.rank = 1, .computation_shape = {512}}, "at most 256"},
        {{.rank = 4, .shape = {1024, 1024, 1024, 1024}}, {0}, "more than"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cadre_device_assignment *assignment;
        assert_public_error(
            cadre_device_assignment_build(&rows[i].mesh, &rows[i].options, &assignment),
            CADRE_INVALID_ARGUMENT, rows[i].part);
        assert_null(assignment);
    }
}

/* --- placements and functions --- */

static cadre_strategy *strategy_of(uint32_t replicas, int32_t devices)
{
    cadre_strategy *strategy = training_strategy(replicas);
    const cadre_topology mesh = {.rank = 2, .shape = {(int32_t)replicas, devices}};
    cadre_device_assignment *assignment;
    assert_public_ok(cadre_device_assignment_build(&mesh,
        &(cadre_assignment_options){
            .rank = 2, .computation_shape = {1, devices}, .num_replicas = replicas},
        &assignment));
    assert_public_ok(cadre_strategy_set_device_assignment(strategy, assignment));
    cadre_device_assignment_release(assignment);
    return strategy;
}

static cadre_tensor *counted(uint32_t rank, const int64_t dims[])
{
    cadre_tensor *tensor;
    CADRE_CHECK(cadre_tensor_create(CADRE_F32, rank, dims, &tensor));
    float *values = cadre_tensor_data(tensor);
    for (int64_t i = 0; i < cadre_tensor_count(tensor); i++) {
        values[i] = (float)i;
    }
    return tensor;
}

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return cadre_fail(CADRE_INTERNAL, "line %d: %s", __LINE__, #condition);                \
        }                                                                                          \
    } while (0)

#define REQUIRE_ERROR(call, status, part)                                                          \
    do {                                                                                           \
        REQUIRE((call) == (status));                                                               \
        REQUIRE(strstr(cadre_error_message(), (part)) != NULL);                                    \
    } while (0)

/* The blocks of a split are the tensor again. */
static cadre_status check_blocks(cadre_tensor *tensor, const cadre_placement *placement)
{
    int64_t seen = 0;
    for (uint32_t id = 0; id < placement->pieces; id++) {
        cadre_tensor *piece;
        CADRE_TRY(cadre_placement_piece(tensor, placement, id, &piece));
        const float *values = cadre_tensor_const_data(piece);
        uint32_t y = id / 4;
        uint32_t x = id % 4;
        REQUIRE(cadre_tensor_dim(piece, 0) == 3 && cadre_tensor_dim(piece, 1) == 2);
        REQUIRE(cadre_tensor_dim(piece, 2) == 2 && cadre_tensor_dim(piece, 3) == 5);
        REQUIRE(values[0] == (float)((y * 2 * 8 + x * 2) * 5));
        REQUIRE(values[10] == (float)(((y * 2 + 1) * 8 + x * 2) * 5));
        REQUIRE(values[20] == (float)(((4 + y * 2) * 8 + x * 2) * 5));
        seen += cadre_tensor_count(piece);
        cadre_tensor_release(piece);
    }
    REQUIRE(seen == cadre_tensor_count(tensor));
    return CADRE_OK;
}

static cadre_status place(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    char name[CADRE_DEVICE_NAME_BYTES];
    cadre_placement placement;
    cadre_tensor *piece;
    cadre_tensor *tensor = counted(4, (const int64_t[]){3, 4, 8, 5});
    REQUIRE(cadre_logical_devices(replica) == 8);
    CADRE_TRY(cadre_logical_device_name(replica, 7, name));
    REQUIRE(strcmp(name, cadre_replica_id(replica) == 0
                             ? "/job:localhost/replica:0/task:0/device:CPU:7"
                             : "/job:localhost/replica:0/task:0/device:CPU:15") == 0);
    CADRE_TRY(cadre_split_to_logical_devices(
        replica, tensor, (const int32_t[]){1, 2, 4, 1}, 4, &placement));
    REQUIRE(placement.kind == CADRE_PLACEMENT_SPLIT && placement.pieces == 8);
    CADRE_TRY(check_blocks(tensor, &placement));
    REQUIRE_ERROR(cadre_placement_piece(tensor, &placement, 8, &piece), CADRE_INVALID_ARGUMENT,
        "logical device 8");
    CADRE_TRY(cadre_replicate_to_logical_devices(replica, tensor, &placement));
    CADRE_TRY(cadre_placement_piece(tensor, &placement, 7, &piece));
    REQUIRE(piece == tensor && placement.pieces == 8);
    cadre_tensor_release(piece);
    CADRE_TRY(cadre_assign_to_logical_device(replica, tensor, 3, &placement));
    CADRE_TRY(cadre_placement_piece(tensor, &placement, 3, &piece));
    REQUIRE(piece == tensor);
    cadre_tensor_release(piece);
    REQUIRE_ERROR(
        cadre_placement_piece(tensor, &placement, 2, &piece), CADRE_NOT_FOUND, "assigned to 3");
    REQUIRE_ERROR(cadre_assign_to_logical_device(replica, tensor, 8, &placement),
        CADRE_INVALID_ARGUMENT, "device 8");
    REQUIRE_ERROR(cadre_assign_to_logical_device(replica, tensor, -1, &placement),
        CADRE_INVALID_ARGUMENT, "device -1");
    REQUIRE_ERROR(
        cadre_split_to_logical_devices(replica, tensor, (const int32_t[]){8}, 1, &placement),
        CADRE_INVALID_ARGUMENT, "rank 4");
    REQUIRE_ERROR(cadre_split_to_logical_devices(
                      replica, tensor, (const int32_t[]){1, 2, 2, 1}, 4, &placement),
        CADRE_INVALID_ARGUMENT, "make 4 pieces");
    REQUIRE_ERROR(cadre_split_to_logical_devices(
                      replica, tensor, (const int32_t[]){2, 4, 1, 1}, 4, &placement),
        CADRE_INVALID_ARGUMENT, "size 3");
    REQUIRE_ERROR(cadre_split_to_logical_devices(
                      replica, tensor, (const int32_t[]){1, 0, 4, 1}, 4, &placement),
        CADRE_INVALID_ARGUMENT, "at least 1");
    cadre_tensor_release(tensor);
    return CADRE_OK;
}

static void tensors_are_placed(void **state)
{
    (void)state;
    cadre_strategy *strategy = strategy_of(2, 8);
    assert_public_ok(cadre_run(strategy, place, NULL, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

/* y = v * x on device 0, z = w * y on device 1. */
struct product {
    float v;
    float w;
    float x;
    float y;
    float z;
    pthread_t threads[2];
};

static cadre_status stage(cadre_replica *replica, uint32_t logical_device, void *user)
{
    struct product *product = user;
    (void)replica;
    product->threads[logical_device] = pthread_self();
    if (logical_device == 0) {
        product->y = product->v * product->x;
    } else {
        product->z = product->w * product->y;
    }
    return CADRE_OK;
}

static cadre_status multiply(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    struct product product = {.v = 2, .w = 3, .x = 5};
    CADRE_TRY(cadre_logical_run(replica, 0, stage, &product));
    CADRE_TRY(cadre_logical_run(replica, 1, stage, &product));
    REQUIRE(pthread_equal(product.threads[0], pthread_self()));
    REQUIRE(!pthread_equal(product.threads[1], pthread_self()));
    return cadre_tensor_from_f32(product.z, &outputs[0]);
}

static void stages_run_on_their_devices(void **state)
{
    (void)state;
    cadre_strategy *strategy = strategy_of(2, 2);
    for (int i = 0; i < 3; i++) {
        cadre_per_replica *output;
        cadre_tensor *sum;
        assert_public_ok(cadre_run(strategy, multiply, NULL, NULL, 1, &output));
        assert_public_ok(cadre_reduce(strategy, CADRE_SUM, output, CADRE_AXIS_NONE, &sum));
        assert_true(*(const float *)cadre_tensor_const_data(sum) == 60);
        cadre_tensor_release(sum);
    }
    cadre_strategy_release(strategy);
}

struct together {
    pthread_barrier_t all;
    uint32_t fails; /* this device and those above */
};

/* They can only pass the barrier when all of them run at once. */
static cadre_status meet(cadre_replica *replica, uint32_t logical_device, void *user)
{
    struct together *together = user;
    (void)replica;
    pthread_barrier_wait(&together->all);
    return logical_device < together->fails
               ? CADRE_OK
               : cadre_fail(CADRE_DATA_LOSS, "stage %u broke", logical_device);
}

static cadre_status meet_all(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    struct together together = {.fails = 3};
    pthread_barrier_init(&together.all, NULL, 3);
    cadre_status fine = cadre_logical_run_all(replica, meet, &together);
    together.fails = 1;
    cadre_status broken = cadre_logical_run_all(replica, meet, &together);
    pthread_barrier_destroy(&together.all);
    REQUIRE(fine == CADRE_OK && broken == CADRE_DATA_LOSS);
    REQUIRE(strstr(cadre_error_message(), "logical device 1 of replica") != NULL);
    REQUIRE(strstr(cadre_error_message(), "stage 1 broke") != NULL);
    REQUIRE_ERROR(
        cadre_logical_run(replica, 3, meet, &together), CADRE_INVALID_ARGUMENT, "logical device 3");
    REQUIRE_ERROR(cadre_logical_run(replica, 0, NULL, NULL), CADRE_INVALID_ARGUMENT, "'function'");
    return CADRE_OK;
}

static void all_devices_run_at_once(void **state)
{
    (void)state;
    cadre_strategy *strategy = strategy_of(2, 3);
    assert_public_ok(cadre_run(strategy, meet_all, NULL, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

static cadre_status nest(cadre_replica *replica, uint32_t logical_device, void *user)
{
    cadre_tensor *tensor = training_f32(1, (const float[]){1});
    struct product *product = user;
    cadre_status inner = cadre_logical_run(replica, 1, stage, product);
    cadre_status sum = logical_device == 0 ? CADRE_FAILED_PRECONDITION
                                           : cadre_all_reduce(replica, CADRE_SUM, &tensor, 1, NULL);
    cadre_tensor_release(tensor);
    REQUIRE(inner == CADRE_FAILED_PRECONDITION && sum == CADRE_FAILED_PRECONDITION);
    return CADRE_OK;
}

static cadre_status nest_all(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    struct product product = {.w = 3, .y = 5};
    CADRE_TRY(cadre_logical_run_all(replica, nest, &product));
    REQUIRE(product.z == 0);
    CADRE_TRY(cadre_logical_run(replica, 1, stage, &product));
    REQUIRE(product.z == 15);
    return CADRE_OK;
}

static void functions_do_not_nest(void **state)
{
    (void)state;
    cadre_strategy *strategy = strategy_of(2, 2);
    assert_public_ok(cadre_run(strategy, nest_all, NULL, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

static cadre_status nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    REQUIRE(cadre_logical_devices(replica) == 1);
    return CADRE_OK;
}

static void an_assignment_is_set_once_and_early(void **state)
{
    (void)state;
    const cadre_topology mesh = {.rank = 1, .shape = {4}};
    cadre_device_assignment *assignment;
    assert_public_ok(cadre_device_assignment_build(
        &mesh, &(cadre_assignment_options){.num_replicas = 2}, &assignment));
    cadre_strategy *strategy = training_strategy(1);
    assert_public_error(cadre_strategy_set_device_assignment(strategy, assignment),
        CADRE_INVALID_ARGUMENT, "is for 2 replicas");
    cadre_strategy_release(strategy);
    strategy = training_strategy(2);
    assert_public_ok(cadre_run(strategy, nothing, NULL, NULL, 0, NULL));
    assert_public_error(cadre_strategy_set_device_assignment(strategy, assignment),
        CADRE_FAILED_PRECONDITION, "before the first step");
    cadre_strategy_release(strategy);
    strategy = training_strategy(2);
    assert_public_ok(cadre_strategy_set_device_assignment(strategy, assignment));
    assert_public_error(cadre_strategy_set_device_assignment(strategy, assignment),
        CADRE_FAILED_PRECONDITION, "has an assignment");
    assert_int_equal(cadre_logical_devices(NULL), 0);
    cadre_placement placement;
    cadre_tensor *tensor = training_f32(1, (const float[]){1});
    assert_public_error(cadre_replicate_to_logical_devices(NULL, tensor, &placement),
        CADRE_FAILED_PRECONDITION, "outside of a replica function");
    cadre_tensor_release(tensor);
    cadre_strategy_release(strategy);
    cadre_device_assignment_release(assignment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_lie_side_by_side),
        cmocka_unit_test(strides_interleave),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(tensors_are_placed),
        cmocka_unit_test(stages_run_on_their_devices),
        cmocka_unit_test(all_devices_run_at_once),
        cmocka_unit_test(functions_do_not_nest),
        cmocka_unit_test(an_assignment_is_set_once_and_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
