/* SPDX-License-Identifier: Apache-2.0
 * An object written in order: buffers that threads send as parts; see writer.h. */
#include "common/storage/writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "common/storage/upload.h"

#define SENDERS            4
#define BUFFERS            (SENDERS + 1) /* one is being filled */
#define PART_COUNT_OF_SIZE 1000          /* then parts are twice as large */

enum buffer_state { BUFFER_FREE, BUFFER_FILLING, BUFFER_FULL, BUFFER_SENT };

/* FILLING: all but the state is the caller's; SENT: a sender's. */
struct buffer {
    enum buffer_state state; /* under the lock */
    char *bytes;
    size_t size;
    size_t capacity;
    uint32_t number;
    uint64_t offset;
};

struct storage_writer {
    struct storage_client *client;
    char *path;
    struct storage_upload *upload; /* NULL: no part is full yet */
    struct buffer buffers[BUFFERS];
    struct buffer *filling;  /* of the caller's thread; NULL: none */
    uint32_t part_count;     /* begun */
    uint64_t begun_bytes;    /* of all parts before the one that is filled */
    storage_part_seen *seen; /* NULL: no one */
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t senders[SENDERS];
    unsigned sender_count;
    bool closing;
    struct cadre_error failure; /* the first one; code OK: none */
};

/* ---- senders ---- */

/* Under the lock. */
static struct buffer *buffer_in(struct storage_writer *writer, enum buffer_state state)
{
    for (unsigned i = 0; i < BUFFERS; i++) {
        if (writer->buffers[i].state == state) {
            return &writer->buffers[i];
        }
    }
    return NULL;
}

/* Shows the part to who watches. *ret_hash: of its bytes. */
static cadre_status see_part(const struct storage_writer *writer, const struct buffer *buffer,
    struct sha256 *ret_hash, struct cadre_error *error)
{
    CADRE_TRY(sha256_of(buffer->bytes, buffer->size, ret_hash, error));
    return writer->seen(writer->user, buffer->offset, buffer->bytes, buffer->size, ret_hash, error);
}

static cadre_status send_part(
    struct storage_writer *writer, const struct buffer *buffer, struct cadre_error *error)
{
    struct sha256 hash;
    if (writer->seen == NULL) {
        return storage_upload_part(
            writer->upload, buffer->number, buffer->bytes, buffer->size, error);
    }
    CADRE_TRY(see_part(writer, buffer, &hash, error));
    return storage_upload_hashed(
        writer->upload, buffer->number, buffer->bytes, buffer->size, &hash, error);
}

static void *send_buffers(void *user)
{
    struct storage_writer *writer = user;
    pthread_mutex_lock(&writer->lock);
    struct buffer *buffer = NULL;
    while ((buffer = buffer_in(writer, BUFFER_FULL)) != NULL || !writer->closing) {
        if (buffer == NULL) {
            pthread_cond_wait(&writer->changed, &writer->lock);
            continue;
        }
        struct cadre_error error = {0};
        buffer->state = BUFFER_SENT;
        bool failed = writer->failure.code != CADRE_OK;
        pthread_mutex_unlock(&writer->lock);
        cadre_status status = failed ? CADRE_OK : send_part(writer, buffer, &error);
        pthread_mutex_lock(&writer->lock);
        if (status != CADRE_OK && writer->failure.code == CADRE_OK) {
            writer->failure = error;
        }
        buffer->state = BUFFER_FREE;
        pthread_cond_broadcast(&writer->changed);
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

static void end_senders(struct storage_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    writer->closing = true;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    for (unsigned i = 0; i < writer->sender_count; i++) {
        pthread_join(writer->senders[i], NULL);
    }
    writer->sender_count = 0;
}

/* One that does not start is no failure as long as there is another one. */
static cadre_status begin_upload(struct storage_writer *writer, struct cadre_error *error)
{
    CADRE_TRY(storage_upload_begin(writer->client, writer->path, &writer->upload, error));
    int errnum = 0;
    while (writer->sender_count < SENDERS && errnum == 0) {
        errnum = thread_start(&writer->senders[writer->sender_count], send_buffers, writer);
        writer->sender_count += errnum == 0 ? 1 : 0;
    }
    return writer->sender_count > 0 ? CADRE_OK
                                    : cadre_error_errno(error, errnum,
                                          "cannot start a thread that writes %s", writer->path);
}

/* ---- buffers ---- */

static uint32_t part_count_of_size = PART_COUNT_OF_SIZE;

void storage_writer_grow_after(uint32_t part_count)
{
    part_count_of_size = part_count != 0 ? part_count : PART_COUNT_OF_SIZE;
}

static size_t part_bytes(uint32_t number)
{
    return STORAGE_PART_BYTES << (number - 1) / part_count_of_size;
}

/* Waits for a buffer that is free, and makes it the one that is filled. */
static cadre_status take_buffer(struct storage_writer *writer, struct cadre_error *error)
{
    if (writer->part_count == STORAGE_PARTS_MAX) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE, "%s is too large: an object has %d parts",
            writer->path, STORAGE_PARTS_MAX);
    }
    pthread_mutex_lock(&writer->lock);
    struct buffer *buffer = NULL;
    while ((buffer = buffer_in(writer, BUFFER_FREE)) == NULL) {
        pthread_cond_wait(&writer->changed, &writer->lock);
    }
    buffer->state = BUFFER_FILLING;
    pthread_mutex_unlock(&writer->lock);
    writer->filling = buffer;
    buffer->size = 0;
    size_t capacity = part_bytes(writer->part_count + 1);
    if (buffer->capacity < capacity) {
        free(buffer->bytes);
        buffer->bytes = malloc(capacity);
        buffer->capacity = buffer->bytes != NULL ? capacity : 0;
    }
    if (buffer->bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %zu bytes of %s on their way", capacity, writer->path);
    }
    buffer->number = ++writer->part_count;
    buffer->offset = writer->begun_bytes;
    return CADRE_OK;
}

