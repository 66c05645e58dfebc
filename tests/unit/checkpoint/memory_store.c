/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/checkpoint/memory_store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/pure/object_path.h"
#include "common/base/cleanup.h"
#include "common/storage/upload.h"
#include "tests/lib/test.h"

#define ITEMS 64

struct item {
    char path[STORAGE_PATH_BYTES]; /* "": none */
    char *bytes;
    size_t size;
    uint64_t version;
    bool is_upload;
    uint32_t name; /* of the upload */
};

struct storage_object {
    const struct item *item;
    uint64_t version;
    struct storage_info info;
    char path[STORAGE_PATH_BYTES];
};

struct storage_upload {
    char path[STORAGE_PATH_BYTES];
    uint32_t name;
};

struct memory_store memory_store;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct item items[ITEMS];
static uint64_t versions;
static uint32_t names;
static unsigned reading;

static void set_path(char to[STORAGE_PATH_BYTES], const char *path)
{
    size_t length = strlen(path);
    assert_true(length < STORAGE_PATH_BYTES);
    memcpy(to, path, length + 1);
}

/* ---- for tests ---- */

static void drop(struct item *item)
{
    free(item->bytes);
    *item = (struct item){.path = ""};
}

void memory_store_clear(void)
{
    for (size_t i = 0; i < ITEMS; i++) {
        drop(&items[i]);
    }
    memory_store = (struct memory_store){0};
}

/* `path` NULL: a free one. */
static struct item *find_item(const char *path, bool is_upload)
{
    for (size_t i = 0; i < ITEMS; i++) {
        if (path == NULL ? items[i].path[0] == '\0'
                         : strcmp(items[i].path, path) == 0 && items[i].is_upload == is_upload) {
            return &items[i];
        }
    }
    return NULL;
}

static struct item *find_upload(uint32_t name)
{
    for (size_t i = 0; i < ITEMS; i++) {
        if (items[i].is_upload && items[i].name == name) {
            return &items[i];
        }
    }
    return NULL;
}

const char *memory_store_find(const char *path, size_t *ret_bytes)
{
    const struct item *item = find_item(path, false);
    *ret_bytes = item != NULL ? item->size : 0;
    return item != NULL ? item->bytes : NULL;
}

void memory_store_flip(const char *path, size_t at)
{
    struct item *item = find_item(path, false);
    assert_non_null(item);
    assert_true(at < item->size);
    item->bytes[at] ^= 1;
}

static cadre_status enter(
    struct storage_client *client, const char *path, struct cadre_error *error)
{
    const char *refused = memory_store.refused;
    const char *away = memory_store.away;
    memory_store.client = client;
    if (away != NULL && strncmp(path, away, strlen(away)) == 0) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "%s: the store does not answer", path);
    }
    return refused == NULL || strncmp(path, refused, strlen(refused)) != 0
               ? CADRE_OK
               : cadre_error_set(error, CADRE_PERMISSION_DENIED, "%s: s3:Any is missing", path);
}

static void append(struct item *item, const void *bytes, size_t size)
{
    item->bytes = realloc(item->bytes, item->size + size + 1);
    assert_non_null(item->bytes);
    if (size > 0) {
        memcpy(item->bytes + item->size, bytes, size);
    }
    item->size += size;
}

/* ---- storage.h ---- */

bool storage_is_object(const char *path)
{
    return object_path_is(path);
}

cadre_status storage_check(const char *path, struct cadre_error *error)
{
    const char *fault = object_path_is(path) ? object_path_fault(path) : NULL;
    return fault == NULL ? CADRE_OK
                         : cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s %s", path, fault);
}

cadre_status storage_check_written(const char *path, struct cadre_error *error)
{
    return storage_check(path, error);
}

char *storage_join(const char *folder, const char *name)
{
    char *path = NULL;
    size_t length = strlen(folder);
    const char *slash = length > 0 && folder[length - 1] == '/' ? "" : "/";
    return asprintf(&path, "%s%s%s", folder, slash, name) < 0 ? NULL : path;
}

