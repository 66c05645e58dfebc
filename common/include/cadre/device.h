/* SPDX-License-Identifier: Apache-2.0
 * Names of devices, as TensorFlow writes them: which job and task, and which device there.
 *
 *     /job:worker/replica:0/task:1/device:GPU:0       canonical: whole, the type in capitals
 *     /job:worker/task:1/gpu:0, GPU:0, /cpu:1         parts of it; a device without the word
 *
 * No strategy and no cadre_init is needed. Any thread. (tf.DeviceSpec; tf.distribute's
 * device_util.canonicalize.) */
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

/* Takes a name apart; "" says nothing. INVALID_ARGUMENT, which quotes the part: one that is not
 * known, is given twice, or whose number or text does not fit. */
CADRE_API cadre_status cadre_device_parse(const char *name, cadre_device_spec *ret_spec);

/* The canonical name: what `name` does not say is taken from `fallback` (NULL: "", nothing), what
 * neither says is job localhost, replica 0, task 0, device CPU:0. INVALID_ARGUMENT as above. */
CADRE_API cadre_status cadre_device_canonical(
    const char *name, const char *fallback, char ret_name[CADRE_DEVICE_NAME_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
