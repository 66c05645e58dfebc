/* SPDX-License-Identifier: Apache-2.0
 * A large object in parts (CreateMultipartUpload and what follows). What the parts are is asked of
 * the store at the end, as others may have written some. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/sha256.h"
#include "common/pure/assert.h"
#include "common/storage/client.h"
#include "common/storage/files.h"
#include "common/storage/s3/etag.h"
#include "common/storage/s3/run.h"
#include "common/storage/upload.h"

struct storage_upload {
    char *path;
    struct s3_session *session; /* NULL: a file */
    struct storage_location location;
    char name[STORAGE_UPLOAD_BYTES];
};

static struct s3_ask ask_of(
    const struct storage_upload *upload, enum s3_operation operation, const char *method)
{
    return (struct s3_ask){.operation = operation,
        .path = upload->path,
        .bucket = upload->location.bucket,
        .key = upload->location.key,
        .method = method};
}

/* --- begin, join, leave --- */

static void free_upload(struct storage_upload *upload)
{
    if (upload != NULL) {
        free(upload->path);
        free(upload);
    }
}

static cadre_status new_upload(struct storage_client *client, const char *path,
    struct storage_upload **ret_upload, struct cadre_error *error)
{
    struct storage_upload *upload =
        fault_point("storage.memory") ? NULL : calloc(1, sizeof *upload);
    if (upload == NULL || (upload->path = strdup(path)) == NULL) {
        free_upload(upload);
        return cadre_error_errno(error, ENOMEM, "cannot write %s", path);
    }
    cadre_status status = storage_client_locate(
        client, upload->path, false, &upload->location, &upload->session, error);
    if (status == CADRE_OK && upload->location.kind == STORAGE_WEB) {
        status = storage_check_written(path, error);
    }
    if (status != CADRE_OK) {
        free_upload(upload);
        return status;
    }
    *ret_upload = upload;
    return CADRE_OK;
}

static bool is_upload_name(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++) {
        if (name[i] <= ' ' || name[i] > '~') {
            return false;
        }
    }
    return length > 0 && length < STORAGE_UPLOAD_BYTES;
}

static cadre_status begin_at_store(struct storage_upload *upload, struct cadre_error *error)
{
    static const struct s3_pair query = {"uploads", ""};
    struct s3_ask ask = ask_of(upload, S3_CREATE_UPLOAD, "POST");
    ask.query = &query;
    ask.query_count = 1;
    struct s3_answer answer;
    CADRE_TRY(s3_ask_parsed(upload->session, &ask, S3_ANSWER_UPLOAD, &answer, error));
    cadre_status status = CADRE_OK;
    if (is_upload_name(answer.upload)) {
        memcpy(upload->name, answer.upload, strlen(answer.upload) + 1);
    } else {
        status = cadre_error_set(error, CADRE_INTERNAL,
            "%.200s: the store's name of the upload is not one of 1 to %d printable characters",
            upload->path, STORAGE_UPLOAD_BYTES - 1);
    }
    s3_answer_free(&answer);
    return status;
}

cadre_status storage_upload_begin(struct storage_client *client, const char *path,
    struct storage_upload **ret_upload, struct cadre_error *error)
{
    struct storage_upload *upload = NULL;
    CADRE_TRY(new_upload(client, path, &upload, error));
    cadre_status status = upload->session == NULL
                              ? files_upload_begin(upload->path, upload->name, error)
                              : begin_at_store(upload, error);
    if (status != CADRE_OK) {
        free_upload(upload);
        return status;
    }
    *ret_upload = upload;
    return CADRE_OK;
}

const char *storage_upload_name(const struct storage_upload *upload)
{
    return upload->name;
}

cadre_status storage_upload_join(struct storage_client *client, const char *path, const char *name,
    struct storage_upload **ret_upload, struct cadre_error *error)
{
    struct storage_upload *upload = NULL;
    if (!is_upload_name(name)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.200s: the name of an upload has 1 to %d characters without spaces", path,
            STORAGE_UPLOAD_BYTES - 1);
    }
    CADRE_TRY(new_upload(client, path, &upload, error));
    cadre_status status =
        upload->session == NULL ? files_upload_check(path, name, error) : CADRE_OK;
    if (status != CADRE_OK) {
        free_upload(upload);
        return status;
    }
    memcpy(upload->name, name, strlen(name) + 1);
    *ret_upload = upload;
    return CADRE_OK;
}

void storage_upload_leave(struct storage_upload *upload)
{
    free_upload(upload);
}

/* --- parts --- */

