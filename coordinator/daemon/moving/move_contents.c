/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/moving/move_contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/progress_bar.h"
#include "common/pure/object_path.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/moving/folder_use.h"
#include "coordinator/daemon/moving/known_root.h"
#include "coordinator/daemon/moving/move_run.h"
#include "coordinator/daemon/moving/root_marks.h"

#define CONNECTIONS 32

struct copy_job {
    struct daemon *daemon;
    const char *from;
    const char *to;
    int lock_fd;
    bool goes_on; /* `to` has what an older run left */
    struct move move;
};

/* ---- from where to where ---- */

static cadre_status find_roots(struct copy_job *job, struct cadre_error *error)
{
    const struct coordinator_options *options = &job->daemon->options;
    job->from = options->copy_contents;
    job->to = options->contents_dir != NULL ? options->contents_dir : options->state_dir;
    job->move.to_store = storage_is_object(job->to);
    if (storage_is_object(job->from) == job->move.to_store) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--copy-contents %.200s to %.200s: one of the two is to be a folder, and the other one "
            "s3://BUCKET/PREFIX; for two of a kind use %s",
            job->from, job->to, job->move.to_store ? "the store's own tools" : "cp -a");
    }
    const char *store = job->move.to_store ? job->to : job->from;
    const char *fault = object_folder_fault(store);
    if (fault != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%.200s %s", store, fault);
    }
    job->move.folder = job->move.to_store ? job->from : job->to;
    struct stat status;
    if (stat(job->move.folder, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "there is no folder %.200s", job->move.folder);
    }
    return CADRE_OK;
}

static bool is_state_dir(const struct copy_job *job)
{
    struct stat folder;
    struct stat state;
    return stat(job->move.folder, &folder) == 0 &&
           stat(job->daemon->options.state_dir, &state) == 0 && folder.st_dev == state.st_dev &&
           folder.st_ino == state.st_ino;
}

/* The state directory is locked already. */
static cadre_status open_roots(struct copy_job *job, struct cadre_error *error)
{
    CADRE_TRY(find_roots(job, error));
    const struct objects_options options = {
        .root = job->move.to_store ? job->to : job->from, .connections = CONNECTIONS};
    job->move.ahead = job->daemon->options.ahead;
    if (!job->move.ahead && !is_state_dir(job)) {
        CADRE_TRY(folder_use(job->move.folder, true, &job->lock_fd, error));
    }
    return objects_open(&options, &job->move.objects, error);
}

/* ---- what the marks say ---- */

/* *ret_done: it was copied to the end. */
static cadre_status check_from(
    const struct copy_job *job, bool *ret_done, struct cadre_error *error)
{
    char other[ROOT_TEXT_BYTES];
    *ret_done = false;
    CADRE_TRY(root_mark_read(job->from, ROOT_MARK_MOVING, other, error));
    if (other[0] != '\0') {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the contents in %.200s are not whole: end the copy of %.200s to it first", job->from,
            other);
    }
    CADRE_TRY(root_mark_read(job->from, ROOT_MARK_MOVED, other, error));
    if (other[0] != '\0' && !root_is_same(other, job->to)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the contents in %.200s were copied to %.200s, where they count since: copy those; if "
            "those of %.200s are to count again, remove %.200s/" ROOT_MARK_MOVED,
            job->from, other, job->from, job->from);
    }
    *ret_done = other[0] != '\0';
    return CADRE_OK;
}

/* What an older run, or the time before the contents were copied from there, left. */
static cadre_status check_to(struct copy_job *job, bool *ret_is_whole, struct cadre_error *error)
{
    char other[ROOT_TEXT_BYTES];
    CADRE_TRY(root_mark_read(job->to, ROOT_MARK_MOVING, other, error));
    *ret_is_whole = other[0] == '\0';
    job->goes_on = other[0] != '\0';
    if (other[0] == '\0') {
        CADRE_TRY(root_mark_read(job->to, ROOT_MARK_MOVED, other, error));
        job->goes_on = root_is_same(other, job->from);
    }
    if (other[0] != '\0' && !root_is_same(other, job->from)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "what is in %.200s is a copy of %.200s, or was copied there: name another one", job->to,
            other);
    }
    return CADRE_OK;
}

