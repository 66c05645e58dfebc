/* SPDX-License-Identifier: Apache-2.0
 * Creating parameters: where they come to, what they begin with, what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "fake_strategy.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/training.h"

static cadre_variable *create(cadre_strategy *strategy, const char *name, uint32_t rank,
    const int64_t *dims, const cadre_variable_options *options)
{
    cadre_variable *variable;
    assert_public_ok(
        cadre_variable_create(strategy, name, CADRE_F32, rank, dims, options, &variable));
    return variable;
}

static uint32_t server_of(const cadre_variable *variable, uint32_t shard)
{
    return memory_server(variable, shard);
}

/* Every byte another one, but truth values. */
static cadre_status count_up(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    uint8_t *next = user;
    for (size_t i = 0; i < (size_t)count * cadre_dtype_bytes(dtype); i++) {
        ((uint8_t *)values)[i] = dtype == CADRE_BOOL ? 1 : (*next)++;
    }
    return CADRE_OK;
}

static cadre_status cut_in_two(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, int64_t *ret_pieces, void *user)
{
    (void)dtype;
    (void)dims;
    (void)user;
    for (uint32_t axis = 0; axis < rank; axis++) {
        ret_pieces[axis] = axis == 0 ? 2 : 1;
    }
    return CADRE_OK;
}

static void check_whole(const cadre_variable *variable, cadre_variable *same, uint8_t first)
{
    size_t bytes = memory_bytes(variable);
    cadre_tensor *value;
    int64_t next = 0;
    for (uint32_t shard = 0; shard < cadre_variable_components(variable); shard++) {
        int64_t begin;
        int64_t rows;
        assert_public_ok(cadre_variable_component_rows(variable, shard, &begin, &rows));
        assert_int_equal(begin, next);
        next += rows;
    }
    assert_int_equal(
        next, cadre_variable_rank(variable) == 0 ? 1 : cadre_variable_dims(variable)[0]);
    assert_public_ok(cadre_variable_value(NULL, same, NULL, &value));
    assert_int_equal(cadre_tensor_bytes(value), bytes);
    const uint8_t *is = cadre_tensor_const_data(value);
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(
            is[i], cadre_variable_dtype(variable) == CADRE_BOOL ? 1 : (uint8_t)(first + i));
    }
    cadre_tensor_release(value);
}

static void all_types_shapes_and_partitioners_read_back(void **state)
{
    (void)state;
    static const cadre_dtype dtypes[] = {CADRE_F64, CADRE_F32, CADRE_F16, CADRE_BF16, CADRE_I64,
        CADRE_I32, CADRE_I16, CADRE_I8, CADRE_U32, CADRE_U16, CADRE_U8, CADRE_BOOL};
    static const int64_t dims[] = {11, 2, 3};
    static const int64_t none[] = {0, 4};
    static const cadre_partitioner partitioners[] = {
        {.kind = CADRE_PARTITIONER_NONE},
        {.kind = CADRE_PARTITIONER_FIXED, .shards = 3},
        {.kind = CADRE_PARTITIONER_FIXED, .shards = 100},
        {.kind = CADRE_PARTITIONER_MIN_SIZE, .bytes = 16, .shards = 8},
        {.kind = CADRE_PARTITIONER_MIN_SIZE},
        {.kind = CADRE_PARTITIONER_MAX_SIZE, .bytes = 12},
        {.kind = CADRE_PARTITIONER_FUNCTION, .function = cut_in_two},
    };
    for (size_t p = 0; p < sizeof partitioners / sizeof partitioners[0]; p++) {
        cadre_strategy *strategy = fake_begin(3, &partitioners[p]);
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
            for (uint32_t rank = 0; rank < 5; rank++) {
                char name[32];
                uint8_t next = (uint8_t)(7 * rank);
                cadre_variable *variable;
                cadre_variable *found;
                const cadre_variable_options options = {
                    .initializer = {
                        .kind = CADRE_INITIALIZER_FUNCTION, .function = count_up, .user = &next}};
                snprintf(name, sizeof name, "w%zu-%u", d, rank);
                assert_public_ok(cadre_variable_create(strategy, name, dtypes[d],
                    rank == 4 ? 2 : rank, rank == 4 ? none : dims, &options, &variable));
                assert_public_ok(cadre_variable_find(NULL, name, &found));
                assert_ptr_equal(found, variable);
                check_whole(variable, variable, (uint8_t)(7 * rank));
                assert_int_equal(cadre_variable_dtype(variable), dtypes[d]);
            }
            if (d % 3 == 2) { /* as another task sees them */
                cadre_variable *found;
                fake_become(ROLE_WORKER);
                assert_public_ok(cadre_variable_find(NULL, "w1-3", &found));
                assert_int_equal(cadre_variable_rank(found), 3);
                check_whole(found, found, 21);
                fake_become(ROLE_CHIEF);
            }
        }
        fake_end(strategy);
    }
}

