/* SPDX-License-Identifier: Apache-2.0
 * Every call to the store of --contents passes here, so that one place knows whether it answers. */
#include "coordinator/daemon/objects/objects.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/thread.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/storage/ahead.h"

#define DEADLINE_US   (10 * CADRE_US_PER_S)
#define BULK_FACTOR   6
#define BULK_BYTES    ((size_t)1024 * 1024)
#define TRY_AGAIN_US  CADRE_US_PER_S
#define FETCH_BYTES   ((size_t)4 * 1024 * 1024)
#define UPLOAD_OLD_US ((int64_t)24 * 3600 * (int64_t)CADRE_US_PER_S)

struct objects {
    char *root;
    struct storage_client *client;
    struct storage_client *bulk; /* for what takes its time over a slow link */
    pthread_mutex_t mutex;       /* of what follows */
    pthread_cond_t changed;
    bool away;
    bool trying; /* a thread does */
    bool stopped;
    uint64_t next_try_us;
    uint64_t away_since_us;
    struct cadre_error why;
};

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for an object");
}

cadre_status objects_open(
    const struct objects_options *options, struct objects **ret_objects, struct cadre_error *error)
{
    struct storage_options settings = {
        .deadline_us = options->deadline_us > 0 ? options->deadline_us : DEADLINE_US,
        .connections = options->connections};
    struct objects *objects = calloc(1, sizeof *objects);
    if (objects == NULL) {
        return no_memory(error);
    }
    pthread_mutex_init(&objects->mutex, NULL);
    pthread_cond_init(&objects->changed, NULL);
    objects->root = strdup(options->root);
    cadre_status status = objects->root != NULL ? CADRE_OK : no_memory(error);
    if (status == CADRE_OK) {
        status = storage_client_open(&settings, &objects->client, error);
    }
    settings.deadline_us *= BULK_FACTOR;
    if (status == CADRE_OK) {
        status = storage_client_open(&settings, &objects->bulk, error);
    }
    if (status != CADRE_OK) {
        objects_close(objects);
        return status;
    }
    *ret_objects = objects;
    return CADRE_OK;
}

void objects_stop(struct objects *objects)
{
    if (objects == NULL) {
        return;
    }
    storage_client_stop(objects->client);
    storage_client_stop(objects->bulk);
    pthread_mutex_lock(&objects->mutex);
    objects->stopped = true;
    pthread_cond_broadcast(&objects->changed);
    pthread_mutex_unlock(&objects->mutex);
}

void objects_close(struct objects *objects)
{
    if (objects != NULL) {
        storage_client_close(objects->client);
        storage_client_close(objects->bulk);
        pthread_cond_destroy(&objects->changed);
        pthread_mutex_destroy(&objects->mutex);
        free(objects->root);
        free(objects);
    }
}

uint64_t objects_moved_bytes(struct objects *objects)
{
    return storage_client_moved_bytes(objects->client) + storage_client_moved_bytes(objects->bulk);
}

char *objects_path(const struct objects *objects, const char *format, ...)
{
    CADRE_FREE_AT_EXIT char *name = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&name, format, arguments);
    va_end(arguments);
    if (length < 0) {
        name = NULL;
        return NULL;
    }
    return storage_join(objects->root, name);
}

const char *objects_name_beneath(const char *folder, const char *path)
{
    size_t length = strlen(folder);
    const char *name = strncmp(path, folder, length) == 0 ? path + length : path;
    return name + strspn(name, "/");
}

/* ---- whether it is away ---- */

bool objects_are_away(struct objects *objects, struct cadre_error *ret_why)
{
    pthread_mutex_lock(&objects->mutex);
    bool away = objects->away;
    if (away && ret_why != NULL) {
        cadre_error_set(ret_why, CADRE_UNAVAILABLE, "%s", objects->why.text);
    }
    pthread_mutex_unlock(&objects->mutex);
    return away;
}

/* Whether a call may be made now: one thread at a time tries a store that is away. */
static cadre_status objects_admit(struct objects *objects, struct cadre_error *error)
{
    uint64_t now_us = clock_monotonic_us();
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&objects->mutex);
    if (objects->away && (objects->trying || now_us < objects->next_try_us)) {
        status = cadre_error_set(error, CADRE_UNAVAILABLE, "%s", objects->why.text);
    } else if (objects->away) {
        objects->trying = true;
    }
    pthread_mutex_unlock(&objects->mutex);
    return status;
}

/* Whether the status says that nothing of this kind works, and may again later. */
static bool says_away(cadre_status status)
{
    return status == CADRE_UNAVAILABLE || status == CADRE_UNAUTHENTICATED ||
           status == CADRE_PERMISSION_DENIED || status == CADRE_FAILED_PRECONDITION ||
           status == CADRE_RESOURCE_EXHAUSTED || status == CADRE_DEADLINE_EXCEEDED;
}

