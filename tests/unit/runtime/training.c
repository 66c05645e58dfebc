/* SPDX-License-Identifier: Apache-2.0 */
#include "training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

cadre_variable *training_find(const cadre_strategy *strategy, const char *name)
{
    cadre_variable *variable;
    return cadre_variable_find(strategy, name, &variable) == CADRE_OK ? variable : NULL;
}

cadre_strategy *training_strategy(uint32_t replicas)
{
    static bool initialised;
    if (!initialised) {
        initialised = true;
        folder = test_temp_dir();
        unsetenv("CADRE_SOCKET");
        unsetenv("CADRE_TASKS");
        unsetenv("CADRE_TASKS_MIN");
        unsetenv("CADRE_REPLICAS");
        setenv("CADRE_OUTPUT_DIR", folder, 1);
        assert_public_ok(cadre_init(NULL, NULL));
    }
    cadre_strategy *strategy;
    assert_public_ok(cadre_strategy_mirrored(replicas, &strategy));
    cadre_show_progress(strategy, false);
    return strategy;
}

const char *training_folder(void)
{
    return folder;
}

void training_check_error(cadre_status status, cadre_status wanted, const char *part,
    const char *call, const char *file, int line)
{
    if (status != wanted || strstr(cadre_error_message(), part) == NULL) {
        print_error("%s:%d: %s gave %s, '%s'; wanted %s with '%s'\n", file, line, call,
            cadre_status_name(status), status == CADRE_OK ? "" : cadre_error_message(),
            cadre_status_name(wanted), part);
        fail();
    }
}

static cadre_tensor *vector(cadre_dtype dtype, size_t count, const void *values)
{
    cadre_tensor *tensor;
    int64_t dims[1] = {(int64_t)count};
    assert_public_ok(cadre_tensor_from_data(dtype, 1, dims, values, &tensor));
    return tensor;
}

cadre_tensor *training_f32(size_t count, const float *values)
{
    return vector(CADRE_F32, count, values);
}

cadre_tensor *training_i32(size_t count, const int32_t *values)
{
    return vector(CADRE_I32, count, values);
}

void training_assert_f32(const cadre_tensor *tensor, size_t count, const float *values)
{
    assert_int_equal(cadre_tensor_dtype(tensor), CADRE_F32);
    assert_int_equal(cadre_tensor_count(tensor), count);
    const float *is = cadre_tensor_const_data(tensor);
    for (size_t i = 0; i < count; i++) {
        if (!(fabsf(is[i] - values[i]) <= 1e-5f * (1 + fabsf(values[i])))) {
            fail_msg("element %zu is %g, wanted %g", i, (double)is[i], (double)values[i]);
        }
    }
}

static cadre_status return_value(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    cadre_tensor *const *values = user;
    outputs[0] = values[cadre_replica_local_id(replica)];
    return CADRE_OK;
}

cadre_per_replica *training_values(cadre_strategy *strategy, cadre_tensor *const values[])
{
    cadre_per_replica *value;
    assert_public_ok(cadre_run(strategy, return_value, (void *)(uintptr_t)values, NULL, 1, &value));
    return value;
}

cadre_status training_nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

cadre_variable *training_variable(cadre_strategy *strategy)
{
    cadre_variable *variable;
    assert_public_ok(
        cadre_variable_create(strategy, "v", CADRE_F32, 1, (int64_t[]){2}, NULL, &variable));
    return variable;
}

int32_t training_gpu_of(const cadre_tensor *tensor)
{
    cadre_device_spec spec;
    cadre_status status = cadre_device_parse(cadre_tensor_device(tensor), &spec);
    return status == CADRE_OK && strcmp(spec.type, "GPU") == 0 ? spec.index : -1;
}
