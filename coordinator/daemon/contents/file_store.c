/* SPDX-License-Identifier: Apache-2.0
 * The check of contents at Submit, MissingBlobs, and the collection of unused contents. */
#include "coordinator/daemon/contents/file_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/sha256.h"
#include "coordinator/daemon/contents/content_looks.h"
#include "coordinator/daemon/contents/contents.h"
#include "common/rpc/file_work.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/contents/worker_permissions.h"

#define CLEAN_EVERY_US (600 * CADRE_US_PER_S)

cadre_status file_store_check(
    const struct daemon *daemon, const struct job_file *file, struct cadre_error *error)
{
    struct sha256 hash;
    uint64_t bytes = 0;
    memcpy(hash.bytes, file->sha256, sizeof hash.bytes);
    CADRE_TRY(contents_check_loaded(daemon->contents, error));
    if (!contents_find(daemon->contents, &hash, &bytes)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the content of file %s is not here: upload it with PutBlob before Submit", file->name);
    }
    if (bytes != file->size_bytes) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "file %s is said to have %llu bytes, its content has %llu", file->name,
            (unsigned long long)file->size_bytes, (unsigned long long)bytes);
    }
    return CADRE_OK;
}

/* ---- MissingBlobs ---- */

struct requested {
    struct sha256 hash;
    uint64_t number; /* in the index; 0: not there */
    bool gone;       /* its file is missing all the same */
};

/* With an object store: what a list alone says. */
struct uncertain {
    size_t count;
    struct content_look *looks;
};

/* Those of one call. */
struct question {
    struct daemon *daemon;
    struct rpc_call *call; /* NULL once it was cancelled */
    struct file_work work;
    struct uncertain uncertain;
    struct cadre_error error; /* of a store that is away */
    size_t count;
    struct requested items[];
};

static void free_question(struct question *question)
{
    free(question->uncertain.looks);
    free(question);
}

/* With an object store, which has no such time, the index alone knows it, but not always whether
 * the content is there.
 *
 * The access time of a file is when an upload last relied on the content, and 0 until then
 * (receive.c), so that this is known after a restart as well. */
static void mark_in_thread(void *user)
{
    struct question *question = user;
    const struct uncertain *uncertain = &question->uncertain;
    if (uncertain->count > 0) {
        (void)content_looks(
            question->daemon->objects, uncertain->looks, uncertain->count, &question->error);
    }
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    for (size_t i = 0; i < question->count && question->daemon->objects == NULL; i++) {
        struct requested *asked = &question->items[i];
        CADRE_FREE_AT_EXIT char *path =
            asked->number > 0 ? path_of_blob(question->daemon, asked->hash.bytes) : NULL;
        asked->gone = path != NULL && utimensat(AT_FDCWD, path, times, 0) != 0 && errno == ENOENT;
    }
}

