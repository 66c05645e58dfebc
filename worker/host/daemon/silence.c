/* SPDX-License-Identifier: Apache-2.0
 * Watches how long nothing came from the coordinator; asks all of them, at once and with a short
 * deadline, again after a pause that doubles, and decides by leader_choice.c. When another one
 * leads, all calls to the silent one end with UNAVAILABLE: the stream, which link.c opens again,
 * there; and transfers, which go on with the next link. link.c calls it. */
#include "worker/host/daemon/silence.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/wire/methods.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/leader_choice.h"

struct silence_question {
    struct silence *silence;
    size_t at; /* index of the address */
};

struct silence {
    struct daemon *daemon;
    uv_timer_t timer;
    uint64_t limit_ms;    /* 0: not watched */
    uint64_t received_ms; /* uv_now() of the newest message */
    uint64_t pause_ms;    /* before the questions are sent again */
    bool nothing_since;   /* nothing came since the questions were sent */
    size_t asked;
    size_t unanswered;
    struct silence_question questions[RPC_ENDPOINTS_MAX];
    struct leader_answer answers[RPC_ENDPOINTS_MAX];
    bool closed;
};

static uint64_t now_ms(const struct silence *silence)
{
    return uv_now(rpc_loop_uv(silence->daemon->loop));
}

/* One is about to lead when the silent one has lost its lease, which is as long as the silence. */
static uint64_t shortest_ms(const struct silence *silence)
{
    return silence->limit_ms / 6 + 1;
}

static void on_timer(uv_timer_t *timer);

static void arm(struct silence *silence, uint64_t wait_ms)
{
    if (silence->limit_ms > 0) {
        uv_timer_start(&silence->timer, on_timer, wait_ms > 0 ? wait_ms : 1, 0);
    }
}

/* ---- the answers ---- */

static size_t current_of(const struct silence *silence)
{
    const struct daemon *daemon = silence->daemon;
    size_t at = 0;
    while (rpc_endpoints_channel_at(daemon->endpoints, at) != daemon->channel) {
        at++;
    }
    return at;
}

static void go_to(struct silence *silence, size_t at)
{
    struct daemon *daemon = silence->daemon;
    const char *silent = rpc_endpoints_address(daemon->endpoints);
    rpc_endpoints_use(daemon->endpoints, at);
    silence->nothing_since = false; /* it is decided */
    log_event(LOG_LEVEL_WARNING, "link",
        "the coordinator sends nothing, and another one leads: this worker joins that one",
        LOG_STR("silent", silent), LOG_STR("leader", rpc_endpoints_address(daemon->endpoints)),
        LOG_U64("term", silence->answers[at].term.start),
        LOG_U64("silence_ms", now_ms(silence) - silence->received_ms));
    rpc_channel_abort_calls(
        daemon->channel, CADRE_UNAVAILABLE, "the coordinator sends nothing, and another one leads");
}

static void ask_after_pause(struct silence *silence)
{
    arm(silence, silence->pause_ms);
    silence->pause_ms *= 2;
    if (silence->pause_ms > silence->limit_ms) {
        silence->pause_ms = silence->limit_ms;
    }
}

static void decide(struct silence *silence)
{
    const struct daemon *daemon = silence->daemon;
    if (!silence->nothing_since || daemon->join == NULL) {
        return; /* it is not silent, or the stream has ended meanwhile */
    }
    size_t current = current_of(silence);
    size_t chosen = leader_choose(&daemon->term, silence->answers, silence->asked, current);
    if (chosen == current) {
        log_event(LOG_LEVEL_DEBUG, "link", "the coordinator sends nothing, and no other one leads",
            LOG_STR("coordinator", rpc_endpoints_address(daemon->endpoints)));
    } else {
        go_to(silence, chosen);
    }
}

