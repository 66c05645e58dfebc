/* SPDX-License-Identifier: Apache-2.0
 * The sources that are asked by HTTP: the container's agent (ECS, EKS Pod Identity), and the
 * metadata of the instance (IMDSv2 of EC2). */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/pure/assert.h"
#include "common/storage/s3/dates.h"
#include "common/storage/s3/exchange.h"
#include "common/storage/s3/flat_json.h"
#include "common/storage/s3/profile_file.h"
#include "common/storage/s3/secret.h"
#include "common/storage/s3/secret_file.h"
#include "common/storage/s3/sources.h"

#define CONTAINER_HOST    "http://169.254.170.2"
#define INSTANCE_HOST     "http://169.254.169.254"
#define ROLES_PATH        "/latest/meta-data/iam/security-credentials/"
#define TOKEN_TTL_S       "21600"
#define CONTAINER_WAIT_US UINT64_C(5000000)
#define INSTANCE_WAIT_US  UINT64_C(2000000)
#define AUTHORIZATION_MAX ((size_t)16 * 1024)
#define ROLE_BYTES        128

static cadre_status refuse_json(
    const struct s3_found *found, const char *fault, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_UNAUTHENTICATED,
        "%s answers with other than credentials: %s; is it the right URL?", found->source, fault);
}

/* {"AccessKeyId": ..., "SecretAccessKey": ..., "Token": ..., "Expiration": ...} */
static cadre_status read_credentials(
    struct s3_found *found, struct s3_exchange *exchange, struct cadre_error *error)
{
    const char *body = exchange->body;
    size_t size = exchange->body_bytes;
    char text[64];
    if (s3_json_text(body, size, "Code", text, sizeof text) == S3_JSON_FOUND &&
        strcmp(text, "Success") != 0) {
        return refuse_json(found, "its Code is not \"Success\"", error);
    }
    if (s3_json_text(body, size, "AccessKeyId", exchange->access_key,
            sizeof exchange->access_key) != S3_JSON_FOUND ||
        s3_json_text(body, size, "SecretAccessKey", exchange->secret_key,
            sizeof exchange->secret_key) != S3_JSON_FOUND) {
        return refuse_json(found, "it is no JSON with AccessKeyId and SecretAccessKey", error);
    }
    if (s3_json_text(body, size, "Token", exchange->token, sizeof exchange->token) ==
        S3_JSON_WRONG) {
        return refuse_json(found, "its Token is too long", error);
    }
    exchange->texts = (struct s3_credentials){
        .access_key = exchange->access_key,
        .secret_key = exchange->secret_key,
        .session_token = exchange->token,
        .ends_us = UINT64_MAX,
    };
    enum s3_json_result ends = s3_json_text(body, size, "Expiration", text, sizeof text);
    if (ends != S3_JSON_ABSENT && !s3_iso_date_parse(text, &exchange->texts.ends_us)) {
        return refuse_json(found, "its Expiration is no time", error);
    }
    return s3_found_fill(found, &exchange->texts, error);
}

/* --- the container --- */