cadre_status storage_open(struct storage_client *client, const char *path,
    struct storage_object **ret_object, struct cadre_error *error)
{
    CADRE_TRY(enter(client, path, error));
    const struct item *item = find_item(path, false);
    if (item == NULL) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "there is no %s", path);
    }
    struct storage_object *object = calloc(1, sizeof *object);
    assert_non_null(object);
    object->item = item;
    object->version = item->version;
    object->info.bytes = item->size;
    set_path(object->path, path);
    *ret_object = object;
    return CADRE_OK;
}

const struct storage_info *storage_info_of(const struct storage_object *object)
{
    return &object->info;
}

const char *storage_path_of(const struct storage_object *object)
{
    return object->path;
}

/* Waits until as many have been at once as the test wants. */
static void meet_others(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    while (memory_store.reads_at_once < memory_store.reads_wanted &&
           pthread_cond_timedwait(&changed, &lock, &until) == 0) {
    }
}

cadre_status storage_read(const struct storage_object *object, uint64_t offset, void *to,
    size_t bytes, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&lock);
    memory_store.reads++;
    memory_store.read_bytes += bytes;
    reading++;
    if (reading > memory_store.reads_at_once) {
        memory_store.reads_at_once = reading;
    }
    pthread_cond_broadcast(&changed);
    if (offset > 0) {
        meet_others();
    }
    pthread_mutex_unlock(&lock);
    if (object->item->version != object->version) {
        status = cadre_error_set(error, CADRE_DATA_LOSS, "%s is another one now", object->path);
    } else if (offset > object->info.bytes || bytes > object->info.bytes - offset) {
        status = cadre_error_set(error, CADRE_OUT_OF_RANGE, "%s ends before", object->path);
    } else {
        memcpy(to, object->item->bytes + offset, bytes);
    }
    pthread_mutex_lock(&lock);
    reading--;
    pthread_mutex_unlock(&lock);
    return status;
}

cadre_status storage_read_pieces(const struct storage_object *object, uint64_t offset,
    void *const pieces[], size_t piece_bytes, size_t bytes, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *all = malloc(bytes + 1);
    assert_non_null(all);
    CADRE_TRY(storage_read(object, offset, all, bytes, error));
    for (size_t at = 0; at < bytes; at += piece_bytes) {
        memcpy(pieces[at / piece_bytes], all + at,
            bytes - at < piece_bytes ? bytes - at : piece_bytes);
    }
    return CADRE_OK;
}

void storage_close(struct storage_object *object)
{
    free(object);
}

cadre_status storage_list(struct storage_client *client, const char *folder, const char *starts,
    bool deep, bool (*each)(void *user, const struct storage_entry *entry), void *user,
    struct cadre_error *error)
{
    bool goes_on = true;
    char *start = storage_join(folder, starts != NULL ? starts : "");
    assert_non_null(start);
    cadre_status status = enter(client, folder, error);
    for (size_t i = 0; status == CADRE_OK && goes_on && i < ITEMS; i++) {
        const struct item *item = &items[i];
        bool is_beneath = strncmp(item->path, start, strlen(start)) == 0 && !item->is_upload;
        if (is_beneath && (deep || strchr(item->path + strlen(start), '/') == NULL)) {
            const struct storage_entry entry = {.path = item->path, .info = {.bytes = item->size}};
            goes_on = each(user, &entry);
        }
    }
    free(start);
    return status;
}

cadre_status storage_put(struct storage_client *client, const char *path, const void *bytes,
    size_t size, struct cadre_error *error)
{
    CADRE_TRY(enter(client, path, error));
    struct item *item = find_item(path, false);
    if (item == NULL) {
        item = find_item(NULL, false);
        assert_non_null(item);
        set_path(item->path, path);
    }
    item->size = 0;
    item->version = ++versions;
    append(item, bytes, size);
    return CADRE_OK;
}

cadre_status storage_put_hashed(struct storage_client *client, const char *path, const void *bytes,
    size_t size, const struct sha256 *hash, struct cadre_error *error)
{
    struct sha256 made;
    CADRE_TRY(sha256_of(bytes, size, &made, error));
    return sha256_equal(&made, hash)
               ? storage_put(client, path, bytes, size, error)
               : cadre_error_set(error, CADRE_DATA_LOSS, "%s has another hash", path);
}

