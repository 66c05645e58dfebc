/* SPDX-License-Identifier: Apache-2.0
 * Whether a replica's device is still at its work from before a collective, or in a collective that
 * others have not come to; for messages. Only the order of its comm stream shows it: an event
 * before each call of the communicator, and one behind it. The oldest calls that are not over are
 * kept; calls beyond TRACKED_CALLS are not tracked until they are the oldest. */
#include "worker/library/mesh/device/device_mesh.h"

static bool is_over(const struct device_replica *device_replica, void *event)
{
    return event == NULL || device_replica->device->ops->event_test(event, NULL) != CADRE_PENDING;
}

static struct tracked_call *track_oldest(struct device_replica *device_replica)
{
    while (device_replica->tracked > 0) {
        struct tracked_call *call = &device_replica->calls[device_replica->tracked_first];
        if (!is_over(device_replica, call->gone)) {
            return call;
        }
        device_replica->tracked_first = (device_replica->tracked_first + 1) % TRACKED_CALLS;
        device_replica->tracked--;
    }
    return NULL;
}

/* Without an event the call is not tracked, and continues. */
static void track_record(struct device_replica *device_replica, void **event)
{
    const struct device *device = device_replica->device;
    struct cadre_error ignored;
    if (*event == NULL && device->ops->event_open(device->index, event, &ignored) != CADRE_OK) {
        *event = NULL;
        return;
    }
    if (device->ops->event_record(*event, device->comm, &ignored) != CADRE_OK) {
        device->ops->event_close(*event);
        *event = NULL;
    }
}

void device_track_enter(struct device_replica *device_replica)
{
    (void)track_oldest(device_replica);
    device_replica->tracking = device_replica->tracked < TRACKED_CALLS;
    if (device_replica->tracking) {
        track_record(device_replica,
            &device_replica
                 ->calls[(device_replica->tracked_first + device_replica->tracked) % TRACKED_CALLS]
                 .reached);
    }
}

void device_track_leave(struct device_replica *device_replica)
{
    if (device_replica->tracking) {
        track_record(device_replica,
            &device_replica
                 ->calls[(device_replica->tracked_first + device_replica->tracked) % TRACKED_CALLS]
                 .gone);
        device_replica->tracked++;
    }
}

bool device_track_waits(struct device_replica *device_replica)
{
    const struct tracked_call *call = track_oldest(device_replica);
    return call != NULL && is_over(device_replica, call->reached);
}

void device_track_finish(struct device_replica *device_replica)
{
    for (uint32_t i = 0; device_replica->device != NULL && i < TRACKED_CALLS; i++) {
        void *const events[] = {device_replica->calls[i].reached, device_replica->calls[i].gone};
        for (size_t k = 0; k < 2; k++) {
            if (events[k] != NULL) {
                device_replica->device->ops->event_close(events[k]);
            }
        }
    }
}