static void shards_go_round_robin(void **state)
{
    (void)state;
    cadre_strategy *strategy = fake_begin(3, NULL);
    const cadre_partitioner four = {.kind = CADRE_PARTITIONER_FIXED, .shards = 4};
    const int64_t rows = 11;
    const cadre_variable *a = create(strategy, "a", 0, NULL, NULL);
    const cadre_variable *b = create(strategy, "b", 0, NULL, NULL);
    const cadre_variable *beside = create(strategy, "beside", 1, &rows,
        &(cadre_variable_options){.colocate_with = b, .partitioner = &four});
    const cadre_variable *c =
        create(strategy, "c", 1, &rows, &(cadre_variable_options){.partitioner = &four});
    const cadre_variable *d = create(strategy, "d", 0, NULL, NULL);
    assert_int_equal(server_of(a, 0), 0);
    assert_int_equal(server_of(b, 0), 1);
    assert_int_equal(server_of(beside, 0), 1);
    assert_int_equal(cadre_variable_components(beside), 1);
    static const uint32_t wanted[] = {2, 0, 1, 2};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(server_of(c, i), wanted[i]);
    }
    assert_int_equal(server_of(d, 0), 0);
    int64_t first;
    int64_t rows_of_shard;
    assert_public_error(
        cadre_variable_component_rows(c, 4, &first, &rows_of_shard), CADRE_OUT_OF_RANGE, "4");
    assert_string_equal(cadre_variable_device(c, 2), "/job:ps/replica:0/task:1/device:CPU:0");
    assert_null(cadre_variable_device(c, 4));
    fake_end(strategy);
}

/* A few MiB, so that it comes in several pieces; not a whole number of rows fits in one. */
static void initial_values_do_not_depend_on_shards(void **state)
{
    (void)state;
    static const int64_t dims[] = {1001, 1499};
    static const cadre_initializer initializers[] = {
        {.kind = CADRE_INITIALIZER_UNIFORM, .low = -1, .high = 1, .seed = 5},
        {.kind = CADRE_INITIALIZER_NORMAL, .stddev = 2, .seed = 6},
        {.kind = CADRE_INITIALIZER_CONSTANT, .value = 3.5},
    };
    for (size_t k = 0; k < 3; k++) {
        for (uint64_t shards = 1; shards <= 4; shards += 3) {
            const cadre_partitioner fixed = {.kind = CADRE_PARTITIONER_FIXED, .shards = shards};
            cadre_strategy *strategy = fake_begin(2, &fixed);
            const cadre_variable_options same = {.initializer = initializers[k]};
            cadre_variable *served = create(strategy, "w", 2, dims, &same);
            assert_true(fake_counts().largest <= (size_t)4 << 20);
            assert_int_equal(fake_counts().keys, 0); /* filling is no push that counts */
            /* A variable of its name would begin with the same. */
            cadre_variable *variable;
            cadre_tensor *value;
            assert_public_error(
                cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, &same, &variable),
                CADRE_ALREADY_EXISTS, "a variable");
            assert_public_ok(cadre_variable_value(NULL, served, NULL, &value));
            fake_end(strategy);
            strategy = training_strategy(1);
            assert_public_ok(
                cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, &same, &variable));
            assert_memory_equal(cadre_tensor_const_data(value), cadre_variable_read(NULL, variable),
                cadre_tensor_bytes(value));
            cadre_tensor_release(value);
            cadre_strategy_release(strategy);
        }
    }
}

