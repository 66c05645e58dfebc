/* SPDX-License-Identifier: Apache-2.0
 * Waiting for a device, and one stream for another. A kernel of a step takes microseconds, a
 * collective may take for ever: so a thread tests for a while without a pause, because most waits
 * end soon, then yields its processor, and in long waits sleeps between two tests, so that a wait
 * is at most half a percent longer. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/clock.h"
#include "worker/library/device/device.h"
#include "worker/library/device/device_open.h"

#define SPIN_US      UINT64_C(50)
#define YIELD_US     UINT64_C(10000)
#define SLEEP_PART   256 /* of the wait so far: the most that a sleep is too long by */
#define SLEEP_MAX_US UINT64_C(2000)
#define STOP_EVERY_US                                                                              \
    UINT64_C(2000) /* how often `stop` is called, from the end of the spinning on */

struct device_lent {
    struct device_lent *next;
    cadre_tensor *tensor;
    void *event;
};

cadre_status device_event_take(struct device *device, void **ret_event, struct cadre_error *error)
{
    struct open_device *open = open_of(device);
    *ret_event = NULL;
    pthread_mutex_lock(&open->lock);
    if (open->event_count > 0) {
        *ret_event = open->events[--open->event_count];
    }
    pthread_mutex_unlock(&open->lock);
    return *ret_event != NULL ? CADRE_OK : device->ops->event_open(device->index, ret_event, error);
}

void device_event_give(struct device *device, void *event)
{
    struct open_device *open = open_of(device);
    if (event == NULL) {
        return;
    }
    pthread_mutex_lock(&open->lock);
    bool kept = open->event_count < DEVICE_EVENTS_KEPT;
    if (kept) {
        open->events[open->event_count++] = event;
    }
    pthread_mutex_unlock(&open->lock);
    if (!kept) {
        device->ops->event_close(event);
    }
}

cadre_status device_order(
    struct device *device, void *before, void *after, struct cadre_error *error)
{
    void *event = NULL;
    if (before == after) {
        return CADRE_OK;
    }
    CADRE_TRY(device_event_take(device, &event, error));
    cadre_status status = device->ops->event_record(event, before, error);
    if (status == CADRE_OK) {
        status = device->ops->stream_wait(after, event, error);
    }
    /* The wait is for what was recorded until now: the event may be recorded again. */
    device_event_give(device, event);
    return status;
}

static void sleep_us(uint64_t us)
{
    const struct timespec pause = {.tv_nsec = (long)(us * 1000)};
    (void)ppoll(NULL, 0, &pause, NULL);
}

cadre_status device_wait_event(struct device *device, void *event, uint64_t timeout_us,
    device_stop stop, void *user, struct cadre_error *error)
{
    uint64_t begun_us = clock_monotonic_us();
    uint64_t asked_us = begun_us;
    for (;;) {
        cadre_status status = device->ops->event_test(event, error);
        if (status != CADRE_PENDING) {
            return status;
        }
        uint64_t now_us = clock_monotonic_us();
        uint64_t waited_us = now_us - begun_us;
        if (waited_us < SPIN_US) {
            continue;
        }
        if (stop != NULL && now_us - asked_us >= STOP_EVERY_US) {
            asked_us = now_us;
            CADRE_TRY(stop(user, error));
        }
        if (timeout_us != 0 && waited_us >= timeout_us) {
            return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED,
                "%s:%u has not done its work after %.1f s", device->ops->type, device->index,
                (double)waited_us / (double)CADRE_US_PER_S);
        }
        if (waited_us < YIELD_US) {
            (void)sched_yield();
            continue;
        }
        uint64_t pause_us = waited_us / SLEEP_PART;
        sleep_us(pause_us < SLEEP_MAX_US ? pause_us : SLEEP_MAX_US);
    }
}

cadre_status device_wait_stream(struct device *device, void *stream, uint64_t timeout_us,
    device_stop stop, void *user, struct cadre_error *error)
{
    void *event = NULL;
    cadre_status status = device->ops->stream_test(stream, error);
    if (status != CADRE_PENDING) {
        return status;
    }
    CADRE_TRY(device_event_take(device, &event, error));
    status = device->ops->event_record(event, stream, error);
    if (status == CADRE_OK) {
        status = device_wait_event(device, event, timeout_us, stop, user, error);
    }
    device_event_give(device, event);
    return status;
}

/* --- lending --- */

/* Takes those that are done (or failed: then no more copies run there) off the list. */
static struct device_lent *take_done(struct open_device *open)
{
    struct device_lent *done = NULL;
    pthread_mutex_lock(&open->lock);
    for (struct device_lent **at = &open->lent; *at != NULL;) {
        struct device_lent *lent = *at;
        if (open->device.ops->event_test(lent->event, NULL) == CADRE_PENDING) {
            at = &lent->next;
            continue;
        }
        *at = lent->next;
        lent->next = done;
        done = lent;
    }
    pthread_mutex_unlock(&open->lock);
    return done;
}

static void device_wait_sweep(struct device *device)
{
    struct device_lent *done = take_done(open_of(device));
    while (done != NULL) {
        struct device_lent *lent = done;
        done = lent->next;
        device_event_give(device, lent->event);
        cadre_tensor_release(lent->tensor);
        free(lent);
    }
}

cadre_status device_lend(
    struct device *device, void *stream, const cadre_tensor *tensor, struct cadre_error *error)
{
    struct open_device *open = open_of(device);
    struct device_lent *lent = calloc(1, sizeof *lent);
    device_wait_sweep(device);
    if (lent == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a copy's end");
    }
    cadre_status status = device_event_take(device, &lent->event, error);
    if (status == CADRE_OK) {
        status = device->ops->event_record(lent->event, stream, error);
    }
    if (status != CADRE_OK) {
        device_event_give(device, lent->event);
        free(lent);
        return status;
    }
    lent->tensor = cadre_tensor_retain((cadre_tensor *)(uintptr_t)tensor);
    pthread_mutex_lock(&open->lock);
    lent->next = open->lent;
    open->lent = lent;
    pthread_mutex_unlock(&open->lock);
    return CADRE_OK;
}
