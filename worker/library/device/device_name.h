/* SPDX-License-Identifier: Apache-2.0
 * cadre/device.h with an error: names of devices, parsed and written. */
#ifndef CADRE_WORKER_DEVICE_DEVICE_NAME_H
#define CADRE_WORKER_DEVICE_DEVICE_NAME_H

#include "cadre/device.h"
#include "common/base/error.h"

/* INVALID_ARGUMENT names the field that is wrong. What the name leaves open is "" or -1. */
cadre_status device_name_parse(
    const char *name, cadre_device_spec *ret_spec, struct cadre_error *error);

/* Sets what `spec` leaves open as in `from`. */
void device_name_fill(cadre_device_spec *spec, const cadre_device_spec *from);

/* Writes the canonical name, with the defaults for what is open. */
void device_name_text(const cadre_device_spec *spec, char ret_name[CADRE_DEVICE_NAME_BYTES]);

#endif
