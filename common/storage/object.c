/* SPDX-License-Identifier: Apache-2.0
 * One object that is read: looked up once, then read in ranges of that version. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/storage/client.h"
#include "common/storage/files.h"
#include "common/storage/s3/run.h"

#define RANGE_BYTES      ((size_t)8 << 20) /* of one request; longer reads are several */
#define RANGE_TEXT_BYTES 64

struct storage_object {
    char *path;
    char *shown;                /* the path without what a URL has behind "?" */
    struct s3_session *session; /* NULL: a file */
    struct storage_location location;
    int fd; /* of a file; else -1 */
    struct storage_info info;
};

/* --- what a HEAD says --- */

static bool parse_number(const char *text, const char **ret_end, uint64_t *ret_number)
{
    if (text == NULL || *text < '0' || *text > '9') {
        return false;
    }
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    *ret_number = number;
    *ret_end = end;
    return errno == 0;
}

static cadre_status take_info(struct storage_object *object, const struct http_answer *answer,
    const char *bytes, struct cadre_error *error)
{
    struct storage_info *info = &object->info;
    const char *end = NULL;
    if (!parse_number(bytes, &end, &info->bytes) || *end != '\0') {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: the server does not say how long it is", object->shown);
    }
    const char *etag = http_header(answer, "etag");
    etag = etag != NULL ? etag : "";
    if (strlen(etag) >= sizeof info->version) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s has an ETag of %zu bytes; at most %zu are taken", object->shown, strlen(etag),
            sizeof info->version - 1);
    }
    memcpy(info->version, etag, strlen(etag) + 1);
    const char *modified = http_header(answer, "last-modified");
    uint64_t modified_s = 0;
    if (modified != NULL && s3_http_date_parse(modified, &modified_s)) {
        info->modified_us = (int64_t)(modified_s * CADRE_US_PER_S);
    }
    return CADRE_OK;
}

static struct s3_ask ask_of(const struct storage_object *object, enum s3_operation operation)
{
    bool is_s3 = object->location.kind == STORAGE_S3;
    return (struct s3_ask){.operation = operation,
        .path = object->shown,
        .bucket = is_s3 ? object->location.bucket : NULL,
        .key = object->location.key,
        .url = object->path,
        .method = operation == S3_HEAD_OBJECT ? "HEAD" : "GET"};
}

static cadre_status check_first(
    const struct s3_ask *ask, const struct http_answer *answer, struct cadre_error *error)
{
    (void)ask;
    return answer->status == 206 ? CADRE_OK
                                 : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                                       "the server does not answer with ranges of bytes");
}

/* A refused HEAD has no body that says why; and a link may be good for GET alone. The first byte
 * comes with the length of the whole. */
static cadre_status look_by_get(struct storage_object *object, struct cadre_error *error)
{
    static const struct s3_pair range = {"Range", "bytes=0-0"};
    char first = 0;
    struct s3_ask ask = ask_of(object, S3_GET_OBJECT);
    ask.headers = &range;
    ask.header_count = 1;
    ask.to = &first;
    ask.to_bytes = sizeof first;
    ask.check = check_first;
    cadre_status status = s3_run(object->session, &ask, 1, error);
    if (status == CADRE_OUT_OF_RANGE) { /* it has none */
        object->info.bytes = 0;
        return CADRE_OK;
    }
    if (status == CADRE_OK) {
        const char *text = http_header(&ask.answer, "content-range");
        const char *slash = text != NULL ? strchr(text, '/') : NULL;
        status = take_info(object, &ask.answer, slash != NULL ? slash + 1 : NULL, error);
    }
    http_answer_free(&ask.answer);
    return status;
}

/* No such object: whether others lie beneath it, so that it is a folder. */
static bool is_folder(const struct storage_object *object)
{
    bool found = false;
    char prefix[STORAGE_PATH_BYTES];
    (void)snprintf(prefix, sizeof prefix, "%s/", object->location.key);
    const struct s3_pair query[] = {
        {"list-type", "2"}, {"max-keys", "1"}, {"encoding-type", "url"}, {"prefix", prefix}};
    struct s3_ask ask = ask_of(object, S3_LIST_OBJECTS);
    ask.key = NULL;
    ask.query = query;
    ask.query_count = CADRE_COUNT_OF(query);
    struct s3_answer list;
    if (s3_ask_parsed(object->session, &ask, S3_ANSWER_LIST, &list, NULL) == CADRE_OK) {
        found = list.item_count > 0;
        s3_answer_free(&list);
    }
    return found;
}

