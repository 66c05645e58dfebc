/* SPDX-License-Identifier: Apache-2.0
 * Replicates changes to ps (k + 1) mod n. One change at a time, sent there and then made here: both
 * stores are equal after each. backup_record.h has the rule for what may be answered. Called by the
 * loops of server_requests.c and server_push.c. */
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "worker/library/crash/crash.h"
#include "worker/library/ps/server/backup_record.h"
#include "worker/library/ps/server/server_internal.h"

#define POLL_US    (100 * CADRE_US_PER_MS)
#define CONNECT_US CADRE_US_PER_S
/* A report that is not recorded is sent again. */
#define REPORT_RETRY_US (500 * CADRE_US_PER_MS)
/* A server that takes nothing and answers nothing for this long, and for this many times what the
 * change took here, counts as lost: it or its machine hangs. */
#define SILENCE_US    (10 * CADRE_US_PER_S)
#define SILENCE_TIMES 4
/* What waking a thread of an idle processor takes, about. */
#define SPIN_US 60

struct backup {
    struct server *server;
    void (*send_backed)(void *user, const struct task_backed *backed);
    void *user;
    uint32_t index;   /* of the other server */
    uint32_t started; /* of its incarnations */
    pthread_t threads[2];
    pthread_mutex_t lock;  /* held during a change here and there; over what follows */
    struct link *link;     /* NULL: it is not here, changes are sent to no server */
    uint64_t link_number;  /* from 1: pushes in progress are begun again over a new one */
    uint64_t began_us;     /* when the change began */
    _Atomic uint64_t with; /* the incarnation that has all that is here; 0: none */
    struct backup_record backup_record;
    _Atomic uint64_t counted; /* record.counted, for threads without the lock */
    uint64_t sent_us;
};

static bool is_there(const struct server *server, uint32_t index, uint64_t incarnation)
{
    struct directory_member member;
    directory_lookup(server->directory, ROLE_SERVER, index, &member);
    return member.here && member.incarnation == incarnation && !atomic_load(&server->stopping);
}

bool backup_in_sync(const struct backup *backup)
{
    uint64_t with = backup == NULL ? 0 : atomic_load(&backup->with);
    return with != 0 && is_there(backup->server, backup->index, with);
}

bool backup_may_answer(const struct backup *backup)
{
    if (backup == NULL) {
        return true;
    }
    uint64_t counted = atomic_load(&backup->counted);
    return backup_record_allows(counted, atomic_load(&backup->with));
}

/* ---- waiting for the other server ---- */

struct patience {
    const struct server *server;
    uint32_t index;
    uint64_t incarnation;
    uint64_t silence_us; /* UINT64_MAX: as long as the directory has it */
};

static bool goes_on(void *user, uint64_t silent_us)
{
    const struct patience *patience = user;
    return silent_us < patience->silence_us &&
           directory_ended(patience->server->directory, NULL) == CADRE_OK &&
           is_there(patience->server, patience->index, patience->incarnation);
}

static struct patience patience_with(const struct backup *backup, const struct link *link)
{
    uint64_t took_us = clock_monotonic_us() - backup->began_us;
    return (struct patience){.server = backup->server,
        .index = backup->index,
        .incarnation = link_peer(link)->incarnation,
        .silence_us = SILENCE_US + SILENCE_TIMES * took_us};
}

/* Waits without sleeping: an answer that comes at once costs one wake of a thread less. */
static bool is_answered_soon(struct link *link, struct frame *ret_answer)
{
    uint64_t end_us = clock_monotonic_us() + SPIN_US;
    cadre_status status = link_receive(link, 0, ret_answer, NULL);
    while (status == CADRE_DEADLINE_EXCEEDED && clock_monotonic_us() < end_us) {
        sched_yield();
        status = link_receive(link, 0, ret_answer, NULL);
    }
    return status == CADRE_OK;
}

static cadre_status server_backup_receive(
    struct link *link, struct patience *patience, struct cadre_error *error)
{
    struct frame answer;
    const struct link_wait wait = {.goes_on = goes_on, .user = patience};
    if (!is_answered_soon(link, &answer)) {
        CADRE_TRY(link_receive_while(link, &wait, &answer, error));
    }
    if (answer.kind != FRAME_ANSWER || answer.code != CADRE_OK) {
        return cadre_error_set(error,
            answer.code == CADRE_NOT_FOUND ? CADRE_NOT_FOUND : CADRE_INTERNAL,
            "%s refused a change of the store whose copy it keeps", link_peer_name(link));
    }
    return CADRE_OK;
}

