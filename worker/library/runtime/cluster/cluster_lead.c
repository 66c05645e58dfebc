/* SPDX-License-Identifier: Apache-2.0
 * The coordinator of a cluster, in the thread of its first task: places the tasks, passes frames
 * between peers and the core, and ends the job. cluster_server.c calls it. */
#include "worker/library/runtime/cluster/cluster_lead.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/show.h"

#define LEASE_US     CADRE_US_PER_S /* of a connection that ended: no task comes back on it */
#define HEARTBEAT_US (LEASE_US / 4)
#define WARN_US      (3 * CADRE_US_PER_S)
#define NAMED_MAX    4 /* of the tasks that are missing */

/* --- messages --- */

static void send_verdict(struct cluster_lead *lead, uint32_t member_id, cadre_status code,
    const char *text, uint32_t slot, uint64_t incarnation)
{
    CADRE_ASSERT(member_id < lead->member->tasks);
    CADRE_ASSERT(lead->peers[member_id].state == PEER_WAITING);
    const struct authenticated_peer *greeting = &lead->greetings[member_id];
    struct greeting_answer answer = {.code = code, .slot = slot, .incarnation = incarnation};
    uint8_t bytes[GREETING_ANSWER_BYTES];
    snprintf(answer.text, sizeof answer.text, "%s", text);
    greeting_answer_write(&answer, lead->member->key, GREETING_VERDICT, greeting->hello_bytes,
        greeting->challenge, bytes);
    cluster_peer_send(&lead->peers[member_id], bytes, sizeof bytes);
}

static void cluster_lead_dismiss(
    struct cluster_lead *lead, uint32_t member_id, cadre_status code, const char *text)
{
    CADRE_ASSERT(member_id < lead->member->tasks);
    struct cluster_peer *peer = &lead->peers[member_id];
    if (peer->state == PEER_WAITING && code != CADRE_OK) {
        send_verdict(lead, member_id, code, text, 0, 0);
        code = CADRE_OK;
    }
    cluster_peer_finish(peer, code, text, lead->now_us);
}

/* The first reason counts. This task itself receives it last, because its program may end the
 * process then. */
static void cluster_lead_end(struct cluster_lead *lead, cadre_status code, const char *text)
{
    if (lead->phase == CLUSTER_ENDED) {
        return;
    }
    lead->phase = CLUSTER_ENDED;
    lead->code = code;
    snprintf(lead->text, sizeof lead->text, "%s", text);
    for (uint32_t member_id = 1; member_id < lead->member->tasks; member_id++) {
        cluster_lead_dismiss(lead, member_id, code, lead->text);
    }
}

bool cluster_lead_has_others(const struct cluster_lead *lead)
{
    bool there = false;
    for (uint32_t member_id = 1; !there && member_id < lead->member->tasks; member_id++) {
        there = lead->peers[member_id].state != PEER_ABSENT;
    }
    return there;
}

/* --- the core's callbacks; they do not call the core --- */

static const char *name_of(uint32_t member_id, void *user)
{
    const struct cluster_lead *lead = user;
    return cluster_member_address(lead->member, member_id);
}

static void on_placed(uint32_t member_id, uint32_t slot, uint64_t incarnation, void *user)
{
    struct cluster_lead *lead = user;
    CADRE_ASSERT(member_id < lead->member->tasks);
    struct cluster_peer *peer = &lead->peers[member_id];
    if (peer->state == PEER_WAITING) {
        send_verdict(lead, member_id, CADRE_OK, "", slot, incarnation);
        peer->state = peer->state == PEER_WAITING ? PEER_SERVED : peer->state;
    }
}

static void on_down(uint32_t member_id, const struct task_down *down, void *user)
{
    struct cluster_lead *lead = user;
    CADRE_ASSERT(member_id < lead->member->tasks);
    bool ps_job = ps_job_is_set(&lead->member->ps_job);
    lead->chief_done =
        lead->chief_done || (ps_job && member_id == 0 && down->type == TASK_DOWN_GOODBYE);
    cluster_peer_send_message(&lead->peers[member_id], down);
}

static void on_stop(uint32_t member_id, void *user)
{
    struct cluster_lead *lead = user;
    bool fails = lead->code != CADRE_OK;
    if (member_id == 0 && lead->phase == CLUSTER_ENDED) {
        return; /* its verdict is sent when it is placed */
    }
    cluster_lead_dismiss(lead, member_id, fails ? lead->code : CADRE_ABORTED,
        fails ? lead->text : "the job goes on without this task, which did not answer in time");
}

static void on_fails(cadre_status code, const char *text, void *user)
{
    cluster_lead_end(user, code, text);
}

static void on_done(void *user)
{
    struct cluster_lead *lead = user;
    lead->done = true;
}