static cadre_status list_both(struct copy_job *job, struct cadre_error *error)
{
    struct move *move = &job->move;
    struct move_list *in_folder = move->to_store ? &move->from : &move->there;
    struct move_list *in_store = move->to_store ? &move->there : &move->from;
    log_event(LOG_LEVEL_INFO, "contents", "looking at what is there", LOG_STR("from", job->from),
        LOG_STR("to", job->to));
    CADRE_TRY(move_list_folder(move->folder, in_folder, error));
    CADRE_TRY(move_list_store(move->objects, in_store, error));
    if (move->from.count == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "there are no contents in %.200s: name what has blobs and jobs, which without "
            "--contents is the state directory",
            job->from);
    }
    if (move->there.count > 0 && !job->goes_on) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "there are other contents in %.200s (%zu of them), and no sign of a copy that was cut "
            "off: name an empty root, or remove them",
            job->to, move->there.count);
    }
    return CADRE_OK;
}

/* ---- what is reported ---- */

static void report_kinds(const struct copy_job *job)
{
    static const char *const names[MOVE_KINDS] = {"contents", "logs", "values", "outputs",
        "references", "settled files", "snapshots and marks"};
    for (unsigned kind = 0; kind < MOVE_KINDS; kind++) {
        uint64_t bytes = 0;
        size_t count = move_list_count(&job->move.from, (enum move_kind)kind, &bytes);
        if (count > 0) {
            log_event(LOG_LEVEL_INFO, "contents", "to be copied", LOG_STR("what", names[kind]),
                LOG_U64("count", count), LOG_U64("bytes", bytes));
        }
    }
}

static uint64_t bytes_to_copy(const struct copy_job *job)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < job->move.from.count; i++) {
        const struct move_item *item = &job->move.from.items[i];
        bytes += move_has(&job->move, item) ? 0 : item->bytes;
    }
    return bytes;
}

static void report_end(const struct copy_job *job, const struct move_result *result)
{
    log_event(LOG_LEVEL_INFO, "contents", "the contents are copied",
        LOG_U64("copied", result->copied), LOG_U64("copied_bytes", result->copied_bytes),
        LOG_U64("there_already", result->there), LOG_STR("from", job->from),
        LOG_STR("to", job->to));
    log_event(LOG_LEVEL_INFO, "contents",
        job->daemon->options.contents_dir != NULL
            ? "next: start each coordinator with this --contents"
            : "next: start the coordinator without --contents",
        LOG_STR("contents", job->to));
    log_event(LOG_LEVEL_INFO, "contents",
        "what was copied is still there, and is not used any more: when all is well, remove "
        "blobs, jobs and snapshots, and leave the mark " ROOT_MARK_MOVED,
        LOG_STR("in", job->from));
}

/* ---- the copy ---- */

static cadre_status check_room(const struct copy_job *job, struct cadre_error *error)
{
    uint64_t needed = bytes_to_copy(job);
    uint64_t free_bytes = 0;
    char needed_text[PROGRESS_BYTES_TEXT];
    char free_text[PROGRESS_BYTES_TEXT];
    if (job->move.to_store || !disk_free_bytes(job->to, &free_bytes) || free_bytes >= needed) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "%.200s has %s free, and %s are to be copied there", job->to,
        progress_bar_bytes(free_bytes, free_text), progress_bar_bytes(needed, needed_text));
}

