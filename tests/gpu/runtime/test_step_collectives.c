/* SPDX-License-Identifier: Apache-2.0
 * Collectives of tensors on devices (the stand-in's): each has the same result as on the CPU, and
 * where that is on the device; and the uses that are refused. */
#include <string.h>

#include "cadre/buckets.h"
#include "cadre/gpu.h"
#include "cadre/sparse.h"
#include "step_program.h"

enum call {
    ALL_REDUCE,
    INTO,
    STARTED,
    FORGOTTEN,
    PACKS,
    BUCKETS,
    SCATTER,
    BROADCAST,
    GATHER,
    GATHER_INNER,
    GATHER_GRADIENT,
    SPARSE,
    CALLS
};

struct subject {
    enum call call;
    cadre_reduce_op op;
    cadre_dtype dtype;
};

static const int64_t dims[2] = {4, 3};

static cadre_status reduce(
    cadre_replica *replica, const struct subject *subject, cadre_tensor *tensors[2])
{
    const cadre_collective_options packs = {.bytes_per_pack = 1};
    cadre_collective *handle;
    cadre_tensor *into;
    cadre_buckets *buckets;
    switch (subject->call) {
    case INTO:
        CADRE_TRY(cadre_tensor_create_on(replica, subject->dtype, 2, dims, &into));
        cadre_status status =
            cadre_all_reduce_into(replica, subject->op, &tensors[0], 1, &into, NULL);
        cadre_tensor_release(tensors[0]);
        tensors[0] = into;
        return status;
    case STARTED:
        CADRE_TRY(cadre_all_reduce_start(replica, subject->op, tensors, 2, NULL, &handle));
        return cadre_collective_wait(handle);
    case FORGOTTEN:
        return cadre_all_reduce_start(replica, subject->op, tensors, 2, NULL, &handle);
    case PACKS:
        return cadre_all_reduce(replica, subject->op, tensors, 2, &packs);
    case BUCKETS:
        CADRE_TRY(cadre_buckets_begin(replica, subject->op, tensors, 2, NULL, &buckets));
        CADRE_TRY(cadre_buckets_ready(buckets, 1));
        CADRE_TRY(cadre_buckets_ready(buckets, 0));
        return cadre_buckets_wait(buckets);
    case BROADCAST:
        return cadre_broadcast(replica, 1, tensors, 2);
    default:
        return cadre_all_reduce(replica, subject->op, tensors, 2, NULL);
    }
}

/* `tensors` become the results. */
static cadre_status gather(
    cadre_replica *replica, const struct subject *subject, cadre_tensor *tensors[2])
{
    cadre_tensor *results[2] = {NULL, NULL};
    cadre_status status;
    if (subject->call == SCATTER) {
        status = cadre_reduce_scatter(replica, subject->op, tensors[0], NULL, &results[0]);
        results[1] = cadre_tensor_retain(tensors[1]);
    } else if (subject->call == GATHER_GRADIENT) {
        status = cadre_all_gather_gradient(replica, tensors[0], 0, 2, NULL, &results[0]);
        results[1] = cadre_tensor_retain(tensors[1]);
    } else {
        status = cadre_all_gather(
            replica, tensors, 2, subject->call == GATHER_INNER ? 1 : 0, NULL, results);
    }
    for (int i = 0; status == CADRE_OK && i < 2; i++) {
        cadre_tensor_release(tensors[i]);
        tensors[i] = results[i];
    }
    return status;
}

static cadre_status sparse(
    cadre_replica *replica, const struct subject *subject, cadre_tensor *tensors[2])
{
    const int64_t rows[4] = {0, 3, 1, 2};
    cadre_tensor *here;
    cadre_sparse result;
    cadre_tensor_release(tensors[1]);
    tensors[1] = NULL;
    CADRE_TRY(cadre_tensor_from_data(CADRE_I64, 1, dims, rows, &here));
    cadre_status status = cadre_tensor_copy_to(replica, here, &tensors[1]);
    cadre_tensor_release(here);
    CADRE_TRY(status);
    const cadre_sparse input = {.values = tensors[0], .indices = tensors[1], .rows = 5};
    CADRE_TRY(cadre_all_reduce_sparse(replica, subject->op, &input, NULL, &result));
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    tensors[0] = result.values;
    tensors[1] = result.indices;
    return CADRE_OK;
}

static cadre_status step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const struct subject *subject = user;
    CADRE_TRY(step_vector(replica, subject->dtype, 2, dims, &outputs[0]));
    CADRE_TRY(step_vector(replica, subject->dtype, 2, dims, &outputs[1]));
    if (subject->call == SPARSE) {
        CADRE_TRY(sparse(replica, subject, outputs));
    } else if (subject->call >= SCATTER && subject->call != BROADCAST) {
        CADRE_TRY(gather(replica, subject, outputs));
    } else {
        CADRE_TRY(reduce(replica, subject, outputs));
    }
    for (int i = 0; i < 2; i++) {
        if (training_gpu_of(outputs[i]) != cadre_replica_gpu(replica)) {
            return cadre_fail(CADRE_INTERNAL, "result %d of call %d is on GPU %d", i,
                (int)subject->call, (int)training_gpu_of(outputs[i]));
        }
    }
    return CADRE_OK;
}

static void compare(struct subject *subject)
{
    cadre_strategy *strategies[2] = {step_strategy_gpus(), step_strategy_cpus()};
    cadre_per_replica *results[2][2];
    for (int i = 0; i < 2; i++) {
        assert_public_ok(cadre_run(strategies[i], step, subject, NULL, 2, results[i]));
    }
    for (uint32_t at = 0; at < 2; at++) {
        for (int r = 0; r < STEP_REPLICAS; r++) {
            step_assert_same(cadre_local_results(results[0][at], 0)[r],
                cadre_local_results(results[1][at], 0)[r]);
        }
    }
    cadre_strategy_release(strategies[0]);
    cadre_strategy_release(strategies[1]);
}

