/* SPDX-License-Identifier: Apache-2.0
 * A thread that watches the local replicas of a step: who waits for whom, since when; it warns,
 * reports, and ends the process. strategy_lifecycle/ opens it. */
#include "worker/library/runtime/step/hang_watch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"

#define NAMED_US (10 * CADRE_US_PER_S)
#define AGAIN_US (5 * CADRE_US_PER_S) /* between two reports to the coordinator */
#define LOOK_US  (CADRE_US_PER_S / 2)
#define LATE_US                                                                                    \
    CADRE_US_PER_S  /* beyond the time of a collective, in which the replica itself fails the step \
                     */
#define LOOKS_MIN 8 /* in the time of a collective */

/* How long the others have waited for one replica, at one point of it. */
struct waiting {
    uint64_t step; /* steps begun then */
    uint32_t collectives;
    uint64_t waited_us;
    bool named;
};

struct hang_watch {
    cadre_strategy *strategy;
    uint64_t limit_us; /* 0: for ever */
    uint64_t look_us;
    uint64_t unreported_us; /* since the last report to the coordinator */
    pthread_t thread;
    pthread_mutex_t lock; /* over `closing` */
    pthread_cond_t changed;
    bool closing;
    struct waiting waiting[]; /* by local id */
};

/* --- which replica hangs --- */

/* The activity of all replicas at one moment. */
struct view {
    uint64_t step;
    uint32_t least;     /* collectives that a working replica has begun */
    bool others_wait;   /* for one that has begun the least */
    bool in_collective; /* they do, some of them */
    bool in_meeting;    /* or in cadre_merge_call */
    bool all_meet;      /* the function of cadre_merge_call runs, by local replica 0 */
};

static struct view view_of(const cadre_strategy *strategy)
{
    struct view view = {.step = atomic_load(&strategy->step.begun), .least = UINT32_MAX};
    uint32_t meet = 0;
    uint32_t away = 0;
    uint32_t most = 0;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        const cadre_replica *replica = &strategy->replicas[i];
        uint32_t begun = atomic_load(&replica->collectives);
        unsigned doing = atomic_load(&replica->doing);
        meet += doing == REPLICA_IN_MERGE ? 1 : 0;
        away += doing == REPLICA_IDLE ? 1 : 0;
        most = begun > most ? begun : most; /* one that gave up waiting has left it already */
        if (doing == REPLICA_RUNNING) {
            view.least = begun < view.least ? begun : view.least;
        }
    }
    view.in_meeting = meet > 0;
    CADRE_ASSERT(meet + away <= strategy->local_replicas);
    view.all_meet = meet == strategy->local_replicas;
    view.in_collective = view.least != UINT32_MAX && most > view.least;
    view.others_wait = view.in_collective || meet > 0 || away > 0;
    return view;
}

static bool hang_watch_holds(const struct view *view, const cadre_replica *replica)
{
    if (view->all_meet) {
        return replica->local == 0;
    }
    return view->others_wait && atomic_load(&replica->doing) == REPLICA_RUNNING &&
           atomic_load(&replica->collectives) == view->least;
}

/* --- reports --- */

static struct task_hang hang_of(const struct view *view, const cadre_replica *replica)
{
    struct task_hang hang = {.at = HANG_RETURN, .replica = replica->id};
    if (view->all_meet) {
        hang.at = HANG_MERGE;
    } else if (view->in_collective) {
        hang.at = HANG_COLLECTIVE;
        hang.collective = view->least + 1;
    } else if (view->in_meeting) {
        hang.at = HANG_MEETING;
    }
    return hang;
}

static void describe_call(const struct task_hang *hang, uint64_t position, char text[128])
{
    switch (hang->at) {
    case HANG_MERGE:
        snprintf(text, 128, "the function of cadre_merge_call in step %" PRIu64 " has not returned",
            position);
        return;
    case HANG_COLLECTIVE:
        snprintf(text, 128,
            "replica %" PRIu32 " has not come to collective %" PRIu32 " of step %" PRIu64,
            hang->replica, hang->collective, position);
        return;
    case HANG_MEETING:
        snprintf(text, 128, "replica %" PRIu32 " has not come to cadre_merge_call in step %" PRIu64,
            hang->replica, position);
        return;
    case HANG_NONE:
    case HANG_RETURN:
        snprintf(text, 128,
            "replica %" PRIu32 " has not returned from its function in step %" PRIu64,
            hang->replica, position);
        return;
    }
}

static void hang_watch_name(const cadre_strategy *strategy, const struct task_hang *hang)
{
    char text[128];
    describe_call(hang, strategy_position(strategy), text);
    show_warning("%s for 10 s, and the other replicas of its task wait for it", text);
}