static cadre_status look_up(struct storage_object *object, struct cadre_error *error)
{
    struct s3_ask ask = ask_of(object, S3_HEAD_OBJECT);
    cadre_status status = s3_run(object->session, &ask, 1, error);
    if (status == CADRE_OK) {
        status = take_info(object, &ask.answer, http_header(&ask.answer, "content-length"), error);
    } else if (status == CADRE_PERMISSION_DENIED || status == CADRE_FAILED_PRECONDITION) {
        status = look_by_get(object, error);
    } else if (object->location.kind == STORAGE_S3 && status == CADRE_NOT_FOUND &&
               is_folder(object)) {
        status = cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "%s is not an object but a folder", object->shown);
    }
    http_answer_free(&ask.answer);
    return status;
}

/* --- open and close --- */

static cadre_status open_object(
    struct storage_object *object, struct storage_client *client, struct cadre_error *error)
{
    CADRE_TRY(storage_client_locate(
        client, object->path, false, &object->location, &object->session, error));
    return object->session == NULL ? files_open(object->path, &object->fd, &object->info, error)
                                   : look_up(object, error);
}

cadre_status storage_open(struct storage_client *client, const char *path,
    struct storage_object **ret_object, struct cadre_error *error)
{
    struct storage_object *object =
        fault_point("storage.memory") ? NULL : calloc(1, sizeof *object);
    if (object != NULL) {
        object->fd = -1;
        object->path = strdup(path);
        object->shown = storage_shown_path(path);
    }
    if (object == NULL || object->path == NULL || object->shown == NULL) {
        storage_close(object);
        return cadre_error_errno(error, ENOMEM, "cannot open an object");
    }
    cadre_status status = open_object(object, client, error);
    if (status != CADRE_OK) {
        storage_close(object);
        return status;
    }
    *ret_object = object;
    return CADRE_OK;
}

void storage_close(struct storage_object *object)
{
    if (object == NULL) {
        return;
    }
    if (object->fd >= 0) {
        close(object->fd);
    }
    free(object->path);
    free(object->shown);
    free(object);
}

const struct storage_info *storage_info_of(const struct storage_object *object)
{
    return &object->info;
}

const char *storage_path_of(const struct storage_object *object)
{
    return object->path;
}

/* --- read --- */

struct range {
    const struct storage_object *object;
    uint64_t offset;
    char text[RANGE_TEXT_BYTES];
    struct s3_pair headers[2];
};

static bool has_strong_version(const struct storage_object *object)
{
    return object->info.version[0] == '"';
}

/* "bytes 100-199/1000"; the last number may be "*", which is 0 here. */
static bool parse_range(const char *text, uint64_t *ret_from, uint64_t *ret_to, uint64_t *ret_total)
{
    *ret_total = 0;
    if (text == NULL || strncmp(text, "bytes ", 6) != 0 ||
        !parse_number(text + 6, &text, ret_from) || *text != '-' ||
        !parse_number(text + 1, &text, ret_to) || *text != '/') {
        return false;
    }
    return text[1] == '*' || parse_number(text + 1, &text, ret_total);
}

/* The range that was asked for, of the object that was opened. */
static cadre_status check_range(
    const struct s3_ask *ask, const struct http_answer *answer, struct cadre_error *error)
{
    const struct range *range = ask->user;
    const struct storage_object *object = range->object;
    const char *etag = http_header(answer, "etag");
    const char *type = http_header(answer, "content-type");
    if (object->info.version[0] != '\0' && etag == NULL) { /* of a proxy, maybe */
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "the answer is not the object (status %d, %.64s)", answer->status,
            type != NULL ? type : "of no type");
    }
    if (etag != NULL && strcmp(etag, object->info.version) != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "it is another object now than when it was opened (ETag %.64s, then %.64s)", etag,
            object->info.version);
    }
    const char *text = http_header(answer, "content-range");
    uint64_t from = 0, to = 0, total = 0;
    bool is_range = answer->status == 206 && parse_range(text, &from, &to, &total);
    if (is_range && total != 0 && total != object->info.bytes) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "it has %" PRIu64 " bytes now, and had %" PRIu64 " when it was opened", total,
            object->info.bytes);
    }
    if (is_range && from == range->offset && to == from + ask->to_bytes - 1) {
        return CADRE_OK;
    }
    bool is_whole =
        answer->status == 200 && range->offset == 0 && ask->to_bytes == object->info.bytes;
    if (is_whole) {
        return CADRE_OK;
    }
    if (answer->status == 200) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "the server does not answer with ranges of bytes");
    }
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "the server answered with the range \"%.64s\" instead of \"%s\"", text != NULL ? text : "",
        range->text);
}