static void every_call_gives_what_it_gives_on_the_cpu(void **state)
{
    (void)state;
    for (int call = 0; call < CALLS; call++) {
        struct subject subject = {.call = (enum call)call, .op = CADRE_SUM, .dtype = CADRE_F32};
        compare(&subject);
        subject.op = CADRE_MEAN;
        compare(&subject);
    }
}

static void every_type_and_op_too(void **state)
{
    (void)state;
    static const cadre_dtype dtypes[] = {
        CADRE_F64, CADRE_BF16, CADRE_I64, CADRE_I32, CADRE_I16, CADRE_U32, CADRE_U16, CADRE_U8};
    const size_t count = sizeof dtypes / sizeof dtypes[0];
    static const cadre_reduce_op ops[] = {CADRE_SUM, CADRE_MIN, CADRE_MAX, CADRE_PROD};
    static const enum call calls[] = {ALL_REDUCE, SCATTER, BROADCAST, GATHER};
    for (size_t i = 0; i < count * 4; i++) {
        struct subject subject = {
            .call = calls[(i + i / count) % 4], .op = ops[i / count], .dtype = dtypes[i % count]};
        compare(&subject);
    }
}

/* --- refused calls --- */

enum misuse { MIXED, INTO_HOST, OTHERS, HALF_HOST, STRING };

static cadre_tensor *of_replica[STEP_REPLICAS];

static cadre_status misuse_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const enum misuse *what = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_tensor *tensors[2] = {NULL, NULL};
    CADRE_TRY(step_vector(replica, CADRE_F32, 2, dims, &tensors[0]));
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 2, dims, &tensors[1]));
    of_replica[id] = tensors[0];
    cadre_status status = cadre_barrier();
    switch (*what) {
    case MIXED:
        status = cadre_all_reduce(replica, CADRE_SUM, tensors, 2, NULL);
        break;
    case INTO_HOST:
        status = cadre_all_reduce_into(replica, CADRE_SUM, tensors, 1, tensors + 1, NULL);
        break;
    case OTHERS:
        status = cadre_broadcast(replica, 0, &of_replica[1 - id], 1);
        break;
    case STRING: {
        cadre_tensor *strings;
        status = cadre_tensor_create_on(replica, CADRE_STRING, 1, dims, &strings);
        break;
    }
    default:
        status = cadre_all_reduce(replica, CADRE_SUM, tensors + id, 1, NULL);
        break;
    }
    cadre_barrier(); /* no tensor is freed while another replica reads it */
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    return status;
}

static void tensors_of_one_call_are_in_one_memory(void **state)
{
    (void)state;
    static const struct {
        enum misuse what;
        const char *part;
    } cases[] = {{MIXED, "give those of the host in a call of their own"},
        {INTO_HOST, "give both in one memory"}, {OTHERS, "is in the memory of GPU"},
        {STRING, "string"}};
    if (step_gpus < STEP_REPLICAS) {
        skip(); /* one replica is on the host, where some of it is right */
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_strategy *strategy = step_strategy_gpus();
        enum misuse what = cases[i].what;
        assert_public_error(cadre_run(strategy, misuse_step, &what, NULL, 0, NULL),
            CADRE_INVALID_ARGUMENT, cases[i].part);
        cadre_strategy_release(strategy);
    }
}

/* Where GPUs are connected all replicas' tensors are alike; else each as it likes. */
static void replicas_with_tensors_elsewhere_are_reported(void **state)
{
    (void)state;
    cadre_strategy *strategy = step_strategy_gpus();
    enum misuse what = HALF_HOST;
    cadre_status status = cadre_run(strategy, misuse_step, &what, NULL, 0, NULL);
    assert_int_equal(status, step_connected ? CADRE_INVALID_ARGUMENT : CADRE_OK);
    if (step_connected) {
        assert_non_null(strstr(cadre_error_message(), "with f32 [4, 3] on its GPU (collective"));
        assert_null(strstr(cadre_error_message(), "on a device"));
    }
    cadre_strategy_release(strategy);
}

/* Several tensors, one of them without elements, and none at all. */
static cadre_status small_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    const int64_t none[1] = {0};
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, 1, none, &outputs[0]));
    CADRE_TRY(step_vector(replica, CADRE_F32, 1, dims, &outputs[1]));
    CADRE_TRY(cadre_all_reduce(replica, CADRE_MEAN, outputs, 2, NULL));
    return cadre_all_reduce(replica, CADRE_SUM, NULL, 0, NULL);
}

static void empty_tensors_and_lists_are_fine(void **state)
{
    (void)state;
    cadre_strategy *strategy = step_strategy_gpus();
    cadre_per_replica *results[2];
    assert_public_ok(cadre_run(strategy, small_step, NULL, NULL, 2, results));
    step_assert_f32(
        cadre_local_results(results[1], 0)[0], 4, (const float[]){0.5F, 2.0F, 3.5F, 5.0F});
    cadre_strategy_release(strategy);
}

int main(int argc, char **argv)
{
    step_program_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_gives_what_it_gives_on_the_cpu),
        cmocka_unit_test(every_type_and_op_too),
        cmocka_unit_test(tensors_of_one_call_are_in_one_memory),
        cmocka_unit_test(replicas_with_tensors_elsewhere_are_reported),
        cmocka_unit_test(empty_tensors_and_lists_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
