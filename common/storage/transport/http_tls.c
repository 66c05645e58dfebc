/* SPDX-License-Identifier: Apache-2.0
 * Which authority issued a certificate that is not trusted: OpenSSL is asked while it verifies,
 * because libcurl says only that it failed. */
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "common/storage/transport/http_state.h"

static pthread_once_t index_once = PTHREAD_ONCE_INIT;
static int call_index = -1; /* of the call, among what is kept with a TLS context */

static void make_index(void)
{
    call_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

/* Control characters and what is no ASCII are escaped; what is too long is cut. */
static void keep_issuer(struct http_call *call, X509 *certificate)
{
    BIO *text = BIO_new(BIO_s_mem());
    if (text != NULL &&
        X509_NAME_print_ex(text, X509_get_issuer_name(certificate), 0, XN_FLAG_RFC2253) >= 0) {
        int size = BIO_read(text, call->issuer, (int)sizeof call->issuer - 1);
        call->issuer[size > 0 ? size : 0] = '\0';
    }
    BIO_free(text);
}

/* OpenSSL's prototype: for each certificate of a chain, and each of its faults. */
static int on_certificate(int good, X509_STORE_CTX *chain)
{
    SSL *tls = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct http_call *call = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(tls), call_index);
    X509 *certificate = X509_STORE_CTX_get_current_cert(chain);
    if (!good && certificate != NULL && call->issuer[0] == '\0') {
        keep_issuer(call, certificate);
    }
    return good;
}

/* curl's prototype. The handshake is part of the request that opens the connection. */
static CURLcode on_context(CURL *easy, void *context, void *user)
{
    (void)easy;
    if (SSL_CTX_set_ex_data(context, call_index, user) == 1) {
        struct http_call *call = user;
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, on_certificate);
        call->watched = true;
    }
    return CURLE_OK;
}

void http_tls_watch(struct http_call *call)
{
    pthread_once(&index_once, make_index);
    call->watched = false;
    call->issuer[0] = '\0';
    if (call_index >= 0) { /* a libcurl with another TLS library refuses this, and has no issuer */
        curl_easy_setopt(call->easy, CURLOPT_SSL_CTX_FUNCTION, on_context);
        curl_easy_setopt(call->easy, CURLOPT_SSL_CTX_DATA, call);
    }
}
