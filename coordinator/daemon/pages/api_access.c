/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "common/base/clock.h"
#include "coordinator/daemon/pages/api.h"

/* The token of "Authorization: Bearer TOKEN"; NULL: there is none. */
static const char *token_of(const struct http_request *request)
{
    static const char scheme[] = "Bearer ";
    const char *header = http_request_header(request, "Authorization");
    bool has = header != NULL && strncasecmp(header, scheme, sizeof scheme - 1) == 0;
    return has ? header + sizeof scheme - 1 : NULL;
}

cadre_status api_identify(struct daemon *daemon, const struct http_request *request,
    struct tls_identity *ret_identity, struct cadre_error *error)
{
    const char *uri = http_request_certificate(request);
    if (uri != NULL) {
        cadre_status status = tls_identity_parse(uri, strlen(uri), ret_identity, error);
        return status == CADRE_OK ? CADRE_OK
                                  : cadre_error_wrap(error, CADRE_PERMISSION_DENIED,
                                        "the certificate names no role of the cluster");
    }
    if (daemon_is_open_to_host(daemon)) {
        *ret_identity = (struct tls_identity){.role = TLS_ROLE_LOCAL};
        return CADRE_OK;
    }
    const char *token = token_of(request);
    if (token != NULL) {
        return login_token_check(
            &daemon->login_key, token, clock_boot_us() / CADRE_US_PER_S, ret_identity, error);
    }
    return cadre_error_set(error, CADRE_UNAUTHENTICATED,
        "the coordinator does not answer to every process of this host: run `cadre dashboard`, "
        "which prints an address with a token of your own role");
}
