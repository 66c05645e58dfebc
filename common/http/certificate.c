/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/certificate.h"

#include <stdint.h>
#include <string.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

/* False: one of its URIs begins with `refused`, or cannot be read. */
static bool read_uris(gnutls_x509_crt_t cert, const char *refused, char ret_uri[HTTP_URI_BYTES])
{
    bool good = true;
    int type = 0;
    for (unsigned i = 0; type >= 0; i++) {
        char uri[HTTP_URI_BYTES] = {0};
        size_t size = sizeof uri - 1;
        type = gnutls_x509_crt_get_subject_alt_name(cert, i, uri, &size, NULL);
        good = good && type != GNUTLS_E_SHORT_MEMORY_BUFFER;
        if (type == GNUTLS_SAN_URI) {
            good = good && (refused == NULL || strncmp(uri, refused, strlen(refused)) != 0);
            if (ret_uri[0] == '\0') {
                memcpy(ret_uri, uri, sizeof uri);
            }
        }
    }
    return good;
}

bool http_certificate_check(
    struct MHD_Connection *connection, const char *refused, char ret_uri[HTTP_URI_BYTES])
{
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
        .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    unsigned faults = 0;
    unsigned count = 0;
    gnutls_x509_crt_t cert = NULL;
    ret_uri[0] = '\0';
    if (info == NULL ||
        gnutls_certificate_verify_peers(info->tls_session, &purpose, 1, &faults) != 0 ||
        faults != 0) {
        return false;
    }
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(info->tls_session, &count);
    if (shown == NULL || count == 0 || gnutls_x509_crt_init(&cert) != 0) {
        return false;
    }
    bool good = gnutls_x509_crt_import(cert, shown, GNUTLS_X509_FMT_DER) == 0 &&
                read_uris(cert, refused, ret_uri);
    gnutls_x509_crt_deinit(cert);
    return good;
}