/* --- connections --- */

static void cluster_lead_begin(struct cluster_lead *lead)
{
    CADRE_ASSERT(lead->phase == CLUSTER_GATHERING);
    lead->phase = CLUSTER_RUNNING;
    for (uint32_t member_id = 0; member_id < lead->member->tasks; member_id++) {
        embedded_core_connect(lead->inside, member_id, lead->now_us);
    }
    embedded_core_start(lead->inside, lead->now_us);
}

static bool all_are_there(const struct cluster_lead *lead)
{
    bool there = true;
    for (uint32_t member_id = 0; there && member_id < lead->member->tasks; member_id++) {
        there = lead->peers[member_id].state == PEER_WAITING;
    }
    return there;
}

static void cluster_lead_refuse(struct cluster_lead *lead,
    const struct authenticated_peer *authenticated, cadre_status code, const char *text)
{
    CADRE_ASSERT(code != CADRE_OK);
    struct cluster_peer peer = {.state = PEER_WAITING, .fd = authenticated->fd};
    struct greeting_answer answer = {.code = code};
    uint8_t bytes[GREETING_ANSWER_BYTES];
    snprintf(answer.text, sizeof answer.text, "%s", text);
    greeting_answer_write(&answer, lead->member->key, GREETING_VERDICT, authenticated->hello_bytes,
        authenticated->challenge, bytes);
    cluster_peer_send(&peer, bytes, sizeof bytes); /* so few bytes fit a new connection's buffer */
    cluster_peer_close(&peer);
}

void cluster_lead_authenticated(const struct authenticated_peer *authenticated, void *user)
{
    struct cluster_lead *lead = user;
    CADRE_ASSERT(authenticated->member_id < lead->member->tasks); /* its hello was checked */
    struct cluster_peer *peer = &lead->peers[authenticated->member_id];
    char text[GREETING_TEXT_BYTES];
    char who[CLUSTER_MEMBER_TEXT_BYTES];
    cluster_member_text(lead->member, authenticated->member_id, who);
    if (lead->phase == CLUSTER_ENDED || lead->done) {
        snprintf(text, sizeof text, "the job of this cluster is over%s%.300s; start all again",
            lead->code == CADRE_OK ? "" : ": ", lead->text);
        cluster_lead_refuse(lead, authenticated, CADRE_FAILED_PRECONDITION, text);
        return;
    }
    if (peer->state != PEER_ABSENT) {
        snprintf(text, sizeof text,
            "%s is connected already: two programs were started as the same task; give each its "
            "own type and index",
            who);
        cluster_lead_refuse(lead, authenticated, CADRE_ALREADY_EXISTS, text);
        return;
    }
    *peer = (struct cluster_peer){.state = PEER_WAITING, .fd = authenticated->fd};
    lead->greetings[authenticated->member_id] = *authenticated;
    if (lead->phase == CLUSTER_RUNNING) {
        embedded_core_connect(lead->inside, authenticated->member_id, lead->now_us);
    }
}

static void cluster_lead_lose(struct cluster_lead *lead, uint32_t member_id)
{
    CADRE_ASSERT(lead->peers[member_id].state != PEER_ABSENT);
    cluster_peer_close(&lead->peers[member_id]);
    if (lead->phase == CLUSTER_RUNNING && !lead->done) {
        embedded_core_disconnect(lead->inside, member_id, lead->now_us);
    }
}

/* --- messages from peers --- */

/* The peer's own connection ends, and its task is lost. */
static void refuse_frames(
    struct cluster_lead *lead, uint32_t member_id, const struct cadre_error *error)
{
    CADRE_ASSERT(error->code != CADRE_OK);
    CADRE_ASSERT(lead->phase != CLUSTER_GATHERING);
    cluster_peer_finish(&lead->peers[member_id], error->code, error->text, lead->now_us);
    embedded_core_disconnect(lead->inside, member_id, lead->now_us);
}

static void take_frame(
    struct cluster_lead *lead, uint32_t member_id, const uint8_t *payload, size_t size)
{
    struct cluster_peer *peer = &lead->peers[member_id];
    CADRE_ASSERT(peer->state == PEER_SERVED);
    struct cadre_error error = {0};
    struct task_up up;
    wire_arena_reset(lead->arena);
    cadre_status status = wire_unpack_task_up(payload, size, lead->arena, &up, &error);
    if (status == CADRE_OK && (up.type == TASK_UP_HELLO) == peer->greeted) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "a task sends hello first on its connection, and once");
    }
    if (status != CADRE_OK) {
        refuse_frames(lead, member_id, &error);
        return;
    }
    peer->greeted = true;
    embedded_core_receive(lead->inside, member_id, &up, lead->now_us);
}