static cadre_status cut_columns(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, int64_t *ret_pieces, void *user)
{
    (void)user;
    cut_in_two(dtype, rank, dims, ret_pieces, NULL);
    ret_pieces[1] = 2;
    return CADRE_OK;
}

static cadre_status cut_nothing(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, int64_t *ret_pieces, void *user)
{
    (void)dtype;
    (void)rank;
    (void)dims;
    (void)ret_pieces;
    (void)user;
    return cadre_fail(CADRE_UNAVAILABLE, "no plan today");
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const int64_t dims[] = {4, 2};
    static const int64_t negative[] = {-4, 2};
    static const cadre_partitioner bad[] = {
        {.kind = CADRE_PARTITIONER_FIXED},
        {.kind = CADRE_PARTITIONER_MAX_SIZE},
        {.kind = CADRE_PARTITIONER_FUNCTION},
        {.kind = CADRE_PARTITIONER_FUNCTION, .function = cut_columns},
        {.kind = CADRE_PARTITIONER_FUNCTION, .function = cut_nothing},
        {.kind = (cadre_partitioner_kind)77},
    };
    static const char *const why[] = {
        "0 shards", "0 bytes", "no function", "axis 1", "no plan today", "77"};
    cadre_strategy *strategy = fake_begin(2, NULL);
    cadre_variable *variable;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const cadre_variable_options options = {.partitioner = &bad[i]};
        assert_public_error(
            cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, &options, &variable),
            i == 4 ? CADRE_UNAVAILABLE : CADRE_INVALID_ARGUMENT, why[i]);
        assert_null(variable);
    }
    static const cadre_optimizer_options adam = {.kind = CADRE_OPTIMIZER_ADAM, .rate = 0.1};
    static const struct {
        const char *name;
        cadre_dtype dtype;
        const int64_t *dims;
        cadre_variable_options options;
        cadre_status code;
        const char *part;
    } rows[] = {
        {"", CADRE_F32, dims, {.colocate_with = NULL}, CADRE_INVALID_ARGUMENT, "name"},
        {"cadre/x", CADRE_F32, dims, {.colocate_with = NULL}, CADRE_INVALID_ARGUMENT, "'cadre/'"},
        {"s", CADRE_STRING, dims, {.colocate_with = NULL}, CADRE_FAILED_PRECONDITION,
            "hold strings, and parameter servers hold no such one; use CADRE_PLACEMENT_REPLICAS"},
        {"c", CADRE_F32, dims, {.synchronization = CADRE_SYNC_ON_READ}, CADRE_FAILED_PRECONDITION,
            "combined when read"},
        {"p", CADRE_F32, dims, {.placement = (cadre_variable_placement)9}, CADRE_INVALID_ARGUMENT,
            "9 is no placement"},
        {"n", CADRE_F32, negative, {.colocate_with = NULL}, CADRE_INVALID_ARGUMENT, "'n'"},
        {"u", CADRE_I32, dims, {.initializer = {.kind = CADRE_INITIALIZER_UNIFORM}},
            CADRE_INVALID_ARGUMENT, "variable 'u'"},
        {"taken", CADRE_F32, dims, {.colocate_with = NULL}, CADRE_ALREADY_EXISTS, "'taken'"},
        {"taken/m", CADRE_F32, dims, {.colocate_with = NULL}, CADRE_ALREADY_EXISTS, "'taken/m'"},
    };
    variable = create(strategy, "taken", 2, dims, NULL);
    assert_public_ok(memory_train(strategy, variable, &adam));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_public_error(cadre_variable_create(strategy, rows[i].name, rows[i].dtype, 2,
                                rows[i].dims, &rows[i].options, &variable),
            rows[i].code, rows[i].part);
    }
    fake_end(strategy);
    assert_public_error(
        cadre_variable_create(NULL, "w", CADRE_F32, 2, dims,
            &(cadre_variable_options){.placement = CADRE_PLACEMENT_SERVERS}, &variable),
        CADRE_FAILED_PRECONDITION, "cadre_strategy_parameter_server");
}