/* Waits for nothing of the program, because another thread of it may hold any lock. */
static void hang_watch_end(const struct hang_watch *watch, const struct task_hang *hang)
{
    char text[128];
    struct cadre_error error;
    describe_call(hang, strategy_position(watch->strategy), text);
    cadre_error_set(&error, CADRE_DEADLINE_EXCEEDED,
        "%s within %" PRIu64 " s (CADRE_COLLECTIVE_TIMEOUT_S); a thread cannot be stopped, so the "
        "process ends; look for what it waits for",
        text, watch->limit_us / CADRE_US_PER_S);
    show_failure(&error);
    _exit(1);
}

/* Reports the first replica that hangs, and how many others do. */
static void hang_watch_report(
    struct hang_watch *watch, const struct task_hang *hang, uint64_t waited_us, bool news)
{
    if (hang->at == HANG_NONE || (!news && watch->unreported_us < AGAIN_US)) {
        return;
    }
    watch->unreported_us = 0;
    task_hang(watch->strategy->task, hang, waited_us);
}

static void hang_watch_look(struct hang_watch *watch, uint64_t passed_us)
{
    cadre_strategy *strategy = watch->strategy;
    uint64_t limit_us = watch->limit_us;
    uint64_t late_us = limit_us / 4 < LATE_US ? limit_us / 4 : LATE_US;
    struct task_hang first = {.at = HANG_NONE};
    uint64_t waited_us = 0;
    bool news = false;
    watch->unreported_us += passed_us;
    if (!atomic_load(&strategy->step.running)) {
        return;
    }
    const struct view view = view_of(strategy);
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        const cadre_replica *replica = &strategy->replicas[i];
        struct waiting *waiting = &watch->waiting[i];
        uint32_t begun = atomic_load(&replica->collectives);
        bool same = waiting->step == view.step && waiting->collectives == begun;
        if (!same || !hang_watch_holds(&view, replica)) {
            *waiting = (struct waiting){.step = view.step, .collectives = begun};
            continue;
        }
        const struct task_hang hang = hang_of(&view, replica);
        waiting->waited_us += passed_us;
        if (limit_us > 0 && waiting->waited_us >= limit_us + late_us) {
            hang_watch_end(watch, &hang);
        }
        if (waiting->waited_us < NAMED_US) {
            continue;
        }
        if (!waiting->named) {
            waiting->named = true;
            news = true;
            hang_watch_name(strategy, &hang);
        }
        if (first.at == HANG_NONE) {
            first = hang;
            waited_us = waiting->waited_us;
        } else {
            first.others++;
        }
    }
    hang_watch_report(watch, &first, waited_us, news);
}

/* --- the thread --- */

/* A process that was stopped for an hour has not waited for one: the time between two looks counts
 * as twice the planned one at most. */
static void *watch_on(void *user)
{
    struct hang_watch *watch = user;
    crash_thread("hang watch", 0);
    uint64_t last_us = clock_monotonic_us();
    pthread_mutex_lock(&watch->lock);
    while (!watch->closing) {
        (void)thread_wait_until(
            &watch->changed, &watch->lock, clock_monotonic_us() + watch->look_us);
        pthread_mutex_unlock(&watch->lock);
        uint64_t now_us = clock_monotonic_us();
        uint64_t passed_us = now_us - last_us;
        last_us = now_us;
        hang_watch_look(watch, passed_us < 2 * watch->look_us ? passed_us : 2 * watch->look_us);
        pthread_mutex_lock(&watch->lock);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

static void hang_watch_dispose(struct hang_watch *watch)
{
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

cadre_status hang_watch_open(
    struct cadre_strategy *strategy, struct hang_watch **ret_watch, struct cadre_error *error)
{
    uint32_t count = strategy->local_replicas;
    *ret_watch = NULL;
    if (count < 2) {
        return CADRE_OK;
    }
    struct hang_watch *watch = calloc(1, sizeof *watch + count * sizeof watch->waiting[0]);
    if (watch == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to watch %" PRIu32 " replicas", count);
    }
    uint64_t limit_us = strategy->environment->collective_timeout_us;
    bool often = limit_us > 0 && limit_us / LOOKS_MIN < LOOK_US;
    watch->strategy = strategy;
    watch->limit_us = limit_us;
    watch->look_us = often ? limit_us / LOOKS_MIN : LOOK_US;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->changed, NULL);
    int errnum = thread_start(&watch->thread, watch_on, watch);
    if (errnum != 0) {
        hang_watch_dispose(watch);
        return cadre_error_errno(error, errnum, "start the thread that watches the replicas");
    }
    *ret_watch = watch;
    return CADRE_OK;
}

void hang_watch_close(struct hang_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    pthread_mutex_lock(&watch->lock);
    watch->closing = true;
    pthread_cond_broadcast(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    hang_watch_dispose(watch);
}
