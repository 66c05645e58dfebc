/* SPDX-License-Identifier: Apache-2.0
 * The files ~/.aws/credentials and ~/.aws/config: profiles with settings, as ini files. */
#ifndef CADRE_STORAGE_S3_PROFILE_FILE_H
#define CADRE_STORAGE_S3_PROFILE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/storage/s3/variables.h"

#define S3_PROFILE_FILE_BYTES_MAX ((size_t)256 * 1024)

/* Which of the two: in config a profile is "[profile x]", and "[default]" without the word.
 * SERVICES: "[services x]" of config, of which what is set beneath "s3 =" counts. */
enum s3_profile_kind { S3_PROFILE_CREDENTIALS, S3_PROFILE_CONFIG, S3_PROFILE_SERVICES };

/* A value in the text of the file. */
struct s3_profile_value {
    const char *text; /* not terminated; NULL: not set */
    size_t bytes;
};

/* Where the text has what `profile` sets `name` to, the last one if it is set twice; names are in
 * any case. *ret_has_profile (may be NULL): whether there is such a profile. INVALID_ARGUMENT: the
 * line that is none of an ini file, by number; its content is not in the message, as it may be a
 * secret. */
cadre_status s3_profile_find(const char *text, size_t size, enum s3_profile_kind kind,
    const char *profile, const char *name, struct s3_profile_value *ret_value,
    bool *ret_has_profile, struct cadre_error *error);

/* A variable, from the process's environment if `variables` is NULL; NULL: it is not set, or "". */
const char *s3_variable(const struct storage_variables *variables, const char *name);

/* The profile that is used: AWS_PROFILE, AWS_DEFAULT_PROFILE or "default". */
const char *s3_profile_name(const struct storage_variables *variables);

/* The file that AWS_SHARED_CREDENTIALS_FILE or AWS_CONFIG_FILE names, else the usual one in HOME;
 * the caller's to free. NULL: HOME is not set either, or no memory. */
char *s3_profile_path(const struct storage_variables *variables, enum s3_profile_kind kind);

/* Whether a file that failed with `status` counts as missing: one in a home that this process may
 * not see, as that of a daemon, unless a variable names it. */
bool s3_profile_is_hidden(
    const struct storage_variables *variables, enum s3_profile_kind kind, cadre_status status);

/* A setting that is no secret ("region", "endpoint_url") of the profile that is used, from config,
 * else from credentials; "" where neither sets it. The endpoint that the profile's services have
 * comes before its own. A file that does not exist sets nothing.
 * INVALID_ARGUMENT: a file that is no ini file, or a value that does not fit. */
cadre_status s3_profile_setting(const struct storage_variables *variables, const char *name,
    char *ret_value, size_t size, struct cadre_error *error);

#endif
