/* SPDX-License-Identifier: Apache-2.0
 * Answers by expat: a stack of tags, the text of the innermost element, and what is to be kept at
 * an element's end. Elements that are not known are passed over. */
#include "common/storage/s3/answers.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/base/utf8.h"
#include "common/pure/assert.h"
#include "common/pure/text.h"
#include "common/storage/s3/dates.h"

#define DEPTH_MAX    8
#define TEXT_BYTES   8192 /* of one element: a key of 1,024 bytes is 3,072 when it is encoded */
#define CHUNK_BYTES  ((size_t)64 * 1024)
#define ITEMS_BEGIN  64
#define NUMBER_MAX   INT64_MAX
#define SENTENCE_END ": is this an object store, and no proxy before it?"

enum tag {
    OTHER,
    ERROR_ROOT,
    LIST_ROOT,
    UPLOADS_ROOT,
    LIST_PARTS_ROOT,
    UPLOAD_ROOT,
    COMPLETED_ROOT,
    CONTENTS,
    COMMON_PREFIXES,
    UPLOAD,
    PART,
    KEY,
    PREFIX,
    SIZE,
    LAST_MODIFIED,
    ETAG,
    UPLOAD_ID,
    INITIATED,
    PART_NUMBER,
    IS_TRUNCATED,
    NEXT_CONTINUATION_TOKEN,
    NEXT_KEY_MARKER,
    NEXT_UPLOAD_ID_MARKER,
    NEXT_PART_NUMBER_MARKER,
    ENCODING_TYPE,
    CODE,
    MESSAGE,
    REGION,
    ENDPOINT,
    SERVER_TIME,
    TAGS
};

static const char *const tag_names[TAGS] = {
    [ERROR_ROOT] = "Error",
    [LIST_ROOT] = "ListBucketResult",
    [UPLOADS_ROOT] = "ListMultipartUploadsResult",
    [LIST_PARTS_ROOT] = "ListPartsResult",
    [UPLOAD_ROOT] = "InitiateMultipartUploadResult",
    [COMPLETED_ROOT] = "CompleteMultipartUploadResult",
    [CONTENTS] = "Contents",
    [COMMON_PREFIXES] = "CommonPrefixes",
    [UPLOAD] = "Upload",
    [PART] = "Part",
    [KEY] = "Key",
    [PREFIX] = "Prefix",
    [SIZE] = "Size",
    [LAST_MODIFIED] = "LastModified",
    [ETAG] = "ETag",
    [UPLOAD_ID] = "UploadId",
    [INITIATED] = "Initiated",
    [PART_NUMBER] = "PartNumber",
    [IS_TRUNCATED] = "IsTruncated",
    [NEXT_CONTINUATION_TOKEN] = "NextContinuationToken",
    [NEXT_KEY_MARKER] = "NextKeyMarker",
    [NEXT_UPLOAD_ID_MARKER] = "NextUploadIdMarker",
    [NEXT_PART_NUMBER_MARKER] = "NextPartNumberMarker",
    [ENCODING_TYPE] = "EncodingType",
    [CODE] = "Code",
    [MESSAGE] = "Message",
    [REGION] = "Region",
    [ENDPOINT] = "Endpoint",
    [SERVER_TIME] = "ServerTime",
};

/* The root of each kind, and what its items are in. */
static const struct {
    enum tag root, item;
} kinds[] = {
    [S3_ANSWER_LIST] = {LIST_ROOT, CONTENTS},
    [S3_ANSWER_UPLOADS] = {UPLOADS_ROOT, UPLOAD},
    [S3_ANSWER_PARTS] = {LIST_PARTS_ROOT, PART},
    [S3_ANSWER_UPLOAD] = {UPLOAD_ROOT, OTHER},
    [S3_ANSWER_COMPLETED] = {COMPLETED_ROOT, OTHER},
};

/* Texts of an answer; the newest chunk first. */
struct chunk {
    struct chunk *older;
    size_t used, size;
    char bytes[];
};