/* Connects to the copy that the other server keeps. */
static cadre_status server_backup_reach(
    struct server *server, uint32_t index, struct link **ret_link, struct cadre_error *error)
{
    *ret_link = NULL;
    struct directory_member member;
    char who[LINK_NAME_BYTES];
    const struct frame hello = {.kind = FRAME_BACKUP};
    struct frame answer;
    directory_lookup(server->directory, ROLE_SERVER, index, &member);
    if (!member.here) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "ps %" PRIu32 " is not here", index);
    }
    link_slot_name(&server->terms.ps_job, member.slot, who);
    struct link *link = NULL;
    CADRE_TRY(
        link_connect(&server->terms, who, member.address, member.slot, CONNECT_US, &link, error));
    cadre_status status = link_send(link, &hello, NULL, 0, error);
    if (status == CADRE_OK) {
        status = link_receive(link, CONNECT_US, &answer, error);
    }
    if (status == CADRE_OK && answer.code != CADRE_OK) {
        status =
            cadre_error_set(error, CADRE_UNAVAILABLE, "%s keeps no copies", link_peer_name(link));
    }
    if (status != CADRE_OK) {
        link_free(link);
        return status;
    }
    *ret_link = link;
    return CADRE_OK;
}

/* ---- reports to the coordinator; under the lock ---- */

static void server_backup_report(struct backup *backup)
{
    backup->sent_us = clock_monotonic_us();
    backup->send_backed(backup->user, &backup->backup_record.sent);
}

/* The other server has all that is here, or has no longer. `counted` changes before the report is
 * sent: in between no answer goes out that the copy to be recorded would not have. */
static void server_backup_consider(struct backup *backup)
{
    bool stopping = atomic_load(&backup->server->stopping); /* no report is sent any more */
    if (!stopping && backup_record_update(&backup->backup_record, atomic_load(&backup->with))) {
        atomic_store(&backup->counted, backup->backup_record.counted);
        server_backup_report(backup);
    }
}

static void server_backup_heed(struct backup *backup)
{
    struct directory_member self;
    const struct server *server = backup->server;
    uint32_t index = server->terms.slot - ps_job_first_slot(&server->terms.ps_job, ROLE_SERVER);
    directory_lookup(server->directory, ROLE_SERVER, index, &self);
    if (self.incarnation == server->terms.incarnation) {
        backup_record_confirmed(&backup->backup_record, &self.backed);
        atomic_store(&backup->counted, backup->backup_record.counted);
    }
    server_backup_consider(backup);
    if (!backup->backup_record.recorded &&
        clock_monotonic_us() - backup->sent_us >= REPORT_RETRY_US) {
        server_backup_report(backup);
    }
}

/* ---- a whole store to the copy; loss of the backup ---- */

/* Sends the whole store while nothing changes; from then on each change is replicated. */
static cadre_status give_all(struct backup *backup, struct link *link, struct cadre_error *error)
{
    const struct frame load = {.kind = FRAME_LOAD};
    const struct frame end = {.kind = FRAME_PIECE};
    backup->began_us = clock_monotonic_us();
    struct patience patience = patience_with(backup, link);
    const struct link_wait wait = {.goes_on = goes_on, .user = &patience};
    struct copy_writer writer = {.link = link, .wait = &wait};
    CADRE_TRY(link_send_while(link, &load, NULL, 0, &wait, error));
    CADRE_TRY(store_save(backup->server->store, copy_send_piece, &writer, error));
    CADRE_TRY(link_send_while(link, &end, NULL, 0, &wait, error));
    patience = patience_with(backup, link);
    return server_backup_receive(link, &patience, error);
}

static void try_once(struct backup *backup)
{
    struct link *link = NULL;
    if (server_backup_reach(backup->server, backup->index, &link, NULL) != CADRE_OK) {
        return;
    }
    pthread_mutex_lock(&backup->lock);
    bool stopping = atomic_load(&backup->server->stopping);
    bool good = !stopping && give_all(backup, link, NULL) == CADRE_OK;
    if (good) {
        backup->link = link;
        backup->link_number++;
        atomic_store(&backup->with, link_peer(link)->incarnation);
        server_backup_consider(backup);
    }
    pthread_mutex_unlock(&backup->lock);
    if (!good) {
        link_free(link);
    }
}

/* The caller holds the lock. */
static void server_backup_lose(struct backup *backup)
{
    link_free(backup->link);
    backup->link = NULL;
    atomic_store(&backup->with, 0);
    server_backup_consider(backup);
}

/* ---- two threads, because connecting to the other server takes longer than a message of the
 * coordinator ---- */