static cadre_status set_container_url(const struct s3_provider_options *options,
    struct s3_exchange *exchange, struct cadre_error *error)
{
    const char *relative =
        s3_variable(options->variables, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = s3_variable(options->variables, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (relative == NULL && full == NULL) {
        return CADRE_NOT_FOUND;
    }
    int written = snprintf(exchange->url, sizeof exchange->url, "%s%s",
        relative != NULL ? CONTAINER_HOST : "", relative != NULL ? relative : full);
    bool good = written > 0 && (size_t)written < sizeof exchange->url &&
                (relative == NULL || relative[0] == '/') && s3_exchange_may_ask(exchange->url);
    if (!good) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s is no address that credentials are taken from: \"/...\", or for the other variable "
            "https://, or http:// of this machine, 169.254.170.2 or 169.254.170.23",
            relative != NULL ? "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
                             : "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    }
    return CADRE_OK;
}

/* With the text of the file, which is renewed, or else that of the variable; NULL: neither is set.
 */
static cadre_status read_authorization(const struct s3_provider_options *options,
    struct s3_secret_text *file, const char **ret_text, struct cadre_error *error)
{
    const char *path = s3_variable(options->variables, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    *ret_text = s3_variable(options->variables, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (path != NULL) {
        cadre_status status = s3_secret_file_read(path, AUTHORIZATION_MAX, file, error);
        if (status != CADRE_OK) {
            return cadre_error_wrap(error,
                status == CADRE_NOT_FOUND ? CADRE_FAILED_PRECONDITION : status,
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
        }
        while (file->size > 0 && strchr(" \t\r\n", file->bytes[file->size - 1]) != NULL) {
            file->bytes[--file->size] = '\0';
        }
        *ret_text = file->bytes;
    }
    for (const char *at = *ret_text; at != NULL && *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s has a character that is in no header: is it cut wrongly?",
                path != NULL ? path : "AWS_CONTAINER_AUTHORIZATION_TOKEN");
        }
    }
    return CADRE_OK;
}

static cadre_status ask_container(const struct s3_provider_options *options,
    struct s3_exchange *exchange, struct s3_found *found, struct cadre_error *error)
{
    struct s3_secret_text file = {.bytes = NULL};
    const char *authorization = NULL;
    (void)snprintf(found->source, sizeof found->source, "the container's agent (%s)",
        s3_variable(options->variables, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != NULL
            ? "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
            : "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    cadre_status status = read_authorization(options, &file, &authorization, error);
    if (status == CADRE_OK) {
        const struct s3_pair header = {.name = "Authorization", .value = authorization};
        status = s3_exchange_ask(options, exchange, "GET", authorization != NULL ? &header : NULL,
            CONTAINER_WAIT_US, error);
        if (status != CADRE_OK) {
            cadre_error_wrap(error, status == CADRE_CANCELLED ? status : CADRE_UNAVAILABLE,
                "%s gives no credentials", found->source);
            status = status == CADRE_CANCELLED ? status : CADRE_UNAVAILABLE;
        }
    }
    s3_secret_text_free(&file);
    CADRE_TRY(status);
    if (exchange->status != 200) {
        return s3_exchange_refuse(found, exchange, error);
    }
    return read_credentials(found, exchange, error);
}

cadre_status s3_source_container(const struct s3_provider_options *options,
    struct s3_found *ret_found, struct cadre_error *error)
{
    if (options->fetch == NULL) {
        return CADRE_NOT_FOUND;
    }
    struct s3_exchange *exchange = s3_secret_new(sizeof *exchange);
    if (exchange == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for credentials");
    }
    cadre_status status = set_container_url(options, exchange, error);
    if (status == CADRE_OK) {
        status = ask_container(options, exchange, ret_found, error);
    }
    s3_secret_free(exchange, sizeof *exchange);
    return status;
}

/* --- the instance --- */

/* "http://169.254.169.254", or another that stands for it. NULL: it is none. */
static const char *instance_base(const struct s3_provider_options *options)
{
    const char *set = s3_variable(options->variables, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    if (set == NULL) {
        return INSTANCE_HOST;
    }
    bool is_url = strncmp(set, "http://", 7) == 0 || strncmp(set, "https://", 8) == 0;
    return is_url && strpbrk(set, "?# \t\r\n") == NULL ? set : NULL;
}

static bool set_url(
    struct s3_exchange *exchange, const char *base, const char *path, const char *name)
{
    size_t length = strlen(base);
    while (length > 0 && base[length - 1] == '/') {
        length--;
    }
    int written =
        snprintf(exchange->url, sizeof exchange->url, "%.*s%s%s", (int)length, base, path, name);
    return written > 0 && (size_t)written < sizeof exchange->url;
}

/* Copies the first text line of the body, if it is of a name's characters and fits. */
static bool copy_name(const struct s3_exchange *exchange, char *ret_name, size_t room)
{
    size_t bytes = strcspn(exchange->body, "\r\n");
    for (size_t i = 0; i < bytes; i++) {
        if (exchange->body[i] <= ' ' || exchange->body[i] > '~' ||
            strchr("/?#%", exchange->body[i]) != NULL) {
            return false;
        }
    }
    if (bytes == 0 || bytes >= room) {
        return false;
    }
    memcpy(ret_name, exchange->body, bytes);
    ret_name[bytes] = '\0';
    return true;
}

/* The session's token, and the name of the instance's role. NOT_FOUND with a reason. */
static cadre_status find_role(const struct s3_provider_options *options,
    struct s3_exchange *exchange, const char *base, char ret_role[ROLE_BYTES],
    const char **ret_reason, struct cadre_error *error)
{
    static const struct s3_pair ttl = {"X-aws-ec2-metadata-token-ttl-seconds", TOKEN_TTL_S};
    *ret_reason = "does not answer";
    if (!set_url(exchange, base, "/latest/api/token", "")) {
        return CADRE_NOT_FOUND;
    }
    cadre_status status = s3_exchange_ask(options, exchange, "PUT", &ttl, INSTANCE_WAIT_US, error);
    if (status != CADRE_OK) {
        return status == CADRE_CANCELLED ? status : CADRE_NOT_FOUND;
    }
    *ret_reason = "gives no token (it has no IMDSv2, or another service is there)";
    size_t bytes = strspn(exchange->body, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                          "0123456789+/=_-.~");
    if (exchange->status != 200 || bytes == 0 || bytes >= sizeof exchange->session) {
        return CADRE_NOT_FOUND;
    }
    memcpy(exchange->session, exchange->body, bytes);
    exchange->session[bytes] = '\0';
    const struct s3_pair token = {"X-aws-ec2-metadata-token", exchange->session};
    *ret_reason = "names no role of this instance";
    if (!set_url(exchange, base, ROLES_PATH, "")) {
        return CADRE_NOT_FOUND;
    }
    status = s3_exchange_ask(options, exchange, "GET", &token, INSTANCE_WAIT_US, error);
    if (status != CADRE_OK) {
        return status == CADRE_CANCELLED ? status : CADRE_NOT_FOUND;
    }
    bool found = exchange->status == 200 && copy_name(exchange, ret_role, ROLE_BYTES);
    return found ? CADRE_OK : CADRE_NOT_FOUND;
}

static cadre_status ask_instance(const struct s3_provider_options *options,
    struct s3_exchange *exchange, struct s3_found *found, const char **ret_reason,
    struct cadre_error *error)
{
    char role[ROLE_BYTES];
    const char *base = instance_base(options);
    if (base == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT is not \"http://HOST[:PORT]\"");
    }
    CADRE_TRY(find_role(options, exchange, base, role, ret_reason, error));
    (void)snprintf(found->source, sizeof found->source, "the instance's role \"%.100s\"", role);
    if (!set_url(exchange, base, ROLES_PATH, role)) {
        return CADRE_NOT_FOUND;
    }
    const struct s3_pair token = {"X-aws-ec2-metadata-token", exchange->session};
    cadre_status status =
        s3_exchange_ask(options, exchange, "GET", &token, INSTANCE_WAIT_US, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status == CADRE_CANCELLED ? status : CADRE_UNAVAILABLE,
            "%s gives no credentials", found->source);
    }
    if (exchange->status != 200) {
        return s3_exchange_refuse(found, exchange, error);
    }
    return read_credentials(found, exchange, error);
}

bool s3_source_instance_is_asked(const struct s3_provider_options *options)
{
    const char *disabled = s3_variable(options->variables, "AWS_EC2_METADATA_DISABLED");
    return options->fetch != NULL && (disabled == NULL || strcasecmp(disabled, "true") != 0);
}

cadre_status s3_source_instance(const struct s3_provider_options *options,
    struct s3_found *ret_found, const char **ret_reason, struct cadre_error *error)
{
    if (!s3_source_instance_is_asked(options)) {
        *ret_reason =
            options->fetch == NULL ? "is not asked" : "is not asked (AWS_EC2_METADATA_DISABLED)";
        return CADRE_NOT_FOUND;
    }
    struct s3_exchange *exchange = s3_secret_new(sizeof *exchange);
    if (exchange == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for credentials");
    }
    cadre_status status = ask_instance(options, exchange, ret_found, ret_reason, error);
    s3_secret_free(exchange, sizeof *exchange);
    return status;
}
