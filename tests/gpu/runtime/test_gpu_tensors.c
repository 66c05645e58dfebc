/* SPDX-License-Identifier: Apache-2.0
 * Tensors in a device's memory, and the calls that are refused for them. */
#include <stdio.h>
#include <string.h>

#include "cadre/preprocessing.h"
#include "gpu_training.h"
#include "worker/library/device/tensor.h"
#include "worker/library/device/device.h"

static struct device *device_at(uint32_t index)
{
    struct cadre_error error = {0};
    struct device *device = NULL;
    assert_ok(device_open(index, &device, &error), &error);
    return device;
}

static cadre_tensor *on(struct device *device, size_t count, const float *values)
{
    struct cadre_error error = {0};
    cadre_tensor *host = training_f32(count, values);
    cadre_tensor *there = NULL;
    assert_ok(tensor_copy_to(device, host, &there, &error), &error);
    cadre_tensor_release(host);
    return there;
}

/* GPU 1, where there are two. */
static uint32_t last(void)
{
    return device_count() > 1 ? 1 : 0;
}

static void devices_are_opened_once(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct device *device = device_at(0);
    assert_ptr_equal(device_at(0), device);
    assert_true((device_at(last()) == device) == (last() == 0));
    assert_int_equal(device_at(last())->index, last());
    assert_error(device_open(device_count(), &device, &error), CADRE_FAILED_PRECONDITION, &error,
        "this process can use");
    assert_null(device);
    assert_string_equal(device_absence_reason(), "");
}

static void tensors_go_there_and_come_back(void **state)
{
    (void)state;
    const float values[] = {1, 2, 3, 4, 5, 6};
    for (uint32_t i = 0; i <= last(); i++) {
        cadre_tensor *there = on(device_at(i), 6, values);
        cadre_tensor *back = NULL;
        char name[CADRE_DEVICE_NAME_BYTES];
        snprintf(name, sizeof name, "/job:localhost/replica:0/task:0/device:GPU:%u", i);
        assert_string_equal(cadre_tensor_device(there), name);
        assert_int_equal(cadre_tensor_bytes(there), 24);
        assert_public_ok(cadre_tensor_copy_to_host(there, &back));
        assert_string_equal(
            cadre_tensor_device(back), "/job:localhost/replica:0/task:0/device:CPU:0");
        training_assert_f32(back, 6, values);
        cadre_tensor_release(back);
        cadre_tensor_release(there);
    }
    assert_string_equal(cadre_tensor_device(NULL), "");
    cadre_tensor *none = (cadre_tensor *)&state;
    assert_public_error(cadre_tensor_copy_to_host(NULL, &none), CADRE_INVALID_ARGUMENT, "'tensor'");
    assert_null(none);
}

/* More than one page-locked piece, and not a multiple of it. */
static void large_copies_go_in_pieces(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const int64_t dims[] = {(9 << 20) + 13};
    cadre_tensor *tensor;
    cadre_tensor *there;
    cadre_tensor *back;
    assert_public_ok(cadre_tensor_create(CADRE_U8, 1, dims, &tensor));
    uint8_t *bytes = cadre_tensor_data(tensor);
    for (size_t i = 0; i < (size_t)dims[0]; i++) {
        bytes[i] = (uint8_t)(i * 31 + i / 65536);
    }
    assert_ok(tensor_copy_to(device_at(0), tensor, &there, &error), &error);
    cadre_tensor *elsewhere;
    assert_ok(tensor_copy_to(device_at(last()), there, &elsewhere, &error), &error);
    assert_int_equal(training_gpu_of(elsewhere), last());
    assert_ok(tensor_copy_to(NULL, elsewhere, &back, &error), &error);
    assert_memory_equal(cadre_tensor_const_data(back), bytes, (size_t)dims[0]);
    cadre_tensor_release(tensor);
    cadre_tensor_release(there);
    cadre_tensor_release(elsewhere);
    cadre_tensor_release(back);
}

static void views_share_a_devices_memory(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const float values[] = {1, 2, 3, 4};
    cadre_tensor *there = on(device_at(last()), 4, values);
    cadre_tensor *view;
    assert_public_ok(cadre_tensor_view_rows(there, 1, 2, &view));
    assert_ptr_equal(cadre_tensor_data(view), (char *)cadre_tensor_data(there) + 4);
    cadre_tensor_release(there); /* the view keeps it */
    assert_int_equal(training_gpu_of(view), last());
    gpu_assert_f32(device_at(last()), cadre_tensor_const_data(view), 2, values + 1);
    cadre_tensor *copy;
    assert_public_ok(cadre_tensor_copy(view, &copy));
    assert_int_equal(training_gpu_of(copy), last());
    cadre_tensor_release(view);
    gpu_assert_f32(device_at(last()), cadre_tensor_const_data(copy), 2, values + 1);
    cadre_tensor_release(copy);
    const int64_t none[] = {0, 3};
    assert_ok(tensor_create_on(device_at(0), NULL, CADRE_F32, 2, none, &there, &error), &error);
    assert_non_null(cadre_tensor_data(there));
    assert_int_equal(cadre_tensor_bytes(there), 0);
    cadre_tensor *back;
    assert_public_ok(cadre_tensor_copy_to_host(there, &back));
    assert_int_equal(cadre_tensor_dim(back, 1), 3);
    cadre_tensor_release(back);
    cadre_tensor_release(there);
}

