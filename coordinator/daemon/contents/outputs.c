/* SPDX-License-Identifier: Apache-2.0
 * Jobs.ListOutputs: the checkpoints that are kept, and what tasks left in their output folders. A
 * thread of the pool lists them. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "coordinator/daemon/contents/artifacts.h"
#include "coordinator/daemon/contents/recent_outputs.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/objects/object_names.h"
#include "common/rpc/file_work.h"

struct reference {
    char *path; /* of the output */
    char *name; /* of the checkpoint's file that it refers to */
};

struct listing {
    struct daemon *daemon;
    struct rpc_call *call; /* NULL once it was cancelled */
    struct file_work work; /* from the beginning on: its end frees this */
    char *outputs;
    char *folder;               /* the job's outputs_folder */
    struct artifacts artifacts; /* of the job */
    struct reference references[LIMIT_OUTPUTS_LISTED];
    size_t reference_count;
    struct output_info items[LIMIT_OUTPUTS_LISTED];
    size_t count;
    struct checkpoint_ref stored[LIMIT_STORED_LISTED]; /* their paths are those of `artifacts` */
    size_t stored_count;
    bool more;
    struct cadre_error error; /* of an object store that is away */
};

static void listing_free(struct listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        free((void *)(uintptr_t)listing->items[i].path);
    }
    for (size_t i = 0; i < listing->reference_count; i++) {
        free(listing->references[i].path);
        free(listing->references[i].name);
    }
    artifacts_free(&listing->artifacts);
    free(listing->outputs);
    free(listing->folder);
    free(listing);
}

static void list_file(struct listing *listing, char *path, uint64_t bytes)
{
    if (path == NULL || listing->count + listing->stored_count == LIMIT_OUTPUTS_LISTED) {
        listing->more = true;
        free(path);
        return;
    }
    listing->items[listing->count++] = (struct output_info){.path = path, .size_bytes = bytes};
}

/* ---- in a thread ---- */

/* Takes both over; the name may be NULL. */
static void note_reference(struct listing *listing, char *path, char *name)
{
    if (name == NULL || listing->reference_count == LIMIT_OUTPUTS_LISTED) {
        listing->more = listing->more || name != NULL;
        free(name);
        free(path);
        return;
    }
    listing->references[listing->reference_count++] =
        (struct reference){.path = path, .name = name};
}

/* Takes the path over. */
static void note_link(struct listing *listing, char *path)
{
    char *whole = NULL;
    char *name = NULL;
    if (asprintf(&whole, "%s/%s", listing->outputs, path) >= 0) {
        name = artifacts_link_target(whole);
        free(whole);
    }
    note_reference(listing, path, name);
}

static void contents_outputs_walk(struct listing *listing, const char *prefix)
{
    CADRE_FREE_AT_EXIT char *folder_path = NULL;
    if (asprintf(&folder_path, "%s/%s", listing->outputs, prefix) < 0) {
        folder_path = NULL;
        return;
    }
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir(folder_path);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct stat status;
        char *path = NULL;
        if (entry->d_name[0] == '.' &&
            (entry->d_name[1] == '\0' || strcmp(entry->d_name, "..") == 0)) {
            continue;
        }
        if (asprintf(&path, "%s%s%s", prefix, prefix[0] != '\0' ? "/" : "", entry->d_name) < 0) {
            return;
        }
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            free(path); /* it was removed meanwhile */
        } else if (S_ISDIR(status.st_mode)) {
            contents_outputs_walk(listing, path);
            free(path);
        } else if (S_ISLNK(status.st_mode)) {
            note_link(listing, path);
        } else {
            list_file(listing, path, (uint64_t)status.st_size);
        }
    }
}

/* ---- in an object store ---- */

/* The path below the folder of outputs, or of references. */
static char *path_beneath(const struct storage_entry *entry, const char *folder)
{
    return entry->is_folder ? NULL : strdup(objects_name_beneath(folder, entry->path));
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct output_info *)a)->path, ((const struct output_info *)b)->path);
}

/* How many of the listing's are of the store's list; the items among them are sorted. */
struct recent_listing {
    struct listing *listing;
    size_t sorted;
    size_t references;
};

struct object_listing {
    struct listing *listing;
    const char *folder;
    bool references;
};

static bool list_object(void *user, const struct storage_entry *entry)
{
    const struct object_listing *of = user;
    struct listing *listing = of->listing;
    char *path = path_beneath(entry, of->folder);
    if (path != NULL && of->references) {
        const char *slash = strrchr(path, '/');
        note_reference(listing, path, strdup(slash != NULL ? slash + 1 : path));
    } else if (path != NULL) {
        list_file(listing, path, entry->info.bytes);
    }
    return !listing->more;
}

static void list_objects(struct listing *listing)
{
    struct objects *objects = listing->daemon->objects;
    struct job_id job = listing->artifacts.job;
    for (size_t i = 0; i < 2 && listing->error.code == CADRE_OK; i++) {
        CADRE_FREE_AT_EXIT char *folder = i == 0 ? object_name_of_output(objects, job, NULL)
                                                 : object_name_of_reference(objects, job, NULL);
        struct object_listing of = {.listing = listing, .folder = folder, .references = i == 1};
        (void)objects_list(objects, folder, true, list_object, &of, &listing->error);
    }
}

