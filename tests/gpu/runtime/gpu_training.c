/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_training.h"
#include "worker/library/runtime/replica/step_admission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/library/runtime/strategy/strategy.h"

void gpu_require(uint32_t devices)
{
    char reason[600];
    if (getenv("CADRE_PLUGIN") == NULL) {
        if (access(STANDIN_PLUGIN, R_OK) != 0) {
            test_skip("the stand-in of the CUDA plugin is not built here");
        }
        setenv("CADRE_PLUGIN", STANDIN_PLUGIN, 1);
        setenv("CADRE_NCCL", STANDIN_NCCL, 1); /* never one that is for real devices */
    }
    if (device_count() < devices) {
        snprintf(reason, sizeof reason, "%s: %u needed, %u here%s%s",
            device_count() > 0 ? "too few GPUs" : "no GPU here", devices, device_count(),
            device_count() > 0 ? "" : ": ", device_absence_reason());
        test_skip(reason);
    }
}

bool gpu_has(const char *const list[])
{
    for (size_t i = 0; list[i] != NULL; i++) {
        if (strncmp(list[i], "GPU:", 4) == 0 && strtoul(list[i] + 4, NULL, 10) >= device_count()) {
            return false;
        }
    }
    return true;
}

cadre_strategy *gpu_strategy(const char *const devices[])
{
    static bool initialised;
    cadre_strategy *strategy = NULL;
    size_t count = 0;
    if (!initialised) {
        initialised = true;
        cadre_strategy_release(training_strategy(1)); /* initialises the library */
    }
    while (devices[count] != NULL) {
        count++;
    }
    assert_public_ok(cadre_strategy_mirrored_devices(devices, count, &strategy));
    cadre_show_progress(strategy, false);
    return strategy;
}

void gpu_assert_f32(struct device *on, const void *from, size_t count, const float *wanted)
{
    struct cadre_error error = {0};
    float is[64];
    assert_in_range(count, 0, 64);
    assert_ok(device_copy(is, NULL, from, on, count * sizeof is[0], &error), &error);
    for (size_t i = 0; i < count; i++) {
        if (is[i] != wanted[i]) {
            fail_msg("number %zu is %g, not %g", i, (double)is[i], (double)wanted[i]);
        }
    }
}

void gpu_put_f32(cadre_replica *replica, void *to, size_t count, float value)
{
    struct cadre_error error = {0};
    float values[64];
    assert_in_range(count, 0, 64);
    for (size_t i = 0; i < count; i++) {
        values[i] = value;
    }
    if (replica->device == NULL) {
        memcpy(to, values, count * sizeof values[0]);
        return;
    }
    struct device *device = replica->device;
    assert_ok(
        device_copy_enqueue(device, device->compute, to, values, count * sizeof values[0], &error),
        &error);
}