static void answer_question(struct question *question)
{
    struct daemon *daemon = question->daemon;
    struct rpc_call *call = question->call;
    uint8_t(*missing)[LIMIT_SHA256_BYTES] = calloc(question->count + 1, sizeof *missing);
    if (missing == NULL) {
        rpc_call_finish(
            call, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for the list");
        return;
    }
    struct blob_list answer = {.sha256 = (const uint8_t(*)[LIMIT_SHA256_BYTES])missing};
    for (size_t i = 0; i < question->count; i++) {
        if (question->items[i].number == 0 || question->items[i].gone) {
            memcpy(missing[answer.count++], question->items[i].hash.bytes, LIMIT_SHA256_BYTES);
        }
    }
    DAEMON_SEND(daemon, call, blob_list, &answer);
    free(missing);
    rpc_call_finish(call, CADRE_OK, "");
}

/* What was listed and is not there is missing, too. */
static void note_looks(struct question *question)
{
    struct contents *contents = question->daemon->contents;
    for (size_t i = 0; i < question->uncertain.count; i++) {
        contents_note_look(contents, &question->uncertain.looks[i]);
    }
    for (size_t i = 0; i < question->count; i++) {
        struct requested *asked = &question->items[i];
        asked->gone = asked->number > 0 && !contents_find(contents, &asked->hash, NULL);
    }
}

static void after_mark(void *user)
{
    struct question *question = user;
    if (question->uncertain.count > 0 && question->error.code == CADRE_OK) {
        note_looks(question);
    }
    for (size_t i = 0; i < question->count; i++) {
        const struct requested *asked = &question->items[i];
        if (asked->gone && question->daemon->objects == NULL) {
            contents_file_lost(question->daemon->contents, &asked->hash, asked->number);
        }
    }
    if (question->call != NULL) {
        rpc_call_set_user(question->call, NULL);
        if (question->error.code != CADRE_OK) {
            rpc_call_fail(question->call, &question->error);
        } else {
            answer_question(question);
        }
    }
    free_question(question);
}

/* With TLS the answer to a worker has only contents that its jobs reference or that it had; it
 * uploads the rest. On an error it has none. */
static cadre_status mark_present(
    struct question *question, const struct tls_identity *caller, struct cadre_error *error)
{
    struct daemon *daemon = question->daemon;
    bool is_worker = caller->role == TLS_ROLE_WORKER;
    CADRE_FREE_AT_EXIT struct sha256 *hashes = calloc(question->count + 1, sizeof *hashes);
    CADRE_FREE_AT_EXIT bool *may = calloc(question->count + 1, sizeof *may);
    if (hashes == NULL || may == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for the list");
    }
    for (size_t i = 0; i < question->count; i++) {
        hashes[i] = question->items[i].hash;
    }
    if (is_worker) {
        CADRE_TRY(
            worker_contents_allowed(daemon, caller->name, hashes, question->count, may, error));
    }
    for (size_t i = 0; i < question->count; i++) {
        struct requested *item = &question->items[i];
        if ((!is_worker || may[i]) &&
            contents_touch(daemon->contents, &item->hash, &item->number) && is_worker) {
            worker_contents_note(daemon, caller->name, &item->hash);
        }
    }
    return CADRE_OK;
}

/* Those that are to be reported as here by a list alone. */
static cadre_status find_uncertain(struct question *question, struct cadre_error *error)
{
    struct daemon *daemon = question->daemon;
    if (daemon->objects == NULL) {
        return CADRE_OK;
    }
    question->uncertain.looks = calloc(question->count + 1, sizeof *question->uncertain.looks);
    if (question->uncertain.looks == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for the list");
    }
    for (size_t i = 0; i < question->count; i++) {
        const struct requested *asked = &question->items[i];
        if (asked->number > 0 && !contents_is_certain(daemon->contents, &asked->hash)) {
            question->uncertain.looks[question->uncertain.count++] =
                contents_begin_look(daemon->contents, &asked->hash);
        }
    }
    return CADRE_OK;
}

static void missing_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct blob_list asked;
    wire_arena_reset(daemon->arena);
    if (wire_unpack_blob_list(data, length, daemon->arena, &asked, &error) != CADRE_OK ||
        contents_check_loaded(daemon->contents, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    struct question *question =
        calloc(1, sizeof *question + asked.count * sizeof(struct requested));
    if (question == NULL) {
        rpc_call_finish(
            call, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for the list");
        return;
    }
    *question = (struct question){.daemon = daemon, .call = call, .count = asked.count};
    for (size_t i = 0; i < asked.count; i++) {
        memcpy(question->items[i].hash.bytes, asked.sha256[i], LIMIT_SHA256_BYTES);
    }
    if (mark_present(question, rpc_call_identity(call), &error) != CADRE_OK ||
        find_uncertain(question, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        free_question(question);
        return;
    }
    rpc_call_set_user(call, question);
    file_work_start(&question->work, &daemon->file_pool, mark_in_thread, after_mark, question);
}

static void missing_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    (void)user;
    struct question *question = rpc_call_user(call);
    if (question != NULL) {
        question->call = NULL; /* the end of the work frees it */
    }
}

const struct rpc_server_ops missing_blobs_ops = {
    .on_message = missing_message, .on_closed = missing_closed};

/* ---- unused contents ---- */

void file_store_collect_garbage(struct daemon *daemon)
{
    uint64_t now_us = clock_monotonic_us();
    if (now_us - daemon->cleaned_us >= CLEAN_EVERY_US) {
        daemon->cleaned_us = now_us;
        contents_collect_garbage(
            daemon->contents, content_references_has, daemon->content_references);
    }
}
