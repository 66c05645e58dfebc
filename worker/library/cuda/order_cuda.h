/* SPDX-License-Identifier: Apache-2.0
 * Events: marks in a stream that others wait for. See device_ops.h. */
#ifndef CADRE_WORKER_CUDA_ORDER_CUDA_H
#define CADRE_WORKER_CUDA_ORDER_CUDA_H

#include <stdint.h>

#include "common/base/error.h"

/* device_ops.event_open. */
cadre_status order_open(uint32_t device, void **ret_event, struct cadre_error *error);
/* device_ops.event_close. */
void order_close(void *event);
/* device_ops.event_record. */
cadre_status order_record(void *event, void *stream, struct cadre_error *error);
/* device_ops.stream_wait. */
cadre_status order_wait(void *stream, void *event, struct cadre_error *error);
/* device_ops.event_test. */
cadre_status order_test(void *event, struct cadre_error *error);

#endif