static void each_change(struct backup *backup, void (*look)(struct backup *backup))
{
    struct directory *directory = backup->server->directory;
    while (
        !atomic_load(&backup->server->stopping) && directory_ended(directory, NULL) == CADRE_OK) {
        uint64_t seen = directory_await_change(directory, UINT64_MAX, 0);
        look(backup);
        server_wake_parked(backup->server);
        directory_await_change(directory, seen, POLL_US);
    }
}

/* Also without a change: a newer incarnation of this server may have taken the copy, which ends the
 * connection, and what it changes since must not be missing in an answer of this one. */
static void receive_once(struct backup *backup)
{
    pthread_mutex_lock(&backup->lock);
    if (backup->link != NULL && (!backup_in_sync(backup) || link_is_ended(backup->link))) {
        server_backup_lose(backup);
    }
    server_backup_heed(backup);
    pthread_mutex_unlock(&backup->lock);
}

static void *receive_records(void *argument)
{
    crash_thread("server records", 0);
    each_change(argument, receive_once);
    return NULL;
}

static void keep_once(struct backup *backup)
{
    if (atomic_load(&backup->with) == 0) {
        try_once(backup);
    }
}

static void *keep_backup(void *argument)
{
    crash_thread("server backup", 0);
    each_change(argument, keep_once);
    return NULL;
}

static cadre_status start_threads(struct backup *backup, struct cadre_error *error)
{
    static void *(*const run[])(void *) = {receive_records, keep_backup};
    for (; backup->started < 2; backup->started++) {
        pthread_t *thread = &backup->threads[backup->started];
        int errnum = pthread_create(thread, NULL, run[backup->started], backup);
        if (errnum != 0) {
            return cadre_error_errno(error, errnum, "start the threads of the backup");
        }
    }
    return CADRE_OK;
}

cadre_status backup_open(struct server *server, const struct server_options *options,
    struct link *link, struct backup **ret_backup, struct cadre_error *error)
{
    struct backup *backup = calloc(1, sizeof *backup);
    struct directory_member self;
    *ret_backup = backup;
    if (backup == NULL) {
        link_free(link);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a backup");
    }
    directory_lookup(server->directory, ROLE_SERVER, options->index, &self);
    backup->server = server;
    backup->send_backed = options->send_backed;
    backup->user = options->user;
    backup->index = (options->index + 1) % server->terms.ps_job.servers;
    backup->link = link;
    backup->link_number = 1;
    atomic_store(&backup->with, link == NULL ? 0 : link_peer(link)->incarnation);
    backup_record_begin(&backup->backup_record, &self.backed);
    atomic_store(&backup->counted, backup->backup_record.counted);
    pthread_mutex_init(&backup->lock, NULL);
    return start_threads(backup, error);
}

void backup_join(struct backup *backup)
{
    for (uint32_t i = 0; backup != NULL && i < backup->started; i++) {
        pthread_join(backup->threads[i], NULL);
    }
}

void backup_close(struct backup *backup)
{
    if (backup == NULL) {
        return;
    }
    link_free(backup->link);
    pthread_mutex_destroy(&backup->lock);
    free(backup);
}

/* ---- a change ---- */

void backup_begin(struct backup *backup)
{
    if (backup != NULL) {
        pthread_mutex_lock(&backup->lock);
        backup->began_us = clock_monotonic_us();
    }
}

/* Without a backup, or with one that takes nothing any more, nothing is sent. */
static void send_change(struct backup *backup, const struct frame *frame, const void *bytes)
{
    struct patience patience = patience_with(backup, backup->link);
    const struct link_wait wait = {.goes_on = goes_on, .user = &patience};
    const struct iovec piece = {(void *)(uintptr_t)bytes, frame->bytes};
    if (link_send_while(backup->link, frame, &piece, 1, &wait, NULL) != CADRE_OK) {
        server_backup_lose(backup);
    }
}

static bool has_backup(const struct backup *backup)
{
    return backup != NULL && backup->link != NULL;
}

void backup_send(struct backup *backup, const struct connection *connection)
{
    if (has_backup(backup)) {
        struct frame frame = connection->frame;
        frame.kind = frame.kind == REQUEST_PUSH_PULL ? REQUEST_PUSH : frame.kind;
        send_change(backup, &frame, connection->collected.bytes);
    }
}

static void send_part(struct backup *backup, const struct connection *connection, uint32_t kind,
    uint64_t rows, const void *bytes, uint64_t count)
{
    struct frame frame = {.kind = kind, .bytes = count};
    frame.args[ARG_SHARD] = connection->key.shard;
    frame.args[ARG_CLOSURE] = connection->key.closure;
    frame.args[ARG_ORDINAL] = connection->key.ordinal;
    frame.args[ARG_ROWS] = rows;
    frame.args[ARG_DONE_WATERMARK] = connection->frame.args[ARG_DONE_WATERMARK];
    send_change(backup, &frame, bytes);
}