static void take_frames(struct cluster_lead *lead, uint32_t member_id)
{
    struct cluster_peer *peer = &lead->peers[member_id];
    struct cadre_error error = {0};
    const uint8_t *payload;
    size_t size;
    while (peer->state == PEER_SERVED) {
        cadre_status status = frame_reader_next(&peer->reader, &payload, &size, &error);
        if (status == CADRE_PENDING) {
            return;
        }
        if (status == CADRE_OK) {
            take_frame(lead, member_id, payload, size);
        } else {
            refuse_frames(lead, member_id, &error);
        }
    }
}

void cluster_lead_receive(struct cluster_lead *lead, uint32_t member_id)
{
    CADRE_ASSERT(member_id < lead->member->tasks);
    CADRE_ASSERT(lead->peers[member_id].state != PEER_ABSENT);
    if (!cluster_peer_read(&lead->peers[member_id])) {
        cluster_lead_lose(lead, member_id);
    } else {
        take_frames(lead, member_id);
    }
}

/* Closes the connections that are over. A step of the core may break others: they follow. */
static void cluster_lead_reap(struct cluster_lead *lead)
{
    for (uint32_t member_id = 0; member_id < lead->member->tasks; member_id++) {
        const struct cluster_peer *peer = &lead->peers[member_id];
        bool late = peer->state == PEER_CLOSING && lead->now_us >= peer->until_us;
        if (peer->state == PEER_BROKEN || late) {
            cluster_lead_lose(lead, member_id);
        }
    }
}

/* --- time --- */

/* "task 1 (worker 0 at h1:4000), task 2 (...)" */
static uint32_t name_missing(const struct cluster_lead *lead, char *text, size_t size)
{
    uint32_t missing = 0;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t member_id = 0; member_id < lead->member->tasks; member_id++) {
        char who[CLUSTER_MEMBER_TEXT_BYTES];
        if (lead->peers[member_id].state == PEER_WAITING) {
            continue;
        }
        if (missing < NAMED_MAX && length < size) {
            int written = snprintf(text + length, size - length, "%s%s", missing == 0 ? "" : ", ",
                cluster_member_text(lead->member, member_id, who));
            length += written > 0 ? (size_t)written : 0;
        }
        missing++;
    }
    if (missing > NAMED_MAX && length < size) {
        snprintf(text + length, size - length, " and %" PRIu32 " others", missing - NAMED_MAX);
    }
    return missing;
}

static void cluster_lead_gather(struct cluster_lead *lead)
{
    char names[GREETING_TEXT_BYTES / 2];
    char text[LIMIT_TEXT_BYTES];
    const char *refusal = lead->refusal;
    uint64_t wait_s = lead->member->wait_us / CADRE_US_PER_S;
    uint32_t tasks = lead->member->tasks;
    if (all_are_there(lead)) {
        cluster_lead_begin(lead);
    } else if (lead->now_us >= lead->deadline_us) {
        uint32_t missing = name_missing(lead, names, sizeof names);
        snprintf(text, sizeof text,
            "%" PRIu32 " of %" PRIu32 " tasks of the cluster came within %" PRIu64
            " s (CADRE_CLUSTER_WAIT_S); missing: %s; start one program for each%s%.150s",
            tasks - missing, tasks, wait_s, names, refusal[0] == '\0' ? "" : "; ", refusal);
        cluster_lead_end(lead, CADRE_DEADLINE_EXCEEDED, text);
    } else if (lead->now_us >= lead->warn_us) {
        lead->warn_us = UINT64_MAX;
        name_missing(lead, names, sizeof names);
        show_warning("the cluster waits for %s, up to %" PRIu64 " s (CADRE_CLUSTER_WAIT_S)%s%s",
            names, wait_s, refusal[0] == '\0' ? "" : "; ", refusal);
    }
}

/* Reads what this task has sent and was not read yet, such as why it ends. */
static void receive_own_last(struct cluster_lead *lead)
{
    struct pollfd own = {.fd = lead->peers[0].fd, .events = POLLIN};
    while (lead->phase == CLUSTER_RUNNING && lead->peers[0].state == PEER_SERVED &&
           poll(&own, 1, 0) > 0) {
        cluster_lead_receive(lead, 0);
    }
}

/* The chief of a ps job may end before the others: the coordinator runs until they have ended. */
static bool others_are_ending(const struct cluster_lead *lead)
{
    return lead->chief_done && !lead->done;
}

