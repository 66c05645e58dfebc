/* SPDX-License-Identifier: Apache-2.0
 * The TLS credentials that servers and channels are made with, and the identity of a call's
 * other end.
 * gRPC has two interfaces for it. A server uses grpc_ssl_*, which calls back for its files at
 * every handshake; it is given those in memory that were checked, never the disk's. A channel
 * uses grpc_tls_*, the only one that leaves host names alone and lets us check the server's
 * certificate; its files are fixed, so a channel makes a new connection object after a reload.
 * The file watcher of grpc_tls_* drops the old files before it has checked the new ones. A channel
 * to a server that is not Cadre's wants the usual check of host names, which grpc_ssl_* makes. */
#include <stdio.h>
#include <string.h>

#include <grpc/grpc_security_constants.h>
#include <grpc/support/alloc.h>
#include <grpc/support/string_util.h>

#include "common/rpc/tls_state.h"
#include "common/tls/report.h"

/* ---- servers ---- */

static grpc_ssl_certificate_config_reload_status tls_credentials_fetch(
    void *user, grpc_ssl_server_certificate_config **ret_config)
{
    struct rpc_tls_port *port = user;
    uint64_t generation = rpc_tls_generation(port->tls);
    if (port->generation == generation) {
        return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    const struct tls_material *material = rpc_tls_material(port->tls);
    grpc_ssl_pem_key_cert_pair pair = {material->key_pem, material->cert_pem};
    *ret_config = grpc_ssl_server_certificate_config_create(material->ca_pem, &pair, 1);
    port->generation = generation;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

grpc_server_credentials *rpc_tls_server_credentials(struct rpc_tls_port *port)
{
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, tls_credentials_fetch,
            port));
}

/* ---- channels ---- */

/* After OpenSSL found the server's certificate to be of the CA and valid: is it a coordinator's? */
static int tls_credentials_verify(void *user, grpc_tls_custom_verification_check_request *request,
    grpc_tls_on_custom_verification_check_done_cb callback, void *callback_arg,
    grpc_status_code *ret_status, char **ret_details)
{
    (void)user;
    (void)callback;
    (void)callback_arg;
    struct tls_identity identity = {TLS_ROLE_NONE, ""};
    const char *uri = "";
    if (request->peer_info.san_names.uri_names_size == 1) {
        uri = request->peer_info.san_names.uri_names[0];
        (void)tls_identity_parse(uri, strlen(uri), &identity, NULL);
    }
    *ret_status = GRPC_STATUS_OK;
    if (identity.role != TLS_ROLE_COORDINATOR) {
        char text[TLS_URI_BYTES + 160];
        snprintf(text, sizeof text,
            "the server's certificate is of the role %s (\"%.*s\"): only a coordinator's is "
            "accepted",
            tls_role_name(identity.role), TLS_URI_BYTES, uri);
        *ret_status = GRPC_STATUS_PERMISSION_DENIED;
        *ret_details = gpr_strdup(text);
    }
    return 1;
}

static void verify_cancelled(void *user, grpc_tls_custom_verification_check_request *request)
{
    (void)user;
    (void)request;
}

static void verify_gone(void *user)
{
    (void)user;
}

/* gRPC's usual check: of the CA, and of the host's name. */
static grpc_channel_credentials *foreign_credentials(const struct tls_material *material)
{
    grpc_ssl_pem_key_cert_pair pair = {material->key_pem, material->cert_pem};
    return grpc_ssl_credentials_create(
        material->ca_pem, material->cert_pem != NULL ? &pair : NULL, NULL, NULL);
}

grpc_channel_credentials *rpc_tls_channel_credentials(const struct rpc_tls *tls)
{
    if (rpc_tls_is_foreign(tls)) {
        return foreign_credentials(rpc_tls_material(tls));
    }
    static grpc_tls_certificate_verifier_external coordinator_only = {
        .verify = tls_credentials_verify, .cancel = verify_cancelled, .destruct = verify_gone};
    const struct tls_material *material = rpc_tls_material(tls);
    grpc_tls_identity_pairs *pairs = grpc_tls_identity_pairs_create();
    grpc_tls_identity_pairs_add_pair(pairs, material->key_pem, material->cert_pem);
    grpc_tls_certificate_provider *provider =
        grpc_tls_certificate_provider_static_data_create(material->ca_pem, pairs);
    grpc_tls_certificate_verifier *verifier =
        grpc_tls_certificate_verifier_external_create(&coordinator_only);
    grpc_tls_credentials_options *options = grpc_tls_credentials_options_create();
    grpc_tls_credentials_options_set_certificate_provider(options, provider);
    grpc_tls_credentials_options_watch_root_certs(options);
    grpc_tls_credentials_options_watch_identity_key_cert_pairs(options);
    grpc_tls_credentials_options_set_certificate_verifier(options, verifier);
    grpc_tls_credentials_options_set_check_call_host(options, 0);
    grpc_channel_credentials *credentials = grpc_tls_credentials_create(options);
    grpc_tls_certificate_verifier_release(verifier);
    grpc_tls_certificate_provider_release(provider);
    return credentials;
}

/* ---- identities ---- */

static bool has_property(const grpc_auth_context *context, const char *name, const char *value)
{
    grpc_auth_property_iterator at = grpc_auth_context_find_properties_by_name(context, name);
    const grpc_auth_property *property = grpc_auth_property_iterator_next(&at);
    return property != NULL && property->value_length == strlen(value) &&
           memcmp(property->value, value, property->value_length) == 0;
}

static void read_identity(const grpc_auth_context *context, struct tls_identity *ret_identity)
{
    grpc_auth_property_iterator at =
        grpc_auth_context_find_properties_by_name(context, GRPC_PEER_URI_PROPERTY_NAME);
    const grpc_auth_property *uri = grpc_auth_property_iterator_next(&at);
    if (uri != NULL && grpc_auth_property_iterator_next(&at) == NULL) {
        (void)tls_identity_parse(uri->value, uri->value_length, ret_identity, NULL);
    }
}

void rpc_tls_identify(grpc_call *call, const struct rpc_tls *tls, struct tls_identity *ret_identity)
{
    *ret_identity = (struct tls_identity){TLS_ROLE_NONE, ""};
    grpc_auth_context *context = grpc_call_auth_context(call);
    bool over_tls =
        context != NULL && has_property(context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME,
                               GRPC_SSL_TRANSPORT_SECURITY_TYPE);
    if (over_tls) {
        read_identity(context, ret_identity);
    } else if (tls == NULL) {
        ret_identity->role = TLS_ROLE_LOCAL;
    } else { /* no TCP port of this server is without TLS */
        char *peer = grpc_call_get_peer(call);
        if (strncmp(peer, "unix:", 5) == 0) {
            ret_identity->role = TLS_ROLE_LOCAL;
        }
        gpr_free(peer);
    }
    grpc_auth_context_release(context);
}

uint64_t rpc_tls_peer_ends_s(grpc_call *call)
{
    uint64_t ends_s = UINT64_MAX;
    grpc_auth_context *context = grpc_call_auth_context(call);
    if (context != NULL) {
        grpc_auth_property_iterator at =
            grpc_auth_context_find_properties_by_name(context, GRPC_X509_PEM_CERT_PROPERTY_NAME);
        const grpc_auth_property *pem = grpc_auth_property_iterator_next(&at);
        ends_s = pem != NULL ? tls_certificate_ends_s(pem->value, pem->value_length) : UINT64_MAX;
        grpc_auth_context_release(context);
    }
    return ends_s;
}