static void note_away(struct objects *objects, const struct cadre_error *error)
{
    pthread_mutex_lock(&objects->mutex);
    bool began = !objects->away;
    uint64_t now_us = clock_monotonic_us();
    cadre_error_set(&objects->why, CADRE_UNAVAILABLE, "the object store of --contents is away: %s",
        error->text);
    objects->away = true;
    objects->trying = false;
    objects->next_try_us = now_us + TRY_AGAIN_US;
    objects->away_since_us = began ? now_us : objects->away_since_us;
    pthread_mutex_unlock(&objects->mutex);
    if (began) {
        log_event(LOG_LEVEL_ERROR, "storage",
            "the object store of --contents is away: uploads, checkpoints, logs and outputs wait "
            "at their senders, and jobs go on",
            LOG_STR("reason", error->text));
    }
}

static void note_back(struct objects *objects)
{
    pthread_mutex_lock(&objects->mutex);
    bool ended = objects->away;
    uint64_t since_us = objects->away_since_us;
    objects->away = false;
    objects->trying = false;
    if (ended) {
        pthread_cond_broadcast(&objects->changed);
    }
    pthread_mutex_unlock(&objects->mutex);
    if (ended) {
        log_event(LOG_LEVEL_INFO, "storage", "the object store of --contents answers again",
            LOG_U64("after_ms", (clock_monotonic_us() - since_us) / CADRE_US_PER_MS));
    }
}

cadre_status objects_judge(struct objects *objects, cadre_status status, struct cadre_error *error)
{
    if (!says_away(status)) {
        if (status != CADRE_CANCELLED) {
            note_back(objects);
        }
        return status;
    }
    note_away(objects, error);
    error->code = CADRE_UNAVAILABLE;
    return CADRE_UNAVAILABLE;
}

static bool see_one(void *user, const struct storage_entry *entry)
{
    (void)user;
    (void)entry;
    return false;
}

cadre_status objects_check(struct objects *objects, struct cadre_error *error)
{
    struct cadre_error why = {0};
    cadre_status status =
        storage_list(objects->client, objects->root, NULL, true, see_one, NULL, &why);
    if (status == CADRE_OK || status == CADRE_UNAVAILABLE || status == CADRE_DEADLINE_EXCEEDED) {
        (void)objects_judge(objects, status, &why);
        return CADRE_OK;
    }
    return cadre_error_set(error, status, "--contents %.200s: %s", objects->root, why.text);
}

void objects_try(struct objects *objects)
{
    struct cadre_error error = {0};
    struct storage_object *object = NULL;
    CADRE_FREE_AT_EXIT char *path = objects_path(objects, "cluster");
    if (path == NULL || !objects_are_away(objects, NULL)) {
        return;
    }
    if (objects_admit(objects, &error) != CADRE_OK) {
        return;
    }
    cadre_status status = storage_open(objects->client, path, &object, &error);
    if (objects_judge(objects, status, &error) == CADRE_OK) {
        storage_close(object);
    }
}

bool objects_wait(struct objects *objects)
{
    while (objects_are_away(objects, NULL)) {
        uint64_t end_us = clock_monotonic_us() + TRY_AGAIN_US;
        pthread_mutex_lock(&objects->mutex);
        bool stopped = objects->stopped;
        if (!stopped && objects->away) {
            (void)thread_wait_until(&objects->changed, &objects->mutex, end_us);
            stopped = objects->stopped;
        }
        pthread_mutex_unlock(&objects->mutex);
        if (stopped) {
            return false;
        }
        objects_try(objects);
    }
    pthread_mutex_lock(&objects->mutex);
    bool stopped = objects->stopped;
    pthread_mutex_unlock(&objects->mutex);
    return !stopped;
}

/* ---- calls ---- */

/* A caller may want no text; why the store is away has one. */
#define OBJECTS_CALL(objects, path, error, call)                                                   \
    do {                                                                                           \
        if ((path) == NULL) {                                                                      \
            return no_memory(error);                                                               \
        }                                                                                          \
        struct cadre_error why_ = {0};                                                             \
        struct cadre_error *why = &why_;                                                           \
        cadre_status status_ = objects_admit(objects, why);                                        \
        status_ = status_ == CADRE_OK ? objects_judge(objects, (call), why) : status_;             \
        if (status_ != CADRE_OK && (error) != NULL) {                                              \
            *(error) = why_;                                                                       \
        }                                                                                          \
        return status_;                                                                            \
    } while (0)

cadre_status objects_put(struct objects *objects, const char *path, const void *bytes, size_t size,
    struct cadre_error *error)
{
    struct storage_client *client = size > BULK_BYTES ? objects->bulk : objects->client;
    OBJECTS_CALL(objects, path, error, storage_put(client, path, bytes, size, why));
}

cadre_status objects_get(struct objects *objects, const char *path, size_t limit, char **ret_bytes,
    size_t *ret_size, struct cadre_error *error)
{
    OBJECTS_CALL(
        objects, path, error, storage_get(objects->bulk, path, limit, ret_bytes, ret_size, why));
}