static cadre_status sync_folder(const struct copy_job *job, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = open(job->move.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return job->move.to_store || (fd >= 0 && syncfs(fd) == 0)
               ? CADRE_OK
               : cadre_error_errno(error, errno, "cannot sync %s", job->move.folder);
}

static cadre_status copy_all(
    struct copy_job *job, struct move_result *ret_result, struct cadre_error *error)
{
    struct move *move = &job->move;
    CADRE_TRY(move_open(move, error));
    CADRE_TRY(move_remove_others(move, error));
    CADRE_TRY(move_run(move, ret_result, error));
    if (ret_result->damaged > 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "all is copied but for %zu that are damaged, which the lines above name: put them back "
            "from a backup, or remove these files, whose jobs then go on from older checkpoints; "
            "then run this once more",
            ret_result->damaged);
    }
    return sync_folder(job, error);
}

/* Until the end `to` has the one mark, from then on `from` the other. */
static cadre_status copy_and_mark(struct copy_job *job, struct cadre_error *error)
{
    struct move_result result = {0};
    CADRE_TRY(check_room(job, error));
    CADRE_TRY(root_mark_write(job->to, ROOT_MARK_MOVING, job->from, error));
    CADRE_TRY(root_mark_remove(job->to, ROOT_MARK_MOVED, error));
    CADRE_TRY(copy_all(job, &result, error));
    CADRE_TRY(known_root_note(job->daemon, error));
    CADRE_TRY(root_mark_write(job->from, ROOT_MARK_MOVED, job->to, error));
    CADRE_TRY(root_mark_remove(job->to, ROOT_MARK_MOVING, error));
    report_end(job, &result);
    return CADRE_OK;
}

/* What a coordinator removes meanwhile is left out here, and removed there by the copy that
 * follows. */
static cadre_status copy_ahead(struct copy_job *job, struct cadre_error *error)
{
    struct move_result result = {0};
    CADRE_TRY(check_room(job, error));
    CADRE_TRY(root_mark_write(job->to, ROOT_MARK_MOVING, job->from, error));
    CADRE_TRY(move_open(&job->move, error));
    CADRE_TRY(move_run(&job->move, &result, error));
    log_event(LOG_LEVEL_INFO, "contents",
        "contents are copied ahead: stop all coordinators, and run this once more without --ahead",
        LOG_U64("copied", result.copied), LOG_U64("copied_bytes", result.copied_bytes),
        LOG_U64("there_already", result.there), LOG_U64("damaged", result.damaged));
    return CADRE_OK;
}

static cadre_status do_copy(struct copy_job *job, struct cadre_error *error)
{
    bool was_done = false;
    bool is_whole = false;
    CADRE_TRY(open_roots(job, error));
    CADRE_TRY(objects_check(job->move.objects, error));
    CADRE_TRY(check_from(job, &was_done, error));
    CADRE_TRY(check_to(job, &is_whole, error));
    if (was_done && is_whole) {
        log_event(LOG_LEVEL_INFO, "contents", "they were copied already: there is nothing to do",
            LOG_STR("from", job->from), LOG_STR("to", job->to));
        return CADRE_OK;
    }
    CADRE_TRY(list_both(job, error));
    if (job->move.ahead) {
        move_list_keep(&job->move.from, MOVE_CONTENT);
    }
    report_kinds(job);
    if (job->daemon->options.dry_run) {
        log_event(LOG_LEVEL_INFO, "contents", "nothing is copied, because of --dry-run",
            LOG_U64("bytes", job->move.from.bytes), LOG_U64("left_bytes", bytes_to_copy(job)));
        return CADRE_OK;
    }
    return job->move.ahead ? copy_ahead(job, error) : copy_and_mark(job, error);
}

cadre_status move_contents(struct daemon *daemon, struct cadre_error *error)
{
    struct copy_job job = {.daemon = daemon, .lock_fd = -1};
    cadre_status status = do_copy(&job, error);
    move_close(&job.move);
    objects_close(job.move.objects);
    if (job.lock_fd >= 0) {
        close(job.lock_fd);
    }
    return status;
}
