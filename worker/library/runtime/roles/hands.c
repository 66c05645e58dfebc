/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/roles/hands.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/ps/server.h"
#include "worker/library/runtime/closures/closure.h"
#include "worker/library/runtime/closures/closure_worker.h"

static const char host[] = "127.0.0.1";

/* One task that is threads of this program. */
struct hand {
    struct crew_hands *hands;
    struct crew_state *crew;
    struct server *server; /* of a ps */
    pthread_t thread;      /* of a worker */
    bool started;
};

struct crew_hands {
    struct crew_state *chief;
    uint32_t workers;
    uint32_t servers;
    struct hand *each; /* [workers + servers], by slot less 1 */
};

/* --- who they are to each other --- */

static cadre_status make_each(struct crew_hands *hands, struct cadre_error *error)
{
    const struct crew *crew = &directory_self(hands->chief->directory)->crew;
    for (uint32_t i = 0; i < hands->workers + hands->servers; i++) {
        const struct directory_self self = {.crew = *crew, .slot = i + 1, .incarnation = 1};
        struct hand *hand = &hands->each[i];
        hand->hands = hands;
        CADRE_TRY(crew_new(&self, i < hands->workers ? NULL : host, &hand->crew, error));
        hand->crew->patience_us = hands->chief->patience_us;
    }
    return CADRE_OK;
}

static struct task_member member_of(const struct crew_state *crew)
{
    const struct directory_self *self = directory_self(crew->directory);
    return (struct task_member){.slot = self->slot,
        .incarnation = self->incarnation,
        .lives = 1,
        .here = true,
        .address = crew->address};
}

/* Nobody else may come in: the key is drawn here, and known to this process alone. */
static cadre_status tell_each(struct crew_hands *hands, struct cadre_error *error)
{
    uint32_t count = hands->workers + hands->servers;
    struct task_members told = {.generation = {.number = 1}, .member_count = count + 1};
    struct task_member *members = calloc(told.member_count, sizeof *members);
    if (members == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a crew");
    }
    if (getrandom(told.key, sizeof told.key, 0) != (ssize_t)sizeof told.key ||
        getrandom(&told.generation.nonce, sizeof told.generation.nonce, 0) !=
            (ssize_t)sizeof told.generation.nonce) {
        free(members);
        return cadre_error_errno(error, errno, "draw the key of the crew");
    }
    told.members = members;
    members[0] = member_of(hands->chief);
    for (uint32_t i = 0; i < count; i++) {
        members[i + 1] = member_of(hands->each[i].crew);
    }
    directory_update(hands->chief->directory, &told);
    for (uint32_t i = 0; i < count; i++) {
        directory_update(hands->each[i].crew->directory, &told);
    }
    explicit_bzero(told.key, sizeof told.key);
    free(members);
    return CADRE_OK;
}

static cadre_status start_server(struct hand *hand, struct cadre_error *error)
{
    struct crew_state *crew = hand->crew;
    CADRE_ASSERT(crew->role == ROLE_SERVER);
    CADRE_ASSERT(hand->server == NULL);
    const struct server_options options = {.index = crew->index,
        .memory_fd = -1,
        .listener = crew->listener,
        .directory = crew->directory};
    crew->listener = NULL;
    cadre_status status = server_start(&options, &hand->server, error);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_wrap(error, status, "start ps %u", crew->index);
}

cadre_status hands_open(struct crew_state *chief, struct cadre_error *error)
{
    CADRE_ASSERT(chief->role == ROLE_CHIEF);
    CADRE_ASSERT(chief->hands == NULL);
    const struct crew *crew = &directory_self(chief->directory)->crew;
    struct crew_hands *hands = calloc(1, sizeof *hands);
    struct hand *each = calloc((size_t)crew->workers + crew->servers, sizeof *each);
    if (hands == NULL || each == NULL) {
        free(hands);
        free(each);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a crew");
    }
    *hands = (struct crew_hands){
        .chief = chief, .workers = crew->workers, .servers = crew->servers, .each = each};
    chief->hands = hands;
    CADRE_TRY(make_each(hands, error));
    CADRE_TRY(tell_each(hands, error));
    for (uint32_t i = 0; i < hands->servers; i++) {
        CADRE_TRY(start_server(&hands->each[hands->workers + i], error));
    }
    return CADRE_OK;
}

/* --- workers --- */

static void *work(void *user)
{
    struct hand *hand = user;
    CADRE_ASSERT(hand->crew->role == ROLE_WORKER);
    crash_thread("crew worker", hand->crew->index);
    struct cadre_error error = {0};
    crew_enter(hand->crew);
    cadre_status status = crew_meet(hand->crew, closure_unwanted, &error);
    if (status == CADRE_OK) {
        status = closure_worker_run(hand->crew, &error);
    }
    if (status != CADRE_OK && directory_ended(hand->crew->directory, NULL) == CADRE_OK) {
        cadre_error_wrap(&error, status, "worker %u", hand->crew->index);
        directory_end(hand->hands->chief->directory, &error);
    }
    crew_enter(NULL);
    return NULL;
}

cadre_status hands_start_workers(struct crew_hands *hands, struct cadre_error *error)
{
    /* Signals are the program's: they are taken by its own threads. */
    sigset_t all;
    sigset_t before;
    int errnum = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (uint32_t i = 0; errnum == 0 && i < hands->workers; i++) {
        struct hand *hand = &hands->each[i];
        errnum = pthread_create(&hand->thread, NULL, work, hand);
        hand->started = errnum == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errnum == 0 ? CADRE_OK
                       : cadre_error_errno(error, errnum, "start the threads of the workers");
}

/* --- end --- */

static void say_over(struct crew_state *crew)
{
    const struct cadre_error over = {
        .code = CADRE_CANCELLED, .text = "the job is over: its chief is done"};
    if (crew != NULL) {
        directory_end(crew->directory, &over);
    }
}

void hands_end_workers(struct crew_hands *hands)
{
    for (uint32_t i = 0; hands != NULL && i < hands->workers; i++) {
        say_over(hands->each[i].crew);
    }
    for (uint32_t i = 0; hands != NULL && i < hands->workers; i++) {
        struct hand *hand = &hands->each[i];
        if (hand->started) {
            pthread_join(hand->thread, NULL);
            hand->started = false;
        }
        crew_free(hand->crew);
        hand->crew = NULL;
    }
}

void hands_end_servers(struct crew_hands *hands)
{
    if (hands == NULL) {
        return;
    }
    hands_end_workers(hands);
    for (uint32_t i = hands->workers; i < hands->workers + hands->servers; i++) {
        say_over(hands->each[i].crew);
        server_stop(hands->each[i].server);
        crew_free(hands->each[i].crew);
    }
    free(hands->each);
    free(hands);
}
