/* SPDX-License-Identifier: Apache-2.0
 * Objects, uploads in parts, and lists of the floor's store. */
#include "floor_objects.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PARTS_MAX  10000
#define PAGE_KEYS  1000
#define KEY_BYTES  200 /* of an entry of a list, and more than its XML has */
#define PATH_BYTES 4096
#define KEPT_BYTES ((size_t)8 << 20)
#define XML        "Content-Type: application/xml\r\n"
#define TIME_TEXT  "2026-01-01T00:00:00.000Z"

/* An upload that was begun: how many bytes each part has. */
struct upload {
    uint64_t id;
    char path[PATH_BYTES];
    uint64_t part_bytes[PARTS_MAX + 1];
    bool has_part[PARTS_MAX + 1];
    struct upload *next;
};

static struct upload *uploads;
static uint64_t upload_count;

/* A text that grows. */
struct text {
    char *bytes;
    size_t used, room;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    if (text->room - text->used < 2 * PATH_BYTES) {
        text->room = 2 * text->room + 4 * PATH_BYTES;
        text->bytes = realloc(text->bytes, text->room);
    }
    va_start(arguments, format);
    int length = vsnprintf(text->bytes + text->used, text->room - text->used, format, arguments);
    va_end(arguments);
    text->used += length > 0 ? (size_t)length : 0;
}

static void refuse(struct reply *reply, const char *status, const char *code)
{
    struct text text = {0};
    add(&text, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code);
    floor_reply(reply, status, XML, text.bytes, text.used);
}

static void give_text(struct reply *reply, const struct text *text)
{
    floor_reply(reply, "200 OK", XML, text->bytes, text->used);
}

/* --- objects --- */

static void write_etag(const struct stat *facts, char *to, size_t room)
{
    snprintf(to, room, "ETag: \"%" PRIx64 "-%" PRIx64 "%09ld\"\r\n", (uint64_t)facts->st_size,
        (uint64_t)facts->st_mtim.tv_sec, facts->st_mtim.tv_nsec);
}

static void get_object(const char *path, const struct request *request, struct reply *reply)
{
    struct stat facts;
    char headers[512];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &facts) != 0) {
        refuse(reply, "404 Not Found", "NoSuchKey");
        return;
    }
    uint64_t size = (uint64_t)facts.st_size;
    uint64_t last = request->last < size ? request->last : size - 1;
    write_etag(&facts, headers, sizeof headers);
    size_t used = strlen(headers);
    bool is_head = strcmp(request->method, "HEAD") == 0;
    if (is_head || !request->has_range || size == 0) {
        floor_reply_file(reply, "200 OK", headers, file, 0, size);
        reply->file_left = is_head ? 0 : size;
        return;
    }
    if (request->first > last) {
        close(file);
        refuse(reply, "416 Range Not Satisfiable", "InvalidRange");
        return;
    }
    snprintf(headers + used, sizeof headers - used,
        "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", request->first, last, size);
    floor_reply_file(
        reply, "206 Partial Content", headers, file, request->first, last - request->first + 1);
}

/* Its bytes, or as many zeros. */
static bool write_object(const char *path, const char *body, uint64_t bytes)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool good = file >= 0 && (body != NULL ? write(file, body, bytes) == (ssize_t)bytes
                                           : ftruncate(file, (off_t)bytes) == 0);
    if (file >= 0) {
        close(file);
    }
    return good;
}

static void put_object(const char *path, const char *body, uint64_t bytes, struct reply *reply)
{
    struct stat facts;
    char headers[128];
    if (!write_object(path, body, bytes) || stat(path, &facts) != 0) {
        refuse(reply, "404 Not Found", "NoSuchBucket");
        return;
    }
    write_etag(&facts, headers, sizeof headers);
    floor_reply(reply, "200 OK", headers, NULL, 0);
}

/* --- uploads --- */

