/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/cluster_server.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/runtime/cluster_peer.h"
#include "worker/runtime/cluster_strangers.h"
#include "worker/runtime/core_inside.h"
#include "worker/runtime/show.h"

#define LEASE_US     CADRE_US_PER_S /* of a connection that ended: nobody comes back on it */
#define HEARTBEAT_US (LEASE_US / 4)
#define WARN_US      (10 * CADRE_US_PER_S)
#define NAMED_MAX    4 /* of those that are missing */

enum phase { GATHERING = 1, RUNNING, ENDED };

struct cluster_server {
    const struct cluster_member *member;
    int listen_fd;
    int wake_fd;
    atomic_bool stopping;
    pthread_t thread;
    bool started;
    /* What follows is the thread's. */
    enum phase phase;
    struct core_inside *inside;
    struct cluster_peer *peers;        /* [tasks] */
    struct stranger_proved *greetings; /* [tasks]: what each verdict is written with */
    struct cluster_strangers strangers;
    struct pollfd *polled; /* [2 + STRANGERS_MAX + tasks] */
    struct wire_arena *arena;
    uint64_t deadline_us; /* while gathering */
    uint64_t warn_us;
    uint64_t heartbeat_us;
    uint64_t now_us;
    bool done;         /* all were told that they may go */
    cadre_status code; /* not OK: why the job ends */
    char text[LIMIT_TEXT_BYTES];
};

/* --- what is said --- */

static void send_verdict(struct cluster_server *server, uint32_t place, cadre_status code,
    const char *text, uint32_t slot, uint64_t incarnation)
{
    const struct stranger_proved *greeting = &server->greetings[place];
    struct greeting_answer answer = {.code = code, .slot = slot, .incarnation = incarnation};
    uint8_t bytes[GREETING_ANSWER_BYTES];
    snprintf(answer.text, sizeof answer.text, "%s", text);
    greeting_answer_write(&answer, server->member->key, GREETING_VERDICT, greeting->hello_bytes,
        greeting->challenge, bytes);
    cluster_peer_send(&server->peers[place], bytes, sizeof bytes);
}

static void dismiss(
    struct cluster_server *server, uint32_t place, cadre_status code, const char *text)
{
    struct cluster_peer *peer = &server->peers[place];
    if (peer->state == PEER_WAITING && code != CADRE_OK) {
        send_verdict(server, place, code, text, 0, 0);
        code = CADRE_OK;
    }
    cluster_peer_dismiss(peer, code, text, server->now_us);
}

/* The first reason counts. This task itself hears it last: its program may end the process then. */
static void end(struct cluster_server *server, cadre_status code, const char *text)
{
    if (server->phase == ENDED) {
        return;
    }
    server->phase = ENDED;
    server->code = code;
    snprintf(server->text, sizeof server->text, "%s", text);
    for (uint32_t place = 1; place < server->member->tasks; place++) {
        dismiss(server, place, code, server->text);
    }
}

static bool others_are_there(const struct cluster_server *server)
{
    bool there = false;
    for (uint32_t place = 1; !there && place < server->member->tasks; place++) {
        there = server->peers[place].state != PEER_ABSENT;
    }
    return there;
}

/* --- what the core wants; it is not called from here --- */

static const char *name_of(uint32_t place, void *user)
{
    const struct cluster_server *server = user;
    return cluster_member_address(server->member, place);
}

static void on_placed(uint32_t place, uint32_t slot, uint64_t incarnation, void *user)
{
    struct cluster_server *server = user;
    struct cluster_peer *peer = &server->peers[place];
    if (peer->state == PEER_WAITING) {
        send_verdict(server, place, CADRE_OK, "", slot, incarnation);
        peer->state = peer->state == PEER_WAITING ? PEER_SERVED : peer->state;
    }
}

static void on_down(uint32_t place, const struct task_down *down, void *user)
{
    struct cluster_server *server = user;
    cluster_peer_tell(&server->peers[place], down);
}

static void on_stop(uint32_t place, void *user)
{
    struct cluster_server *server = user;
    bool fails = server->code != CADRE_OK;
    if (place == 0 && server->phase == ENDED) {
        return; /* it has its turn */
    }
    dismiss(server, place, fails ? server->code : CADRE_ABORTED,
        fails ? server->text : "the job goes on without this task, which did not answer in time");
}