/* The chief's own are beside those on servers, and closures see the latter alone. */
static void placements_are_chosen(void **state)
{
    (void)state;
    const int64_t rows = 3;
    const cadre_variable_options own = {.placement = CADRE_PLACEMENT_REPLICAS};
    cadre_strategy *strategy = fake_begin(2, NULL);
    cadre_variable *there = create(strategy, "there", 1, &rows, NULL);
    cadre_variable *here = create(strategy, "here", 1, &rows, &own);
    cadre_variable *beside =
        create(strategy, "beside", 0, NULL, &(cadre_variable_options){.colocate_with = here});
    cadre_variable *found;
    assert_int_equal(cadre_variable_kind(there), CADRE_VARIABLE_SERVED);
    assert_int_equal(cadre_variable_kind(here), CADRE_VARIABLE_MIRRORED);
    assert_int_equal(cadre_variable_kind(beside), CADRE_VARIABLE_MIRRORED);
    assert_true(cadre_variable_created_in_scope(strategy, there));
    assert_true(cadre_variable_created_in_scope(strategy, here));
    assert_public_error(
        cadre_variable_create(strategy, "with", CADRE_F32, 0, NULL,
            &(cadre_variable_options){.placement = CADRE_PLACEMENT_SERVERS, .colocate_with = here},
            &found),
        CADRE_INVALID_ARGUMENT, "'here', which is on no parameter server");
    assert_public_error(cadre_variable_create(strategy, "with", CADRE_F32, 0, NULL,
                            &(cadre_variable_options){
                                .placement = CADRE_PLACEMENT_REPLICAS, .colocate_with = there},
                            &found),
        CADRE_INVALID_ARGUMENT, "'there', which is on a parameter server");
    assert_public_error(cadre_variable_create(strategy, "here", CADRE_F32, 0, NULL, NULL, &found),
        CADRE_ALREADY_EXISTS, "'here'");
    assert_public_error(cadre_variable_create(strategy, "there", CADRE_F32, 0, NULL, &own, &found),
        CADRE_ALREADY_EXISTS, "'there'");
    assert_public_ok(cadre_variable_find(strategy, "here", &found));
    assert_ptr_equal(found, here);
    assert_public_ok(cadre_variable_find(NULL, "there", &found));
    assert_ptr_equal(found, there);
    assert_public_error(cadre_variable_find(strategy, "nowhere", &found), CADRE_NOT_FOUND,
        "those that the chief has created are 'there'");
    fake_end(strategy);
}

