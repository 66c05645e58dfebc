/* SPDX-License-Identifier: Apache-2.0
 * The loop of run.h. A track is one request on its way: an attempt, maybe a second one beside it
 * (a hedge), or the pause before the next. Whichever of the two ends well first gives the answer;
 * both write the same bytes of the same version to the same memory, from one thread. */
#include "common/storage/s3/run.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/storage/transport/retry.h"

#define ATTEMPTS 2 /* of a track, at a time */

_Static_assert(S3_RUN_WIDTH *ATTEMPTS <= HTTP_CALLS_MAX, "all are waited for at once");

struct track {
    struct s3_ask *ask; /* NULL: the track is free */
    struct s3_attempt attempts[ATTEMPTS];
    struct retry retry;
    struct s3_tried tried;
    uint64_t begun_us; /* when the request was first sent */
    uint64_t due_us;   /* of the next attempt, while none is under way */
    uint64_t hedge_us; /* of the second one beside it; CADRE_TIME_NEVER: none */
};

struct run {
    struct s3_session *session;
    struct s3_ask *next, *end; /* not begun */
    struct track tracks[S3_RUN_WIDTH];
    bool starved; /* no connection was free: wait until one of ours is */
    struct cadre_error *error;
};

static bool is_under_way(const struct track *track)
{
    return track->attempts[0].call != NULL || track->attempts[1].call != NULL;
}

static bool any_under_way(const struct run *run)
{
    for (unsigned i = 0; i < S3_RUN_WIDTH; i++) {
        if (is_under_way(&run->tracks[i])) {
            return true;
        }
    }
    return false;
}

/* --- begin --- */

static void open_track(struct run *run, struct track *track, uint64_t now_us)
{
    struct s3_session *session = run->session;
    uint64_t number = atomic_fetch_add(&session->requests, 1);
    track->ask = run->next++;
    track->ask->attempts = 0;
    track->retry = retry_begin(now_us, session->deadline_us, number);
    track->tried = (struct s3_tried){0};
    track->begun_us = now_us;
    track->due_us = now_us;
    track->hedge_us = CADRE_TIME_NEVER;
}

static uint64_t hedge_time_us(struct run *run, const struct track *track)
{
    struct s3_session *session = run->session;
    if (!track->ask->may_hedge) {
        return CADRE_TIME_NEVER;
    }
    pthread_mutex_lock(&session->mutex);
    latency_asked(&session->latency);
    uint64_t after_us = latency_hedge_us(&session->latency, track->ask->to_bytes);
    pthread_mutex_unlock(&session->mutex);
    return after_us == UINT64_MAX ? CADRE_TIME_NEVER : track->attempts[0].begun_us + after_us;
}

/* A request that has no attempt gets one where it is due; the first of a call waits for a
 * connection, others take what is free. */
static cadre_status begin_due(struct run *run, struct track *track, uint64_t now_us)
{
    if (track->ask == NULL || is_under_way(track) || run->starved || now_us < track->due_us) {
        return CADRE_OK;
    }
    bool must_wait = !any_under_way(run);
    const struct s3_ask *ask = track->ask;
    cadre_status status = s3_attempt_begin(
        run->session, ask, track->retry.deadline_us, must_wait, &track->attempts[0], run->error);
    if (status == CADRE_UNAVAILABLE && /* of what gives credentials */
        retry_again(&track->retry, clock_monotonic_us(), false, &track->due_us)) {
        return CADRE_OK;
    }
    if (status != CADRE_OK) {
        return s3_blame(ask->operation, ask->path, status, run->error);
    }
    run->starved = track->attempts[0].call == NULL;
    if (!run->starved) {
        track->ask->attempts++;
        track->hedge_us = hedge_time_us(run, track);
    }
    return CADRE_OK;
}

/* The next request, unless no connection is free for it: its time does not run before. */
static cadre_status begin_next(struct run *run, struct track *track, uint64_t now_us)
{
    open_track(run, track, now_us);
    cadre_status status = begin_due(run, track, now_us);
    if (status == CADRE_OK && run->starved) {
        track->ask = NULL;
        run->next--;
    }
    return status;
}

/* A second attempt that cannot be begun is none. */
static void begin_hedge(struct run *run, struct track *track, uint64_t now_us)
{
    if (track->ask == NULL || now_us < track->hedge_us || !is_under_way(track)) {
        return;
    }
    track->hedge_us = CADRE_TIME_NEVER;
    pthread_mutex_lock(&run->session->mutex);
    bool allowed = latency_hedge(&run->session->latency);
    pthread_mutex_unlock(&run->session->mutex);
    if (allowed) {
        CADRE_ASSERT(track->attempts[1].call == NULL);
        (void)s3_attempt_begin(
            run->session, track->ask, track->retry.deadline_us, false, &track->attempts[1], NULL);
    }
}

