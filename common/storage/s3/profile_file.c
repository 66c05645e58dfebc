/* SPDX-License-Identifier: Apache-2.0
 * Reads as Amazon's tools do: a text line that is indented more than the setting above it continues
 * that one, and is passed over here, but for what services have beneath "s3". */
#include "common/storage/s3/profile_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/cleanup.h"
#include "common/storage/s3/secret_file.h"

#define SERVICES_BYTES 128 /* of a name */

/* A part of the text. */
struct span {
    const char *at;
    size_t bytes;
};

struct scan {
    struct span rest;
    size_t number;      /* of the text line, from 1 */
    bool in_section;    /* a head was read */
    bool is_wanted;     /* and it is that of the profile */
    bool has_setting;   /* one of this section was read */
    size_t indentation; /* of that */
    bool is_s3;         /* its name is "s3" */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(struct span span)
{
    while (span.bytes > 0 && is_blank(span.at[0])) {
        span.at++;
        span.bytes--;
    }
    while (span.bytes > 0 && is_blank(span.at[span.bytes - 1])) {
        span.bytes--;
    }
    return span;
}

static bool is_text(struct span span, const char *text)
{
    return span.bytes == strlen(text) && memcmp(span.at, text, span.bytes) == 0;
}

/* The next text line, without its end. False: there is none. */
static bool next_text_line(struct scan *scan, struct span *ret_text_line)
{
    if (scan->rest.bytes == 0) {
        return false;
    }
    const char *end = memchr(scan->rest.at, '\n', scan->rest.bytes);
    size_t bytes = end != NULL ? (size_t)(end - scan->rest.at) : scan->rest.bytes;
    *ret_text_line = (struct span){.at = scan->rest.at, .bytes = bytes};
    size_t taken = bytes + (end != NULL ? 1 : 0);
    scan->rest.at += taken;
    scan->rest.bytes -= taken;
    scan->number++;
    return true;
}

static cadre_status refuse(const struct scan *scan, const char *fault, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "line %zu is not one of an ini file: %s",
        scan->number, fault);
}

/* Without the quotes that a name with spaces has in config. */
static struct span unquoted(struct span name)
{
    bool is_quoted = name.bytes >= 2 && (name.at[0] == '"' || name.at[0] == '\'') &&
                     name.at[name.bytes - 1] == name.at[0];
    if (is_quoted) {
        name.at++;
        name.bytes -= 2;
    }
    return name;
}

/* The name in a head: "[x]" in credentials; "[profile x]" and "[default]", or "[services x]", in
 * config, where other heads ("[sso-session x]") are of none: empty. */
static struct span profile_of(struct span head, enum s3_profile_kind kind)
{
    const char *word = kind == S3_PROFILE_SERVICES ? "services" : "profile";
    if (kind == S3_PROFILE_CREDENTIALS || (kind == S3_PROFILE_CONFIG && is_text(head, "default"))) {
        return head;
    }
    size_t bytes = strlen(word);
    if (head.bytes > bytes && memcmp(head.at, word, bytes) == 0 && is_blank(head.at[bytes])) {
        return unquoted(trim((struct span){.at = head.at + bytes, .bytes = head.bytes - bytes}));
    }
    return (struct span){.at = head.at, .bytes = 0};
}

static cadre_status read_head(struct scan *scan, struct span text_line, enum s3_profile_kind kind,
    const char *profile, struct cadre_error *error)
{
    const char *close = memchr(text_line.at, ']', text_line.bytes);
    if (close == NULL) {
        return refuse(scan, "a \"]\" is missing", error);
    }
    struct span head = {.at = text_line.at + 1, .bytes = (size_t)(close - text_line.at) - 1};
    struct span behind = trim((struct span){
        .at = close + 1, .bytes = text_line.bytes - (size_t)(close - text_line.at) - 1});
    if (behind.bytes > 0 && behind.at[0] != '#' && behind.at[0] != ';') {
        return refuse(scan, "there is more behind the \"]\"", error);
    }
    scan->in_section = true;
    scan->has_setting = false;
    struct span named = profile_of(trim(head), kind);
    scan->is_wanted = named.bytes > 0 && is_text(named, profile);
    return CADRE_OK;
}