/* A part on its way, with what its request points to. */
struct part {
    char hash[SHA256_HEX_BYTES];
    char number[16];
    struct s3_pair query[2];
};

static struct s3_ask prepare_part(const struct storage_upload *upload, uint32_t number,
    const void *bytes, size_t size, const struct sha256 *hash, struct part *part)
{
    sha256_hex(hash, part->hash);
    (void)snprintf(part->number, sizeof part->number, "%" PRIu32, number);
    part->query[0] = (struct s3_pair){"partNumber", part->number};
    part->query[1] = (struct s3_pair){"uploadId", upload->name};
    struct s3_ask ask = ask_of(upload, S3_UPLOAD_PART, "PUT");
    ask.query = part->query;
    ask.query_count = CADRE_COUNT_OF(part->query);
    ask.body = bytes;
    ask.body_bytes = size;
    ask.body_sha256 = part->hash;
    return ask;
}

static cadre_status check_number(
    const struct storage_upload *upload, uint32_t number, struct cadre_error *error)
{
    return number >= 1 && number <= STORAGE_PARTS_MAX
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "%.200s: parts have the numbers 1 to %d, not %" PRIu32 ": make them larger",
                     upload->path, STORAGE_PARTS_MAX, number);
}

cadre_status storage_upload_hashed(struct storage_upload *upload, uint32_t number,
    const void *bytes, size_t size, const struct sha256 *hash, struct cadre_error *error)
{
    CADRE_TRY(check_number(upload, number, error));
    if (upload->session == NULL) {
        return files_upload_part(upload->path, upload->name, number, bytes, size, error);
    }
    struct part part;
    struct s3_ask ask = prepare_part(upload, number, bytes, size, hash, &part);
    cadre_status status = s3_run(upload->session, &ask, 1, error);
    http_answer_free(&ask.answer);
    return status;
}

cadre_status storage_upload_part(struct storage_upload *upload, uint32_t number, const void *bytes,
    size_t size, struct cadre_error *error)
{
    struct sha256 hash = {{0}}; /* which files need not */
    CADRE_TRY(check_number(upload, number, error));
    if (upload->session != NULL) {
        CADRE_TRY(sha256_of(bytes, size, &hash, error));
    }
    return storage_upload_hashed(upload, number, bytes, size, &hash, error);
}

cadre_status storage_upload_bytes(struct storage_upload *upload, const void *bytes, size_t size,
    size_t piece_bytes, uint32_t *ret_count, struct cadre_error *error)
{
    CADRE_ASSERT(upload->session != NULL);
    *ret_count = 0;
    for (size_t at = 0; at < size;) {
        struct part batch[S3_RUN_WIDTH];
        struct s3_ask asks[S3_RUN_WIDTH];
        size_t count = 0;
        for (; count < S3_RUN_WIDTH && at < size; count++) {
            size_t piece = size - at < piece_bytes ? size - at : piece_bytes;
            const char *from = (const char *)bytes + at;
            struct sha256 hash;
            CADRE_TRY(sha256_of(from, piece, &hash, error));
            asks[count] = prepare_part(upload, ++*ret_count, from, piece, &hash, &batch[count]);
            at += piece;
        }
        cadre_status status = s3_run(upload->session, asks, count, error);
        for (size_t i = 0; i < count; i++) {
            http_answer_free(&asks[i].answer);
        }
        if (status != CADRE_OK) {
            return status;
        }
    }
    return CADRE_OK;
}

/* --- finish --- */

struct etag_list {
    char **etags; /* of the parts 1 to `count`; NULL: not seen yet */
    uint32_t count;
    uint32_t last; /* the greatest number that was seen */
};

static cadre_status take_page(struct storage_upload *upload, struct etag_list *list,
    const struct s3_answer *page, struct cadre_error *error)
{
    for (size_t i = 0; i < page->item_count; i++) {
        const struct s3_item *item = &page->items[i];
        if (item->part <= list->last || item->etag == NULL) {
            return cadre_error_set(error, CADRE_DATA_LOSS,
                "%.200s: the store lists part %" PRIu32 " of the upload again, or without an ETag",
                upload->path, item->part);
        }
        list->last = item->part;
        if (item->part <= list->count) {
            list->etags[item->part - 1] = strdup(item->etag);
            if (list->etags[item->part - 1] == NULL) {
                return cadre_error_errno(error, ENOMEM, "cannot finish %s", upload->path);
            }
        }
    }
    return CADRE_OK;
}

