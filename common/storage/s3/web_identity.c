/* SPDX-License-Identifier: Apache-2.0
 * A token that says who the program is (of a service account of Kubernetes, on EKS) exchanged for
 * credentials of a role: AssumeRoleWithWebIdentity of STS. The token proves itself, so the request
 * is not signed. Source: the API reference of AWS STS (2011-06-15). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/storage/s3/address.h"
#include "common/storage/s3/dates.h"
#include "common/storage/s3/exchange.h"
#include "common/storage/s3/flat_xml.h"
#include "common/storage/s3/profile_file.h"
#include "common/storage/s3/secret.h"
#include "common/storage/s3/secret_file.h"

#define TOKEN_BYTES_MAX ((size_t)20000) /* STS takes no longer one */
#define WAIT_US         UINT64_C(15000000)
#define CODE_BYTES      64

/* Appends `text` to a form, encoded. False: it does not fit. */
static bool add_encoded(char *form, size_t room, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-_.~";
    size_t at = strlen(form);
    for (; *text != '\0' && at + 4 <= room; text++) {
        if (strchr(plain, *text) != NULL) {
            form[at++] = *text;
        } else {
            form[at++] = '%';
            form[at++] = digits[(unsigned char)*text >> 4];
            form[at++] = digits[(unsigned char)*text & 15];
        }
    }
    form[at] = '\0';
    return *text == '\0';
}

static bool add_field(char *form, size_t room, const char *name, const char *value)
{
    size_t at = strlen(form);
    int written = snprintf(form + at, room - at, "&%s=", name);
    return written > 0 && (size_t)written < room - at && add_encoded(form, room, value);
}

/* Of the settings, else Amazon's of the region. */
static cadre_status set_url(const struct s3_provider_options *options, struct s3_exchange *exchange,
    struct cadre_error *error)
{
    const char *set = s3_variable(options->variables, "AWS_ENDPOINT_URL_STS");
    set = set != NULL ? set : s3_variable(options->variables, "AWS_ENDPOINT_URL");
    const char *region = s3_variable(options->variables, "AWS_REGION");
    region = region != NULL ? region : s3_variable(options->variables, "AWS_DEFAULT_REGION");
    struct s3_endpoint endpoint; /* which checks both */
    CADRE_TRY(s3_endpoint_parse(set, region, &endpoint, error));
    int written = 0;
    if (set != NULL) {
        written = snprintf(exchange->url, sizeof exchange->url, "%s://%s%s/",
            endpoint.tls ? "https" : "http", endpoint.host, endpoint.prefix);
    } else {
        written = snprintf(exchange->url, sizeof exchange->url, "https://sts%s%s.amazonaws.com%s/",
            region != NULL ? "." : "", region != NULL ? region : "",
            region != NULL && strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
    }
    bool good = written > 0 && (size_t)written < sizeof exchange->url;
    return good && s3_exchange_may_ask(exchange->url)
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "a token of AWS_WEB_IDENTITY_TOKEN_FILE is sent over TLS, or to this machine: "
                     "AWS_ENDPOINT_URL_STS has to begin with \"https://\"");
}

static cadre_status make_form(const struct s3_provider_options *options, const char *role,
    const char *token, struct s3_exchange *exchange, struct cadre_error *error)
{
    char made[64];
    const char *session = s3_variable(options->variables, "AWS_ROLE_SESSION_NAME");
    (void)snprintf(made, sizeof made, "cadre-%" PRIu64, clock_wall_us());
    (void)snprintf(exchange->sent, sizeof exchange->sent,
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
    bool good = add_field(exchange->sent, sizeof exchange->sent, "RoleArn", role) &&
                add_field(exchange->sent, sizeof exchange->sent, "RoleSessionName",
                    session != NULL ? session : made) &&
                add_field(exchange->sent, sizeof exchange->sent, "WebIdentityToken", token);
    return good ? CADRE_OK
                : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                      "AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME and the token of "
                      "AWS_WEB_IDENTITY_TOKEN_FILE have more than %zu bytes: are they the right "
                      "texts?",
                      sizeof exchange->sent);
}

/* The whole text of the file, which Kubernetes renews: read again each time. */
static cadre_status read_token(
    const char *path, struct s3_secret_text *file, struct cadre_error *error)
{
    cadre_status status = s3_secret_file_read(path, TOKEN_BYTES_MAX, file, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error,
            status == CADRE_NOT_FOUND ? CADRE_FAILED_PRECONDITION : status,
            "AWS_WEB_IDENTITY_TOKEN_FILE");
    }
    while (file->size > 0 && strchr(" \t\r\n", file->bytes[file->size - 1]) != NULL) {
        file->bytes[--file->size] = '\0';
    }
    return file->size > 0 && strlen(file->bytes) == file->size
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "AWS_WEB_IDENTITY_TOKEN_FILE: %s has no token in it", path);
}