/* One model file: in a closure the same call finds what the chief has created. */
static void a_closure_finds_what_it_would_create(void **state)
{
    (void)state;
    static const int64_t dims[] = {4, 2};
    const cadre_variable_options random = {.aggregation = CADRE_AGGREGATION_SUM,
        .initializer = {.kind = CADRE_INITIALIZER_NORMAL, .stddev = 1}};
    cadre_strategy *strategy = fake_begin(2, NULL);
    cadre_variable *found;
    cadre_variable *same;
    create(strategy, "w", 2, dims, &random);
    fake_become(ROLE_WORKER);
    found = create(NULL, "w", 2, dims, &random);
    same = create(strategy, "w", 2, dims, &random);
    assert_ptr_equal(found, same);
    assert_int_equal(cadre_variable_kind(found), CADRE_VARIABLE_SERVED);
    assert_public_error(cadre_variable_create(NULL, "w", CADRE_F64, 2, dims, NULL, &same),
        CADRE_INVALID_ARGUMENT, "as f32 [4, 2], and this closure creates it as f64 [4, 2]");
    assert_public_error(cadre_variable_create(NULL, "v", CADRE_F32, 2, dims, NULL, &same),
        CADRE_FAILED_PRECONDITION, "create it on the chief");
    same = create(
        NULL, "own", 0, NULL, &(cadre_variable_options){.placement = CADRE_PLACEMENT_REPLICAS});
    assert_int_equal(cadre_variable_kind(same), CADRE_VARIABLE_REGULAR);
    cadre_variable_release(same);
    fake_end(strategy);
}

static void what_has_ended_is_refused(void **state)
{
    (void)state;
    const int64_t rows = 3;
    cadre_strategy *strategy = fake_begin(1, NULL);
    cadre_variable *variable = create(strategy, "w", 1, &rows, NULL);
    cadre_tensor *value;
    fake_end(strategy);
    assert_public_error(
        cadre_variable_value(NULL, variable, NULL, &value), CADRE_FAILED_PRECONDITION, "has ended");
    assert_public_error(
        cadre_variable_value(NULL, NULL, NULL, &value), CADRE_INVALID_ARGUMENT, "NULL");
    assert_public_error(cadre_variable_push(NULL, variable, CADRE_ASSIGN, NULL, NULL, NULL),
        CADRE_FAILED_PRECONDITION, "has ended");
    assert_string_equal(cadre_variable_name(variable), "");
    assert_int_equal(cadre_variable_components(NULL), 0);
    cadre_variable_release(variable);
}

/* Whichever call fails, others do not find it; made again, it is whole, and where it was to be. */
static void a_creation_that_fails_can_be_made_again(void **state)
{
    (void)state;
    static const int64_t dims[] = {2000, 1000};
    const cadre_partitioner two = {.kind = CADRE_PARTITIONER_FIXED, .shards = 2};
    const cadre_variable_options ones = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 1}};
    bool met = true;
    uint64_t nth = 1;
    for (; met; nth++) {
        cadre_strategy *strategy = fake_begin(3, &two);
        cadre_variable *variable;
        fault_arm("client.call", nth);
        cadre_status status =
            cadre_variable_create(strategy, "w", CADRE_F32, 2, dims, &ones, &variable);
        met = fault_disarm();
        assert_int_equal(status, met ? CADRE_UNAVAILABLE : CADRE_OK);
        if (met) {
            cadre_variable *found;
            assert_non_null(strstr(cadre_error_message(), "'w': ps 1 is lost"));
            assert_public_error(
                cadre_variable_find(NULL, "w", &found), CADRE_NOT_FOUND, "none yet");
            variable = create(strategy, "w", 2, dims, NULL);
            float *values = malloc(memory_bytes(variable));
            assert_public_ok(memory_pull(variable, values));
            for (size_t i = 0; i < (size_t)(dims[0] * dims[1]); i++) {
                assert_true(values[i] == 0);
            }
            free(values);
            assert_int_equal(server_of(variable, 1), 1);
        }
        fake_end(strategy);
    }
    assert_true(nth > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_types_shapes_and_partitioners_read_back),
        cmocka_unit_test(shards_go_round_robin),
        cmocka_unit_test(initial_values_do_not_depend_on_shards),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(placements_are_chosen),
        cmocka_unit_test(a_closure_finds_what_it_would_create),
        cmocka_unit_test(what_has_ended_is_refused),
        cmocka_unit_test(a_creation_that_fails_can_be_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
