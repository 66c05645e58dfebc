/* SPDX-License-Identifier: Apache-2.0
 * The state of an open device: events for reuse, and tensors of the host until what was enqueued to
 * read them is done. */
#ifndef CADRE_WORKER_DEVICE_DEVICE_OPEN_H
#define CADRE_WORKER_DEVICE_DEVICE_OPEN_H

#include <pthread.h>

#include "worker/library/device/device.h"

#define DEVICE_EVENTS_KEPT 64

struct device_lent; /* a tensor, and the event after which no copy reads it */

struct open_device {
    struct device device; /* first: the public part */
    pthread_mutex_t lock; /* over what follows */
    void *events[DEVICE_EVENTS_KEPT];
    uint32_t event_count;
    struct device_lent *lent;
};

static inline struct open_device *open_of(struct device *device)
{
    return (struct open_device *)(void *)device;
}

/* An event of the device that is not in use; to be returned when no thread tests it any more. */
cadre_status device_event_take(struct device *device, void **ret_event, struct cadre_error *error);
/* Returns it; NULL is allowed. */
void device_event_give(struct device *device, void *event);

/* Keeps a reference of `tensor` until all that is on `stream` now is done. */
cadre_status device_lend(
    struct device *device, void *stream, const cadre_tensor *tensor, struct cadre_error *error);

#endif
