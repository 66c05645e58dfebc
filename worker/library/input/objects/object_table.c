/* SPDX-License-Identifier: Apache-2.0
 * The objects of this process by their paths; see object.h. One that no one has open is kept for a
 * while with its blocks: the next epoch opens it again. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/pure/object_path.h"
#include "worker/library/input/objects/object.h"
#include "worker/library/input/objects/object_fetch.h"
#include "worker/library/input/objects/object_memory.h"

#define TABLE_ROWS 1024

/* Objects without users that are kept. */
#define IDLE_MAX 1024

/* What was looked up for an opening to come counts as just looked up for so long. */
#define EXPECTED_US (10 * CADRE_US_PER_S)

/* An object that is looked up in the background. */
struct lookup {
    struct work work;
    char *path;
    uint64_t blocks;
    struct lookup *next;
};

/* Under the lock. */
static struct object *table[TABLE_ROWS];
static struct lookup *lookups;
static uint64_t idle_count;
static uint64_t idle_serial;

static struct object **row_of(const char *path)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *path != '\0'; path++) {
        hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
    }
    return &table[(hash ^ (hash >> 32)) % TABLE_ROWS];
}

static struct object *object_table_find(const char *path)
{
    struct object *object = *row_of(path);
    while (object != NULL && strcmp(object->path, path) != 0) {
        object = object->next;
    }
    return object;
}

static void object_table_remove(struct object *object)
{
    struct object **link = row_of(object->path);
    while (*link != object) {
        link = &(*link)->next;
    }
    *link = object->next;
    object->in_table = false;
    idle_count -= object->users == 0;
    object_unreference(object);
}

/* Takes the caller's reference over. */
static void object_table_add(struct object *object)
{
    struct object **row = row_of(object->path);
    object->next = *row;
    object->in_table = true;
    object->idle_since = ++idle_serial;
    *row = object;
    idle_count++;
}

static void remove_oldest_idle(void)
{
    struct object *oldest = NULL;
    for (size_t row = 0; row < TABLE_ROWS; row++) {
        for (struct object *object = table[row]; object != NULL; object = object->next) {
            if (object->users == 0 && (oldest == NULL || object->idle_since < oldest->idle_since)) {
                oldest = object;
            }
        }
    }
    CADRE_ASSERT(oldest != NULL);
    object_table_remove(oldest);
}

/* Whether it was looked up just now. */
static bool is_expected(const struct object *object)
{
    return object->expected_us != 0 && clock_monotonic_us() - object->expected_us < EXPECTED_US;
}

/* Whether the object is still what it was: of the same size, and by its ETag, or, where there is
 * none, by its time. */
static bool is_same(const struct storage_object *a, const struct storage_object *b)
{
    const struct storage_info *one = storage_info_of(a);
    const struct storage_info *other = storage_info_of(b);
    bool versions = one->version[0] != '\0' || other->version[0] != '\0';
    return one->bytes == other->bytes &&
           (versions ? strcmp(one->version, other->version) == 0
                     : one->modified_us != 0 && one->modified_us == other->modified_us);
}

/* Puts what was looked up into the table, or finds that it is there. The storage is taken over.
 * NULL: no memory. */
static struct object *object_table_update(const char *path, struct storage_object *storage)
{
    struct object *object = object_table_find(path);
    if (object != NULL && (object->users > 0 || is_same(object->storage, storage))) {
        storage_close(storage);
        return object;
    }
    if (object != NULL) {
        object_table_remove(object);
    }
    object = object_new(path, storage);
    if (object == NULL) {
        storage_close(storage);
        return NULL;
    }
    object_table_add(object);
    return object;
}

/* --- in the background --- */

static void lookup_forget(struct lookup *lookup)
{
    struct lookup **link = &lookups;
    while (*link != lookup) {
        link = &(*link)->next;
    }
    *link = lookup->next;
    free(lookup->path);
    free(lookup);
    pthread_cond_broadcast(&object_changed);
}

static void fetch_start(struct object *object, uint64_t blocks)
{
    blocks = blocks < object->block_count ? blocks : object->block_count;
    (void)object_fetch_ask(object, 0, blocks, WORK_AHEAD, NULL);
}

static void lookup_work(struct work *work)
{
    struct lookup *lookup = (struct lookup *)work;
    struct storage_object *storage = NULL;
    struct cadre_error unsaid = {0}; /* who opens it meets it again, and says so */
    bool found = storage_open(NULL, lookup->path, &storage, &unsaid) == CADRE_OK;
    pthread_mutex_lock(&object_lock);
    struct object *object = found ? object_table_update(lookup->path, storage) : NULL;
    if (object != NULL) {
        object->expected_us = object->users == 0 ? clock_monotonic_us() : 0;
        fetch_start(object, lookup->blocks);
    }
    lookup_forget(lookup);
    pthread_mutex_unlock(&object_lock);
}