/* What the store's list lacks still. */
static void add_recent(void *user, const char *name, uint64_t bytes, bool is_reference)
{
    struct recent_listing *recent = user;
    struct listing *listing = recent->listing;
    const struct output_info wanted = {.path = name};
    bool known =
        bsearch(&wanted, listing->items, recent->sorted, sizeof listing->items[0], by_path) != NULL;
    for (size_t i = 0; i < recent->references && is_reference && !known; i++) {
        known = strcmp(listing->references[i].path, name) == 0;
    }
    if (!known && is_reference) {
        const char *slash = strrchr(name, '/');
        note_reference(listing, strdup(name), strdup(slash != NULL ? slash + 1 : name));
    } else if (!known) {
        list_file(listing, strdup(name), bytes);
    }
}

static void list_recent(struct listing *listing)
{
    struct recent_listing recent = {
        .listing = listing, .sorted = listing->count, .references = listing->reference_count};
    qsort(listing->items, listing->count, sizeof listing->items[0], by_path);
    recent_outputs_each(
        listing->daemon->recent_outputs, listing->artifacts.job, add_recent, &recent);
}

static void list_artifact(void *user, const char *name, uint64_t bytes)
{
    char *path = NULL;
    list_file(user, asprintf(&path, "%s%s", ARTIFACTS_FOLDER, name) >= 0 ? path : NULL, bytes);
}

/* The newest ones, oldest first. */
static void list_stored(struct listing *listing)
{
    const struct artifacts *artifacts = &listing->artifacts;
    size_t stored = 0;
    for (size_t i = 0; i < artifacts->count; i++) {
        stored += artifacts_is_stored(artifacts, &artifacts->items[i]) ? 1 : 0;
    }
    listing->more = stored > LIMIT_STORED_LISTED;
    for (size_t i = 0; i < artifacts->count; i++) {
        const struct core_checkpoint *checkpoint = &artifacts->items[i];
        if (!artifacts_is_stored(artifacts, checkpoint) || stored-- > LIMIT_STORED_LISTED) {
            continue;
        }
        struct checkpoint_ref *ref = &listing->stored[listing->stored_count++];
        *ref = (struct checkpoint_ref){.position = checkpoint->position,
            .shared = true,
            .path = checkpoint->path,
            .manifest_bytes = checkpoint->manifest_bytes};
        memcpy(ref->manifest_sha256, checkpoint->manifest_sha256, sizeof ref->manifest_sha256);
    }
}

/* A reference to a checkpoint that is not kept any more is not listed. */
static void list_links(struct listing *listing)
{
    for (size_t i = 0; i < listing->reference_count; i++) {
        struct reference *reference = &listing->references[i];
        struct artifact_file file = {0};
        struct cadre_error error = {0};
        if (artifacts_find(&listing->artifacts, reference->name, &file, &error) == CADRE_OK) {
            list_file(listing, reference->path, file.bytes);
            reference->path = NULL;
        }
        artifact_file_free(&file);
    }
}

static void list_in_thread(void *user)
{
    struct listing *listing = user;
    list_stored(listing);
    if (listing->daemon->objects != NULL) {
        list_objects(listing);
        list_recent(listing);
    } else {
        contents_outputs_walk(listing, "");
    }
    artifacts_each(&listing->artifacts, list_artifact, listing);
    list_links(listing);
    qsort(listing->items, listing->count, sizeof listing->items[0], by_path);
}

/* ---- on the loop ---- */

static void after_list(void *user)
{
    struct listing *listing = user;
    struct daemon *daemon = listing->daemon;
    if (listing->call != NULL && listing->error.code != CADRE_OK) {
        rpc_call_set_user(listing->call, NULL);
        rpc_call_fail(listing->call, &listing->error);
    } else if (listing->call != NULL) {
        rpc_call_set_user(listing->call, NULL);
        struct list_outputs_response response = {.outputs = listing->items,
            .count = listing->count,
            .more = listing->more,
            .stored = listing->stored,
            .stored_count = listing->stored_count,
            .store = listing->stored_count > 0 ? listing->artifacts.shared_folder : "",
            .folder = listing->folder};
        DAEMON_SEND(daemon, listing->call, list_outputs_response, &response);
        rpc_call_finish(listing->call, CADRE_OK, "");
    }
    listing_free(listing);
}

static cadre_status contents_outputs_begin(
    struct daemon *daemon, struct rpc_call *call, struct job_id job, struct cadre_error *error)
{
    const struct job_spec *spec = engine_job_spec(daemon->engine, job);
    if (spec == NULL) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "there is no job %llu: see `cadre jobs`",
            (unsigned long long)job.n);
    }
    struct listing *listing = calloc(1, sizeof *listing);
    char *outputs = path_of_outputs(daemon, job);
    char *at_store = strdup(spec->outputs_folder);
    if (outputs == NULL || at_store == NULL || listing == NULL) {
        free(outputs);
        free(at_store);
        free(listing);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for the list");
    }
    listing->daemon = daemon;
    listing->call = call;
    listing->outputs = outputs;
    listing->folder = at_store;
    if (artifacts_of(daemon, job, &listing->artifacts, error) != CADRE_OK) {
        listing_free(listing);
        return error->code;
    }
    rpc_call_set_user(call, listing);
    file_work_start(&listing->work, &daemon->file_pool, list_in_thread, after_list, listing);
    return CADRE_OK;
}

static void list_outputs_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct job_request request;
    wire_arena_reset(daemon->arena);
    cadre_status status = wire_unpack_job_request(data, length, daemon->arena, &request, &error);
    if (status == CADRE_OK) {
        status = contents_outputs_begin(daemon, call, request.id, &error);
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
    }
}

static void list_outputs_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    (void)user;
    struct listing *listing = rpc_call_user(call);
    if (listing != NULL) {
        listing->call = NULL;
    }
}

const struct rpc_server_ops list_outputs_ops = {
    .on_message = list_outputs_message, .on_closed = list_outputs_closed};