/* A value without the comment behind it, which begins with a blank and "#" or ";". */
static struct span without_comment(struct span value)
{
    for (size_t i = 1; i < value.bytes; i++) {
        if ((value.at[i] == '#' || value.at[i] == ';') && is_blank(value.at[i - 1])) {
            value.bytes = i;
            break;
        }
    }
    return trim(value);
}

/* `counts`: it is where `name` is looked for. */
static cadre_status read_setting(struct scan *scan, struct span text_line, bool counts,
    const char *name, struct s3_profile_value *ret_value, struct cadre_error *error)
{
    const char *equals = memchr(text_line.at, '=', text_line.bytes);
    if (!scan->in_section) {
        return refuse(scan, "it is above the first \"[\"", error);
    }
    if (equals == NULL) {
        return refuse(scan, "a \"=\" is missing", error);
    }
    struct span key =
        trim((struct span){.at = text_line.at, .bytes = (size_t)(equals - text_line.at)});
    if (key.bytes == 0) {
        return refuse(scan, "the name before \"=\" is missing", error);
    }
    bool is_named = key.bytes == strlen(name) && strncasecmp(key.at, name, key.bytes) == 0;
    scan->is_s3 = is_text(key, "s3");
    if (scan->is_wanted && counts && is_named) {
        struct span value = without_comment(trim((struct span){
            .at = equals + 1, .bytes = text_line.bytes - (size_t)(equals - text_line.at) - 1}));
        *ret_value = (struct s3_profile_value){.text = value.at, .bytes = value.bytes};
    }
    return CADRE_OK;
}

cadre_status s3_profile_find(const char *text, size_t size, enum s3_profile_kind kind,
    const char *profile, const char *name, struct s3_profile_value *ret_value,
    bool *ret_has_profile, struct cadre_error *error)
{
    struct scan scan = {.rest = {.at = text, .bytes = size}};
    struct span whole;
    bool has_profile = false;
    bool of_services = kind == S3_PROFILE_SERVICES;
    *ret_value = (struct s3_profile_value){.text = NULL};
    while (next_text_line(&scan, &whole)) {
        struct span text_line = trim(whole);
        if (memchr(whole.at, '\0', whole.bytes) != NULL) {
            return refuse(&scan, "it has a zero byte", error);
        }
        if (text_line.bytes == 0 || text_line.at[0] == '#' || text_line.at[0] == ';') {
            continue;
        }
        size_t indentation = (size_t)(text_line.at - whole.at);
        if (scan.has_setting && indentation > scan.indentation) {
            if (scan.is_wanted && scan.is_s3 && of_services) {
                CADRE_TRY(read_setting(&scan, text_line, true, name, ret_value, error));
                scan.is_s3 = true;
            }
            continue;
        }
        if (text_line.at[0] == '[') {
            CADRE_TRY(read_head(&scan, text_line, kind, profile, error));
            has_profile = has_profile || scan.is_wanted;
            continue;
        }
        CADRE_TRY(read_setting(&scan, text_line, !of_services, name, ret_value, error));
        scan.has_setting = true;
        scan.indentation = indentation;
    }
    if (ret_has_profile != NULL) {
        *ret_has_profile = has_profile;
    }
    return CADRE_OK;
}