/* A copy is under way while its source is released and the memory used again. */
static void what_is_read_is_kept(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    for (int i = 0; i < 50; i++) {
        const float values[] = {(float)i, (float)-i};
        cadre_tensor *host = training_f32(2, values);
        cadre_tensor *there;
        assert_ok(tensor_copy_begin(device_at(0), host, &there, &error), &error);
        cadre_tensor_release(host);
        cadre_tensor *second;
        assert_ok(tensor_copy_begin(device_at(last()), there, &second, &error), &error);
        cadre_tensor_release(there);
        gpu_assert_f32(device_at(last()), cadre_tensor_const_data(second), 2, values);
        cadre_tensor_release(second);
    }
}

/* A dataset that returns that error. */
static void assert_refused(cadre_dataset *dataset)
{
    assert_public_error(
        cadre_dataset_status(dataset), CADRE_FAILED_PRECONDITION, "cadre_tensor_copy_to_host");
    cadre_dataset_release(dataset);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_tensor *tensor = (cadre_tensor *)&state;
    const int64_t huge[] = {(int64_t)1 << 45};
    assert_error(tensor_create_on(device_at(0), NULL, CADRE_STRING, 0, NULL, &tensor, &error),
        CADRE_INVALID_ARGUMENT, &error, "keep them on the host");
    assert_null(tensor);
    assert_error(tensor_create_on(device_at(last()), NULL, CADRE_F64, 1, huge, &tensor, &error),
        CADRE_RESOURCE_EXHAUSTED, &error, last() == 1 ? "on GPU:1" : "on GPU:0");
    assert_null(tensor);
    const float one[] = {1};
    cadre_tensor *there = on(device_at(last()), 1, one);
    assert_error(tensor_require_host(there, "cadre_f", &error), CADRE_FAILED_PRECONDITION, &error,
        "cadre_f reads its tensors on the host, and one of f32 [1] is in the memory of GPU:");
    assert_non_null(strstr(error.text, "; copy it by cadre_tensor_copy_to_host"));
    cadre_tensor *parts[] = {there, there};
    assert_error(
        tensor_stack(parts, 2, &tensor, &error), CADRE_FAILED_PRECONDITION, &error, "GPU:");
    assert_error(
        tensor_concat_rows(parts, 2, &tensor, &error), CADRE_FAILED_PRECONDITION, &error, "GPU:");
    assert_refused(cadre_dataset_tensors(parts, 1));
    assert_refused(cadre_dataset_tensor_slices(parts, 1));
    cadre_lookup *lookup;
    assert_public_error(cadre_lookup_create(there, NULL, &lookup), CADRE_FAILED_PRECONDITION,
        "cadre_lookup_create reads its tensors on the host");
    cadre_normalization *normalization;
    assert_public_error(cadre_normalization_create(there, there, -1, &normalization),
        CADRE_FAILED_PRECONDITION, "cadre_normalization_create reads its tensors on the host");
    cadre_tensor_release(there);
}

static cadre_status make_tensors(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const int32_t *gpus = user;
    const float values[] = {3, 4};
    const float zeros[] = {0, 0};
    const int64_t dims[] = {2};
    cadre_tensor *zero;
    cadre_tensor *copy;
    cadre_tensor *host = training_f32(2, values);
    CADRE_TRY(cadre_tensor_create_on(replica, CADRE_F32, 1, dims, &zero));
    CADRE_TRY(cadre_tensor_copy_to(replica, host, &copy));
    cadre_tensor_release(host);
    assert_int_equal(training_gpu_of(zero), gpus[cadre_replica_local_id(replica)]);
    assert_int_equal(training_gpu_of(copy), gpus[cadre_replica_local_id(replica)]);
    gpu_assert_f32(tensor_device(zero), cadre_tensor_const_data(zero), 2, zeros);
    gpu_assert_f32(tensor_device(copy), cadre_tensor_const_data(copy), 2, values);
    cadre_tensor_release(zero);
    cadre_tensor_release(copy);
    return CADRE_OK;
}

static void replicas_make_tensors_where_they_are(void **state)
{
    (void)state;
    cadre_tensor *tensor = (cadre_tensor *)&state;
    int32_t gpus[] = {0, -1, (int32_t)last()};
    cadre_strategy *strategy =
        gpu_strategy((const char *const[]){"GPU:0", "CPU:0", last() == 1 ? "GPU:1" : NULL, NULL});
    assert_public_ok(cadre_run(strategy, make_tensors, gpus, NULL, 0, NULL));
    cadre_strategy_release(strategy);
    assert_public_error(cadre_tensor_create_on(NULL, CADRE_F32, 0, NULL, &tensor),
        CADRE_FAILED_PRECONDITION, "cadre_tensor_create_on");
    assert_null(tensor);
}

int main(void)
{
    gpu_require(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_opened_once),
        cmocka_unit_test(tensors_go_there_and_come_back),
        cmocka_unit_test(large_copies_go_in_pieces),
        cmocka_unit_test(views_share_a_devices_memory),
        cmocka_unit_test(what_is_read_is_kept),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(replicas_make_tensors_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
