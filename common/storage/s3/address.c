/* SPDX-License-Identifier: Apache-2.0 */
#include "common/storage/s3/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/pure/assert.h"

#define REGION_USUAL "us-east-1"

static bool is_alphanumeric(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* All of `text` are letters, digits or one of `others`, and there is one. */
static bool is_made_of(const char *text, size_t length, const char *others)
{
    for (size_t i = 0; i < length; i++) {
        if (!is_alphanumeric(text[i]) && strchr(others, text[i]) == NULL) {
            return false;
        }
    }
    return length > 0;
}

/* Amazon's hosts in China have names of their own. */
static void set_amazon_host(struct s3_endpoint *endpoint)
{
    bool is_china = strncmp(endpoint->region, "cn-", 3) == 0;
    (void)snprintf(endpoint->host, sizeof endpoint->host, "s3.%s.amazonaws.com%s", endpoint->region,
        is_china ? ".cn" : "");
}

static cadre_status set_region(
    struct s3_endpoint *endpoint, const char *region, struct cadre_error *error)
{
    size_t length = strlen(region);
    if (length >= sizeof endpoint->region || !is_made_of(region, length, "-_")) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the region is no name of up to %d letters, digits, '-' and '_': set AWS_REGION, to "
            "\"us-east-1\" for most stores other than Amazon's",
            S3_REGION_BYTES - 1);
    }
    memcpy(endpoint->region, region, length + 1);
    return CADRE_OK;
}

/* Never shows the URL: there may be a password in it. */
static cadre_status refuse(const char *fault, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the endpoint of the object store %s: expected \"https://HOST[:PORT]\" in "
        "AWS_ENDPOINT_URL_S3",
        fault);
}

/* "host", "host:9000", "[::1]:9000", of `length` bytes. */
static cadre_status set_host(
    struct s3_endpoint *endpoint, const char *text, size_t length, struct cadre_error *error)
{
    const char *end = text + length;
    const char *name_end = memchr(text, ':', length);
    bool good = false;
    if (length > 0 && text[0] == '[') {
        const char *close = memchr(text, ']', length);
        good = close != NULL && is_made_of(text + 1, (size_t)(close - text) - 1, ":.");
        name_end = close != NULL ? close + 1 : end;
    } else {
        name_end = name_end != NULL ? name_end : end;
        good = is_made_of(text, (size_t)(name_end - text), "-._");
    }
    if (!good || (name_end < end && *name_end != ':')) {
        return refuse("has no host that can be", error);
    }
    long port = 0;
    if (name_end < end) {
        size_t digits = (size_t)(end - name_end) - 1;
        char number[8] = "";
        if (digits < sizeof number) {
            memcpy(number, name_end + 1, digits);
        }
        good = digits > 0 && strspn(number, "0123456789") == digits;
        port = good ? strtol(number, NULL, 10) : 0;
        if (port < 1 || port > 65535) {
            return refuse("has no port of 1 to 65535", error);
        }
    }
    bool is_usual = port == 0 || port == (endpoint->tls ? 443 : 80);
    int written = is_usual ? snprintf(endpoint->host, sizeof endpoint->host, "%.*s",
                                 (int)(name_end - text), text)
                           : snprintf(endpoint->host, sizeof endpoint->host, "%.*s:%ld",
                                 (int)(name_end - text), text, port);
    if (written < 0 || (size_t)written >= S3_HOST_BYTES - 64) {
        return refuse("has a host that is too long", error);
    }
    return CADRE_OK;
}

static cadre_status set_prefix(
    struct s3_endpoint *endpoint, const char *path, struct cadre_error *error)
{
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/') {
        length--;
    }
    if (length >= sizeof endpoint->prefix) {
        return refuse("has a path that is too long", error);
    }
    if (length > 0 && !is_made_of(path, length, "/-._~")) {
        return refuse("has characters in its path other than letters, digits and \"/-._~\"", error);
    }
    memcpy(endpoint->prefix, path, length);
    endpoint->prefix[length] = '\0';
    return CADRE_OK;
}

cadre_status s3_endpoint_parse(const char *url, const char *region,
    struct s3_endpoint *ret_endpoint, struct cadre_error *error)
{
    struct s3_endpoint endpoint = {.tls = true};
    bool is_set = region != NULL && region[0] != '\0';
    CADRE_TRY(set_region(&endpoint, is_set ? region : REGION_USUAL, error));
    if (url == NULL || url[0] == '\0') {
        set_amazon_host(&endpoint);
        *ret_endpoint = endpoint;
        return CADRE_OK;
    }
    endpoint.path_style = true;
    if (strncasecmp(url, "https://", 8) == 0) {
        url += 8;
    } else if (strncasecmp(url, "http://", 7) == 0) {
        endpoint.tls = false;
        url += 7;
    } else {
        return refuse("begins with neither \"https://\" nor \"http://\"", error);
    }
    if (strpbrk(url, "?#") != NULL) {
        return refuse("has a query or a fragment", error);
    }
    if (strchr(url, '@') != NULL) {
        return refuse("has a user in it, which no request carries", error);
    }
    size_t length = strcspn(url, "/");
    CADRE_TRY(set_host(&endpoint, url, length, error));
    CADRE_TRY(set_prefix(&endpoint, url + length, error));
    *ret_endpoint = endpoint;
    return CADRE_OK;
}

cadre_status s3_endpoint_move(
    struct s3_endpoint *endpoint, const char *region, struct cadre_error *error)
{
    CADRE_TRY(set_region(endpoint, region, error));
    if (!endpoint->path_style) {
        set_amazon_host(endpoint);
    }
    return CADRE_OK;
}

cadre_status s3_address_of(const struct s3_endpoint *endpoint, const char *bucket, const char *key,
    struct s3_address *ret_address, struct cadre_error *error)
{
    bool in_path = endpoint->path_style || (endpoint->tls && strchr(bucket, '.') != NULL);
    bool has_key = key != NULL && key[0] != '\0';
    size_t room = sizeof ret_address->path;
    int host = snprintf(ret_address->host, sizeof ret_address->host, "%s%s%s",
        in_path ? "" : bucket, in_path ? "" : ".", endpoint->host);
    int path = snprintf(ret_address->path, room, "%s/%s%s%s", endpoint->prefix,
        in_path ? bucket : "", in_path && has_key ? "/" : "", has_key ? key : "");
    CADRE_ASSERT(host > 0 && path > 0);
    if ((size_t)host >= sizeof ret_address->host || (size_t)path >= room) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a bucket of %zu bytes with a key of %zu is too long: 63 and 1024 are the most",
            strlen(bucket), has_key ? strlen(key) : 0);
    }
    return CADRE_OK;
}
