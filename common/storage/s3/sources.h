/* SPDX-License-Identifier: Apache-2.0
 * Where credentials are looked for; one function a source. Private to common/storage/s3. */
#ifndef CADRE_STORAGE_S3_SOURCES_H
#define CADRE_STORAGE_S3_SOURCES_H

#include <stdbool.h>

#include "common/storage/s3/credentials.h"

#define S3_ACCESS_KEY_BYTES 256
#define S3_SECRET_KEY_BYTES 256
#define S3_TOKEN_BYTES      8192
#define S3_SOURCE_BYTES     256

/* Credentials and their texts, in memory for secrets. */
struct s3_found {
    struct s3_credentials credentials; /* its pointers lie in this struct */
    unsigned references;
    char access_key[S3_ACCESS_KEY_BYTES];
    char secret_key[S3_SECRET_KEY_BYTES];
    char session_token[S3_TOKEN_BYTES];
    char source[S3_SOURCE_BYTES];
};

/* All sources in their order. UNAUTHENTICATED: none has any; else as s3_provider_take(). */
cadre_status s3_sources_find(const struct s3_provider_options *options, struct s3_found *ret_found,
    struct cadre_error *error);

/* Each of them: NOT_FOUND, without a sentence: it is not set. */
cadre_status s3_source_environment(const struct s3_provider_options *options,
    struct s3_found *ret_found, struct cadre_error *error);
cadre_status s3_source_web_identity(const struct s3_provider_options *options,
    struct s3_found *ret_found, struct cadre_error *error);
cadre_status s3_source_profile(const struct s3_provider_options *options,
    struct s3_found *ret_found, struct cadre_error *error);
cadre_status s3_source_container(const struct s3_provider_options *options,
    struct s3_found *ret_found, struct cadre_error *error);
/* *ret_reason: why it is NOT_FOUND, "does not answer". */
cadre_status s3_source_instance(const struct s3_provider_options *options,
    struct s3_found *ret_found, const char **ret_reason, struct cadre_error *error);
/* Whether that goes beyond what the variables say. */
bool s3_source_instance_is_asked(const struct s3_provider_options *options);

/* What is found, from its parts: without white space at their ends; `token` and `ends_us` as in
 * struct s3_credentials; found->source is set. INVALID_ARGUMENT: one is empty, too long, or has
 * characters that no credentials have. */
cadre_status s3_found_fill(
    struct s3_found *found, const struct s3_credentials *texts, struct cadre_error *error);

#endif