static cadre_status begin_all(struct run *run)
{
    uint64_t now_us = clock_monotonic_us();
    for (unsigned i = 0; i < S3_RUN_WIDTH; i++) { /* what was begun comes first */
        CADRE_TRY(begin_due(run, &run->tracks[i], now_us));
        begin_hedge(run, &run->tracks[i], now_us);
    }
    for (unsigned i = 0; i < S3_RUN_WIDTH; i++) {
        if (run->tracks[i].ask == NULL && run->next < run->end && !run->starved) {
            CADRE_TRY(begin_next(run, &run->tracks[i], now_us));
        }
    }
    return CADRE_OK;
}

/* --- end --- */

static void close_track(struct run *run, struct track *track)
{
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        s3_attempt_end(run->session, &track->attempts[i]);
    }
    track->ask = NULL;
}

static void take_latency(struct run *run, const struct track *track)
{
    if (track->ask->may_hedge && track->ask->attempts == 1) {
        pthread_mutex_lock(&run->session->mutex);
        latency_took(&run->session->latency, track->ask->to_bytes,
            clock_monotonic_us() - track->attempts[0].begun_us);
        pthread_mutex_unlock(&run->session->mutex);
    }
}

/* The attempt failed, and no other one of the request is under way. */
static cadre_status repeat_or_fail(
    struct run *run, struct track *track, const struct s3_outcome *outcome)
{
    uint64_t now_us = clock_monotonic_us();
    if (outcome->at_once) {
        track->due_us = now_us;
        return CADRE_OK;
    }
    if (outcome->repeat && retry_again(&track->retry, now_us, outcome->slow_down, &track->due_us)) {
        return CADRE_OK;
    }
    if (run->error != NULL) {
        *run->error = outcome->error;
    }
    if (!outcome->repeat) {
        return outcome->status;
    }
    return cadre_error_set(run->error, outcome->status, "%s (asked %u times in %.1f s)",
        outcome->error.text, track->ask->attempts,
        (double)(now_us - track->begun_us) / (double)CADRE_US_PER_S);
}

static cadre_status end_one(struct run *run, struct track *track, struct s3_attempt *attempt)
{
    struct s3_outcome outcome;
    s3_attempt_judge(run->session, track->ask, &track->tried, attempt, &outcome);
    if (outcome.status == CADRE_OK) {
        take_latency(run, track);
        close_track(run, track);
        return CADRE_OK;
    }
    s3_attempt_end(run->session, attempt);
    if (is_under_way(track) && (outcome.repeat || outcome.at_once)) {
        return CADRE_OK; /* the other one may do better */
    }
    track->hedge_us = CADRE_TIME_NEVER;
    return repeat_or_fail(run, track, &outcome);
}

/* --- the loop --- */

static bool is_done(const struct run *run)
{
    bool done = run->next == run->end;
    for (unsigned i = 0; i < S3_RUN_WIDTH; i++) {
        done = done && run->tracks[i].ask == NULL;
    }
    return done;
}

static uint64_t wakes_us(const struct run *run)
{
    uint64_t wake_us = CADRE_TIME_NEVER;
    for (unsigned i = 0; i < S3_RUN_WIDTH; i++) {
        const struct track *track = &run->tracks[i];
        if (track->ask == NULL || (run->starved && !is_under_way(track))) {
            continue;
        }
        uint64_t at_us = is_under_way(track) ? track->hedge_us : track->due_us;
        wake_us = at_us < wake_us ? at_us : wake_us;
    }
    return wake_us;
}

/* Waits for what happens next. */
static cadre_status wait_one(struct run *run)
{
    struct http_call *calls[S3_RUN_WIDTH * ATTEMPTS];
    for (unsigned i = 0; i < S3_RUN_WIDTH * ATTEMPTS; i++) {
        calls[i] = run->tracks[i / ATTEMPTS].attempts[i % ATTEMPTS].call;
    }
    size_t count = CADRE_COUNT_OF(calls);
    size_t which = http_wait(run->session->http, calls, count, wakes_us(run));
    if (which == count) {
        return CADRE_OK;
    }
    run->starved = false; /* a connection becomes free */
    struct track *track = &run->tracks[which / ATTEMPTS];
    return end_one(run, track, &track->attempts[which % ATTEMPTS]);
}

cadre_status s3_run(
    struct s3_session *session, struct s3_ask *asks, size_t count, struct cadre_error *error)
{
    struct run run = {.session = session, .next = asks, .end = asks + count, .error = error};
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK && !is_done(&run)) {
        if (http_is_stopped(session->http)) {
            status = cadre_error_set(
                error, CADRE_CANCELLED, "%s: the client is being stopped", asks[0].path);
            break;
        }
        status = begin_all(&run);
        if (status == CADRE_OK) {
            status = wait_one(&run);
        }
    }
    for (unsigned i = 0; i < S3_RUN_WIDTH; i++) {
        close_track(&run, &run.tracks[i]);
    }
    return status;
}

cadre_status s3_ask_parsed(struct s3_session *session, struct s3_ask *ask, enum s3_answer_kind kind,
    struct s3_answer *ret_answer, struct cadre_error *error)
{
    ask->parsed = ret_answer;
    ask->kind = kind;
    ask->limit_bytes = S3_ANSWER_BYTES_MAX;
    *ret_answer = (struct s3_answer){.is_error = false};
    return s3_run(session, ask, 1, error);
}