static struct upload *find_upload(const char *id)
{
    struct upload *upload = uploads;
    while (upload != NULL && upload->id != strtoull(id, NULL, 10)) {
        upload = upload->next;
    }
    return upload;
}

static void forget_upload(struct upload *upload)
{
    struct upload **link = &uploads;
    while (*link != upload) {
        link = &(*link)->next;
    }
    *link = upload->next;
    free(upload);
}

static void begin_upload(const char *path, struct reply *reply)
{
    struct text text = {0};
    struct upload *upload = calloc(1, sizeof *upload);
    upload->id = ++upload_count;
    snprintf(upload->path, sizeof upload->path, "%s", path);
    upload->next = uploads;
    uploads = upload;
    add(&text,
        "<InitiateMultipartUploadResult><UploadId>%" PRIu64
        "</UploadId></InitiateMultipartUploadResult>",
        upload->id);
    give_text(reply, &text);
}

static void put_part(struct upload *upload, const char *number, uint64_t bytes, struct reply *reply)
{
    unsigned long part = strtoul(number, NULL, 10);
    char headers[64];
    if (part < 1 || part > PARTS_MAX) {
        refuse(reply, "400 Bad Request", "InvalidArgument");
        return;
    }
    upload->part_bytes[part] = bytes;
    upload->has_part[part] = true;
    snprintf(headers, sizeof headers, "ETag: \"%032lx\"\r\n", part);
    floor_reply(reply, "200 OK", headers, NULL, 0);
}

static void list_parts(const struct upload *upload, struct reply *reply)
{
    struct text text = {0};
    add(&text, "<ListPartsResult><IsTruncated>false</IsTruncated>");
    for (unsigned part = 1; part <= PARTS_MAX; part++) {
        if (upload->has_part[part]) {
            add(&text,
                "<Part><PartNumber>%u</PartNumber><ETag>\"%032x\"</ETag><Size>%" PRIu64
                "</Size></Part>",
                part, part, upload->part_bytes[part]);
        }
    }
    add(&text, "</ListPartsResult>");
    give_text(reply, &text);
}

static void end_upload(struct upload *upload, struct reply *reply)
{
    struct text text = {0};
    uint64_t bytes = 0;
    for (unsigned part = 1; part <= PARTS_MAX; part++) {
        bytes += upload->part_bytes[part];
    }
    if (write_object(upload->path, NULL, bytes)) {
        add(&text,
            "<CompleteMultipartUploadResult><ETag>\"%" PRIx64
            "\"</ETag></CompleteMultipartUploadResult>",
            upload->id);
        give_text(reply, &text);
    } else {
        refuse(reply, "404 Not Found", "NoSuchBucket");
    }
    forget_upload(upload);
}

static void answer_upload(
    const struct request *request, const char *id, const char *number, struct reply *reply)
{
    struct upload *upload = find_upload(id);
    if (upload == NULL) {
        refuse(reply, "404 Not Found", "NoSuchUpload");
    } else if (strcmp(request->method, "PUT") == 0) {
        put_part(upload, number, request->body_bytes, reply);
    } else if (strcmp(request->method, "GET") == 0) {
        list_parts(upload, reply);
    } else if (strcmp(request->method, "POST") == 0) {
        end_upload(upload, reply);
    } else {
        forget_upload(upload);
        floor_reply(reply, "204 No Content", "", NULL, 0);
    }
}

/* --- lists --- */

static void add_key(struct text *text, const char *key, uint64_t bytes)
{
    add(text,
        "<Contents><Key>%s</Key><LastModified>" TIME_TEXT "</LastModified><ETag>&quot;e&quot;"
        "</ETag><Size>%" PRIu64 "</Size><StorageClass>STANDARD</StorageClass></Contents>",
        key, bytes);
}

