/* SPDX-License-Identifier: Apache-2.0
 * The loop's thread blocks in gRPC's completion queue, which gets an event when libuv's descriptor
 * is ready (watch.h). */
#include "common/rpc/loop_state.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/loop.h"
#include "common/rpc/watch.h"

#include <pthread.h>
#include <stdatomic.h>

#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <uv.h>

/* How often one run looks whether more has come, when the loop is polled. */
#define SETTLE_TURNS 16

/* A function posted by some thread. */
struct post {
    struct post *next;
    rpc_loop_fn *fn;
    void *user;
};

struct rpc_loop {
    grpc_completion_queue *queue;
    struct rpc_queue_thread
        *queue_thread; /* waits in the queue when the program polls the loop; else NULL */
    uv_loop_t uv;
    uv_async_t anchor; /* never sent: with one active handle libuv always has a backend to poll */
    bool running;
    atomic_bool stopping;
    rpc_loop_fn *turn_end;
    void *turn_end_user;
    struct rpc_deferred *deferred_head, *deferred_tail;
    int opened, live;

    /* Waking: gRPC's public interface has one way to put an event on the queue, an empty batch
     * on a call that never gets anywhere. The watch and the posters (under their lock) have a
     * call and a tag each. */
    grpc_channel *lame;
    grpc_call *watch_call;
    struct rpc_tag watch_tag;
    struct rpc_watch *watch; /* of libuv's descriptor */
    bool is_ready;           /* it has reported libuv's events and is not armed */

    pthread_mutex_t post_lock;
    grpc_call *post_call;
    struct rpc_tag post_tag;
    bool post_woken; /* under the lock: the tag is outstanding */
    struct post *post_head, *post_tail;
};

grpc_completion_queue *rpc_loop_queue(struct rpc_loop *loop)
{
    return loop->queue;
}

struct uv_loop_s *rpc_loop_uv(struct rpc_loop *loop)
{
    return &loop->uv;
}

void rpc_loop_on_turn_end(struct rpc_loop *loop, rpc_loop_fn *fn, void *user)
{
    CADRE_ASSERT(fn == NULL || loop->turn_end == NULL);
    loop->turn_end = fn;
    loop->turn_end_user = user;
}

void rpc_loop_count(struct rpc_loop *loop, int opened, int live)
{
    loop->opened += opened;
    loop->live += live;
    CADRE_ASSERT(loop->opened >= 0 && loop->live >= loop->opened);
}

void rpc_loop_start(
    struct rpc_loop *loop, grpc_call *call, const grpc_op *ops, size_t count, struct rpc_tag *tag)
{
    (void)loop;
    RPC_TAG_RELEASE(tag);
    grpc_call_error refused = grpc_call_start_batch(call, ops, count, tag, NULL);
    CADRE_ASSERT(refused == GRPC_CALL_OK);
}

void rpc_loop_defer(struct rpc_loop *loop, struct rpc_deferred *deferred)
{
    if (deferred->queued) {
        return;
    }
    deferred->queued = true;
    deferred->next = NULL;
    if (loop->deferred_tail != NULL) {
        loop->deferred_tail->next = deferred;
    } else {
        loop->deferred_head = deferred;
    }
    loop->deferred_tail = deferred;
    if (loop->queue_thread != NULL && !loop->running) {
        rpc_queue_thread_wake(loop->queue_thread);
    }
}

static void run_deferred(struct rpc_loop *loop)
{
    while (loop->deferred_head != NULL) {
        struct rpc_deferred *deferred = loop->deferred_head;
        loop->deferred_head = deferred->next;
        if (loop->deferred_head == NULL) {
            loop->deferred_tail = NULL;
        }
        deferred->queued = false;
        deferred->run(deferred->owner);
    }
}

/* ---- waking ---- */

/* In any thread. */
static void on_watch_ready(void *user)
{
    struct rpc_loop *loop = user;
    rpc_loop_start(loop, loop->watch_call, NULL, 0, &loop->watch_tag);
}

static void backend_ready(void *owner, bool ok)
{
    struct rpc_loop *loop = owner;
    (void)ok;
    loop->is_ready = true;
}

/* Runs what libuv has ready, then arms the watch again. Looking for events costs a system
 * call, so libuv is left alone when it has nothing due and the watch has reported nothing: it
 * will report what becomes ready meanwhile. Nothing due (a timeout other than 0) includes that
 * no handle is closing and that the kernel has all descriptors. */
static void run_uv(struct rpc_loop *loop)
{
    uv_update_time(&loop->uv);
    if (!loop->is_ready && uv_backend_timeout(&loop->uv) != 0) {
        return;
    }
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    if (loop->is_ready) {
        loop->is_ready = false;
        rpc_watch_arm(loop->watch);
    }
}

static void wake_locked(struct rpc_loop *loop)
{
    if (!loop->post_woken) {
        loop->post_woken = true;
        rpc_loop_start(loop, loop->post_call, NULL, 0, &loop->post_tag);
    }
}

