/* SPDX-License-Identifier: Apache-2.0 */
#include "step_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool step_connected;
uint32_t step_gpus;

void step_program_begin(int argc, char **argv)
{
    const char *reason;
    char text[600];
    bool standin = getenv("CADRE_PLUGIN") == NULL;
    step_connected = argc < 2 || strcmp(argv[1], "staged") != 0;
    if (standin && access(STANDIN_PLUGIN, R_OK) != 0) {
        test_skip("the stand-in of the CUDA plugin is not built here");
    }
    unsetenv("CADRE_SOCKET");
    unsetenv("CADRE_TASKS");
    unsetenv("CADRE_TASKS_MIN");
    unsetenv("CADRE_REPLICAS");
    unsetenv("CADRE_DEVICES");
    setenv("CADRE_PLUGIN", STANDIN_PLUGIN, 0);
    if (standin || !step_connected) {
        setenv("CADRE_NCCL", step_connected ? STANDIN_NCCL : "/nowhere/libnccl.so", 1);
    }
    setenv("CADRE_OUTPUT_DIR", test_temp_dir(), 1);
    if (cadre_init(NULL, NULL) != CADRE_OK) {
        print_error("cadre_init: %s\n", cadre_error_message());
        exit(1);
    }
    step_gpus = cadre_gpu_count(&reason);
    if (step_gpus == 0) {
        snprintf(text, sizeof text, "no GPU here: %s", reason);
        test_skip(text);
    }
    step_gpus = step_gpus < STEP_REPLICAS ? step_gpus : STEP_REPLICAS;
    step_connected = step_connected && step_gpus == STEP_REPLICAS;
}

cadre_strategy *step_strategy(const char *const devices[], uint32_t count)
{
    cadre_strategy *strategy;
    assert_public_ok(cadre_strategy_mirrored_devices(devices, count, &strategy));
    cadre_show_progress(strategy, false);
    return strategy;
}

cadre_strategy *step_strategy_gpus(void)
{
    return step_strategy((const char *const[]){"GPU:0", step_gpus > 1 ? "GPU:1" : "CPU:0"}, 2);
}

cadre_strategy *step_strategy_cpus(void)
{
    return step_strategy((const char *const[]){"CPU:0", "CPU:1"}, 2);
}

/* --- tensors --- */

static void set(void *data, cadre_dtype dtype, int64_t i, int value)
{
    switch (dtype) {
    case CADRE_F64:
        ((double *)data)[i] = value + 0.25;
        break;
    case CADRE_F32:
        ((float *)data)[i] = (float)value + 0.5F;
        break;
    case CADRE_BF16: /* the upper half of a float */
    {
        float number = (float)value;
        uint32_t bits;
        memcpy(&bits, &number, sizeof bits);
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        break;
    }
    case CADRE_I64:
        ((int64_t *)data)[i] = value;
        break;
    case CADRE_I32:
        ((int32_t *)data)[i] = value;
        break;
    case CADRE_U32:
        ((uint32_t *)data)[i] = (uint32_t)value;
        break;
    case CADRE_U16:
    case CADRE_I16:
        ((int16_t *)data)[i] = (int16_t)value;
        break;
    default:
        ((uint8_t *)data)[i] = (uint8_t)value;
        break;
    }
}

cadre_status step_vector(cadre_replica *replica, cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_tensor)
{
    cadre_tensor *here;
    CADRE_TRY(cadre_tensor_create(dtype, rank, dims, &here));
    for (int64_t i = 0; i < cadre_tensor_count(here); i++) {
        set(cadre_tensor_data(here), dtype, i, (int)(i % 7) * (int)(1 + cadre_replica_id(replica)));
    }
    cadre_status status = cadre_tensor_copy_to(replica, here, ret_tensor);
    cadre_tensor_release(here);
    return status;
}

static cadre_tensor *on_host(const cadre_tensor *tensor)
{
    cadre_tensor *copy;
    assert_public_ok(cadre_tensor_copy_to_host(tensor, &copy));
    return copy;
}

void step_assert_same(const cadre_tensor *one, const cadre_tensor *other)
{
    cadre_tensor *a = on_host(one);
    cadre_tensor *b = on_host(other);
    assert_int_equal(cadre_tensor_dtype(a), cadre_tensor_dtype(b));
    assert_int_equal(cadre_tensor_count(a), cadre_tensor_count(b));
    assert_memory_equal(cadre_tensor_data(a), cadre_tensor_data(b), cadre_tensor_bytes(a));
    cadre_tensor_release(a);
    cadre_tensor_release(b);
}

void step_assert_f32(const cadre_tensor *tensor, size_t count, const float *values)
{
    cadre_tensor *here = on_host(tensor);
    assert_int_equal(cadre_tensor_dtype(here), CADRE_F32);
    assert_int_equal(cadre_tensor_count(here), count);
    const float *data = cadre_tensor_data(here);
    for (size_t i = 0; i < count; i++) {
        if (data[i] != values[i]) {
            fail_msg("element %zu is %g, not %g", i, (double)data[i], (double)values[i]);
        }
    }
    cadre_tensor_release(here);
}
