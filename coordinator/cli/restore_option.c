/* SPDX-License-Identifier: Apache-2.0
 * Called by submit_options.c. */
#include "coordinator/cli/restore_option.h"

#include <stdlib.h>
#include <string.h>

#include "common/checkpoint/choose.h"
#include "common/pure/assert.h"
#include "common/storage/storage.h"

/* Variables that go together: when the job's environment sets one of a group, all are taken from
 * there. What else the job's environment has names files of the workers. */
static const char *const groups[][3] = {
    {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL},
    {"AWS_REGION", "AWS_DEFAULT_REGION", NULL},
    {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"},
};

/* Its value in the job's environment; NULL: it is not there. */
static const char *value_of(const struct environment_list *environment, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < environment->count; i++) {
        const char *item = environment->items[i];
        if (strncmp(item, name, length) == 0 && item[length] == '=') {
            return item + length + 1;
        }
    }
    return NULL;
}

static const char *find_variable(void *user, const char *name)
{
    const struct environment_list *environment = user;
    for (size_t i = 0; i < CADRE_COUNT_OF(groups); i++) {
        bool is_of_group = false;
        bool is_of_job = false;
        for (size_t k = 0; k < CADRE_COUNT_OF(groups[i]) && groups[i][k] != NULL; k++) {
            is_of_group = is_of_group || strcmp(groups[i][k], name) == 0;
            is_of_job = is_of_job || value_of(environment, groups[i][k]) != NULL;
        }
        if (is_of_group && is_of_job) {
            return value_of(environment, name);
        }
    }
    return getenv(name);
}

/* The manifest at `path`, or the newest whole one of a folder. */
static cadre_status read_stored(const struct invocation *invocation, struct storage_client *client,
    const char *path, struct restore_option *option, struct cadre_error *error)
{
    struct checkpoint_choice choice = {0};
    if (checkpoint_is_folder(path)) {
        CADRE_TRY(checkpoint_choose_by_size(client, path, &choice, error));
        if (choice.note[0] != '\0') {
            fprintf(stderr, "%s: %s\n", invocation->table->program, choice.note);
        }
        path = choice.path;
    }
    cadre_status status = checkpoint_named_read(client, path, &option->named, error);
    if (status == CADRE_OK) {
        status = checkpoint_named_check_size(client, &option->named, error);
    }
    checkpoint_choice_free(&choice);
    CADRE_TRY(status);
    option->is_stored = true;
    option->stored = (cadre_stored_checkpoint){.path = option->named.path,
        .step = option->named.content.position,
        .manifest_bytes = option->named.text_bytes};
    memcpy(option->stored.manifest_sha256, option->named.sha256,
        sizeof option->stored.manifest_sha256);
    return CADRE_OK;
}

static cadre_status open_stored(const struct invocation *invocation, const char *path,
    struct environment_list environment, struct restore_option *option, struct cadre_error *error)
{
    const struct storage_variables variables = {.find = find_variable, .user = &environment};
    const struct storage_options options = {.variables = &variables, .objects_only = true};
    struct storage_client *client = NULL;
    CADRE_TRY(storage_client_open(&options, &client, error));
    cadre_status status = read_stored(invocation, client, path, option, error);
    storage_client_close(client);
    return status;
}

bool restore_option_parse(const struct invocation *invocation, const char *text,
    struct restore_option *ret_option, int *ret_exit)
{
    *ret_option = (struct restore_option){0};
    if (text == NULL || restore_point_parse(text, &ret_option->job, &ret_option->step)) {
        return true;
    }
    if (storage_is_object(text)) {
        ret_option->path = text;
        return true;
    }
    *ret_exit = invocation_usage(invocation,
        "--restore: \"%s\" is neither the number of a job nor JOB@STEP nor s3://BUCKET/KEY; write "
        "3 "
        "or 3@400",
        text);
    return false;
}

bool restore_option_read(const struct invocation *invocation,
    const struct environment_list *environment, struct restore_option *option, int *ret_exit)
{
    struct cadre_error error = {0};
    if (option->path == NULL ||
        open_stored(invocation, option->path, *environment, option, &error) == CADRE_OK) {
        return true;
    }
    (void)cadre_error_wrap(&error, error.code, "--restore");
    /* UNAVAILABLE would be the coordinator's. */
    *ret_exit = invocation_fail_with(
        invocation, error.code == CADRE_UNAVAILABLE ? CADRE_UNKNOWN : error.code, error.text);
    return false;
}

void restore_option_free(struct restore_option *option)
{
    checkpoint_named_free(&option->named);
    *option = (struct restore_option){0};
}