void rpc_loop_post(struct rpc_loop *loop, rpc_loop_fn *fn, void *user)
{
    struct post *post = gpr_malloc(sizeof *post);
    *post = (struct post){.fn = fn, .user = user};
    pthread_mutex_lock(&loop->post_lock);
    if (loop->post_tail != NULL) {
        loop->post_tail->next = post;
    } else {
        loop->post_head = post;
    }
    loop->post_tail = post;
    wake_locked(loop);
    pthread_mutex_unlock(&loop->post_lock);
}

void rpc_loop_stop(struct rpc_loop *loop)
{
    atomic_store(&loop->stopping, true);
    pthread_mutex_lock(&loop->post_lock);
    wake_locked(loop);
    pthread_mutex_unlock(&loop->post_lock);
}

static void run_posts(void *owner, bool ok)
{
    struct rpc_loop *loop = owner;
    (void)ok;
    pthread_mutex_lock(&loop->post_lock);
    struct post *post = loop->post_head;
    loop->post_head = NULL;
    loop->post_tail = NULL;
    loop->post_woken = false;
    pthread_mutex_unlock(&loop->post_lock);
    while (post != NULL) {
        struct post *next = post->next;
        post->fn(post->user);
        gpr_free(post);
        post = next;
    }
}

/* ---- turning ---- */

static grpc_event next_event(struct rpc_loop *loop, gpr_timespec until)
{
    return loop->queue_thread != NULL ? rpc_queue_thread_next(loop->queue_thread, until)
                                      : grpc_completion_queue_next(loop->queue, until, NULL);
}

static void rpc_loop_dispatch(struct rpc_loop *loop, grpc_event event)
{
    struct rpc_tag *tag = event.tag;
    RPC_TAG_ACQUIRE(tag);
    tag->complete(tag->owner, event.success != 0);
    run_deferred(loop);
}

/* Waits for the first completion until `until`, handles all that are ready, then ends the turn.
 * Returns false when the bound cut it short: more is ready, so the next turn must not wait. */
static bool run_turn(struct rpc_loop *loop, gpr_timespec until)
{
    int handled = 0;
    grpc_event event = next_event(loop, until);
    while (event.type == GRPC_OP_COMPLETE) {
        rpc_loop_dispatch(loop, event);
        if (++handled == RPC_EVENTS_PER_TURN_MAX) {
            break;
        }
        event = next_event(loop, gpr_inf_past(GPR_CLOCK_MONOTONIC));
    }
    run_uv(loop);
    run_deferred(loop);
    if (loop->turn_end != NULL) {
        loop->turn_end(loop->turn_end_user);
        run_deferred(loop);
    }
    return handled < RPC_EVENTS_PER_TURN_MAX;
}

/* Until when the next turn may wait: libuv's next timer, at most `deadline_us`. Zero when libuv has
 * something to do at once, which includes descriptors that it has not handed to the kernel yet. */
static gpr_timespec wait_until(struct rpc_loop *loop, uint64_t deadline_us)
{
    uv_update_time(&loop->uv);
    int timeout_ms = uv_backend_timeout(&loop->uv);
    if (timeout_ms == 0) {
        return gpr_inf_past(GPR_CLOCK_MONOTONIC);
    }
    if (timeout_ms > 0) {
        uint64_t timer_us = clock_monotonic_us() + (uint64_t)timeout_ms * CADRE_US_PER_MS;
        deadline_us = timer_us < deadline_us ? timer_us : deadline_us;
    }
    if (deadline_us >= (uint64_t)INT64_MAX) {
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    }
    return gpr_time_from_micros((int64_t)deadline_us, GPR_CLOCK_MONOTONIC);
}

/* A program that polls the loop must not be woken for events that were there before: they are
 * handled first, or stay reported. */
static void rpc_loop_settle(struct rpc_loop *loop)
{
    if (loop->queue_thread == NULL) {
        return;
    }
    bool more = true;
    for (int turns = 0; turns < SETTLE_TURNS && more; turns++) {
        run_turn(loop, gpr_inf_past(GPR_CLOCK_MONOTONIC));
        more = !rpc_queue_thread_clear(loop->queue_thread);
    }
    if (atomic_load(&loop->stopping)) {
        rpc_queue_thread_wake(loop->queue_thread);
    }
}

cadre_status rpc_loop_run_until(struct rpc_loop *loop, const bool *done, uint64_t deadline_us)
{
    CADRE_ASSERT(!loop->running);
    loop->running = true;
    cadre_status status = CADRE_OK;
    bool may_wait = false; /* the first turn only picks up what was started before */
    run_deferred(loop);
    while (!*done) {
        if (atomic_exchange(&loop->stopping, false)) {
            status = CADRE_CANCELLED;
            break;
        }
        if (deadline_us != CADRE_TIME_NEVER && clock_monotonic_us() >= deadline_us) {
            status = CADRE_DEADLINE_EXCEEDED;
            break;
        }
        may_wait = run_turn(
            loop, may_wait ? wait_until(loop, deadline_us) : gpr_inf_past(GPR_CLOCK_MONOTONIC));
    }
    rpc_loop_settle(loop);
    loop->running = false;
    return status;
}

