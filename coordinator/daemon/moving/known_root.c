/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/moving/known_root.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/moving/root_marks.h"
#include "coordinator/daemon/objects/object_names.h"

#define KNOWN_NAME "contents"

/* So many of the newest jobs are looked at. */
#define SAMPLE_MAX 16

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
}

/* "": in the state directory. */
static const char *root_of(const struct daemon *daemon)
{
    return daemon->options.contents_dir != NULL ? daemon->options.contents_dir : "";
}

cadre_status known_root_note(const struct daemon *daemon, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = storage_join(daemon->options.state_dir, KNOWN_NAME);
    if (path == NULL) {
        return no_memory(error);
    }
    if (root_of(daemon)[0] != '\0') {
        return root_mark_write(daemon->options.state_dir, KNOWN_NAME, root_of(daemon), error);
    }
    return unlink(path) == 0 || errno == ENOENT
               ? CADRE_OK
               : cadre_error_errno(error, errno, "cannot remove %s", path);
}

/* NOT_FOUND: it is not here. */
static cadre_status look_for(
    const struct daemon *daemon, const struct job_spec *spec, struct cadre_error *error)
{
    if (daemon->objects != NULL) {
        struct storage_object *object = NULL;
        CADRE_FREE_AT_EXIT char *path = object_name_of_blob(daemon->objects, spec->program.sha256);
        CADRE_TRY(objects_look(daemon->objects, path, &object, error));
        storage_close(object);
        return CADRE_OK;
    }
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, spec->program.sha256);
    if (path == NULL) {
        return no_memory(error);
    }
    return access(path, F_OK) == 0 ? CADRE_OK
                                   : cadre_error_errno(error, errno, "cannot look at %s", path);
}

/* *ret_job: one whose program was looked for, if none of those that were is here; 0: some is, or
 * there are no jobs. */
static cadre_status look_for_some(
    struct daemon *daemon, uint64_t *ret_job, struct cadre_error *error)
{
    struct engine_job_brief info;
    size_t looked = 0;
    uint64_t missed = 0;
    *ret_job = 0;
    for (uint32_t i = 0; looked < SAMPLE_MAX && engine_job_brief_at(daemon->engine, i, &info);
         i++) {
        const struct job_spec *spec = engine_job_spec(daemon->engine, info.id);
        struct cadre_error why = {0};
        if (spec == NULL || engine_job_is_damaged(daemon->engine, info.id)) {
            continue;
        }
        cadre_status status = look_for(daemon, spec, &why);
        if (status == CADRE_OK) {
            return CADRE_OK;
        }
        if (status != CADRE_NOT_FOUND) {
            *error = why;
            return status;
        }
        missed = missed > 0 ? missed : info.id.n;
        looked++;
    }
    *ret_job = missed;
    return CADRE_OK;
}

static cadre_status lacks_them(
    const struct daemon *daemon, uint64_t job, const char *known, struct cadre_error *error)
{
    const char *state = daemon->options.state_dir;
    const char *root = root_of(daemon)[0] != '\0' ? root_of(daemon) : state;
    CADRE_FREE_AT_EXIT char *own = storage_join(state, "blobs");
    const char *before = known[0] != '\0'                        ? known
                         : own != NULL && access(own, F_OK) == 0 ? state
                                                                 : "FOLDER";
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "the contents in %.160s are not those of this ledger's jobs, whose programs (that of job "
        "%llu, for one) it lacks; they were in %.160s: copy them with cadre-coordinator "
        "--copy-contents %.160s and the options of now, or start with those of before; if they are "
        "lost for good, write the line %.160s into %.160s/" KNOWN_NAME,
        root, (unsigned long long)job, before, before, root, state);
}

cadre_status known_root_check(struct daemon *daemon, struct cadre_error *error)
{
    char known[ROOT_TEXT_BYTES];
    uint64_t job = 0;
    CADRE_TRY(root_mark_read(daemon->options.state_dir, KNOWN_NAME, known, error));
    if (root_is_same(known, root_of(daemon))) {
        return CADRE_OK;
    }
    CADRE_TRY(look_for_some(daemon, &job, error));
    return job == 0 ? known_root_note(daemon, error) : lacks_them(daemon, job, known, error);
}