struct reader {
    XML_Parser parser;
    enum s3_answer_kind kind;
    bool any_kind; /* <Error> alone is asked for */
    struct s3_answer *answer;
    struct chunk *chunks;
    size_t items_room;
    enum tag stack[DEPTH_MAX];
    size_t depth;
    char text[TEXT_BYTES];
    size_t text_bytes;
    struct s3_item none; /* what is filled in after a fault, and not read */
    bool is_encoded;
    bool no_memory;
    const char *fault; /* NULL: none yet */
};

static void stop(struct reader *reader, const char *fault)
{
    if (reader->fault == NULL) {
        reader->fault = fault;
        XML_StopParser(reader->parser, XML_FALSE);
    }
}

static char *keep(struct reader *reader, const char *text)
{
    size_t bytes = strlen(text) + 1;
    struct chunk *chunk = reader->chunks;
    if (chunk == NULL || chunk->size - chunk->used < bytes) {
        CADRE_ASSERT(bytes <= CHUNK_BYTES);
        chunk = fault_point("storage.memory") ? NULL : malloc(sizeof *chunk + CHUNK_BYTES);
        if (chunk == NULL) {
            reader->no_memory = true;
            stop(reader, "memory is short");
            return NULL;
        }
        *chunk = (struct chunk){.older = reader->chunks, .size = CHUNK_BYTES};
        reader->chunks = chunk;
    }
    char *kept = chunk->bytes + chunk->used;
    memcpy(kept, text, bytes);
    chunk->used += bytes;
    return kept;
}

static struct s3_item *add_item(struct reader *reader)
{
    struct s3_answer *answer = reader->answer;
    if (answer->item_count == S3_ITEMS_MAX) {
        stop(reader, "it has more entries than a page may have");
        return &reader->none;
    }
    if (answer->item_count == reader->items_room) {
        size_t room = reader->items_room == 0 ? ITEMS_BEGIN : 2 * reader->items_room;
        struct s3_item *items =
            fault_point("storage.memory") ? NULL : realloc(answer->items, room * sizeof *items);
        if (items == NULL) {
            reader->no_memory = true;
            stop(reader, "memory is short");
            return &reader->none;
        }
        answer->items = items;
        reader->items_room = room;
    }
    struct s3_item *item = &answer->items[answer->item_count++];
    *item = (struct s3_item){.key = NULL};
    return item;
}

static uint64_t read_number(struct reader *reader)
{
    uint64_t number = 0;
    const char *text = reader->text;
    if (*text == '\0') {
        stop(reader, "a number is empty");
    }
    for (; *text != '\0' && reader->fault == NULL; text++) {
        if (*text < '0' || *text > '9' || number > (NUMBER_MAX - 9) / 10) {
            stop(reader, "a number is none");
            return 0;
        }
        number = number * 10 + (uint64_t)(*text - '0');
    }
    return number;
}

/* 0: in a form that is not known, as of a store that writes its own. */
static int64_t read_date(const struct reader *reader)
{
    uint64_t us = 0;
    return s3_iso_date_parse(reader->text, &us) ? (int64_t)us : 0;
}

/* Of people's interest: without what a terminal would act on. */
static void copy_printable(const char *text, char *ret_text, size_t size)
{
    size_t at = 0;
    size_t left = strlen(text);
    while (left > 0) {
        size_t length = utf8_printable(text, left);
        size_t step = length > 0 ? length : 1;
        if (at + step >= size) {
            break;
        }
        if (length > 0) {
            memcpy(ret_text + at, text, length);
        } else {
            ret_text[at] = *text == '\n' ? ' ' : '?';
        }
        at += step;
        text += step;
        left -= step;
    }
    ret_text[at] = '\0';
}