/* Over this connection to the backup, which may be another one than that of the rows before: the
 * backup then received them with the whole store. */
static bool begin_push(struct backup *backup, struct connection *connection)
{
    if (has_backup(backup) && connection->forwarded != backup->link_number) {
        connection->forwarded = backup->link_number;
        send_part(backup, connection, FRAME_PUSH_BEGIN, 0, connection->collected.bytes,
            PUSH_HEADER_BYTES);
    }
    return has_backup(backup);
}

void backup_send_rows(
    struct backup *backup, struct connection *connection, const void *values, uint64_t rows)
{
    if (begin_push(backup, connection) && rows > 0) {
        send_part(backup, connection, FRAME_PUSH_ROWS, rows, values, rows * connection->row_bytes);
    }
}

void backup_send_end(struct backup *backup, struct connection *connection)
{
    if (begin_push(backup, connection)) {
        send_part(backup, connection, FRAME_PUSH_END, 0, NULL, 0);
    }
}

void backup_send_abandon(struct backup *backup, struct connection *connection)
{
    if (has_backup(backup) && connection->forwarded == backup->link_number) {
        send_part(backup, connection, FRAME_PUSH_ABANDON, 0, NULL, 0);
    }
    connection->forwarded = 0;
}

void backup_await(struct backup *backup)
{
    if (has_backup(backup)) {
        struct patience patience = patience_with(backup, backup->link);
        if (server_backup_receive(backup->link, &patience, NULL) != CADRE_OK) {
            server_backup_lose(backup);
        }
    }
}

void backup_replicate(struct backup *backup, const struct connection *connection)
{
    backup_send(backup, connection);
    backup_await(backup);
}

void backup_end(struct backup *backup)
{
    if (backup != NULL) {
        pthread_mutex_unlock(&backup->lock);
    }
}

/* ---- fetching the copy of a lost store ---- */

static cadre_status fetch_over(
    struct server *server, struct link *link, uint32_t index, struct cadre_error *error)
{
    const struct frame fetch = {.kind = FRAME_FETCH};
    struct frame end;
    struct patience patience = {.server = server,
        .index = index,
        .incarnation = link_peer(link)->incarnation,
        .silence_us = UINT64_MAX};
    const struct link_wait wait = {.goes_on = goes_on, .user = &patience};
    struct copy_reader reader = {.link = link, .wait = &wait};
    CADRE_TRY(link_send(link, &fetch, NULL, 0, error));
    CADRE_TRY(server_backup_receive(link, &patience, error));
    CADRE_TRY(store_load(server->store, copy_receive_piece, &reader, error));
    CADRE_TRY(link_receive_while(link, &wait, &end, error));
    return end.kind == FRAME_PIECE && end.bytes == 0
               ? CADRE_OK
               : cadre_error_set(error, CADRE_DATA_LOSS, "a copy of a store that does not end");
}

/* One attempt. */
static cadre_status fetch_once(struct server *server, uint32_t index, uint64_t by,
    struct link **ret_link, struct cadre_error *error)
{
    struct link *link = NULL;
    CADRE_TRY(server_backup_reach(server, index, &link, error));
    cadre_status status = link_peer(link)->incarnation == by
                              ? fetch_over(server, link, index, error)
                              : cadre_error_set(error, CADRE_UNAVAILABLE, "it was started again");
    if (status != CADRE_OK) {
        link_free(link);
        return status;
    }
    *ret_link = link;
    return CADRE_OK;
}

cadre_status backup_fetch(
    struct server *server, uint32_t index, struct link **ret_link, struct cadre_error *error)
{
    struct directory_member self;
    uint32_t next = (index + 1) % server->terms.ps_job.servers;
    directory_lookup(server->directory, ROLE_SERVER, index, &self);
    for (;;) {
        CADRE_TRY(directory_ended(server->directory, error));
        uint64_t seen = directory_await_change(server->directory, UINT64_MAX, 0);
        if (!is_there(server, next, self.backed.by)) {
            return cadre_error_set(
                error, CADRE_NOT_FOUND, "ps %" PRIu32 ", which had the copy, is lost too", next);
        }
        cadre_status status = fetch_once(server, next, self.backed.by, ret_link, error);
        bool again = status == CADRE_UNAVAILABLE || status == CADRE_DEADLINE_EXCEEDED;
        if (!again) {
            return status;
        }
        CADRE_TRY(server_open_store(server, error)); /* it may be half filled */
        directory_await_change(server->directory, seen, POLL_US);
    }
}