static void on_fails(cadre_status code, const char *text, void *user)
{
    end(user, code, text);
}

static void on_done(void *user)
{
    struct cluster_server *server = user;
    server->done = true;
}

/* --- who comes and goes --- */

static void begin(struct cluster_server *server)
{
    server->phase = RUNNING;
    for (uint32_t place = 0; place < server->member->tasks; place++) {
        core_inside_join(server->inside, place, server->now_us);
    }
    core_inside_begin(server->inside, server->now_us);
}

static bool all_are_there(const struct cluster_server *server)
{
    bool there = true;
    for (uint32_t place = 0; there && place < server->member->tasks; place++) {
        there = server->peers[place].state == PEER_WAITING;
    }
    return there;
}

static void refuse(struct cluster_server *server, const struct stranger_proved *proved,
    cadre_status code, const char *text)
{
    struct cluster_peer peer = {.state = PEER_WAITING, .fd = proved->fd};
    struct greeting_answer answer = {.code = code};
    uint8_t bytes[GREETING_ANSWER_BYTES];
    snprintf(answer.text, sizeof answer.text, "%s", text);
    greeting_answer_write(&answer, server->member->key, GREETING_VERDICT, proved->hello_bytes,
        proved->challenge, bytes);
    cluster_peer_send(&peer, bytes, sizeof bytes); /* so little always fits a new connection */
    cluster_peer_close(&peer);
}

static void on_proved(const struct stranger_proved *proved, void *user)
{
    struct cluster_server *server = user;
    struct cluster_peer *peer = &server->peers[proved->place];
    char text[GREETING_TEXT_BYTES];
    char who[CLUSTER_MEMBER_TEXT_BYTES];
    cluster_member_text(server->member, proved->place, who);
    if (server->phase == ENDED || server->done) {
        snprintf(text, sizeof text, "the job of this cluster is over%s%.300s; start all tasks anew",
            server->code == CADRE_OK ? "" : ": ", server->text);
        refuse(server, proved, CADRE_FAILED_PRECONDITION, text);
        return;
    }
    if (peer->state != PEER_ABSENT) {
        snprintf(text, sizeof text,
            "%s is there already: two programs were started as the same task; give each its own "
            "type and index",
            who);
        refuse(server, proved, CADRE_ALREADY_EXISTS, text);
        return;
    }
    *peer = (struct cluster_peer){.state = PEER_WAITING, .fd = proved->fd};
    server->greetings[proved->place] = *proved;
    if (server->phase == RUNNING) {
        core_inside_join(server->inside, proved->place, server->now_us);
    }
}

static void lose(struct cluster_server *server, uint32_t place)
{
    cluster_peer_close(&server->peers[place]);
    if (server->phase == RUNNING && !server->done) {
        core_inside_leave(server->inside, place, server->now_us);
    }
}

/* --- what peers say --- */

/* Its own connection ends, and it is lost. */
static void refuse_frames(
    struct cluster_server *server, uint32_t place, const struct cadre_error *error)
{
    cluster_peer_dismiss(&server->peers[place], error->code, error->text, server->now_us);
    core_inside_leave(server->inside, place, server->now_us);
}

static void take_frame(
    struct cluster_server *server, uint32_t place, const uint8_t *payload, size_t size)
{
    struct cluster_peer *peer = &server->peers[place];
    struct cadre_error error = {0};
    struct task_up up;
    wire_arena_reset(server->arena);
    cadre_status status = wire_unpack_task_up(payload, size, server->arena, &up, &error);
    if (status == CADRE_OK && (up.type == TASK_UP_HELLO) == peer->greeted) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "a task says hello before anything else on its connection, and once");
    }
    if (status != CADRE_OK) {
        refuse_frames(server, place, &error);
        return;
    }
    peer->greeted = true;
    core_inside_up(server->inside, place, &up, server->now_us);
}