static void end_in_error(struct reader *reader, enum tag tag)
{
    struct s3_error_answer *error = &reader->answer->error;
    switch (tag) {
    case CODE:
        copy_printable(reader->text, error->code, sizeof error->code);
        break;
    case MESSAGE:
        copy_printable(reader->text, error->message, sizeof error->message);
        break;
    case REGION:
        copy_printable(reader->text, error->region, sizeof error->region);
        break;
    case ENDPOINT:
        copy_printable(reader->text, error->endpoint, sizeof error->endpoint);
        break;
    case SERVER_TIME:
        copy_printable(reader->text, error->server_time, sizeof error->server_time);
        break;
    default:
        break;
    }
}

static void end_in_item(struct reader *reader, struct s3_item *item, enum tag tag)
{
    switch (tag) {
    case KEY:
        item->key = keep(reader, reader->text);
        break;
    case SIZE:
        item->bytes = read_number(reader);
        break;
    case LAST_MODIFIED:
    case INITIATED:
        item->time_us = read_date(reader);
        break;
    case ETAG:
        item->etag = keep(reader, reader->text);
        break;
    case UPLOAD_ID:
        item->upload = keep(reader, reader->text);
        break;
    case PART_NUMBER: {
        uint64_t number = read_number(reader);
        item->part = number <= UINT32_MAX ? (uint32_t)number : 0;
        break;
    }
    default:
        break;
    }
}

static void end_in_root(struct reader *reader, enum tag tag)
{
    struct s3_answer *answer = reader->answer;
    switch (tag) {
    case IS_TRUNCATED:
        answer->truncated = strcmp(reader->text, "true") == 0;
        break;
    case NEXT_CONTINUATION_TOKEN:
    case NEXT_KEY_MARKER:
    case NEXT_PART_NUMBER_MARKER:
        answer->next = keep(reader, reader->text);
        break;
    case NEXT_UPLOAD_ID_MARKER:
        answer->next_upload = reader->text[0] != '\0' ? keep(reader, reader->text) : NULL;
        break;
    case UPLOAD_ID:
        answer->upload = keep(reader, reader->text);
        break;
    case ETAG:
        answer->etag = keep(reader, reader->text);
        break;
    case ENCODING_TYPE:
        reader->is_encoded = strcmp(reader->text, "url") == 0;
        break;
    default:
        break;
    }
}

/* The element with this tag ends; it lies at `depth`, 0 for the root. */
static void end_element(struct reader *reader, enum tag tag, size_t depth)
{
    struct s3_answer *answer = reader->answer;
    enum tag root = reader->stack[0];
    if (root == ERROR_ROOT) {
        if (depth == 1) {
            end_in_error(reader, tag);
        }
        return;
    }
    if (depth == 1) {
        end_in_root(reader, tag);
        return;
    }
    if (depth != 2) {
        return;
    }
    enum tag within = reader->stack[1];
    if (within == COMMON_PREFIXES && root == LIST_ROOT && tag == PREFIX) {
        struct s3_item *item = add_item(reader);
        item->is_folder = true;
        item->key = keep(reader, reader->text);
    } else if (within != OTHER && within == kinds[reader->kind].item && answer->item_count > 0) {
        end_in_item(reader, &answer->items[answer->item_count - 1], tag);
    }
}

static enum tag tag_of(const char *name)
{
    const char *colon = strrchr(name, ':'); /* of a namespace */
    name = colon != NULL ? colon + 1 : name;
    for (int tag = OTHER + 1; tag < TAGS; tag++) {
        if (strcmp(name, tag_names[tag]) == 0) {
            return (enum tag)tag;
        }
    }
    return OTHER;
}

static void XMLCALL on_start(void *user, const char *name, const char **attributes)
{
    struct reader *reader = user;
    (void)attributes;
    enum tag tag = tag_of(name);
    if (reader->fault != NULL) {
        return;
    }
    if (reader->depth == DEPTH_MAX) {
        stop(reader, "its elements are too deep");
        return;
    }
    if (reader->depth == 0) {
        if (tag == ERROR_ROOT) {
            reader->answer->is_error = true;
        } else if (reader->any_kind || tag != kinds[reader->kind].root) {
            stop(reader, "it is another document than was asked for");
            return;
        }
    }
    if (reader->depth == 1 && tag != OTHER && !reader->answer->is_error &&
        tag == kinds[reader->kind].item) {
        (void)add_item(reader);
    }
    reader->stack[reader->depth++] = tag;
    reader->text_bytes = 0;
}

