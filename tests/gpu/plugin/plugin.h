/* SPDX-License-Identifier: Apache-2.0
 * The plugin under test: any shared object with the table of worker/library/device/device_ops.h,
 * named by the program's argument or by CADRE_PLUGIN. */
#ifndef CADRE_TESTS_GPU_PLUGIN_PLUGIN_H
#define CADRE_TESTS_GPU_PLUGIN_PLUGIN_H

#include "tests/lib/test.h"
#include "worker/library/device/device_ops.h"

#define PLUGIN_WAIT_US UINT64_C(50000000)

/* Set by plugin_open. */
extern const struct device_ops *ops;
extern uint32_t devices;

/* Opens it. Ends the program as skipped where none was built; with 1 where it cannot be opened. */
void plugin_open(int argc, char **argv);

/* The same, and skips where it has no device, with its reason. */
void plugin_open_with_devices(int argc, char **argv);

/* A stream of a device, and memory on it; a failure fails the test. */
void *stream_of(uint32_t device);
void *memory_of(uint32_t device, size_t bytes, void *stream);

/* Waits until the stream is at rest, which is a success. */
void settle(void *stream);

/* Both wait. */
void upload(void *to, const void *from, size_t bytes, void *stream);
void download(void *to, const void *from, size_t bytes, void *stream);

#endif
