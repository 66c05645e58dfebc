/* SPDX-License-Identifier: Apache-2.0
 * A backup that was given everything, and then reads no byte more: with a push of 64 MiB on its way
 * to it, which no buffer of a socket holds. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "server_rig.h"
#include "tests/lib/speed.h"
#include "worker/library/ps/server/server_internal.h"

enum { ROWS = 1024, ROW_ELEMENTS = 16384 };
#define VALUES_BYTES ((size_t)ROWS * ROW_ELEMENTS * sizeof(float))

/* Longer than anything else takes, and shorter than the kernel's own patience. */
#define SOON_US (8 * CADRE_US_PER_S)

/* Who stands in for ps 1. */
struct holder {
    struct link_listener *listener;
    struct link *_Atomic link;
    pthread_t thread;
    atomic_bool whole;
};

static void answer(struct link *link)
{
    const struct frame frame = {.kind = FRAME_ANSWER};
    struct cadre_error error = {0};
    assert_ok(link_send(link, &frame, NULL, 0, &error), &error);
}

static void *take_all(void *argument)
{
    struct holder *holder = argument;
    struct link *link = atomic_load(&holder->link);
    struct cadre_error error = {0};
    struct frame frame;
    uint8_t *bytes = malloc((size_t)2 << 20);
    assert_ok(link_receive(link, UINT64_MAX, &frame, &error), &error);
    assert_int_equal(frame.kind, FRAME_BACKUP);
    answer(link);
    assert_ok(link_receive(link, UINT64_MAX, &frame, &error), &error);
    assert_int_equal(frame.kind, FRAME_LOAD);
    do {
        assert_ok(link_receive(link, UINT64_MAX, &frame, &error), &error);
        assert_ok(link_receive_bytes(link, bytes, frame.bytes, &error), &error);
    } while (frame.bytes != 0);
    answer(link);
    free(bytes);
    atomic_store(&holder->whole, true);
    return NULL;
}

static void admit(void *user, struct link *link)
{
    struct holder *holder = user;
    if (atomic_load(&holder->link) != NULL) {
        link_free(link); /* it hangs: it serves no other connection either */
        return;
    }
    atomic_store(&holder->link, link);
    pthread_create(&holder->thread, NULL, take_all, holder);
}

static void hold(struct rig *rig, struct holder *holder)
{
    struct cadre_error error = {0};
    struct link_terms terms = rig_terms(rig, ps_job_first_slot(&rig->ps_job, ROLE_SERVER) + 1);
    const struct link_admission admission = {.admit = admit, .user = holder};
    terms.incarnation = 1000;
    assert_ok(link_listener_open("127.0.0.1", NULL, &holder->listener, rig->addresses[1], &error),
        &error);
    assert_ok(link_listener_start(holder->listener, &terms, &admission, &error), &error);
    rig->incarnations[1] = terms.incarnation;
    rig->attempts[1] = 1;
    rig_send_members(rig);
}

struct push_call {
    struct rig *rig;
    float *values;
    atomic_bool done;
    cadre_status status;
};

static void *push(void *argument)
{
    struct push_call *self = argument;
    struct request request = {.kind = REQUEST_PUSH,
        .row_bytes = ROW_ELEMENTS * sizeof(float),
        .push = {.kind = PUSH_ADD,
            .closure = 1,
            .rows = ROWS,
            .rate = NAN,
            .based_on = PUSH_ANY_VERSION},
        .values = self->values};
    self->status = client_call(self->rig->client, &request, 1, 0, NULL);
    atomic_store(&self->done, true);
    return NULL;
}

static bool is_set(void *data)
{
    return atomic_load((atomic_bool *)data);
}

static bool is_recorded(void *data)
{
    struct rig *rig = data;
    pthread_mutex_lock(&rig->lock);
    bool recorded = rig->backed[0].by == 1000;
    pthread_mutex_unlock(&rig->lock);
    return recorded;
}

