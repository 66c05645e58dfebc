/* SPDX-License-Identifier: Apache-2.0
 * The folder of contents of one of several coordinators: that it is this cluster's, and the one
 * that all of them have. No file is written into another one, and its coordinator never leads. */
#include <string.h>

#include "coordinator/daemon/moving/root_marks.h"
#include "coordinator/daemon/objects/objects.h"
#include "coordinator/daemon/shared/contents_mark.h"
#include "coordinator/daemon/shared/shared_state.h"

static bool is_known(const struct shared_ledger *shared)
{
    return shared->known.cluster_id.high != 0 || shared->known.cluster_id.low != 0;
}

static void stand(struct shared_ledger *shared)
{
    if (shared->is_named && shared->contents.is_good && !shared->stands) {
        shared->stands = true;
        replica_stand(shared->replica);
    }
}

void shared_contents_named(struct shared_ledger *shared)
{
    shared->is_named = true;
    stand(shared);
}

bool shared_contents_away(const struct daemon *daemon, cadre_status status)
{
    return status == CADRE_UNAVAILABLE && daemon->objects != NULL;
}

/* Before a cluster is known there is none, unless etcd says otherwise. An object store that is away
 * is looked at again with the next answer of etcd, as soon as a thread found it there. */
void shared_contents_look(struct shared_ledger *shared)
{
    struct shared_contents *contents = &shared->contents;
    const char *folder = shared->daemon->options.contents_dir;
    struct cadre_error error = {0};
    struct objects *objects = shared->daemon->objects;
    if (!contents->is_read || (!is_known(shared) && contents->text[0] != '\0') ||
        (objects != NULL && objects_are_away(objects, NULL))) {
        return;
    }
    cadre_status status = CADRE_OK;
    if (is_known(shared)) {
        status = contents_folder_check(
            folder, shared->known.cluster_id, contents->text, &contents->is_named, &error);
    }
    if (status == CADRE_OK && objects != NULL) { /* it may have been away at the start */
        status = root_marks_check(folder, &error);
    }
    if (status == CADRE_OK && is_known(shared)) {
        status = contents_mark_take(folder, shared->known.cluster_id, &error);
    }
    contents->is_good = status == CADRE_OK;
    if (shared_contents_away(shared->daemon, status)) {
        (void)objects_judge(objects, status, &error);
    } else if (status != CADRE_OK) {
        daemon_refuse(shared->daemon, &error);
    }
    stand(shared);
}

void shared_contents_read(struct daemon *daemon, const void *text, size_t size)
{
    struct shared_contents *contents = &daemon->shared->contents;
    char read[CONTENTS_FOLDER_TEXT_BYTES] = "";
    memcpy(read, text != NULL ? text : "", size < sizeof read ? size : 0);
    if (contents->is_read && strcmp(read, contents->text) == 0) {
        if (!contents->is_good && daemon->objects != NULL) {
            shared_contents_look(daemon->shared);
        }
        return;
    }
    contents->is_read = true;
    memcpy(contents->text, read, sizeof read);
    shared_contents_look(daemon->shared);
}

const char *shared_contents_due(struct daemon *daemon)
{
    struct shared_ledger *shared = daemon->shared;
    struct shared_contents *contents = &shared->contents;
    struct cadre_error error = {0};
    if (daemon->engine == NULL || shared->left || !contents->is_good || contents->is_named) {
        return "";
    }
    const char *folder = daemon->options.contents_dir;
    if (contents->due[0] == '\0' &&
        contents_folder_make(folder, shared->known.cluster_id, contents->due, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "ledger",
            "whether all coordinators have one folder of contents is not compared",
            LOG_STR("reason", error.text));
    }
    return contents->due;
}