/* This task leaves, and the coordinator with it. */
static void cluster_lead_leave(struct cluster_lead *lead)
{
    CADRE_ASSERT(lead->phase != CLUSTER_ENDED);
    char text[LIMIT_TEXT_BYTES];
    char who[CLUSTER_MEMBER_TEXT_BYTES];
    receive_own_last(lead);
    snprintf(text, sizeof text,
        "%s, which runs the coordinator, ended before the others; start all tasks again",
        cluster_member_text(lead->member, 0, who));
    cluster_lead_end(lead, lead->done ? CADRE_OK : CADRE_UNAVAILABLE, lead->done ? "" : text);
}

void cluster_lead_tick(struct cluster_lead *lead, uint64_t now_us, bool leaves)
{
    CADRE_ASSERT(now_us >= lead->now_us); /* of one clock */
    lead->now_us = now_us;
    if (leaves && lead->phase != CLUSTER_ENDED && !others_are_ending(lead)) {
        cluster_lead_leave(lead);
    }
    if (lead->phase == CLUSTER_GATHERING) {
        cluster_lead_gather(lead);
    }
    if (lead->phase == CLUSTER_RUNNING && !lead->done) {
        if (lead->now_us >= lead->heartbeat_us) {
            lead->heartbeat_us = lead->now_us + HEARTBEAT_US;
            embedded_core_heartbeat(lead->inside, lead->now_us);
        }
        if (embedded_core_wake_us(lead->inside) <= lead->now_us) {
            embedded_core_tick(lead->inside, lead->now_us);
        }
    }
    cluster_lead_reap(lead);
    if (lead->phase == CLUSTER_ENDED && !cluster_lead_has_others(lead)) {
        cluster_lead_dismiss(lead, 0, lead->code, lead->text);
    }
}

static void cluster_lead_sooner(uint64_t *until_us, uint64_t other_us)
{
    *until_us = other_us < *until_us ? other_us : *until_us;
}

uint64_t cluster_lead_wake_us(const struct cluster_lead *lead)
{
    uint64_t until_us = UINT64_MAX;
    if (lead->phase == CLUSTER_GATHERING) {
        cluster_lead_sooner(&until_us, lead->deadline_us);
        cluster_lead_sooner(&until_us, lead->warn_us);
    } else if (lead->phase == CLUSTER_RUNNING && !lead->done) {
        cluster_lead_sooner(&until_us, lead->heartbeat_us);
        cluster_lead_sooner(&until_us, embedded_core_wake_us(lead->inside));
    }
    for (uint32_t member_id = 0; member_id < lead->member->tasks; member_id++) {
        const struct cluster_peer *peer = &lead->peers[member_id];
        if (peer->state == PEER_BROKEN) {
            return lead->now_us;
        }
        if (peer->state == PEER_CLOSING) {
            cluster_lead_sooner(&until_us, peer->until_us);
        }
    }
    return until_us;
}

/* --- lifetime --- */

void cluster_lead_close(struct cluster_lead *lead)
{
    for (uint32_t member_id = 0; lead->peers != NULL && member_id < lead->member->tasks;
         member_id++) {
        cluster_peer_close(&lead->peers[member_id]);
    }
    embedded_core_close(lead->inside);
    wire_arena_free(lead->arena);
    free(lead->peers);
    free(lead->greetings);
}

cadre_status cluster_lead_open(struct cluster_lead *lead, const struct cluster_member *member,
    uint64_t restored, const char *refusal, struct cadre_error *error)
{
    CADRE_ASSERT(member->tasks > 1);
    CADRE_ASSERT(member->member_id == 0); /* the first task runs the coordinator */
    uint64_t now_us = clock_monotonic_us();
    *lead = (struct cluster_lead){.member = member,
        .phase = CLUSTER_GATHERING,
        .refusal = refusal,
        .now_us = now_us,
        .deadline_us = now_us + member->wait_us,
        .warn_us = now_us + WARN_US,
        .arena = wire_arena_new(LIMIT_UNPACK_BYTES),
        .peers = calloc(member->tasks, sizeof *lead->peers),
        .greetings = calloc(member->tasks, sizeof *lead->greetings)};
    if (lead->arena == NULL || lead->peers == NULL || lead->greetings == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for a cluster of %" PRIu32 " tasks", member->tasks);
    }
    for (uint32_t member_id = 0; member_id < member->tasks; member_id++) {
        lead->peers[member_id].fd = -1;
    }
    struct embedded_core_options options = {.tasks = member->tasks,
        .ps_job = member->ps_job,
        .name = name_of,
        .user = lead,
        .restored = restored,
        .lease_us = LEASE_US,
        /* The core takes 0 for its default. */
        .wait_us = member->grace_us == 0 ? CADRE_US_PER_MS : member->grace_us};
    struct embedded_core_events events = {.placed = on_placed,
        .down = on_down,
        .stop = on_stop,
        .fails = on_fails,
        .done = on_done,
        .user = lead};
    return embedded_core_open(&options, &events, &lead->inside, error);
}