static cadre_status list_page(struct storage_upload *upload, struct etag_list *list, bool *ret_more,
    struct cadre_error *error)
{
    char marker[16];
    (void)snprintf(marker, sizeof marker, "%" PRIu32, list->last);
    const struct s3_pair query[] = {
        {"uploadId", upload->name}, {"max-parts", "1000"}, {"part-number-marker", marker}};
    struct s3_ask ask = ask_of(upload, S3_LIST_PARTS, "GET");
    ask.query = query;
    ask.query_count = list->last == 0 ? 2 : 3;
    struct s3_answer page;
    CADRE_TRY(s3_ask_parsed(upload->session, &ask, S3_ANSWER_PARTS, &page, error));
    cadre_status status = take_page(upload, list, &page, error);
    *ret_more = page.truncated && page.item_count > 0 && list->last < list->count;
    s3_answer_free(&page);
    return status;
}

static cadre_status collect_etags(
    struct storage_upload *upload, struct etag_list *list, struct cadre_error *error)
{
    bool more = true;
    while (more) {
        CADRE_TRY(list_page(upload, list, &more, error));
    }
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->etags[i] == NULL) {
            return cadre_error_set(error, CADRE_DATA_LOSS,
                "part %" PRIu32 " of the upload to %.200s is missing", i + 1, upload->path);
        }
    }
    return CADRE_OK;
}

/* The store does not know the upload any more, though it just listed it: whether it was completed
 * already, and the answer was lost. */
static bool was_completed(struct storage_upload *upload, const struct etag_list *list)
{
    struct s3_ask ask = ask_of(upload, S3_HEAD_OBJECT, "HEAD");
    char wanted[S3_UPLOAD_ETAG_BYTES];
    bool good = false;
    if (s3_upload_etag((const char *const *)list->etags, list->count, wanted) &&
        s3_run(upload->session, &ask, 1, NULL) == CADRE_OK) {
        const char *etag = http_header(&ask.answer, "etag");
        good = etag != NULL && strcmp(etag, wanted) == 0;
    }
    http_answer_free(&ask.answer);
    return good;
}

static cadre_status complete_upload(
    struct storage_upload *upload, const struct etag_list *list, struct cadre_error *error)
{
    size_t size = 0;
    CADRE_FREE_AT_EXIT char *body =
        s3_complete_body((const char *const *)list->etags, list->count, &size);
    struct sha256 hash;
    char hex[SHA256_HEX_BYTES];
    if (body == NULL) {
        return cadre_error_errno(error, ENOMEM, "cannot finish %s", upload->path);
    }
    CADRE_TRY(sha256_of(body, size, &hash, error));
    sha256_hex(&hash, hex);
    const struct s3_pair query = {"uploadId", upload->name};
    static const struct s3_pair type = {"Content-Type", "application/xml"};
    struct s3_ask ask = ask_of(upload, S3_COMPLETE_UPLOAD, "POST");
    ask.query = &query;
    ask.query_count = 1;
    ask.headers = &type;
    ask.header_count = 1;
    ask.body = body;
    ask.body_bytes = size;
    ask.body_sha256 = hex;
    ask.is_slow = true;
    struct s3_answer answer;
    cadre_status status = s3_ask_parsed(upload->session, &ask, S3_ANSWER_COMPLETED, &answer, error);
    if (status == CADRE_OK) {
        s3_answer_free(&answer);
    } else if (strcmp(ask.code, "NoSuchUpload") == 0 && was_completed(upload, list)) {
        status = CADRE_OK;
    }
    return status;
}

static cadre_status finish_at_store(
    struct storage_upload *upload, uint32_t count, struct cadre_error *error)
{
    struct etag_list list = {.count = count};
    list.etags = fault_point("storage.memory") ? NULL : calloc(count, sizeof *list.etags);
    if (list.etags == NULL) {
        return cadre_error_errno(error, ENOMEM, "cannot finish %s", upload->path);
    }
    cadre_status status = collect_etags(upload, &list, error);
    if (status == CADRE_OK) {
        status = complete_upload(upload, &list, error);
    }
    for (uint32_t i = 0; i < count; i++) {
        free(list.etags[i]);
    }
    free(list.etags);
    return status;
}

cadre_status storage_upload_finish(
    struct storage_upload *upload, uint32_t count, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    if (count < 1 || count > STORAGE_PARTS_MAX) {
        status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.200s: an upload has 1 to %d parts, not %" PRIu32, upload->path, STORAGE_PARTS_MAX,
            count);
    } else {
        status = upload->session == NULL
                     ? files_upload_finish(upload->path, upload->name, count, error)
                     : finish_at_store(upload, count, error);
    }
    if (status == CADRE_OK) {
        free_upload(upload);
    } else {
        storage_upload_abort(upload);
    }
    return status;
}

