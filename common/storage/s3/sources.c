/* SPDX-License-Identifier: Apache-2.0
 * The sources without a network: the environment, and the profile in Amazon's files. */
#include "common/storage/s3/sources.h"

#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "common/storage/s3/profile_file.h"
#include "common/storage/s3/secret_file.h"

cadre_status s3_source_environment(const struct s3_provider_options *options,
    struct s3_found *ret_found, struct cadre_error *error)
{
    const char *access_key = s3_variable(options->variables, "AWS_ACCESS_KEY_ID");
    const char *secret_key = s3_variable(options->variables, "AWS_SECRET_ACCESS_KEY");
    if (access_key == NULL && secret_key == NULL) {
        return CADRE_NOT_FOUND;
    }
    (void)snprintf(ret_found->source, sizeof ret_found->source, "the environment");
    if (access_key == NULL || secret_key == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the environment sets %s and not %s: set both or neither",
            access_key != NULL ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
            access_key != NULL ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
    }
    const struct s3_credentials texts = {
        .access_key = access_key,
        .secret_key = secret_key,
        .session_token = s3_variable(options->variables, "AWS_SESSION_TOKEN"),
        .ends_us = UINT64_MAX,
    };
    return s3_found_fill(ret_found, &texts, error);
}

/* --- the profile --- */

/* One of the two files. */
struct profile_file {
    enum s3_profile_kind kind;
    const char *path;
    const char *profile;
    struct s3_secret_text text;
    bool has_profile;
};

/* The value, ended by a zero byte in place: behind it is the end of the text line, or of the text.
 * NULL: not set. */
static cadre_status find(struct profile_file *file, const char *name,
    struct s3_profile_value *ret_value, struct cadre_error *error)
{
    cadre_status status = s3_profile_find(file->text.bytes, file->text.size, file->kind,
        file->profile, name, ret_value, &file->has_profile, error);
    return status == CADRE_OK ? status : cadre_error_wrap(error, status, "%s", file->path);
}

/* NOT_FOUND: the profile does not set `name`, with which it would take credentials in a way that
 * this program does not have. */
static cadre_status refuse_if(
    struct profile_file *file, const char *name, const char *what, struct cadre_error *error)
{
    struct s3_profile_value value;
    CADRE_TRY(find(file, name, &value, error));
    if (value.text == NULL || value.bytes == 0) {
        return CADRE_NOT_FOUND;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "the profile \"%s\" of %s %s (%s), which is not done here: run `aws configure "
        "export-credentials --profile %s --format env` and set what it prints",
        file->profile, file->path, what, name, file->profile);
}

/* Keys beside a role, in either file, are those that may take it on: other rights. */
static cadre_status refuse_role(
    struct profile_file *file, struct s3_found *found, struct cadre_error *error)
{
    (void)found;
    return refuse_if(file, "role_arn", "takes on a role", error);
}

/* What a profile without keys may have instead. */
static cadre_status refuse_others(struct profile_file *file, struct cadre_error *error)
{
    static const struct {
        const char *name, *what;
    } others[] = {
        {"credential_process", "starts a program for its credentials"},
        {"sso_session", "takes its credentials from a login in a browser"},
        {"sso_start_url", "takes its credentials from a login in a browser"},
        {"login_session", "takes its credentials from a login in a browser"},
        {"web_identity_token_file", "exchanges a token for its credentials"},
        {"source_profile", "takes its credentials from another profile"},
    };
    cadre_status status = CADRE_NOT_FOUND;
    for (size_t i = 0; i < CADRE_COUNT_OF(others) && status == CADRE_NOT_FOUND; i++) {
        status = refuse_if(file, others[i].name, others[i].what, error);
    }
    return status;
}

/* A zero byte behind a value, so that it is a text of its own. */
static const char *ended(struct profile_file *file, struct s3_profile_value value)
{
    if (value.text == NULL) {
        return NULL;
    }
    size_t at = (size_t)(value.text - file->text.bytes);
    CADRE_ASSERT(at + value.bytes <= file->text.size);
    file->text.bytes[at + value.bytes] = '\0';
    return value.text;
}