static void XMLCALL on_end(void *user, const char *name)
{
    struct reader *reader = user;
    (void)name;
    if (reader->fault != NULL) { /* expat ends what it began, also after it was stopped */
        return;
    }
    CADRE_ASSERT(reader->depth > 0);
    reader->depth--;
    reader->text[reader->text_bytes] = '\0';
    end_element(reader, reader->stack[reader->depth], reader->depth);
    reader->text_bytes = 0;
}

static void XMLCALL on_text(void *user, const char *text, int length)
{
    struct reader *reader = user;
    if (reader->fault != NULL || reader->depth == 0 || reader->stack[reader->depth - 1] == OTHER) {
        return;
    }
    if ((size_t)length >= TEXT_BYTES - reader->text_bytes) {
        stop(reader, "the text of an element is too long");
        return;
    }
    memcpy(reader->text + reader->text_bytes, text, (size_t)length);
    reader->text_bytes += (size_t)length;
}

/* A document type is where entities are declared, and no store has one. */
static void XMLCALL on_doctype(
    void *user, const char *name, const char *system, const char *public_id, int has_internal)
{
    (void)name;
    (void)system;
    (void)public_id;
    (void)has_internal;
    stop(user, "it declares a document type");
}

/* "a%20b" and "a+b", in place. NULL, or what is wrong with it. */
static const char *decode(const char *kept)
{
    char *to = (char *)(uintptr_t)kept; /* a text of ours: keep() */
    for (const char *from = kept; *from != '\0'; from++) {
        if (*from == '%') {
            int high = text_hex_digit(from[1]);
            int low = high < 0 ? -1 : text_hex_digit(from[2]);
            if (low < 0) {
                return "a key is encoded wrongly";
            }
            if (high + low == 0) {
                return "a key has a zero byte";
            }
            *to++ = (char)(high * 16 + low);
            from += 2;
        } else {
            *to++ = *from;
            to[-1] = *from == '+' ? ' ' : *from;
        }
    }
    *to = '\0';
    return NULL;
}

static int compare_items(const void *a, const void *b)
{
    const struct s3_item *one = a;
    const struct s3_item *other = b;
    if (one->key != NULL && other->key != NULL) {
        return strcmp(one->key, other->key);
    }
    return one->part < other->part ? -1 : one->part > other->part;
}

/* Whether each item has what its kind has. */
static bool is_whole(const struct reader *reader, const struct s3_item *item)
{
    switch (reader->kind) {
    case S3_ANSWER_LIST:
        return item->key != NULL && item->key[0] != '\0';
    case S3_ANSWER_UPLOADS:
        return item->key != NULL && item->upload != NULL;
    case S3_ANSWER_PARTS:
        return item->part > 0 && item->etag != NULL;
    default:
        return true;
    }
}

/* After the end of the document. */
static cadre_status finish(struct reader *reader, struct cadre_error *error)
{
    struct s3_answer *answer = reader->answer;
    const char *fault = NULL;
    if (answer->truncated && (answer->next == NULL || answer->next[0] == '\0')) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "the answer of the store is wrong: it has a next page, and does not say which");
    }
    for (size_t i = 0; reader->is_encoded && i < answer->item_count && fault == NULL; i++) {
        fault = answer->items[i].key != NULL ? decode(answer->items[i].key) : NULL;
    }
    if (reader->is_encoded && reader->kind == S3_ANSWER_UPLOADS && answer->next != NULL &&
        fault == NULL) {
        fault = decode(answer->next);
    }
    if (fault != NULL) {
        return cadre_error_set(
            error, CADRE_DATA_LOSS, "the answer of the store is wrong: %s", fault);
    }
    for (size_t i = 0; i < answer->item_count; i++) {
        if (!is_whole(reader, &answer->items[i])) {
            return cadre_error_set(error, CADRE_UNAVAILABLE,
                "the answer of the store is wrong: entry %zu has no name" SENTENCE_END, i + 1);
        }
    }
    if (reader->kind == S3_ANSWER_UPLOAD && (answer->upload == NULL || answer->upload[0] == '\0')) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "the answer of the store is wrong: it has no name of an upload" SENTENCE_END);
    }
    if (reader->kind != S3_ANSWER_UPLOADS && answer->item_count > 1) {
        qsort(answer->items, answer->item_count, sizeof *answer->items, compare_items);
    }
    return CADRE_OK;
}