/* More of it has come than anything else that a server sends, and no client reads it. */
static bool is_on_its_way(void *data)
{
    struct holder *holder = data;
    int waits = 0;
    assert_int_equal(ioctl(link_fd(atomic_load(&holder->link)), FIONREAD, &waits), 0);
    return waits > 1 << 16;
}

struct hung {
    struct rig rig;
    struct holder holder;
    struct push_call call;
    pthread_t thread;
};

/* A push is on its way to who does not take it. */
static void begin(struct hung *hung)
{
    struct store_spec spec = rig_spec("v", ROWS, ROW_ELEMENTS);
    rig_open_backed(&hung->rig, 2, 2);
    rig_start(&hung->rig, 0, -1);
    (void)rig_create(&hung->rig, 0, &spec);
    hold(&hung->rig, &hung->holder);
    assert_true(test_wait(is_set, &hung->holder.whole, RIG_PATIENCE_US));
    assert_true(test_wait(is_recorded, &hung->rig, RIG_PATIENCE_US));
    hung->call.rig = &hung->rig;
    hung->call.values = calloc(1, VALUES_BYTES);
    pthread_create(&hung->thread, NULL, push, &hung->call);
    assert_true(test_wait(is_on_its_way, &hung->holder, RIG_PATIENCE_US));
    assert_false(is_set(&hung->call.done));
}

static void clear(struct hung *hung)
{
    link_listener_close(hung->holder.listener);
    pthread_join(hung->holder.thread, NULL);
    link_free(atomic_load(&hung->holder.link));
    free(hung->call.values);
    rig_close(&hung->rig);
}

static void end(struct hung *hung)
{
    pthread_join(hung->thread, NULL);
    assert_int_equal(hung->call.status, CADRE_OK);
    rig_stop(&hung->rig, 0);
    clear(hung);
}

static void a_push_waits_no_longer_than_the_directory(void **state)
{
    (void)state;
    static struct hung hung;
    begin(&hung);
    hung.rig.incarnations[1] = 0;
    rig_send_members(&hung.rig);
    assert_true(test_wait(is_set, &hung.call.done, SOON_US));
    assert_int_equal(hung.rig.backed[0].by, 0);
    end(&hung);
}

/* Its machine is there, its daemon too: no other process reports that it hangs. */
static void who_takes_nothing_is_lost_after_a_while(void **state)
{
    (void)state;
    static struct hung hung;
    begin(&hung);
    assert_true(test_wait(is_set, &hung.call.done, RIG_PATIENCE_US));
    assert_int_equal(hung.rig.backed[0].by, 0);
    end(&hung);
}

/* The record comes before the answer. */
static void nothing_is_answered_before_it_is_recorded(void **state)
{
    (void)state;
    static struct hung hung;
    begin(&hung);
    rig_disconnect(&hung.rig, true);
    link_shutdown(atomic_load(&hung.holder.link));
    assert_false(test_wait(is_set, &hung.call.done, 2 * CADRE_US_PER_S));
    assert_int_equal(hung.rig.backed[0].by, 1000);
    rig_disconnect(&hung.rig, false);
    assert_true(test_wait(is_set, &hung.call.done, SOON_US));
    assert_int_equal(hung.rig.backed[0].by, 0);
    end(&hung);
}

/* A loop holds the lock of the change, and the backup's threads wait for it. */
static void a_server_that_stops_waits_for_no_client(void **state)
{
    (void)state;
    static struct hung hung;
    begin(&hung);
    uint64_t since_us = clock_monotonic_us();
    rig_stop(&hung.rig, 0);
    assert_true(clock_monotonic_us() - since_us < speed_scaled_us(SOON_US));
    client_close(hung.rig.client);
    hung.rig.client = NULL;
    pthread_join(hung.thread, NULL);
    assert_int_equal(hung.call.status, CADRE_CANCELLED);
    clear(&hung);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_waits_no_longer_than_the_directory),
        cmocka_unit_test(who_takes_nothing_is_lost_after_a_while),
        cmocka_unit_test(nothing_is_answered_before_it_is_recorded),
        cmocka_unit_test(a_server_that_stops_waits_for_no_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