/* --- abort --- */

/* `error` may be NULL. */
static cadre_status abort_at_store(struct s3_session *session, const char *path, const char *bucket,
    const char *key, const char *name, struct cadre_error *error)
{
    const struct s3_pair query = {"uploadId", name};
    struct s3_ask ask = {.operation = S3_ABORT_UPLOAD,
        .path = path,
        .bucket = bucket,
        .key = key,
        .method = "DELETE",
        .query = &query,
        .query_count = 1};
    struct cadre_error refused = {0};
    cadre_status status = s3_run(session, &ask, 1, &refused);
    http_answer_free(&ask.answer);
    if (status == CADRE_OK || status == CADRE_NOT_FOUND) {
        return CADRE_OK; /* another one was faster */
    }
    if (error != NULL) {
        *error = refused;
    }
    return status;
}

void storage_upload_abort(struct storage_upload *upload)
{
    if (upload == NULL) {
        return;
    }
    if (upload->session == NULL) {
        files_upload_abort(upload->path, upload->name);
    } else {
        (void)abort_at_store(upload->session, upload->path, upload->location.bucket,
            upload->location.key, upload->name, NULL);
    }
    free_upload(upload);
}

/* --- those of writers that are dead --- */

static cadre_status clear_page(struct s3_session *session, const char *start,
    const struct storage_location *location, const struct s3_answer *page, int64_t before_us,
    uint32_t *count, struct cadre_error *error)
{
    for (size_t i = 0; i < page->item_count; i++) {
        const struct s3_item *item = &page->items[i];
        bool is_ours = strncmp(item->key, location->key, strlen(location->key)) == 0;
        if (is_ours && !item->is_folder && item->upload != NULL && item->time_us != 0 &&
            item->time_us < before_us) {
            CADRE_TRY(
                abort_at_store(session, start, location->bucket, item->key, item->upload, error));
            ++*count;
        }
    }
    return CADRE_OK;
}

static cadre_status clear_store(struct s3_session *session, const char *start,
    const struct storage_location *location, int64_t before_us, uint32_t *count,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *key_marker = NULL;
    CADRE_FREE_AT_EXIT char *upload_marker = NULL;
    for (;;) {
        struct s3_pair query[5] = {
            {"uploads", ""}, {"encoding-type", "url"}, {"prefix", location->key}};
        size_t pairs = 3;
        if (key_marker != NULL) {
            query[pairs++] = (struct s3_pair){"key-marker", key_marker};
        }
        if (upload_marker != NULL) {
            query[pairs++] = (struct s3_pair){"upload-id-marker", upload_marker};
        }
        struct s3_ask ask = {.operation = S3_LIST_UPLOADS,
            .path = start,
            .bucket = location->bucket,
            .method = "GET",
            .query = query,
            .query_count = pairs};
        struct s3_answer page;
        CADRE_TRY(s3_ask_parsed(session, &ask, S3_ANSWER_UPLOADS, &page, error));
        cadre_status status = clear_page(session, start, location, &page, before_us, count, error);
        bool more = status == CADRE_OK && page.truncated;
        bool same = more && key_marker != NULL && strcmp(key_marker, page.next) == 0 &&
                    (page.next_upload == NULL ||
                        (upload_marker != NULL && strcmp(upload_marker, page.next_upload) == 0));
        free(key_marker);
        free(upload_marker);
        key_marker = more ? strdup(page.next) : NULL;
        upload_marker = more && page.next_upload != NULL ? strdup(page.next_upload) : NULL;
        s3_answer_free(&page);
        if (more && key_marker == NULL) {
            return cadre_error_errno(error, ENOMEM, "cannot look for uploads to %s", start);
        }
        if (same) {
            return cadre_error_set(error, CADRE_DATA_LOSS,
                "%.200s: the store gives the same page of uploads again", start);
        }
        if (!more) {
            return status;
        }
    }
}

cadre_status storage_uploads_clear(struct storage_client *client, const char *start,
    int64_t before_us, uint32_t *ret_count, struct cadre_error *error)
{
    struct storage_location location;
    struct s3_session *session = NULL;
    *ret_count = 0;
    CADRE_TRY(storage_client_locate(client, start, true, &location, &session, error));
    return location.kind == STORAGE_FILE
               ? files_uploads_clear(start, before_us, ret_count, error)
               : clear_store(session, start, &location, before_us, ret_count, error);
}