/* "InvalidIdentityToken"; "": it says none. */
static void read_code(const struct s3_exchange *exchange, char ret_code[CODE_BYTES])
{
    (void)s3_xml_text(exchange->body, exchange->body_bytes, "Code", ret_code, CODE_BYTES);
    if (strspn(ret_code, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") !=
        strlen(ret_code)) {
        ret_code[0] = '\0';
    }
}

static cadre_status refuse_answer(
    const struct s3_found *found, const struct s3_exchange *exchange, struct cadre_error *error)
{
    char code[CODE_BYTES];
    read_code(exchange, code);
    if (exchange->status >= 500 || exchange->status == 429 || code[0] == '\0') {
        return s3_exchange_refuse(found, exchange, error);
    }
    if (strcmp(code, "IDPCommunicationError") == 0) { /* it asks to be asked again */
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "%s gives no credentials: %s, which may pass", found->source, code);
    }
    return cadre_error_set(error, CADRE_UNAUTHENTICATED,
        "%s gives no credentials: %s (HTTP %d): does the role trust the token of "
        "AWS_WEB_IDENTITY_TOKEN_FILE?",
        found->source, code, exchange->status);
}

static cadre_status read_answer(
    struct s3_found *found, struct s3_exchange *exchange, struct cadre_error *error)
{
    const char *body = exchange->body;
    size_t size = exchange->body_bytes;
    char ends[64];
    exchange->texts = (struct s3_credentials){
        .access_key = exchange->access_key,
        .secret_key = exchange->secret_key,
        .session_token = exchange->token,
        .ends_us = UINT64_MAX,
    };
    bool good =
        s3_xml_text(body, size, "AccessKeyId", exchange->access_key, sizeof exchange->access_key) &&
        s3_xml_text(
            body, size, "SecretAccessKey", exchange->secret_key, sizeof exchange->secret_key) &&
        s3_xml_text(body, size, "SessionToken", exchange->token, sizeof exchange->token) &&
        s3_xml_text(body, size, "Expiration", ends, sizeof ends) &&
        s3_iso_date_parse(ends, &exchange->texts.ends_us);
    return good ? s3_found_fill(found, &exchange->texts, error)
                : cadre_error_set(error, CADRE_UNAUTHENTICATED,
                      "%s answers with other than credentials: is AWS_ENDPOINT_URL_STS right?",
                      found->source);
}

static cadre_status exchange_token(const struct s3_provider_options *options, const char *path,
    const char *role, struct s3_exchange *exchange, struct s3_found *found,
    struct cadre_error *error)
{
    static const struct s3_pair header = {"Content-Type", "application/x-www-form-urlencoded"};
    struct s3_secret_text file = {.bytes = NULL};
    CADRE_TRY(set_url(options, exchange, error));
    cadre_status status = read_token(path, &file, error);
    if (status == CADRE_OK) {
        status = make_form(options, role, file.bytes, exchange, error);
    }
    s3_secret_text_free(&file);
    CADRE_TRY(status);
    status = s3_exchange_ask(options, exchange, "POST", &header, WAIT_US, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status == CADRE_CANCELLED ? status : CADRE_UNAVAILABLE,
            "%s gives no credentials", found->source);
    }
    return exchange->status == 200 ? read_answer(found, exchange, error)
                                   : refuse_answer(found, exchange, error);
}

cadre_status s3_source_web_identity(const struct s3_provider_options *options,
    struct s3_found *ret_found, struct cadre_error *error)
{
    const char *path = s3_variable(options->variables, "AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *role = s3_variable(options->variables, "AWS_ROLE_ARN");
    if (path == NULL || options->fetch == NULL) {
        return CADRE_NOT_FOUND;
    }
    if (role == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "AWS_WEB_IDENTITY_TOKEN_FILE is set and AWS_ROLE_ARN is not: set it to the role whose "
            "credentials the token is exchanged for, or unset the other");
    }
    (void)snprintf(
        ret_found->source, sizeof ret_found->source, "STS for the role \"%.150s\"", role);
    struct s3_exchange *exchange = s3_secret_new(sizeof *exchange);
    if (exchange == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for credentials");
    }
    cadre_status status = exchange_token(options, path, role, exchange, ret_found, error);
    s3_secret_free(exchange, sizeof *exchange);
    return status;
}
