/* SPDX-License-Identifier: Apache-2.0
 * Devices, and their names as TensorFlow writes them: which job and task, and which device there.
 *
 *     /job:worker/replica:0/task:1/device:GPU:0       canonical: whole, the type in capitals
 *     /job:worker/task:1/gpu:0, GPU:0, /cpu:1         parts of it; a device without the word
 *
 * For names no strategy and no cadre_init is needed. Any thread, any context. (tf.DeviceSpec;
 * tf.distribute's device_util.canonicalize.) */
#ifndef CADRE_DEVICE_H
#define CADRE_DEVICE_H

#include <stdint.h>

#include "cadre/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_DEVICE_NAME_BYTES 160 /* of a canonical name, terminated */

/* What a name says: "" and -1 are what it does not say. */
typedef struct cadre_device_spec {
    char job[64];
    int32_t replica;
    int32_t task;
    char type[32]; /* in capitals */
    int32_t index; /* of the devices of its type on its task; also -1 for `*` */
} cadre_device_spec;

/* Takes a name apart; "" sets nothing. INVALID_ARGUMENT, which quotes the part: one that is not
 * known, is given twice, or whose number or text does not fit. */
CADRE_API cadre_status cadre_device_parse(const char *name, cadre_device_spec *ret_spec);

/* The canonical name: what `name` does not set is taken from `fallback` (NULL: "", nothing), what
 * neither sets is job localhost, replica 0, task 0, device CPU:0. INVALID_ARGUMENT as above. */
CADRE_API cadre_status cadre_device_canonical(
    const char *name, const char *fallback, char ret_name[CADRE_DEVICE_NAME_BYTES]);

/* Which devices of this process. */
typedef enum cadre_device_set {
    /* The processor, CPU:0, and the GPUs that the process may use (CUDA_VISIBLE_DEVICES, `--gpus`),
     * whether or not the program has enabled them. (tf.config.list_physical_devices.) */
    CADRE_PHYSICAL_DEVICES = 0,
    /* The same with the virtual processors CPU:1, CPU:2, ..., which share the real one: as many as
     * the job was started with replicas on the CPU (`--replicas`, CADRE_REPLICAS), or as a strategy
     * of this process has named, if that was more. (tf.config.list_logical_devices.) */
    CADRE_LOGICAL_DEVICES
} cadre_device_set;

/* All of them, by their canonical names, processors first: *ret_devices[*ret_count], valid for
 * ever. Loads the GPUs' driver unless it is loaded; why there is no GPU, cadre_gpu_count reports
 * (cadre/gpu.h). FAILED_PRECONDITION before cadre_init. INVALID_ARGUMENT: not one of the sets. */
CADRE_API cadre_status cadre_devices(
    cadre_device_set set, const char *const **ret_devices, uint32_t *ret_count);

#ifdef __cplusplus
}
#endif
#endif
