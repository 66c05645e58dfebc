/* SPDX-License-Identifier: Apache-2.0 */
#include "common/storage/s3/exchange.h"

#include <string.h>
#include <strings.h>

#include "common/pure/assert.h"

bool s3_exchange_may_ask(const char *url)
{
    static const char *const hosts[] = {
        "localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    for (const char *at = url; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~') {
            return false;
        }
    }
    if (strncasecmp(url, "https://", 8) == 0) {
        return true;
    }
    if (strncasecmp(url, "http://", 7) != 0) {
        return false;
    }
    const char *host = url + 7;
    size_t bytes = host[0] == '[' ? strcspn(host, "]/") + 1 : strcspn(host, ":/?#");
    if (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == bytes) {
        return true;
    }
    for (size_t i = 0; i < CADRE_COUNT_OF(hosts); i++) {
        bool is = bytes == strlen(hosts[i]) && strncasecmp(host, hosts[i], bytes) == 0;
        if (is && (host[bytes] == '\0' || strchr(":/?", host[bytes]) != NULL)) {
            return true;
        }
    }
    return false;
}

cadre_status s3_exchange_ask(const struct s3_provider_options *options,
    struct s3_exchange *exchange, const char *method, const struct s3_pair *header,
    uint64_t timeout_us, struct cadre_error *error)
{
    bool is_post = strcmp(method, "POST") == 0;
    const struct s3_fetch fetch = {
        .method = method,
        .url = exchange->url,
        .headers = header,
        .header_count = header != NULL ? 1 : 0,
        .sent = is_post ? exchange->sent : NULL,
        .sent_bytes = is_post ? strlen(exchange->sent) : 0,
        .timeout_us = timeout_us,
        .body = exchange->body,
        .room = sizeof exchange->body - 1,
    };
    exchange->body_bytes = 0;
    exchange->status = 0;
    CADRE_TRY(
        options->fetch(options->user, &fetch, &exchange->status, &exchange->body_bytes, error));
    CADRE_ASSERT(exchange->body_bytes < sizeof exchange->body);
    exchange->body[exchange->body_bytes] = '\0';
    return CADRE_OK;
}

cadre_status s3_exchange_refuse(
    const struct s3_found *found, const struct s3_exchange *exchange, struct cadre_error *error)
{
    bool passes = exchange->status >= 500 || exchange->status == 429;
    return cadre_error_set(error, passes ? CADRE_UNAVAILABLE : CADRE_UNAUTHENTICATED,
        "%s gives no credentials: HTTP %d%s", found->source, exchange->status,
        passes ? ", which may pass" : ": does it have a role for this program?");
}