cadre_status rpc_loop_fd(struct rpc_loop *loop, int *ret_fd, struct cadre_error *error)
{
    if (loop->queue_thread == NULL) {
        CADRE_TRY(rpc_queue_thread_open(loop->queue, &loop->queue_thread, error));
        rpc_queue_thread_wake(loop->queue_thread); /* whatever was started before */
    }
    *ret_fd = rpc_queue_thread_fd(loop->queue_thread);
    return CADRE_OK;
}

void rpc_loop_run(struct rpc_loop *loop)
{
    const bool never = false;
    rpc_loop_run_until(loop, &never, CADRE_TIME_NEVER);
}

/* ---- lifetime ---- */

/* gRPC is started once and never shut down: after a write that had to wait, grpc_shutdown()
 * joins a thread that polls for up to ten seconds more, and every program would end with that
 * pause. What it holds is reachable memory and idle threads, which end with the process. */
static void start_grpc(void)
{
    rpc_tune_log_default();
    grpc_init();
    rpc_watch_find_set();
}

static void open_queue(struct rpc_loop *loop)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_grpc);
    loop->queue = grpc_completion_queue_create_for_next(NULL);
    loop->lame = grpc_lame_client_channel_create("wake", GRPC_STATUS_UNAVAILABLE, "never sent");
    gpr_timespec never = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    grpc_slice method = grpc_slice_from_static_string("/wake");
    loop->watch_call = grpc_channel_create_call(
        loop->lame, NULL, GRPC_PROPAGATE_DEFAULTS, loop->queue, method, NULL, never, NULL);
    loop->post_call = grpc_channel_create_call(
        loop->lame, NULL, GRPC_PROPAGATE_DEFAULTS, loop->queue, method, NULL, never, NULL);
    loop->watch_tag = (struct rpc_tag){.complete = backend_ready, .owner = loop};
    loop->post_tag = (struct rpc_tag){.complete = run_posts, .owner = loop};
}

static void close_queue(struct rpc_loop *loop)
{
    grpc_call_unref(loop->watch_call);
    grpc_call_unref(loop->post_call);
    grpc_channel_destroy(loop->lame);
    grpc_completion_queue_shutdown(loop->queue);
    for (;;) {
        grpc_event event = next_event(loop, gpr_inf_future(GPR_CLOCK_MONOTONIC));
        if (event.type == GRPC_QUEUE_SHUTDOWN) {
            break;
        }
        rpc_loop_dispatch(loop, event);
    }
    if (loop->queue_thread != NULL) {
        rpc_queue_thread_close(loop->queue_thread);
        loop->queue_thread = NULL;
    }
    grpc_completion_queue_destroy(loop->queue);
}

/* Lets libuv finish the handles that are closing. One that the program left open is a bug there. */
static void close_uv(struct rpc_loop *loop)
{
    uv_close((uv_handle_t *)&loop->anchor, NULL);
    for (int left = 16; left > 0 && uv_loop_alive(&loop->uv) != 0; left--) {
        uv_run(&loop->uv, UV_RUN_NOWAIT);
    }
    int busy = uv_loop_close(&loop->uv);
    CADRE_ASSERT(busy == 0);
}

cadre_status rpc_loop_open(struct rpc_loop **ret_loop, struct cadre_error *error)
{
    *ret_loop = NULL;
    struct rpc_loop *loop = gpr_zalloc(sizeof *loop);
    int failed = uv_loop_init(&loop->uv);
    if (failed != 0) {
        gpr_free(loop);
        return cadre_error_errno(error, -failed, "event loop: libuv does not start");
    }
    failed = uv_async_init(&loop->uv, &loop->anchor, NULL);
    CADRE_ASSERT(failed == 0);
    pthread_mutex_init(&loop->post_lock, NULL);
    open_queue(loop);
    run_uv(loop); /* hands the anchor's descriptor to the kernel */
    cadre_status status =
        rpc_watch_open(uv_backend_fd(&loop->uv), on_watch_ready, loop, &loop->watch, error);
    if (status != CADRE_OK) {
        close_queue(loop);
        pthread_mutex_destroy(&loop->post_lock);
        close_uv(loop);
        gpr_free(loop);
        return status;
    }
    *ret_loop = loop;
    return CADRE_OK;
}

void rpc_loop_close(struct rpc_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    CADRE_ASSERT(!loop->running && loop->opened == 0);
    run_deferred(loop);
    bool may_wait = false;
    while (loop->live > 0) {
        may_wait = run_turn(loop,
            may_wait ? wait_until(loop, CADRE_TIME_NEVER) : gpr_inf_past(GPR_CLOCK_MONOTONIC));
    }
    rpc_watch_close(loop->watch);
    close_queue(loop);
    close_uv(loop);
    pthread_mutex_destroy(&loop->post_lock);
    gpr_free(loop);
}