static void on_answer(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct silence_question *question = user;
    struct silence *silence = question->silence;
    struct cadre_error error = {0};
    struct leader_response response;
    (void)call;
    wire_arena_reset(silence->daemon->arena);
    if (!silence->closed && wire_unpack_leader_response(data, length, silence->daemon->arena,
                                &response, &error) == CADRE_OK) {
        silence->answers[question->at] =
            (struct leader_answer){.leads = response.self.leads, .term = response.self.term};
    }
}

static void on_answer_end(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    struct silence_question *question = user;
    struct silence *silence = question->silence;
    (void)call;
    (void)status;
    (void)text;
    silence->unanswered--;
    if (silence->closed) {
        return;
    }
    /* Whatever the others may answer, a newer one leads. */
    bool newer = leader_is_newer(&silence->daemon->term, &silence->answers[question->at]);
    if (newer || silence->unanswered == 0) {
        decide(silence);
    }
    if (silence->unanswered == 0) {
        ask_after_pause(silence);
    }
}

/* ---- the questions ---- */

static void ask(struct silence *silence, size_t at)
{
    static const struct rpc_client_ops ops = {.on_message = on_answer, .on_status = on_answer_end};
    static const uint8_t nothing[1];
    struct cadre_error error = {0};
    struct rpc_call *call = NULL;
    silence->answers[at] = (struct leader_answer){0};
    silence->questions[at] = (struct silence_question){.silence = silence, .at = at};
    const struct rpc_call_options options = {.path = METHOD_COORDINATORS_LEADER,
        .deadline_us = clock_monotonic_us() + shortest_ms(silence) * CADRE_US_PER_MS,
        .ops = &ops,
        .user = &silence->questions[at]};
    struct rpc_channel *channel = rpc_endpoints_channel_at(silence->daemon->endpoints, at);
    if (rpc_channel_call(channel, &options, &call, &error) != CADRE_OK) {
        return; /* it counts as one that does not lead */
    }
    silence->unanswered++;
    (void)rpc_call_send(call, nothing, 0, &error); /* the call's end reports it */
}

static void ask_all(struct silence *silence)
{
    size_t count = rpc_endpoints_count(silence->daemon->endpoints);
    if (silence->unanswered > 0) {
        return; /* the end of the last one goes on */
    }
    silence->nothing_since = true;
    silence->asked = count;
    for (size_t i = 0; i < count && count > 1; i++) {
        ask(silence, i);
    }
    if (silence->unanswered == 0) {
        arm(silence, silence->limit_ms);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct silence *silence = timer->data;
    uint64_t silent_ms = now_ms(silence) - silence->received_ms;
    if (silent_ms < silence->limit_ms) {
        silence->pause_ms = shortest_ms(silence);
        arm(silence, silence->limit_ms - silent_ms);
    } else if (silence->daemon->join != NULL) {
        ask_all(silence);
    } else {
        arm(silence, silence->limit_ms);
    }
}

/* ---- for link.c and main.c ---- */

void silence_frame(struct daemon *daemon)
{
    struct silence *silence = daemon->silence;
    silence->received_ms = now_ms(silence);
    silence->nothing_since = false;
}

void silence_limit(struct daemon *daemon, uint64_t silence_us)
{
    struct silence *silence = daemon->silence;
    silence->limit_ms = silence_us / CADRE_US_PER_MS;
    silence->pause_ms = shortest_ms(silence);
    uv_timer_stop(&silence->timer);
    arm(silence, silence->limit_ms);
}

cadre_status silence_open(struct daemon *daemon, struct cadre_error *error)
{
    struct silence *silence = calloc(1, sizeof *silence);
    if (silence == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to start");
    }
    silence->daemon = daemon;
    uv_timer_init(rpc_loop_uv(daemon->loop), &silence->timer);
    silence->timer.data = silence;
    daemon->silence = silence;
    return CADRE_OK;
}

void silence_close(struct daemon *daemon)
{
    if (daemon->silence != NULL) {
        daemon->silence->closed = true;
        uv_close((uv_handle_t *)&daemon->silence->timer, NULL);
    }
}

void silence_free(struct silence *silence)
{
    free(silence);
}
