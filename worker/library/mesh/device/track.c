/* SPDX-License-Identifier: Apache-2.0
 * Where a replica's device stands, for people: still at what it was given before a collective, or
 * in a collective that others have not come to. Only the order of its comm stream knows: an event
 * before each call of the communicator, and one behind it. The oldest calls that are not over are
 * kept; of more than there is room for nothing is known until they are the oldest. */
#include "worker/library/mesh/device/device_mesh.h"

static bool is_over(const struct seat *seat, void *event)
{
    return event == NULL || seat->device->ops->event_test(event, NULL) != CADRE_PENDING;
}

static struct tracked_call *oldest(struct seat *seat)
{
    while (seat->tracked > 0) {
        struct tracked_call *call = &seat->calls[seat->tracked_first];
        if (!is_over(seat, call->gone)) {
            return call;
        }
        seat->tracked_first = (seat->tracked_first + 1) % TRACKED_CALLS;
        seat->tracked--;
    }
    return NULL;
}

/* Without an event nothing is known of the call, which goes on. */
static void record(struct seat *seat, void **event)
{
    const struct device *device = seat->device;
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

void device_track_enter(struct seat *seat)
{
    (void)oldest(seat);
    seat->tracking = seat->tracked < TRACKED_CALLS;
    if (seat->tracking) {
        record(seat, &seat->calls[(seat->tracked_first + seat->tracked) % TRACKED_CALLS].reached);
    }
}

void device_track_leave(struct seat *seat)
{
    if (seat->tracking) {
        record(seat, &seat->calls[(seat->tracked_first + seat->tracked) % TRACKED_CALLS].gone);
        seat->tracked++;
    }
}

bool device_track_waits(struct seat *seat)
{
    const struct tracked_call *call = oldest(seat);
    return call != NULL && is_over(seat, call->reached);
}

void device_track_finish(struct seat *seat)
{
    for (uint32_t i = 0; seat->device != NULL && i < TRACKED_CALLS; i++) {
        void *const events[] = {seat->calls[i].reached, seat->calls[i].gone};
        for (size_t k = 0; k < 2; k++) {
            if (events[k] != NULL) {
                seat->device->ops->event_close(events[k]);
            }
        }
    }
}