static void take_frames(struct cluster_server *server, uint32_t place)
{
    struct cluster_peer *peer = &server->peers[place];
    struct cadre_error error = {0};
    const uint8_t *payload;
    size_t size;
    while (peer->state == PEER_SERVED) {
        cadre_status status = frame_reader_next(&peer->reader, &payload, &size, &error);
        if (status == CADRE_PENDING) {
            return;
        }
        if (status == CADRE_OK) {
            take_frame(server, place, payload, size);
        } else {
            refuse_frames(server, place, &error);
        }
    }
}

static void hear(struct cluster_server *server, uint32_t place)
{
    if (!cluster_peer_read(&server->peers[place])) {
        lose(server, place);
    } else {
        take_frames(server, place);
    }
}

/* Those whose connection is over. A step of the core may break others: they are next. */
static void reap(struct cluster_server *server)
{
    for (uint32_t place = 0; place < server->member->tasks; place++) {
        const struct cluster_peer *peer = &server->peers[place];
        bool late = peer->state == PEER_LEAVING && server->now_us >= peer->until_us;
        if (peer->state == PEER_BROKEN || late) {
            lose(server, place);
        }
    }
}

/* --- time --- */

/* "task 1 (worker 0 at h1:4000), task 2 (...)" */
static uint32_t name_missing(const struct cluster_server *server, char *text, size_t size)
{
    uint32_t missing = 0;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t place = 0; place < server->member->tasks; place++) {
        char who[CLUSTER_MEMBER_TEXT_BYTES];
        if (server->peers[place].state == PEER_WAITING) {
            continue;
        }
        if (missing < NAMED_MAX && length < size) {
            int written = snprintf(text + length, size - length, "%s%s", missing == 0 ? "" : ", ",
                cluster_member_text(server->member, place, who));
            length += written > 0 ? (size_t)written : 0;
        }
        missing++;
    }
    if (missing > NAMED_MAX && length < size) {
        snprintf(text + length, size - length, " and %" PRIu32 " others", missing - NAMED_MAX);
    }
    return missing;
}

static void gather(struct cluster_server *server)
{
    char names[GREETING_TEXT_BYTES / 2];
    char text[LIMIT_TEXT_BYTES];
    const char *trouble = server->strangers.trouble;
    uint64_t wait_s = server->member->wait_us / CADRE_US_PER_S;
    uint32_t tasks = server->member->tasks;
    if (all_are_there(server)) {
        begin(server);
    } else if (server->now_us >= server->deadline_us) {
        uint32_t missing = name_missing(server, names, sizeof names);
        snprintf(text, sizeof text,
            "%" PRIu32 " of %" PRIu32 " tasks of the cluster came within %" PRIu64
            " s (CADRE_CLUSTER_WAIT_S); missing: %s; start one program for each%s%.150s",
            tasks - missing, tasks, wait_s, names, trouble[0] == '\0' ? "" : "; ", trouble);
        end(server, CADRE_DEADLINE_EXCEEDED, text);
    } else if (server->now_us >= server->warn_us) {
        server->warn_us = UINT64_MAX;
        name_missing(server, names, sizeof names);
        show_warning("the cluster waits for %s, up to %" PRIu64 " s (CADRE_CLUSTER_WAIT_S)%s%s",
            names, wait_s, trouble[0] == '\0' ? "" : "; ", trouble);
    }
}

/* What this task has said and nobody has read yet, such as why it ends. */
static void hear_own_last_words(struct cluster_server *server)
{
    struct pollfd own = {.fd = server->peers[0].fd, .events = POLLIN};
    while (
        server->phase == RUNNING && server->peers[0].state == PEER_SERVED && poll(&own, 1, 0) > 0) {
        hear(server, 0);
    }
}

/* This task leaves. */
static void stop(struct cluster_server *server)
{
    char text[LIMIT_TEXT_BYTES];
    char who[CLUSTER_MEMBER_TEXT_BYTES];
    hear_own_last_words(server);
    snprintf(text, sizeof text,
        "%s, which holds the job together, ended before the others; start all tasks again",
        cluster_member_text(server->member, 0, who));
    end(server, server->done ? CADRE_OK : CADRE_UNAVAILABLE, server->done ? "" : text);
}