static cadre_status read_body(
    struct reader *reader, const char *body, size_t size, struct cadre_error *error)
{
    XML_Parser parser = reader->parser;
    while (size > 0 && (*body == ' ' || *body == '\n' || *body == '\r' || *body == '\t')) {
        body++; /* a store that keeps the connection busy while it works */
        size--;
    }
    XML_SetUserData(parser, reader);
    XML_SetElementHandler(parser, on_start, on_end);
    XML_SetCharacterDataHandler(parser, on_text);
    XML_SetStartDoctypeDeclHandler(parser, on_doctype);
    enum XML_Status read = XML_Parse(parser, body, (int)size, XML_TRUE);
    if (reader->no_memory || XML_GetErrorCode(parser) == XML_ERROR_NO_MEMORY) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for an answer of %zu bytes", size);
    }
    if (read != XML_STATUS_OK || reader->fault != NULL) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "the answer of the store, %zu bytes, cannot be read, at line %lu: %s" SENTENCE_END,
            size, (unsigned long)XML_GetCurrentLineNumber(parser),
            reader->fault != NULL ? reader->fault : XML_ErrorString(XML_GetErrorCode(parser)));
    }
    return reader->answer->is_error ? CADRE_OK : finish(reader, error);
}

/* Fills *ret_answer in, which is zeroed on error. */
static cadre_status parse(struct reader *reader, const void *body, size_t size,
    struct s3_answer *ret_answer, struct cadre_error *error)
{
    *ret_answer = (struct s3_answer){.is_error = false};
    if (size > S3_ANSWER_BYTES_MAX) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "the answer of the store has %zu bytes, more than a page may have" SENTENCE_END, size);
    }
    reader->answer = ret_answer;
    reader->parser = fault_point("storage.memory") ? NULL : XML_ParserCreate(NULL);
    if (reader->parser == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for an answer of %zu bytes", size);
    }
    cadre_status status = read_body(reader, body, size, error);
    XML_ParserFree(reader->parser);
    ret_answer->memory = reader->chunks;
    if (status != CADRE_OK) {
        s3_answer_free(ret_answer);
    }
    return status;
}

cadre_status s3_answer_parse(enum s3_answer_kind kind, const void *body, size_t size,
    struct s3_answer *ret_answer, struct cadre_error *error)
{
    CADRE_ASSERT(kind < CADRE_COUNT_OF(kinds));
    struct reader reader = {.kind = kind};
    return parse(&reader, body, size, ret_answer, error);
}

bool s3_error_parse(const void *body, size_t size, struct s3_error_answer *ret_error)
{
    struct reader reader = {.any_kind = true};
    struct s3_answer answer;
    *ret_error = (struct s3_error_answer){.code = ""};
    if (size == 0 || size > S3_ERROR_BYTES_MAX ||
        parse(&reader, body, size, &answer, NULL) != CADRE_OK) {
        return false;
    }
    *ret_error = answer.error;
    s3_answer_free(&answer);
    return true;
}

void s3_answer_free(struct s3_answer *answer)
{
    struct chunk *chunk = answer->memory;
    while (chunk != NULL) {
        struct chunk *older = chunk->older;
        free(chunk);
        chunk = older;
    }
    free(answer->items);
    *answer = (struct s3_answer){.is_error = false};
}
