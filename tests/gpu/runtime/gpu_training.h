/* SPDX-License-Identifier: Apache-2.0
 * What the tests of replicas on devices share: a plugin to run with, strategies on its devices, and
 * numbers in their memory. The plugin is CADRE_PLUGIN, else the stand-in's, which tests our logic
 * and nothing of CUDA. */
#ifndef CADRE_TESTS_GPU_TRAINING_H
#define CADRE_TESTS_GPU_TRAINING_H

#include "cadre/gpu.h"
#include "tests/unit/runtime/training.h"
#include "worker/library/device/device.h"

/* First of all in main. Ends the program as skipped when there is no plugin, or fewer devices. */
void gpu_require(uint32_t devices);

/* Whether the GPUs of such a list are here. */
bool gpu_has(const char *const list[]);

/* A mirrored strategy on the devices of a list that ends with NULL. */
cadre_strategy *gpu_strategy(const char *const devices[]);

/* `count` numbers of f32 at `from`, wherever that is, are these. `on` NULL: on the host. */
void gpu_assert_f32(struct device *on, const void *from, size_t count, const float *wanted);

/* Fills a replica's memory as a kernel of the program would: in the order of its stream. */
void gpu_put_f32(cadre_replica *replica, void *to, size_t count, float value);

#endif
