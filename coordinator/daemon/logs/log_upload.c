/* SPDX-License-Identifier: Apache-2.0
 * The files say where the newest incarnation begins, and of those before it nothing: they become
 * one, the incarnation 0, which no task has. The term is 0, so that what a coordinator puts later
 * is newer. */
#include "coordinator/daemon/logs/log_upload.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "coordinator/daemon/base/log_hole.h"
#include "coordinator/daemon/logs/log_base.h"
#include "coordinator/daemon/logs/log_copy_files.h"
#include "coordinator/daemon/logs/log_head.h"
#include "coordinator/daemon/objects/object_names.h"

#define SEGMENT_BYTES ((uint64_t)4 * 1024 * 1024)

struct log_upload {
    struct objects *objects;
    struct job_id job;
    uint32_t slot;
    const char *path;
    struct log_segments planned;
    struct log_segments listed;
};

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a log");
}

static char *path_of_segment(const struct log_upload *upload, const struct log_segment *segment)
{
    char name[LOG_SEGMENT_NAME_BYTES];
    log_segment_name(segment, name);
    return object_name_of_log(upload->objects, upload->job, upload->slot, name);
}

/* The bytes from `begin` to `end`, which are of one incarnation, in pieces. */
static void plan_range(
    struct log_upload *upload, uint64_t begin, uint64_t end, uint64_t incarnation, uint64_t base)
{
    while (begin < end) {
        uint64_t size = end - begin < SEGMENT_BYTES ? end - begin : SEGMENT_BYTES;
        const struct log_segment segment = {.incarnation = incarnation,
            .base = base,
            .begin = begin,
            .end = begin + size,
            .from = begin,
            .to = begin + size};
        (void)log_segments_add(&upload->planned, &segment);
        begin += size;
    }
}

static cadre_status plan(struct log_upload *upload, struct cadre_error *error)
{
    struct stat status;
    uint64_t newest = 0;
    uint64_t base = 0;
    if (stat(upload->path, &status) != 0) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "there is no log %s", upload->path);
    }
    uint64_t size = (uint64_t)status.st_size;
    bool known = log_base_read(upload->path, &newest, &base) && base <= size;
    newest = known ? newest : 0;
    base = known ? base : size;
    struct log_hole hole = log_hole_read(upload->path);
    hole.to = hole.to < size ? hole.to : size;
    hole.from = hole.from < hole.to ? hole.from : hole.to;
    const struct {
        uint64_t begin, end;
    } kept[] = {{0, hole.from}, {hole.to, size}};
    for (size_t i = 0; i < 2; i++) {
        uint64_t split = kept[i].begin > base ? kept[i].begin
                         : base < kept[i].end ? base
                                              : kept[i].end;
        plan_range(upload, kept[i].begin, split, 0, 0);
        plan_range(upload, split, kept[i].end, newest, base);
    }
    return upload->planned.short_of_memory ? no_memory(error) : CADRE_OK;
}

static bool add_listed(void *user, const struct storage_entry *entry)
{
    struct log_upload *upload = user;
    struct log_segment segment;
    const char *slash = strrchr(entry->path, '/');
    if (entry->is_folder || slash == NULL || !log_segment_parse(slash + 1, &segment)) {
        return true;
    }
    return log_segments_add(&upload->listed, &segment);
}

static bool has(const struct log_segments *segments, const struct log_segment *wanted)
{
    for (size_t i = 0; i < segments->count; i++) {
        const struct log_segment *segment = &segments->items[i];
        if (segment->term == wanted->term && segment->incarnation == wanted->incarnation &&
            segment->base == wanted->base && segment->begin == wanted->begin &&
            segment->end == wanted->end) {
            return true;
        }
    }
    return false;
}

static cadre_status list(struct log_upload *upload, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *folder =
        object_name_of_log(upload->objects, upload->job, upload->slot, NULL);
    CADRE_TRY(objects_list(upload->objects, folder, true, add_listed, upload, error));
    return upload->listed.short_of_memory ? no_memory(error) : CADRE_OK;
}

static cadre_status remove_others(const struct log_upload *upload, struct cadre_error *error)
{
    for (size_t i = 0; i < upload->listed.count; i++) {
        const struct log_segment *segment = &upload->listed.items[i];
        if (!has(&upload->planned, segment)) {
            CADRE_FREE_AT_EXIT char *path = path_of_segment(upload, segment);
            CADRE_TRY(objects_remove(upload->objects, path, error));
        }
    }
    return CADRE_OK;
}

static cadre_status put_segment(
    const struct log_upload *upload, const struct log_segment *segment, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of_segment(upload, segment);
    CADRE_FREE_AT_EXIT uint8_t *bytes = NULL;
    CADRE_FREE_AT_EXIT struct log_mark *marks = NULL;
    size_t mark_count = 0;
    size_t size = 0;
    CADRE_TRY(log_copy_files_read(
        upload->path, segment->begin, segment->end, &bytes, &marks, &mark_count, error));
    CADRE_FREE_AT_EXIT uint8_t *object = log_segment_pack(segment, bytes, marks, mark_count, &size);
    return object != NULL ? objects_put(upload->objects, path, object, size, error)
                          : no_memory(error);
}

static cadre_status put_head(const struct log_upload *upload, struct cadre_error *error)
{
    struct log_head head;
    char text[LOG_HEAD_BYTES_MAX];
    CADRE_FREE_AT_EXIT char *path =
        object_name_of_log_head(upload->objects, upload->job, upload->slot);
    log_head_of(upload->planned.items, upload->planned.count, 0, &head);
    return objects_put(upload->objects, path, text, log_head_pack(&head, text), error);
}

static cadre_status upload_all(struct log_upload *upload, struct cadre_error *error)
{
    CADRE_TRY(plan(upload, error));
    CADRE_TRY(list(upload, error));
    CADRE_TRY(remove_others(upload, error));
    for (size_t i = 0; i < upload->planned.count; i++) {
        if (!has(&upload->listed, &upload->planned.items[i])) {
            CADRE_TRY(put_segment(upload, &upload->planned.items[i], error));
        }
    }
    return upload->planned.count > 0 ? put_head(upload, error) : CADRE_OK;
}

cadre_status log_upload(struct objects *objects, struct job_id job, uint32_t slot, const char *path,
    struct cadre_error *error)
{
    struct log_upload upload = {.objects = objects, .job = job, .slot = slot, .path = path};
    cadre_status status = upload_all(&upload, error);
    free(upload.planned.items);
    free(upload.listed.items);
    return status;
}