static cadre_status read_keys(
    struct profile_file *file, struct s3_found *found, struct cadre_error *error)
{
    struct s3_profile_value access_key, secret_key, token, old_token;
    CADRE_TRY(find(file, "aws_access_key_id", &access_key, error));
    CADRE_TRY(find(file, "aws_secret_access_key", &secret_key, error));
    CADRE_TRY(find(file, "aws_session_token", &token, error));
    CADRE_TRY(find(file, "aws_security_token", &old_token, error)); /* its name of old */
    if (access_key.text == NULL && secret_key.text == NULL) {
        return refuse_others(file, error);
    }
    (void)snprintf(found->source, sizeof found->source, "the profile \"%.60s\" of %s",
        file->profile, file->path);
    if (access_key.text == NULL || secret_key.text == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s has no %s: write both keys to the file", found->source,
            access_key.text == NULL ? "aws_access_key_id" : "aws_secret_access_key");
    }
    const struct s3_credentials texts = {
        .access_key = ended(file, access_key),
        .secret_key = ended(file, secret_key),
        .session_token = ended(file, token.text != NULL ? token : old_token),
        .ends_us = UINT64_MAX,
    };
    return s3_found_fill(found, &texts, error);
}

/* `read` says what is done with a file. *ret_has_profile stays as it is unless it has the profile.
 */
static cadre_status read_file(const struct s3_provider_options *options, enum s3_profile_kind kind,
    cadre_status (*read)(struct profile_file *, struct s3_found *, struct cadre_error *),
    struct s3_found *found, bool *ret_has_profile, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = s3_profile_path(options->variables, kind);
    if (path == NULL) {
        return CADRE_NOT_FOUND;
    }
    struct profile_file file = {
        .kind = kind, .path = path, .profile = s3_profile_name(options->variables)};
    cadre_status status = s3_secret_file_read(path, S3_PROFILE_FILE_BYTES_MAX, &file.text, error);
    if (status == CADRE_NOT_FOUND || s3_profile_is_hidden(options->variables, kind, status)) {
        return CADRE_NOT_FOUND;
    }
    if (status == CADRE_OK) {
        status = read(&file, found, error);
        *ret_has_profile = *ret_has_profile || file.has_profile;
    }
    s3_secret_text_free(&file.text);
    return status;
}

cadre_status s3_source_profile(const struct s3_provider_options *options,
    struct s3_found *ret_found, struct cadre_error *error)
{
    static const enum s3_profile_kind kinds[] = {S3_PROFILE_CREDENTIALS, S3_PROFILE_CONFIG};
    bool has_profile = false;
    cadre_status status = CADRE_NOT_FOUND;
    for (size_t i = 0; i < 4 && status == CADRE_NOT_FOUND; i++) { /* roles of both, then keys */
        status = read_file(
            options, kinds[i % 2], i < 2 ? refuse_role : read_keys, ret_found, &has_profile, error);
    }
    const char *named = s3_variable(options->variables, "AWS_PROFILE");
    if (status == CADRE_NOT_FOUND && named != NULL && !has_profile) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "AWS_PROFILE names \"%.100s\", and neither ~/.aws/credentials nor ~/.aws/config has "
            "such a profile: write it there, or unset the variable",
            named);
    }
    return status;
}

/* --- all of them --- */

cadre_status s3_sources_find(const struct s3_provider_options *options, struct s3_found *ret_found,
    struct cadre_error *error)
{
    const char *reason = "";
    cadre_status status = s3_source_environment(options, ret_found, error);
    if (status == CADRE_NOT_FOUND) {
        status = s3_source_web_identity(options, ret_found, error);
    }
    if (status == CADRE_NOT_FOUND) {
        status = s3_source_profile(options, ret_found, error);
    }
    if (status == CADRE_NOT_FOUND) {
        status = s3_source_container(options, ret_found, error);
    }
    if (status == CADRE_NOT_FOUND) {
        status = s3_source_instance(options, ret_found, &reason, error);
    }
    if (status != CADRE_NOT_FOUND) {
        return status;
    }
    if (options->without != NULL) {
        bool asked = s3_source_instance_is_asked(options);
        return cadre_error_set(error, CADRE_UNAUTHENTICATED,
            "no credentials for the object store: %s%s%s", options->without,
            asked ? "; the instance's metadata " : "", asked ? reason : "");
    }
    CADRE_FREE_AT_EXIT char *path = s3_profile_path(options->variables, S3_PROFILE_CREDENTIALS);
    return cadre_error_set(error, CADRE_UNAUTHENTICATED,
        "no credentials for the object store: AWS_ACCESS_KEY_ID is not set, the profile \"%.60s\" "
        "has no keys in %.120s, no container's agent is set, and the instance's metadata %s: set "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (for a job: cadre submit --env NAME for "
        "each), or write both to that file",
        s3_profile_name(options->variables), path != NULL ? path : "~/.aws/credentials", reason);
}
