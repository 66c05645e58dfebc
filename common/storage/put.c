/* SPDX-License-Identifier: Apache-2.0
 * Objects written whole, and removed. The body's SHA-256 is in the signature, so the store compares
 * it with what came: no other checksum is sent. Large ones go in parts, several at a time. */
#include <string.h>

#include "common/base/sha256.h"
#include "common/storage/client.h"
#include "common/storage/files.h"
#include "common/storage/s3/run.h"
#include "common/storage/upload.h"

#define WHOLE_BYTES_MAX ((size_t)64 << 20) /* more are written in parts */

static cadre_status refuse_web(const char *path, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%.*s: what is at a URL can be read only; to write, give s3://BUCKET/KEY, and the store "
        "in AWS_ENDPOINT_URL_S3",
        storage_shown_bytes(path), path);
}

static struct s3_ask ask_of(const char *path, const struct storage_location *location,
    enum s3_operation operation, const char *method)
{
    return (struct s3_ask){.operation = operation,
        .path = path,
        .bucket = location->bucket,
        .key = location->key,
        .method = method};
}

static cadre_status put_whole(struct s3_session *session, struct s3_ask *ask, const void *bytes,
    size_t size, struct cadre_error *error)
{
    struct sha256 hash;
    char hex[SHA256_HEX_BYTES];
    CADRE_TRY(sha256_of(bytes, size, &hash, error));
    sha256_hex(&hash, hex);
    ask->body = bytes;
    ask->body_bytes = size;
    ask->body_sha256 = hex;
    cadre_status status = s3_run(session, ask, 1, error);
    http_answer_free(&ask->answer);
    return status;
}

static cadre_status put_in_pieces(struct storage_client *client, const char *path,
    const void *bytes, size_t size, struct cadre_error *error)
{
    size_t piece_bytes = STORAGE_PART_BYTES;
    while (size / piece_bytes >= STORAGE_PARTS_MAX) {
        piece_bytes *= 2;
    }
    struct storage_upload *upload = NULL;
    uint32_t count = 0;
    CADRE_TRY(storage_upload_begin(client, path, &upload, error));
    cadre_status status = storage_upload_bytes(upload, bytes, size, piece_bytes, &count, error);
    if (status != CADRE_OK) {
        storage_upload_abort(upload);
        return status;
    }
    return storage_upload_finish(upload, count, error);
}

cadre_status storage_put(struct storage_client *client, const char *path, const void *bytes,
    size_t size, struct cadre_error *error)
{
    struct storage_location location;
    struct s3_session *session = NULL;
    CADRE_TRY(storage_client_locate(client, path, false, &location, &session, error));
    if (location.kind == STORAGE_FILE) {
        return files_put(path, bytes, size, NULL, error);
    }
    if (location.kind == STORAGE_WEB) {
        return refuse_web(path, error);
    }
    if (size > WHOLE_BYTES_MAX) {
        return put_in_pieces(client, path, bytes, size, error);
    }
    struct s3_ask ask = ask_of(path, &location, S3_PUT_OBJECT, "PUT");
    return put_whole(session, &ask, bytes, size, error);
}

/* --- unless it is there --- */

static cadre_status is_there(struct s3_session *session, const char *path,
    const struct storage_location *location, bool *ret_is_there, struct cadre_error *error)
{
    struct s3_ask ask = ask_of(path, location, S3_HEAD_OBJECT, "HEAD");
    struct cadre_error refused = {0};
    cadre_status status = s3_run(session, &ask, 1, &refused);
    http_answer_free(&ask.answer);
    *ret_is_there = status == CADRE_OK;
    /* Who may not list gets 403 for what is not there; the write says whether it is more than that.
     */
    if (status == CADRE_OK || status == CADRE_NOT_FOUND || status == CADRE_PERMISSION_DENIED) {
        return CADRE_OK;
    }
    *error = refused;
    return status;
}

cadre_status storage_put_if_absent(struct storage_client *client, const char *path,
    const void *bytes, size_t size, bool *ret_was_there, struct cadre_error *error)
{
    struct storage_location location;
    struct s3_session *session = NULL;
    CADRE_TRY(storage_client_locate(client, path, false, &location, &session, error));
    if (location.kind == STORAGE_FILE) {
        return files_put(path, bytes, size, ret_was_there, error);
    }
    if (location.kind == STORAGE_WEB) {
        return refuse_web(path, error);
    }
    CADRE_TRY(is_there(session, path, &location, ret_was_there, error));
    if (*ret_was_there) {
        return CADRE_OK;
    }
    if (size > WHOLE_BYTES_MAX) { /* parts have no condition */
        return put_in_pieces(client, path, bytes, size, error);
    }
    static const struct s3_pair none = {"If-None-Match", "*"};
    struct s3_ask ask = ask_of(path, &location, S3_PUT_OBJECT, "PUT");
    ask.headers = &none;
    ask.header_count = 1;
    cadre_status status = put_whole(session, &ask, bytes, size, error);
    if (status == CADRE_ALREADY_EXISTS) {
        *ret_was_there = true;
        return CADRE_OK;
    }
    if (status != CADRE_OK && strcmp(ask.code, "NotImplemented") == 0) {
        struct s3_ask plain = ask_of(path, &location, S3_PUT_OBJECT, "PUT");
        status = put_whole(session, &plain, bytes, size, error);
    }
    return status;
}

cadre_status storage_remove(
    struct storage_client *client, const char *path, struct cadre_error *error)
{
    struct storage_location location;
    struct s3_session *session = NULL;
    CADRE_TRY(storage_client_locate(client, path, false, &location, &session, error));
    if (location.kind == STORAGE_FILE) {
        return files_remove(path, error);
    }
    if (location.kind == STORAGE_WEB) {
        return refuse_web(path, error);
    }
    struct s3_ask ask = ask_of(path, &location, S3_DELETE_OBJECT, "DELETE");
    struct cadre_error refused = {0};
    cadre_status status = s3_run(session, &ask, 1, &refused);
    http_answer_free(&ask.answer);
    bool no_bucket = strcmp(ask.code, "NoSuchBucket") == 0;
    if (status == CADRE_OK || (status == CADRE_NOT_FOUND && !no_bucket)) {
        return CADRE_OK; /* and the error is as it was */
    }
    *error = refused;
    return status;
}