cadre_status objects_remove(struct objects *objects, const char *path, struct cadre_error *error)
{
    OBJECTS_CALL(objects, path, error, storage_remove(objects->client, path, why));
}

cadre_status objects_list(struct objects *objects, const char *folder, bool deep,
    bool (*each)(void *user, const struct storage_entry *entry), void *user,
    struct cadre_error *error)
{
    OBJECTS_CALL(
        objects, folder, error, storage_list(objects->client, folder, NULL, deep, each, user, why));
}

cadre_status objects_look(struct objects *objects, const char *path,
    struct storage_object **ret_object, struct cadre_error *error)
{
    OBJECTS_CALL(objects, path, error, storage_open(objects->bulk, path, ret_object, why));
}

cadre_status objects_put_file(
    struct objects *objects, const char *path, int fd, struct cadre_error *error)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0) {
        return cadre_error_errno(error, errno, "cannot read what is to be kept as %s", path);
    }
    size_t size = (size_t)facts.st_size;
    if (size == 0) {
        return objects_put(objects, path, "", 0, error);
    }
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED) {
        return cadre_error_errno(error, errno, "cannot read what is to be kept as %s", path);
    }
    cadre_status status = objects_put(objects, path, bytes, size, error);
    munmap(bytes, size);
    return status;
}

static cadre_status copy_out(const struct storage_object *object, int fd, struct cadre_error *error)
{
    struct storage_ahead *ahead = NULL;
    CADRE_FREE_AT_EXIT uint8_t *buffer = malloc(FETCH_BYTES);
    uint64_t bytes = storage_info_of(object)->bytes;
    if (buffer == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(storage_ahead_open(object, &ahead, error));
    cadre_status status = CADRE_OK;
    for (uint64_t at = 0; at < bytes && status == CADRE_OK;) {
        size_t want = bytes - at < FETCH_BYTES ? (size_t)(bytes - at) : FETCH_BYTES;
        status = storage_ahead_read(ahead, at, buffer, want, error);
        if (status == CADRE_OK) {
            status = file_write_all(fd, storage_path_of(object), buffer, want, error);
        }
        at += want;
    }
    storage_ahead_close(ahead);
    return status;
}

cadre_status objects_fetch(
    struct objects *objects, const char *path, int fd, struct cadre_error *error)
{
    struct storage_object *object = NULL;
    CADRE_TRY(objects_look(objects, path, &object, error));
    cadre_status status = copy_out(object, fd, error);
    storage_close(object);
    return status == CADRE_UNAVAILABLE ? objects_judge(objects, status, error) : status;
}

/* ---- many ---- */

struct doomed {
    char **paths;
    size_t count;
    size_t capacity;
    bool no_memory;
};

static bool add_doomed(void *user, const struct storage_entry *entry)
{
    struct doomed *doomed = user;
    if (doomed->count == doomed->capacity) {
        size_t capacity = doomed->capacity > 0 ? 2 * doomed->capacity : 64;
        char **grown = realloc(doomed->paths, capacity * sizeof *grown);
        doomed->no_memory = grown == NULL;
        doomed->paths = grown != NULL ? grown : doomed->paths;
        doomed->capacity = grown != NULL ? capacity : doomed->capacity;
    }
    char *path = doomed->no_memory ? NULL : strdup(entry->path);
    doomed->no_memory = path == NULL;
    if (path != NULL) {
        doomed->paths[doomed->count++] = path;
    }
    return !doomed->no_memory;
}

cadre_status objects_remove_all(struct objects *objects, const char *folder,
    bool (*may)(const void *user), const void *user, struct cadre_error *error)
{
    struct doomed doomed = {0};
    cadre_status status = objects_list(objects, folder, true, add_doomed, &doomed, error);
    if (status == CADRE_OK && doomed.no_memory) {
        status = no_memory(error);
    }
    for (size_t i = 0; i < doomed.count; i++) {
        if (status == CADRE_OK && !may(user)) {
            status = cadre_error_set(error, CADRE_UNAVAILABLE,
                "this coordinator does not know whether it leads still: %s stays", folder);
        }
        status = status == CADRE_OK ? objects_remove(objects, doomed.paths[i], error) : status;
        free(doomed.paths[i]);
    }
    free(doomed.paths);
    return status;
}

void objects_clear_uploads(struct objects *objects)
{
    struct cadre_error error = {0};
    uint32_t count = 0;
    int64_t before_us = (int64_t)clock_wall_us() - UPLOAD_OLD_US;
    if (storage_uploads_clear(objects->client, objects->root, before_us, &count, &error) !=
        CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "storage",
            "uploads that were cut off could not be looked for in the object store",
            LOG_STR("reason", error.text));
    } else if (count > 0) {
        log_event(LOG_LEVEL_INFO, "storage", "uploads that were cut off are removed",
            LOG_U64("uploads", count));
    }
}