const char *s3_variable(const struct storage_variables *variables, const char *name)
{
    const char *value = variables != NULL ? variables->find(variables->user, name) : getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *s3_profile_name(const struct storage_variables *variables)
{
    const char *name = s3_variable(variables, "AWS_PROFILE");
    name = name != NULL ? name : s3_variable(variables, "AWS_DEFAULT_PROFILE");
    return name != NULL ? name : "default";
}

char *s3_profile_path(const struct storage_variables *variables, enum s3_profile_kind kind)
{
    bool is_config = kind != S3_PROFILE_CREDENTIALS;
    const char *home = s3_variable(variables, "HOME");
    const char *named =
        s3_variable(variables, is_config ? "AWS_CONFIG_FILE" : "AWS_SHARED_CREDENTIALS_FILE");
    bool in_home = named != NULL && named[0] == '~' && named[1] == '/';
    char *path = NULL;
    if (named != NULL && !in_home) {
        return strcmp(named, "/dev/null") != 0 ? strdup(named) : NULL;
    }
    const char *name = in_home ? named + 2 : is_config ? ".aws/config" : ".aws/credentials";
    if (home == NULL || asprintf(&path, "%s/%s", home, name) < 0) {
        return NULL;
    }
    return path;
}

bool s3_profile_is_hidden(
    const struct storage_variables *variables, enum s3_profile_kind kind, cadre_status status)
{
    const char *variable =
        kind == S3_PROFILE_CREDENTIALS ? "AWS_SHARED_CREDENTIALS_FILE" : "AWS_CONFIG_FILE";
    return status == CADRE_PERMISSION_DENIED && s3_variable(variables, variable) == NULL;
}

/* From one of the two files; "" where it does not set it. */
static cadre_status setting_of(const struct storage_variables *variables, enum s3_profile_kind kind,
    const char *profile, const char *name, char *ret_value, size_t size, struct cadre_error *error)
{
    bool is_there = false;
    CADRE_FREE_AT_EXIT char *path = s3_profile_path(variables, kind);
    struct s3_secret_text text = {.bytes = NULL};
    struct s3_profile_value value;
    ret_value[0] = '\0';
    if (path == NULL) {
        return CADRE_OK;
    }
    struct cadre_error own = {0};
    cadre_status status = s3_secret_file_read(path, S3_PROFILE_FILE_BYTES_MAX, &text, &own);
    if (status == CADRE_NOT_FOUND || s3_profile_is_hidden(variables, kind, status)) {
        return CADRE_OK; /* and the caller's error is none */
    }
    if (status != CADRE_OK) {
        cadre_error_set(error, status, "%s", own.text);
    } else {
        status =
            s3_profile_find(text.bytes, text.size, kind, profile, name, &value, &is_there, error);
        if (status != CADRE_OK) {
            cadre_error_wrap(error, status, "%s", path);
        } else if (kind == S3_PROFILE_SERVICES && !is_there) {
            status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s: there is no [services %.100s], which the profile \"%.100s\" names", path,
                profile, s3_profile_name(variables));
        } else if (value.bytes >= size) {
            status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s: %s has %zu bytes, more than %zu", path, name, value.bytes, size - 1);
        } else if (value.text != NULL) {
            memcpy(ret_value, value.text, value.bytes);
            ret_value[value.bytes] = '\0';
        }
    }
    s3_secret_text_free(&text);
    return status;
}

cadre_status s3_profile_setting(const struct storage_variables *variables, const char *name,
    char *ret_value, size_t size, struct cadre_error *error)
{
    const char *profile = s3_profile_name(variables);
    char services[SERVICES_BYTES] = "";
    if (strcmp(name, "endpoint_url") == 0) {
        CADRE_TRY(setting_of(
            variables, S3_PROFILE_CONFIG, profile, "services", services, sizeof services, error));
    }
    ret_value[0] = '\0';
    if (services[0] != '\0') {
        CADRE_TRY(
            setting_of(variables, S3_PROFILE_SERVICES, services, name, ret_value, size, error));
    }
    if (ret_value[0] == '\0') {
        CADRE_TRY(setting_of(variables, S3_PROFILE_CONFIG, profile, name, ret_value, size, error));
    }
    return ret_value[0] != '\0' ? CADRE_OK
                                : setting_of(variables, S3_PROFILE_CREDENTIALS, profile, name,
                                      ret_value, size, error);
}