/* Hands the buffer that is filled to the senders. */
static cadre_status give_buffer(struct storage_writer *writer, struct cadre_error *error)
{
    if (writer->upload == NULL) {
        CADRE_TRY(begin_upload(writer, error));
    }
    pthread_mutex_lock(&writer->lock);
    writer->filling->state = BUFFER_FULL;
    writer->begun_bytes += writer->filling->size;
    writer->filling = NULL;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    return CADRE_OK;
}

static cadre_status failure_of(struct storage_writer *writer, struct cadre_error *error)
{
    pthread_mutex_lock(&writer->lock);
    *error = writer->failure;
    pthread_mutex_unlock(&writer->lock);
    return error->code;
}

static cadre_status add(
    struct storage_writer *writer, const char *bytes, size_t size, struct cadre_error *error)
{
    while (size > 0) {
        if (writer->filling == NULL) {
            CADRE_TRY(take_buffer(writer, error));
        }
        struct buffer *buffer = writer->filling;
        size_t room = buffer->capacity - buffer->size;
        size_t count = size < room ? size : room;
        memcpy(buffer->bytes + buffer->size, bytes, count);
        buffer->size += count;
        bytes += count;
        size -= count;
        if (buffer->size == buffer->capacity) {
            CADRE_TRY(give_buffer(writer, error));
        }
    }
    return CADRE_OK;
}

/* ---- the interface ---- */

static void writer_free(struct storage_writer *writer)
{
    CADRE_ASSERT(writer->upload == NULL && writer->sender_count == 0);
    for (unsigned i = 0; i < BUFFERS; i++) {
        free(writer->buffers[i].bytes);
    }
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    free(writer->path);
    free(writer);
}

cadre_status storage_writer_open(struct storage_client *client, const char *path,
    struct storage_writer **ret_writer, struct cadre_error *error)
{
    CADRE_TRY(storage_check_written(path, error));
    struct storage_writer *writer = calloc(1, sizeof *writer);
    char *copy = strdup(path);
    if (writer == NULL || copy == NULL) {
        free(writer);
        free(copy);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to write %s", path);
    }
    writer->client = client;
    writer->path = copy;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->changed, NULL);
    *ret_writer = writer;
    return CADRE_OK;
}

void storage_writer_watch(struct storage_writer *writer, storage_part_seen *seen, void *user)
{
    CADRE_ASSERT(writer->part_count == 0);
    writer->seen = seen;
    writer->user = user;
}

cadre_status storage_writer_add(
    struct storage_writer *writer, const void *bytes, size_t size, struct cadre_error *error)
{
    struct cadre_error own = {0};
    CADRE_TRY(failure_of(writer, error));
    if (add(writer, bytes, size, &own) != CADRE_OK) {
        pthread_mutex_lock(&writer->lock);
        writer->failure = writer->failure.code == CADRE_OK ? own : writer->failure;
        pthread_mutex_unlock(&writer->lock);
    }
    return failure_of(writer, error);
}

/* The upload is the caller's afterwards. */
static cadre_status send_rest(struct storage_writer *writer, struct cadre_error *error)
{
    CADRE_TRY(failure_of(writer, error));
    if (writer->filling != NULL) {
        CADRE_TRY(give_buffer(writer, error));
    }
    end_senders(writer);
    return failure_of(writer, error);
}

/* All of a small object. */
static cadre_status put_only(struct storage_writer *writer, struct cadre_error *error)
{
    const struct buffer *only = writer->filling;
    struct sha256 hash;
    if (only == NULL) {
        return storage_put(writer->client, writer->path, "", 0, error);
    }
    if (writer->seen == NULL) {
        return storage_put(writer->client, writer->path, only->bytes, only->size, error);
    }
    CADRE_TRY(see_part(writer, only, &hash, error));
    return storage_put_hashed(writer->client, writer->path, only->bytes, only->size, &hash, error);
}

cadre_status storage_writer_finish(struct storage_writer *writer, struct cadre_error *error)
{
    cadre_status status = failure_of(writer, error);
    if (status == CADRE_OK && writer->upload == NULL) {
        status = put_only(writer, error);
    } else if (status == CADRE_OK) {
        status = send_rest(writer, error);
        if (status == CADRE_OK) {
            struct storage_upload *upload = writer->upload;
            writer->upload = NULL;
            status = storage_upload_finish(upload, writer->part_count, error);
        }
    }
    storage_writer_abort(writer);
    return status;
}

void storage_writer_abort(struct storage_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    struct cadre_error ended;
    cadre_error_set(&ended, CADRE_CANCELLED, "it is not written any more");
    pthread_mutex_lock(&writer->lock);
    writer->failure = ended; /* what is not on its way stays */
    pthread_mutex_unlock(&writer->lock);
    end_senders(writer);
    storage_upload_abort(writer->upload);
    writer->upload = NULL;
    writer_free(writer);
}