static void pass_time(struct cluster_server *server)
{
    server->now_us = clock_monotonic_us();
    if (atomic_load(&server->stopping) && server->phase != ENDED) {
        stop(server);
    }
    if (server->phase == GATHERING) {
        gather(server);
    }
    if (server->phase == RUNNING && !server->done) {
        if (server->now_us >= server->heartbeat_us) {
            server->heartbeat_us = server->now_us + HEARTBEAT_US;
            core_inside_heartbeat(server->inside, server->now_us);
        }
        if (core_inside_wake_us(server->inside) <= server->now_us) {
            core_inside_tick(server->inside, server->now_us);
        }
    }
    reap(server);
    if (server->phase == ENDED && !others_are_there(server)) {
        dismiss(server, 0, server->code, server->text);
    }
}

static void sooner(uint64_t *until_us, uint64_t other_us)
{
    *until_us = other_us < *until_us ? other_us : *until_us;
}

/* When something is due without anybody saying anything. */
static uint64_t wake_us(const struct cluster_server *server)
{
    uint64_t until_us = UINT64_MAX;
    if (server->phase == GATHERING) {
        sooner(&until_us, server->deadline_us);
        sooner(&until_us, server->warn_us);
    } else if (server->phase == RUNNING && !server->done) {
        sooner(&until_us, server->heartbeat_us);
        sooner(&until_us, core_inside_wake_us(server->inside));
    }
    if (server->strangers.pause_us > server->now_us) {
        sooner(&until_us, server->strangers.pause_us);
    }
    for (uint32_t place = 0; place < server->member->tasks; place++) {
        const struct cluster_peer *peer = &server->peers[place];
        if (peer->state == PEER_BROKEN) {
            return server->now_us;
        }
        if (peer->state == PEER_LEAVING) {
            sooner(&until_us, peer->until_us);
        }
    }
    return until_us;
}

/* --- the thread --- */

/* Rows: the listener, the wake descriptor, a row for each place, then strangers. */
static size_t watch(struct cluster_server *server, uint64_t *ret_until_us)
{
    struct pollfd *polled = server->polled;
    bool takes = server->strangers.pause_us <= server->now_us;
    uint64_t strangers_us;
    size_t count = 0;
    *ret_until_us = wake_us(server);
    polled[count++] = (struct pollfd){.fd = takes ? server->listen_fd : -1, .events = POLLIN};
    polled[count++] = (struct pollfd){.fd = server->wake_fd, .events = POLLIN};
    for (uint32_t place = 0; place < server->member->tasks; place++) {
        const struct cluster_peer *peer = &server->peers[place];
        bool open = peer->state != PEER_ABSENT && peer->state != PEER_BROKEN;
        bool waits = peer->unsent.size > 0;
        polled[count++] = (struct pollfd){
            .fd = open ? peer->fd : -1, .events = (short)(POLLIN | (waits ? POLLOUT : 0))};
    }
    count += cluster_strangers_poll(&server->strangers, polled + count, &strangers_us);
    sooner(ret_until_us, strangers_us);
    return count;
}

static int timeout_ms(uint64_t until_us, uint64_t now_us)
{
    if (until_us == UINT64_MAX) {
        return -1;
    }
    uint64_t left_ms = until_us > now_us ? (until_us - now_us) / CADRE_US_PER_MS + 1 : 0;
    return left_ms > 60000 ? 60000 : (int)left_ms;
}

static void *run(void *argument)
{
    struct cluster_server *server = argument;
    for (;;) {
        uint64_t until_us;
        uint64_t count;
        pass_time(server);
        if (atomic_load(&server->stopping) && !others_are_there(server)) {
            return NULL;
        }
        count = watch(server, &until_us);
        poll(server->polled, count, timeout_ms(until_us, clock_monotonic_us()));
        server->now_us = clock_monotonic_us();
        if (server->polled[1].revents != 0) {
            ssize_t size = read(server->wake_fd, &count, sizeof count);
            (void)size; /* nothing there is as good */
        }
        for (uint32_t place = 0; place < server->member->tasks; place++) {
            short seen = server->polled[2 + place].revents;
            /* One that ended meanwhile, and whose place another took, has its turn next. */
            if (server->peers[place].fd != server->polled[2 + place].fd) {
                continue;
            }
            if ((seen & POLLOUT) != 0) {
                cluster_peer_flush(&server->peers[place]);
            }
            if ((seen & (POLLIN | POLLHUP | POLLERR)) != 0 &&
                server->peers[place].state != PEER_BROKEN) {
                hear(server, place);
            }
        }
        cluster_strangers_serve(&server->strangers, server->listen_fd, server->now_us);
    }
}