/* A page of a bucket that is a number alone. */
static void list_made(uint64_t count, const char *token, struct reply *reply)
{
    struct text text = {0};
    uint64_t first = token != NULL ? strtoull(token, NULL, 10) : 0;
    uint64_t end = first + PAGE_KEYS < count ? first + PAGE_KEYS : count;
    add(&text, "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>%s</IsTruncated>",
        end < count ? "true" : "false");
    if (end < count) {
        add(&text, "<NextContinuationToken>%" PRIu64 "</NextContinuationToken>", end);
    }
    for (uint64_t number = first; number < end; number++) {
        char key[KEY_BYTES];
        snprintf(
            key, sizeof key, "shards/part-%08" PRIu64 "-of-%08" PRIu64 ".tfrecord", number, count);
        add_key(&text, key, 100 << 20);
    }
    add(&text, "</ListBucketResult>");
    give_text(reply, &text);
}

static int no_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* All in one page, those beneath a folder left out. */
static void list_folder(
    const char *path, const char *prefix, const char *delimiter, struct reply *reply)
{
    struct text text = {0};
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, no_hidden, alphasort);
    if (count < 0) {
        refuse(reply, "404 Not Found", "NoSuchBucket");
        return;
    }
    add(&text,
        "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>");
    for (int i = 0; i < count; i++) {
        const char *key = entries[i]->d_name;
        bool wanted = strncmp(key, prefix, strlen(prefix)) == 0;
        if (wanted && (delimiter == NULL || strstr(key + strlen(prefix), "%2F") == NULL)) {
            char whole[PATH_BYTES];
            struct stat facts = {0};
            snprintf(whole, sizeof whole, "%.*s/%s", PATH_BYTES / 2, path, key);
            (void)stat(whole, &facts);
            add_key(&text, key, (uint64_t)facts.st_size);
        }
        free(entries[i]);
    }
    free(entries);
    add(&text, "</ListBucketResult>");
    give_text(reply, &text);
}

static void answer_bucket(const char *path, const struct request *request, struct reply *reply)
{
    static char token[QUERY_BYTES], prefix[QUERY_BYTES], delimiter[QUERY_BYTES];
    if (strcmp(request->method, "PUT") == 0) {
        (void)mkdir(path, 0755);
        floor_reply(reply, "200 OK", "", NULL, 0);
    } else if (floor_query(request, "uploads", token) != NULL) {
        struct text text = {0};
        add(&text, "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"
                   "</ListMultipartUploadsResult>");
        give_text(reply, &text);
    } else if (strncmp(request->bucket, "keys-", 5) == 0) {
        list_made(strtoull(request->bucket + 5, NULL, 10),
            floor_query(request, "continuation-token", token), reply);
    } else {
        const char *starts = floor_query(request, "prefix", prefix);
        list_folder(path, starts != NULL ? starts : "",
            floor_query(request, "delimiter", delimiter), reply);
    }
}

bool floor_keeps(const struct request *request)
{
    return request->body_bytes > 0 && request->body_bytes <= KEPT_BYTES &&
           strstr(request->query, "uploadId=") == NULL;
}

void floor_answer(
    const char *folder, const struct request *request, const char *body, struct reply *ret_reply)
{
    static char id[QUERY_BYTES], number[QUERY_BYTES];
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s%s%s", folder, request->bucket,
        request->key[0] != '\0' ? "/" : "", request->key);
    if (request->key[0] == '\0') {
        answer_bucket(path, request, ret_reply);
    } else if (floor_query(request, "uploadId", id) != NULL) {
        const char *part = floor_query(request, "partNumber", number);
        answer_upload(request, id, part != NULL ? part : "", ret_reply);
    } else if (floor_query(request, "uploads", id) != NULL) {
        begin_upload(path, ret_reply);
    } else if (strcmp(request->method, "PUT") == 0) {
        put_object(path, body, request->body_bytes, ret_reply);
    } else if (strcmp(request->method, "DELETE") == 0) {
        (void)unlink(path);
        floor_reply(ret_reply, "204 No Content", "", NULL, 0);
    } else {
        get_object(path, request, ret_reply);
    }
}
