/* SPDX-License-Identifier: Apache-2.0
 * Who tells its changes to ps (k + 1) mod n. One change at a time, here and there: both stores hold
 * the same after each. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "worker/crash/crash.h"
#include "worker/ps/server_state.h"

#define LOOK_US    (100 * CADRE_US_PER_MS)
#define CONNECT_US CADRE_US_PER_S
#define FETCH_US   (10 * CADRE_US_PER_S)

struct backup {
    struct server *server;
    uint32_t index; /* of the other server */
    bool started;
    pthread_t thread;
    pthread_mutex_t lock;  /* a change here and there */
    struct link *link;     /* NULL: it is not here, changes are told to nobody */
    _Atomic uint64_t with; /* the incarnation that has all that is here; 0: none */
};

static bool is_there(const struct backup *backup, uint64_t incarnation)
{
    struct directory_member member;
    directory_look(backup->server->directory, ROLE_SERVER, backup->index, &member);
    return member.here && member.incarnation == incarnation &&
           !atomic_load(&backup->server->stopping);
}

bool backup_is_here(const struct backup *backup)
{
    uint64_t with = backup == NULL ? 0 : atomic_load(&backup->with);
    return with != 0 && is_there(backup, with);
}

static cadre_status hear(struct link *link, const struct backup *backup, struct cadre_error *error)
{
    struct frame answer;
    cadre_status status;
    do {
        status = link_receive(link, LOOK_US, &answer, error);
    } while (status == CADRE_DEADLINE_EXCEEDED &&
             (backup == NULL || is_there(backup, link_peer(link)->incarnation)));
    CADRE_TRY(status);
    if (answer.kind != FRAME_ANSWER || answer.code != CADRE_OK) {
        return cadre_error_set(error,
            answer.code == CADRE_NOT_FOUND ? CADRE_NOT_FOUND : CADRE_INTERNAL,
            "%s refused what a backup is told", link_who(link));
    }
    return CADRE_OK;
}

/* A connection with the copy that the other server keeps. */
static cadre_status reach(
    struct server *server, uint32_t index, struct link **ret_link, struct cadre_error *error)
{
    *ret_link = NULL;
    struct directory_member member;
    char who[LINK_WHO_BYTES];
    const struct frame hello = {.kind = FRAME_BACKUP};
    struct frame answer;
    directory_look(server->directory, ROLE_SERVER, index, &member);
    if (!member.here) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "ps %" PRIu32 " is not here", index);
    }
    link_name(&server->terms.crew, member.slot, who);
    struct link *link = NULL;
    CADRE_TRY(
        link_connect(&server->terms, who, member.address, member.slot, CONNECT_US, &link, error));
    cadre_status status = link_send(link, &hello, NULL, 0, error);
    if (status == CADRE_OK) {
        status = link_receive(link, CONNECT_US, &answer, error);
    }
    if (status == CADRE_OK && answer.code != CADRE_OK) {
        status = cadre_error_set(error, CADRE_UNAVAILABLE, "%s keeps no copies", link_who(link));
    }
    if (status != CADRE_OK) {
        link_free(link);
        return status;
    }
    *ret_link = link;
    return CADRE_OK;
}

/* The whole store, while nothing changes; then its changes are told. Under the lock. */
static cadre_status give_all(struct backup *backup, struct link *link, struct cadre_error *error)
{
    const struct frame load = {.kind = FRAME_LOAD};
    const struct frame end = {.kind = FRAME_PIECE};
    CADRE_TRY(link_send(link, &load, NULL, 0, error));
    CADRE_TRY(store_save(backup->server->store, copy_send_piece, link, error));
    CADRE_TRY(link_send(link, &end, NULL, 0, error));
    return hear(link, NULL, error);
}

static void try_once(struct backup *backup)
{
    struct link *link = NULL;
    if (reach(backup->server, backup->index, &link, NULL) != CADRE_OK) {
        return;
    }
    pthread_mutex_lock(&backup->lock);
    bool stopping = atomic_load(&backup->server->stopping);
    bool good = !stopping && give_all(backup, link, NULL) == CADRE_OK;
    if (good) {
        backup->link = link;
        atomic_store(&backup->with, link_peer(link)->incarnation);
    }
    pthread_mutex_unlock(&backup->lock);
    if (!good) {
        link_free(link);
    }
}

/* Under the lock. */
static void lose(struct backup *backup)
{
    link_free(backup->link);
    backup->link = NULL;
    atomic_store(&backup->with, 0);
}

static void *keep_backup(void *argument)
{
    struct backup *backup = argument;
    crash_thread("server backup", 0);
    struct directory *directory = backup->server->directory;
    while (
        !atomic_load(&backup->server->stopping) && directory_ended(directory, NULL) == CADRE_OK) {
        uint64_t seen = directory_await_change(directory, UINT64_MAX, 0);
        if (!backup_is_here(backup)) {
            pthread_mutex_lock(&backup->lock);
            lose(backup);
            pthread_mutex_unlock(&backup->lock);
            try_once(backup);
        }
        directory_await_change(directory, seen, LOOK_US);
    }
    return NULL;
}

cadre_status backup_open(
    struct server *server, uint32_t index, struct backup **ret_backup, struct cadre_error *error)
{
    struct backup *backup = calloc(1, sizeof *backup);
    *ret_backup = backup;
    if (backup == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a backup");
    }
    backup->server = server;
    backup->index = (index + 1) % server->terms.crew.servers;
    pthread_mutex_init(&backup->lock, NULL);
    int errnum = pthread_create(&backup->thread, NULL, keep_backup, backup);
    if (errnum != 0) {
        return cadre_error_errno(error, errnum, "start the thread of the backup");
    }
    backup->started = true;
    return CADRE_OK;
}

void backup_close(struct backup *backup)
{
    if (backup == NULL) {
        return;
    }
    if (backup->started) {
        pthread_join(backup->thread, NULL);
    }
    link_free(backup->link);
    pthread_mutex_destroy(&backup->lock);
    free(backup);
}

void backup_begin(struct backup *backup)
{
    if (backup != NULL) {
        pthread_mutex_lock(&backup->lock);
    }
}

void backup_tell(struct backup *backup, const struct connection *connection)
{
    if (backup == NULL || backup->link == NULL) {
        return;
    }
    const struct iovec piece = {connection->collected.bytes, connection->frame.bytes};
    struct frame frame = connection->frame;
    frame.kind = frame.kind == REQUEST_PUSH_PULL ? REQUEST_PUSH : frame.kind;
    if (link_send(backup->link, &frame, &piece, 1, NULL) != CADRE_OK ||
        hear(backup->link, backup, NULL) != CADRE_OK) {
        lose(backup);
    }
}

void backup_end(struct backup *backup)
{
    if (backup != NULL) {
        pthread_mutex_unlock(&backup->lock);
    }
}

cadre_status backup_fetch(struct server *server, uint32_t index, struct cadre_error *error)
{
    const struct frame fetch = {.kind = FRAME_FETCH};
    struct link *link = NULL;
    struct directory_member member;
    uint32_t next = (index + 1) % server->terms.crew.servers;
    CADRE_TRY(directory_await(server->directory, ROLE_SERVER, next, 0, FETCH_US, &member, error));
    CADRE_TRY(reach(server, next, &link, error));
    struct copy_reader reader = {.link = link};
    cadre_status status = link_send(link, &fetch, NULL, 0, error);
    if (status == CADRE_OK) {
        status = hear(link, NULL, error);
    }
    if (status == CADRE_OK) {
        status = store_load(server->store, copy_receive_piece, &reader, error);
    }
    link_free(link);
    return status;
}