/* Where bytes go: one place, or with `pieces` several of `piece_bytes`, the last one as long as is
 * left. */
struct target {
    char *to;
    void *const *pieces;
    size_t piece_bytes;
};

static struct target target_behind(const struct target *target, size_t bytes)
{
    if (target->pieces == NULL) {
        return (struct target){.to = target->to + bytes};
    }
    void *const *pieces = target->pieces + bytes / target->piece_bytes;
    return (struct target){.to = pieces[0], .pieces = pieces, .piece_bytes = target->piece_bytes};
}

static struct s3_ask ask_range(struct range *range, struct target target, size_t bytes)
{
    const struct storage_object *object = range->object;
    struct s3_ask ask = ask_of(object, S3_GET_OBJECT);
    (void)snprintf(range->text, sizeof range->text, "bytes=%" PRIu64 "-%" PRIu64, range->offset,
        range->offset + bytes - 1);
    range->headers[0] = (struct s3_pair){"Range", range->text};
    range->headers[1] = (struct s3_pair){"If-Match", object->info.version};
    ask.headers = range->headers;
    ask.header_count = has_strong_version(object) ? 2 : 1;
    ask.to = target.to;
    ask.to_bytes = bytes;
    ask.to_pieces = target.pieces;
    ask.piece_bytes = target.piece_bytes;
    ask.check = check_range;
    ask.user = range;
    ask.may_hedge = has_strong_version(object);
    return ask;
}

static cadre_status read_ranges(const struct storage_object *object, uint64_t offset,
    const struct target *target, size_t bytes, struct cadre_error *error)
{
    size_t count = (bytes + RANGE_BYTES - 1) / RANGE_BYTES;
    struct range one_range;
    struct s3_ask one_ask;
    struct range *ranges = &one_range;
    struct s3_ask *asks = &one_ask;
    if (count > 1) {
        ranges = fault_point("storage.memory") ? NULL : calloc(count, sizeof *ranges);
        asks = fault_point("storage.memory") ? NULL : calloc(count, sizeof *asks);
    }
    cadre_status status = CADRE_OK;
    if (ranges == NULL || asks == NULL) {
        status = cadre_error_errno(error, ENOMEM, "cannot read %s", object->shown);
    } else {
        for (size_t i = 0; i < count; i++) {
            size_t begin = i * RANGE_BYTES;
            size_t size = bytes - begin < RANGE_BYTES ? bytes - begin : RANGE_BYTES;
            ranges[i] = (struct range){.object = object, .offset = offset + begin};
            asks[i] = ask_range(&ranges[i], target_behind(target, begin), size);
        }
        status = s3_run(object->session, asks, count, error);
        for (size_t i = 0; i < count; i++) {
            http_answer_free(&asks[i].answer);
        }
    }
    if (count > 1) {
        free(ranges);
        free(asks);
    }
    return status;
}

static cadre_status check_inside(
    const struct storage_object *object, uint64_t offset, size_t bytes, struct cadre_error *error)
{
    uint64_t size = object->info.bytes;
    return offset <= size && bytes <= size - offset
               ? CADRE_OK
               : cadre_error_set(error, CADRE_OUT_OF_RANGE,
                     "%s has %" PRIu64 " bytes; there are no %zu bytes at %" PRIu64, object->shown,
                     size, bytes, offset);
}

cadre_status storage_read(const struct storage_object *object, uint64_t offset, void *to,
    size_t bytes, struct cadre_error *error)
{
    CADRE_TRY(check_inside(object, offset, bytes, error));
    if (bytes == 0) {
        return CADRE_OK;
    }
    return object->session == NULL
               ? files_read(object->fd, object->path, offset, to, bytes, error)
               : read_ranges(object, offset, &(struct target){.to = to}, bytes, error);
}

cadre_status storage_read_pieces(const struct storage_object *object, uint64_t offset,
    void *const pieces[], size_t piece_bytes, size_t bytes, struct cadre_error *error)
{
    CADRE_ASSERT(piece_bytes > 0 && RANGE_BYTES % piece_bytes == 0);
    CADRE_TRY(check_inside(object, offset, bytes, error));
    if (object->session != NULL && bytes > 0) {
        const struct target target = {
            .to = pieces[0], .pieces = pieces, .piece_bytes = piece_bytes};
        return read_ranges(object, offset, &target, bytes, error);
    }
    for (size_t at = 0; at < bytes; at += piece_bytes) {
        size_t count = bytes - at < piece_bytes ? bytes - at : piece_bytes;
        CADRE_TRY(files_read(
            object->fd, object->path, offset + at, pieces[at / piece_bytes], count, error));
    }
    return CADRE_OK;
}