/* --- lifetime --- */

void cluster_server_stop(struct cluster_server *server)
{
    if (server->started) {
        uint64_t one = 1;
        server->started = false;
        atomic_store(&server->stopping, true);
        ssize_t written = write(server->wake_fd, &one, sizeof one);
        (void)written; /* a full counter is readable already */
        pthread_join(server->thread, NULL);
    }
}

void cluster_server_close(struct cluster_server *server)
{
    if (server == NULL) {
        return;
    }
    cluster_server_stop(server);
    cluster_strangers_clear(&server->strangers);
    for (uint32_t place = 0; server->peers != NULL && place < server->member->tasks; place++) {
        cluster_peer_close(&server->peers[place]);
    }
    core_inside_close(server->inside);
    wire_arena_free(server->arena);
    if (server->listen_fd >= 0) {
        close(server->listen_fd);
    }
    if (server->wake_fd >= 0) {
        close(server->wake_fd);
    }
    free(server->peers);
    free(server->greetings);
    free(server->polled);
    free(server);
}

static cadre_status start_thread(struct cluster_server *server, struct cadre_error *error)
{
    /* Signals are the program's: they are taken by its own threads. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(&server->thread, NULL, run, server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    server->started = errnum == 0;
    return errnum == 0 ? CADRE_OK
                       : cadre_error_errno(error, errnum, "start the thread of the cluster");
}

static cadre_status open_parts(
    struct cluster_server *server, uint64_t restored, struct cadre_error *error)
{
    const struct cluster_member *member = server->member;
    struct core_inside_options options = {.tasks = member->tasks,
        .name = name_of,
        .user = server,
        .restored = restored,
        .lease_us = LEASE_US,
        /* The core takes 0 for its default. */
        .wait_us = member->grace_us == 0 ? CADRE_US_PER_MS : member->grace_us};
    struct core_inside_events events = {.placed = on_placed,
        .down = on_down,
        .stop = on_stop,
        .fails = on_fails,
        .done = on_done,
        .user = server};
    cluster_strangers_init(&server->strangers, member, restored);
    server->strangers.proved = on_proved;
    server->strangers.user = server;
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    server->peers = calloc(member->tasks, sizeof *server->peers);
    server->greetings = calloc(member->tasks, sizeof *server->greetings);
    server->polled = calloc(2 + STRANGERS_MAX + member->tasks, sizeof *server->polled);
    if (server->wake_fd < 0 || server->arena == NULL || server->peers == NULL ||
        server->greetings == NULL || server->polled == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no descriptor or memory for a cluster of %" PRIu32 " tasks", member->tasks);
    }
    for (uint32_t place = 0; place < member->tasks; place++) {
        server->peers[place].fd = -1;
    }
    CADRE_TRY(core_inside_open(&options, &events, &server->inside, error));
    return cluster_address_listen(
        &member->own, cluster_member_address(member, 0), &server->listen_fd, error);
}

cadre_status cluster_server_open(const struct cluster_member *member, uint64_t restored,
    struct cluster_server **ret_server, struct cadre_error *error)
{
    struct cluster_server *server = calloc(1, sizeof *server);
    *ret_server = NULL;
    if (server == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the cluster");
    }
    server->member = member;
    server->listen_fd = -1;
    server->wake_fd = -1;
    server->phase = GATHERING;
    server->now_us = clock_monotonic_us();
    server->deadline_us = server->now_us + member->wait_us;
    server->warn_us = server->now_us + WARN_US;
    cadre_status status = open_parts(server, restored, error);
    if (status == CADRE_OK) {
        status = start_thread(server, error);
    }
    if (status != CADRE_OK) {
        cluster_server_close(server);
        return status;
    }
    *ret_server = server;
    return CADRE_OK;
}