static struct lookup *find_lookup(const char *path)
{
    struct lookup *lookup = lookups;
    while (lookup != NULL && strcmp(lookup->path, path) != 0) {
        lookup = lookup->next;
    }
    return lookup;
}

void object_expect(const char *path, uint64_t blocks)
{
    if (object_memory_prepare(NULL) != CADRE_OK || disk_cache_prepare(NULL) != CADRE_OK) {
        return;
    }
    pthread_mutex_lock(&object_lock);
    struct object *object = object_table_find(path);
    bool usable = object != NULL && (object->users > 0 || is_expected(object));
    bool known = usable || find_lookup(path) != NULL;
    if (usable) {
        fetch_start(object, blocks);
    }
    struct lookup *lookup = known || fault_point("input.object") ? NULL : calloc(1, sizeof *lookup);
    if (lookup != NULL) {
        *lookup = (struct lookup){
            .work = {.run = lookup_work}, .path = strdup(path), .blocks = blocks, .next = lookups};
        lookups = lookup;
        if (lookup->path == NULL || !work_queue_add(&lookup->work, WORK_AHEAD)) {
            lookup_forget(lookup);
        }
    }
    pthread_mutex_unlock(&object_lock);
}

/* One that waits is not waited for; one that is under way is. */
static void end_lookup(const char *path)
{
    struct lookup *lookup = NULL;
    while ((lookup = find_lookup(path)) != NULL) {
        if (work_queue_remove(&lookup->work)) {
            lookup_forget(lookup);
        } else {
            pthread_cond_wait(&object_changed, &object_lock);
        }
    }
}

/* --- open and closed --- */

static void object_table_use(struct object *object)
{
    idle_count -= object->users == 0;
    object->users++;
    object->references++;
    object->expected_us = 0;
}

/* The object, if there is no need to look it up. */
static struct object *object_table_known(const char *path)
{
    pthread_mutex_lock(&object_lock);
    end_lookup(path);
    struct object *object = object_table_find(path);
    bool known = object != NULL && (object->users > 0 || is_expected(object));
    if (known) {
        object_table_use(object);
    }
    pthread_mutex_unlock(&object_lock);
    return known ? object : NULL;
}

cadre_status object_open(const char *path, struct object **ret_object, struct cadre_error *error)
{
    struct storage_object *storage = NULL;
    *ret_object = NULL;
    CADRE_TRY(storage_check(path, error));
    CADRE_TRY(object_memory_prepare(error));
    CADRE_TRY(disk_cache_prepare(error));
    *ret_object = object_table_known(path);
    if (*ret_object != NULL) {
        object_fetch_look(*ret_object);
        return CADRE_OK;
    }
    CADRE_TRY(storage_open(NULL, path, &storage, error));
    pthread_mutex_lock(&object_lock);
    struct object *object = object_table_update(path, storage);
    if (object != NULL) {
        object_table_use(object);
    }
    pthread_mutex_unlock(&object_lock);
    *ret_object = object;
    if (object == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "%.*s: no memory to read it",
            (int)object_url_shown(path), path);
    }
    object_fetch_look(object);
    return CADRE_OK;
}

void object_close(struct object *object)
{
    if (object == NULL) {
        return;
    }
    pthread_mutex_lock(&object_lock);
    CADRE_ASSERT(object->users > 0);
    object->users--;
    if (object->users == 0 && object->in_table) {
        object->idle_since = ++idle_serial;
        idle_count++;
        if (idle_count > IDLE_MAX) {
            remove_oldest_idle();
        }
    }
    object_unreference(object);
    pthread_mutex_unlock(&object_lock);
}

void object_table_clear(void)
{
    pthread_mutex_lock(&object_lock);
    for (size_t row = 0; row < TABLE_ROWS; row++) {
        struct object *next = NULL;
        for (struct object *object = table[row]; object != NULL; object = next) {
            next = object->next;
            if (object->users == 0) {
                object_table_remove(object);
            }
        }
    }
    pthread_mutex_unlock(&object_lock);
}

const char *object_path(const struct object *object)
{
    return object->path;
}

const char *object_version(const struct object *object)
{
    return storage_info_of(object->storage)->version;
}

int64_t object_modified_us(const struct object *object)
{
    return storage_info_of(object->storage)->modified_us;
}

uint64_t object_bytes(const struct object *object)
{
    return object->bytes;
}
