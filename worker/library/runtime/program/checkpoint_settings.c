/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/program/checkpoints.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/files.h"
#include "common/checkpoint/choose.h"
#include "common/pure/object_path.h"
#include "worker/library/runtime/api/environment.h"
#include "worker/library/runtime/api/show.h"

static cadre_status check_numbers(
    const cadre_checkpoint_options *options, struct cadre_error *error)
{
    if (options->max_to_keep > LIMIT_CHECKPOINTS_KEPT) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "max_to_keep is %" PRIu32 "; at most %d checkpoints are kept", options->max_to_keep,
            LIMIT_CHECKPOINTS_KEPT);
    }
    if (options->every_steps > LIMIT_POSITION) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "every_steps is %" PRIu64 "; at most %" PRIu64 " steps are between checkpoints",
            options->every_steps, (uint64_t)LIMIT_POSITION);
    }
    if (options->directory != NULL &&
        (options->directory[0] == '\0' || strlen(options->directory) >= ENVIRONMENT_FOLDER_BYTES)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the directory for checkpoints is to have a name of 1 to %d bytes",
            ENVIRONMENT_FOLDER_BYTES - 1);
    }
    const char *fault = options->directory != NULL ? object_folder_fault(options->directory) : NULL;
    return fault == NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "the directory '%.200s' for checkpoints %s", options->directory, fault);
}

/* Without slashes at the end of what is in an object store. */
static void copy_folder(const char *folder, char ret_folder[ENVIRONMENT_FOLDER_BYTES])
{
    size_t length = strlen(folder);
    while (object_path_is(folder) && folder[length - 1] == '/') {
        length--;
    }
    memcpy(ret_folder, folder, length);
    ret_folder[length] = '\0';
}

static bool is_same_folder(const char *left, const char *right)
{
    struct stat a;
    struct stat b;
    char plain[ENVIRONMENT_FOLDER_BYTES];
    copy_folder(right, plain);
    return strcmp(left, plain) == 0 || (stat(left, &a) == 0 && stat(right, &b) == 0 &&
                                           a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/* Where they are written is the job's setting: the coordinator, or its shared folder. */
static void apply_in_job(struct environment *environment, const cadre_checkpoint_options *options)
{
    bool shared = environment->checkpoint_folder[0] != '\0';
    bool remote = options->directory != NULL &&
                  !(shared && is_same_folder(environment->checkpoint_folder, options->directory));
    if (environment->checkpoint_every == 0) {
        environment->checkpoint_every = options->every_steps;
    }
    if (remote && environment->slot == 0) {
        show_warning("the checkpoints of this job go to %s, and not to '%.200s', which the program "
                     "names: set --checkpoint-folder where it is started",
            shared ? environment->checkpoint_folder : "the coordinator", options->directory);
    }
}

/* The newest checkpoint in the folder, if there is one. */
static cadre_status find_first(
    const char *folder, bool clustered, bool goes_on, bool *ret_restores, struct cadre_error *error)
{
    uint64_t position = 0;
    *ret_restores = false;
    if (goes_on && clustered) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "restore_or_initialize was set in a program of a cluster, whose programs have to agree "
            "on the checkpoint; set CADRE_RESTORE to '%.200s' in all of them instead",
            folder);
    }
    if (clustered) {
        return CADRE_OK;
    }
    bool exists = false;
    CADRE_TRY(checkpoint_exists(folder, &exists, &position, error));
    *ret_restores = goes_on && exists;
    if (!goes_on && exists) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the directory '%.200s' holds checkpoints already, the newest of step %" PRIu64
            "; set restore_or_initialize to go on from it, or name another directory",
            folder, position);
    }
    return CADRE_OK;
}

cadre_status checkpoint_settings_apply(struct environment *environment, bool clustered,
    const cadre_checkpoint_options *options, struct cadre_error *error)
{
    bool restores = false;
    CADRE_TRY(check_numbers(options, error));
    if (!environment->by_hand) {
        apply_in_job(environment, options);
        return CADRE_OK;
    }
    bool from_environment = environment->checkpoint_folder[0] != '\0';
    bool own = !from_environment && options->directory != NULL;
    const char *folder = from_environment ? environment->checkpoint_folder
                         : own            ? options->directory
                                          : environment->output_folder;
    if (own && !object_path_is(folder)) {
        CADRE_TRY(folder_make(folder, 0777, error));
    }
    if (environment->restore_path[0] == '\0') {
        CADRE_TRY(find_first(folder, clustered, options->restore_or_initialize, &restores, error));
    }
    if (restores) {
        copy_folder(folder, environment->restore_path);
        environment->checkpoint_own = true;
    }
    if (own) {
        copy_folder(folder, environment->checkpoint_folder);
    }
    if (options->max_to_keep > 0 && getenv("CADRE_CHECKPOINTS_KEPT") == NULL) {
        environment->checkpoints_kept = options->max_to_keep;
    }
    if (environment->checkpoint_every == 0) {
        environment->checkpoint_every = options->every_steps;
    }
    environment->checkpoints_asked = true;
    return CADRE_OK;
}
