/* SPDX-License-Identifier: Apache-2.0
 * See fake_storage.h. */
#include "tests/unit/input/fake_storage.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "common/storage/upload.h"

#define OBJECTS_MAX 4096
#define PARTS_MAX   64

struct stored {
    char *path;
    char *bytes;
    size_t size;
    uint64_t version;
};

struct storage_object {
    char *path;
    uint64_t version;
    struct storage_info info;
};

struct storage_upload {
    char *path;
    char *bytes[PARTS_MAX];
    size_t sizes[PARTS_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct stored objects[OBJECTS_MAX]; /* sorted by path */
static size_t object_count;
static uint64_t versions;
static struct fake_counts counts;
static uint64_t reading;
static bool held;
static char fail_text[256];
static cadre_status fail_code;
static unsigned fail_times;

/* --- for tests --- */

void fake_storage_clear(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < object_count; i++) {
        free(objects[i].path);
        free(objects[i].bytes);
    }
    object_count = 0;
    counts = (struct fake_counts){0};
    fail_times = 0;
    held = false;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

void fake_storage_clear_counts(void)
{
    pthread_mutex_lock(&lock);
    uint64_t open_uploads = counts.open_uploads;
    counts = (struct fake_counts){.open_uploads = open_uploads};
    pthread_mutex_unlock(&lock);
}

struct fake_counts fake_storage_counts(void)
{
    pthread_mutex_lock(&lock);
    struct fake_counts now = counts;
    pthread_mutex_unlock(&lock);
    return now;
}

static size_t find_index(const char *path)
{
    size_t low = 0;
    size_t high = object_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(objects[middle].path, path) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct stored *find(const char *path)
{
    size_t i = find_index(path);
    return i < object_count && strcmp(objects[i].path, path) == 0 ? &objects[i] : NULL;
}

static void set(const char *path, const void *bytes, size_t size)
{
    struct stored *stored = find(path);
    if (stored == NULL) {
        size_t i = find_index(path);
        if (object_count == OBJECTS_MAX) {
            abort();
        }
        memmove(&objects[i + 1], &objects[i], (object_count - i) * sizeof objects[0]);
        objects[i] = (struct stored){.path = strdup(path)};
        object_count++;
        stored = &objects[i];
    }
    char *copy = malloc(size + 1);
    if (copy == NULL) {
        abort();
    }
    if (size > 0) {
        memcpy(copy, bytes, size);
    }
    free(stored->bytes);
    stored->bytes = copy;
    stored->size = size;
    stored->version = ++versions;
}

void fake_storage_set(const char *path, const void *bytes, size_t size)
{
    pthread_mutex_lock(&lock);
    set(path, bytes, size);
    pthread_mutex_unlock(&lock);
}

const void *fake_storage_find(const char *path, size_t *ret_size)
{
    pthread_mutex_lock(&lock);
    struct stored *stored = find(path);
    const void *bytes = stored != NULL ? stored->bytes : NULL;
    *ret_size = stored != NULL ? stored->size : 0;
    pthread_mutex_unlock(&lock);
    return bytes;
}

void fake_storage_fail(const char *text, cadre_status code, unsigned times)
{
    pthread_mutex_lock(&lock);
    snprintf(fail_text, sizeof fail_text, "%s", text);
    fail_code = code;
    fail_times = times;
    pthread_mutex_unlock(&lock);
}

void fake_storage_hold(void)
{
    pthread_mutex_lock(&lock);
    held = true;
    pthread_mutex_unlock(&lock);
}

void fake_storage_release(void)
{
    pthread_mutex_lock(&lock);
    held = false;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

/* --- storage.h --- */

/* Under the lock. */
static cadre_status fails(const char *path, struct cadre_error *error)
{
    if (fail_times > 0 && strstr(path, fail_text) != NULL) {
        fail_times--;
        return cadre_error_set(error, fail_code, "%s: the store was asked to fail", path);
    }
    return CADRE_OK;
}

static cadre_status none(const char *path, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_NOT_FOUND, "there is no object %s", path);
}

struct storage_client *storage_client_of_process(void)
{
    return NULL;
}

bool storage_is_object(const char *path)
{
    return strncmp(path, "s3://", 5) == 0 || strncmp(path, "https://", 8) == 0 ||
           strncmp(path, "http://", 7) == 0;
}

cadre_status storage_check(const char *path, struct cadre_error *error)
{
    const char *key = storage_is_object(path) ? strchr(strstr(path, "://") + 3, '/') : "/x";
    return key != NULL && key[1] != '\0'
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s names no object", path);
}

cadre_status storage_check_written(const char *path, struct cadre_error *error)
{
    return strncmp(path, "http", 4) == 0
               ? cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s can be read only", path)
               : storage_check(path, error);
}

char *storage_join(const char *folder, const char *name)
{
    char *path = NULL;
    size_t length = strlen(folder);
    bool slash = length > 0 && folder[length - 1] == '/';
    return asprintf(&path, "%s%s%s", folder, slash ? "" : "/", name) < 0 ? NULL : path;
}

static void describe(const struct stored *stored, struct storage_info *info)
{
    *info = (struct storage_info){.bytes = stored->size, .modified_us = (int64_t)stored->version};
    snprintf(info->version, sizeof info->version, "\"v%" PRIu64 "\"", stored->version);
}

cadre_status storage_open(struct storage_client *client, const char *path,
    struct storage_object **ret_object, struct cadre_error *error)
{
    (void)client;
    pthread_mutex_lock(&lock);
    counts.opens++;
    cadre_status status = fails(path, error);
    struct stored *stored = status == CADRE_OK ? find(path) : NULL;
    if (stored != NULL) {
        *ret_object = calloc(1, sizeof **ret_object);
        (*ret_object)->path = strdup(path);
        (*ret_object)->version = stored->version;
        describe(stored, &(*ret_object)->info);
    } else if (status == CADRE_OK) {
        status = none(path, error);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

const struct storage_info *storage_info_of(const struct storage_object *object)
{
    return &object->info;
}

const char *storage_path_of(const struct storage_object *object)
{
    return object->path;
}

cadre_status storage_read(const struct storage_object *object, uint64_t offset, void *to,
    size_t bytes, struct cadre_error *error)
{
    pthread_mutex_lock(&lock);
    counts.reads++;
    counts.bytes += bytes;
    reading++;
    counts.at_once = counts.at_once > reading ? counts.at_once : reading;
    while (held) {
        pthread_cond_wait(&released, &lock);
    }
    reading--;
    cadre_status status = fails(object->path, error);
    struct stored *stored = status == CADRE_OK ? find(object->path) : NULL;
    if (status == CADRE_OK && stored == NULL) {
        status = none(object->path, error);
    } else if (status == CADRE_OK && stored->version != object->version) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is not the object that it was when it was opened", object->path);
    } else if (status == CADRE_OK && (offset > stored->size || bytes > stored->size - offset)) {
        status = cadre_error_set(error, CADRE_OUT_OF_RANGE, "%s ends before", object->path);
    } else if (status == CADRE_OK) {
        memcpy(to, stored->bytes + offset, bytes);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

cadre_status storage_read_pieces(const struct storage_object *object, uint64_t offset,
    void *const pieces[], size_t piece_bytes, size_t bytes, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *all = malloc(bytes + 1);
    CADRE_ASSERT(all != NULL);
    CADRE_TRY(storage_read(object, offset, all, bytes, error));
    for (size_t at = 0; at < bytes; at += piece_bytes) {
        memcpy(pieces[at / piece_bytes], all + at,
            bytes - at < piece_bytes ? bytes - at : piece_bytes);
    }
    return CADRE_OK;
}

void storage_close(struct storage_object *object)
{
    if (object != NULL) {
        free(object->path);
        free(object);
    }
}

cadre_status storage_get(struct storage_client *client, const char *path, size_t limit,
    char **ret_bytes, size_t *ret_size, struct cadre_error *error)
{
    (void)client;
    pthread_mutex_lock(&lock);
    counts.opens++;
    cadre_status status = fails(path, error);
    struct stored *stored = status == CADRE_OK ? find(path) : NULL;
    if (status == CADRE_OK && stored == NULL) {
        status = none(path, error);
    } else if (status == CADRE_OK && stored->size > limit) {
        status = cadre_error_set(error, CADRE_OUT_OF_RANGE, "%s is too large", path);
    } else if (status == CADRE_OK) {
        *ret_bytes = calloc(1, stored->size + 1);
        memcpy(*ret_bytes, stored->bytes, stored->size);
        *ret_size = stored->size;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

cadre_status storage_list(struct storage_client *client, const char *folder, const char *starts,
    bool deep, bool (*each)(void *user, const struct storage_entry *entry), void *user,
    struct cadre_error *error)
{
    (void)client;
    char beginning[2048];
    snprintf(beginning, sizeof beginning, "%s%s", folder, starts != NULL ? starts : "");
    pthread_mutex_lock(&lock);
    counts.lists++;
    cadre_status status = fails(folder, error);
    bool on = true;
    char before[2048] = "";
    for (size_t i = 0; status == CADRE_OK && on && i < object_count; i++) {
        const struct stored *stored = &objects[i];
        if (strncmp(stored->path, beginning, strlen(beginning)) != 0) {
            continue;
        }
        struct storage_entry entry = {.path = stored->path};
        describe(stored, &entry.info);
        const char *slash = strchr(stored->path + strlen(folder), '/');
        char group[2048];
        if (!deep && slash != NULL) {
            snprintf(group, sizeof group, "%.*s", (int)(slash + 1 - stored->path), stored->path);
            if (strcmp(group, before) == 0) {
                continue;
            }
            memcpy(before, group, sizeof before);
            entry = (struct storage_entry){.path = group, .is_folder = true};
        }
        counts.listed++;
        on = each(user, &entry);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

cadre_status storage_put(struct storage_client *client, const char *path, const void *bytes,
    size_t size, struct cadre_error *error)
{
    (void)client;
    pthread_mutex_lock(&lock);
    counts.puts++;
    cadre_status status = fails(path, error);
    if (status == CADRE_OK) {
        set(path, bytes, size);
    }
    pthread_mutex_unlock(&lock);
    return status;
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

cadre_status storage_put_if_absent(struct storage_client *client, const char *path,
    const void *bytes, size_t size, bool *ret_was_there, struct cadre_error *error)
{
    size_t there = 0;
    *ret_was_there = fake_storage_find(path, &there) != NULL;
    return *ret_was_there ? CADRE_OK : storage_put(client, path, bytes, size, error);
}

cadre_status storage_remove(
    struct storage_client *client, const char *path, struct cadre_error *error)
{
    (void)client;
    pthread_mutex_lock(&lock);
    cadre_status status = fails(path, error);
    struct stored *stored = status == CADRE_OK ? find(path) : NULL;
    if (stored != NULL) {
        size_t i = (size_t)(stored - objects);
        free(stored->path);
        free(stored->bytes);
        memmove(stored, stored + 1, (object_count - i - 1) * sizeof objects[0]);
        object_count--;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* --- uploads: of one process --- */

cadre_status storage_upload_begin(struct storage_client *client, const char *path,
    struct storage_upload **ret_upload, struct cadre_error *error)
{
    (void)client;
    pthread_mutex_lock(&lock);
    cadre_status status = fails(path, error);
    if (status == CADRE_OK) {
        counts.uploads++;
        counts.open_uploads++;
        *ret_upload = calloc(1, sizeof **ret_upload);
        (*ret_upload)->path = strdup(path);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

const char *storage_upload_name(const struct storage_upload *upload)
{
    return upload->path;
}

cadre_status storage_upload_join(struct storage_client *client, const char *path, const char *name,
    struct storage_upload **ret_upload, struct cadre_error *error)
{
    (void)client;
    (void)name;
    *ret_upload = NULL;
    return cadre_error_set(error, CADRE_UNIMPLEMENTED, "%s: uploads are of one process here", path);
}

cadre_status storage_upload_part(struct storage_upload *upload, uint32_t number, const void *bytes,
    size_t size, struct cadre_error *error)
{
    pthread_mutex_lock(&lock);
    cadre_status status = fails(upload->path, error);
    if (status == CADRE_OK && (number < 1 || number > PARTS_MAX)) {
        status = cadre_error_set(error, CADRE_INVALID_ARGUMENT, "part %" PRIu32, number);
    }
    if (status == CADRE_OK) {
        free(upload->bytes[number - 1]);
        upload->bytes[number - 1] = malloc(size + 1);
        memcpy(upload->bytes[number - 1], bytes, size);
        upload->sizes[number - 1] = size;
    }
    pthread_mutex_unlock(&lock);
    return status;
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

static void free_upload(struct storage_upload *upload)
{
    for (size_t i = 0; i < PARTS_MAX; i++) {
        free(upload->bytes[i]);
    }
    free(upload->path);
    free(upload);
    counts.open_uploads--;
}

cadre_status storage_upload_finish(
    struct storage_upload *upload, uint32_t count, struct cadre_error *error)
{
    size_t size = 0;
    pthread_mutex_lock(&lock);
    cadre_status status = fails(upload->path, error);
    for (uint32_t i = 0; status == CADRE_OK && i < count; i++) {
        if (upload->bytes[i] == NULL) {
            status = cadre_error_set(error, CADRE_DATA_LOSS, "part %" PRIu32 " is missing", i + 1);
        }
        size += upload->sizes[i];
    }
    char *all = malloc(size + 1);
    size_t at = 0;
    for (uint32_t i = 0; status == CADRE_OK && i < count; i++) {
        memcpy(all + at, upload->bytes[i], upload->sizes[i]);
        at += upload->sizes[i];
    }
    if (status == CADRE_OK) {
        set(upload->path, all, size);
    }
    free(all);
    free_upload(upload);
    pthread_mutex_unlock(&lock);
    return status;
}

void storage_upload_leave(struct storage_upload *upload)
{
    storage_upload_abort(upload);
}

void storage_upload_abort(struct storage_upload *upload)
{
    if (upload != NULL) {
        pthread_mutex_lock(&lock);
        free_upload(upload);
        pthread_mutex_unlock(&lock);
    }
}

cadre_status storage_uploads_clear(struct storage_client *client, const char *start,
    int64_t before_us, uint32_t *ret_count, struct cadre_error *error)
{
    (void)client;
    (void)start;
    (void)before_us;
    (void)error;
    *ret_count = 0;
    return CADRE_OK;
}