cadre_status storage_remove(
    struct storage_client *client, const char *path, struct cadre_error *error)
{
    CADRE_TRY(enter(client, path, error));
    struct item *item = find_item(path, false);
    if (item != NULL) {
        drop(item);
    }
    return CADRE_OK;
}

/* ---- uploads: their parts come in order here ---- */

cadre_status storage_upload_begin(struct storage_client *client, const char *path,
    struct storage_upload **ret_upload, struct cadre_error *error)
{
    CADRE_TRY(enter(client, path, error));
    struct item *item = find_item(NULL, false);
    struct storage_upload *upload = calloc(1, sizeof *upload);
    assert_non_null(item);
    assert_non_null(upload);
    set_path(item->path, path);
    item->is_upload = true;
    item->name = ++names;
    upload->name = item->name;
    set_path(upload->path, path);
    memory_store.uploads++;
    *ret_upload = upload;
    return CADRE_OK;
}

/* Parts wait for the one before them. */
cadre_status storage_upload_part(struct storage_upload *upload, uint32_t number, const void *bytes,
    size_t size, struct cadre_error *error)
{
    pthread_mutex_lock(&lock);
    struct item *item = find_upload(upload->name);
    while (item != NULL && item->version + 1 < number) {
        pthread_cond_wait(&changed, &lock);
        item = find_upload(upload->name);
    }
    if (item != NULL) {
        append(item, bytes, size);
        item->version = number;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return item != NULL ? CADRE_OK
                        : cadre_error_set(error, CADRE_NOT_FOUND,
                              "the upload of %s is not there any more", upload->path);
}

cadre_status storage_upload_hashed(struct storage_upload *upload, uint32_t number,
    const void *bytes, size_t size, const struct sha256 *hash, struct cadre_error *error)
{
    struct sha256 made;
    CADRE_TRY(sha256_of(bytes, size, &made, error));
    return sha256_equal(&made, hash) ? storage_upload_part(upload, number, bytes, size, error)
                                     : cadre_error_set(error, CADRE_DATA_LOSS,
                                           "part %" PRIu32 " has another hash", number);
}

void storage_upload_abort(struct storage_upload *upload)
{
    struct item *item = upload != NULL ? find_upload(upload->name) : NULL;
    if (item != NULL) {
        drop(item);
        memory_store.uploads--;
    }
    free(upload);
}

cadre_status storage_upload_finish(
    struct storage_upload *upload, uint32_t count, struct cadre_error *error)
{
    const struct item *item = find_upload(upload->name);
    cadre_status status = item == NULL
                              ? cadre_error_set(error, CADRE_NOT_FOUND,
                                    "the upload of %s is not there any more", upload->path)
                              : storage_put(NULL, upload->path, item->bytes, item->size, error);
    CADRE_ASSERT(item == NULL || item->version == count);
    storage_upload_abort(upload);
    return status;
}

cadre_status storage_uploads_clear(struct storage_client *client, const char *start,
    int64_t before_us, uint32_t *ret_count, struct cadre_error *error)
{
    *ret_count = 0;
    CADRE_TRY(enter(client, start, error));
    if (memory_store.uploads_are_not_listed) {
        return cadre_error_set(
            error, CADRE_PERMISSION_DENIED, "s3:ListBucketMultipartUploads is missing");
    }
    pthread_mutex_lock(&lock);
    bool wanted = before_us > (int64_t)clock_wall_us(); /* all have just begun here */
    for (size_t i = 0; i < ITEMS; i++) {
        if (wanted && items[i].is_upload && strncmp(items[i].path, start, strlen(start)) == 0) {
            drop(&items[i]);
            memory_store.uploads--;
            ++*ret_count;
        }
    }
    pthread_cond_broadcast(&changed); /* for parts that wait for the one before them */
    pthread_mutex_unlock(&lock);
    return CADRE_OK;
}
