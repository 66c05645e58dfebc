/* SPDX-License-Identifier: Apache-2.0
 * One handshake of its own with a server that gRPC could not connect to, and the message about
 * what failed in it. Called by common/rpc/channel_diagnose.c in a thread. */
#include "common/tls/diagnose.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "common/base/clock.h"
#include "common/tls/certificate.h"

/* What HTTP/2 begins with: a server of ours answers it with its settings. */
static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
static const unsigned char protocols[] = {2, 'h', '2'};

struct attempt {
    const struct tls_target *target;
    uint64_t deadline_us;
    int fd;
    SSL_CTX *context;
    SSL *ssl;
};

/* ---- the connection ---- */

/* False: the time is over, or poll failed. */
static bool wait_for(const struct attempt *attempt, short events)
{
    uint64_t now_us = clock_monotonic_us();
    if (now_us >= attempt->deadline_us) {
        return false;
    }
    struct pollfd poll_fd = {.fd = attempt->fd, .events = events};
    int left_ms = (int)((attempt->deadline_us - now_us) / CADRE_US_PER_MS) + 1;
    return TEMP_FAILURE_RETRY(poll(&poll_fd, 1, left_ms)) > 0;
}

static bool connect_one(struct attempt *attempt, const struct addrinfo *address)
{
    int reason = 0;
    socklen_t size = sizeof reason;
    attempt->fd =
        socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    bool connected =
        attempt->fd >= 0 &&
        (connect(attempt->fd, address->ai_addr, address->ai_addrlen) == 0 ||
            (errno == EINPROGRESS && wait_for(attempt, POLLOUT) &&
                getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &reason, &size) == 0 && reason == 0));
    if (!connected && attempt->fd >= 0) {
        close(attempt->fd);
        attempt->fd = -1;
    }
    return connected;
}

static bool diagnose_dial(struct attempt *attempt)
{
    char port[16];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    snprintf(port, sizeof port, "%d", attempt->target->port);
    if (getaddrinfo(attempt->target->host, port, &hints, &list) != 0) {
        return false;
    }
    bool connected = false;
    for (const struct addrinfo *at = list; at != NULL && !connected; at = at->ai_next) {
        connected = connect_one(attempt, at);
    }
    freeaddrinfo(list);
    return connected;
}

static void close_connection(struct attempt *attempt)
{
    SSL_free(attempt->ssl);
    SSL_CTX_free(attempt->context);
    attempt->ssl = NULL;
    attempt->context = NULL;
    if (attempt->fd >= 0) {
        close(attempt->fd);
        attempt->fd = -1;
    }
    ERR_clear_error();
}

/* ---- the handshake ---- */

static bool use_material(SSL_CTX *context, const struct tls_material *material)
{
    if (material->cert_pem == NULL) {
        return true; /* none is given */
    }
    BIO *cert = BIO_new_mem_buf(material->cert_pem, -1);
    BIO *key = BIO_new_mem_buf(material->key_pem, -1);
    X509 *own = cert != NULL ? PEM_read_bio_X509(cert, NULL, NULL, NULL) : NULL;
    EVP_PKEY *own_key = key != NULL ? PEM_read_bio_PrivateKey(key, NULL, NULL, NULL) : NULL;
    bool used = own != NULL && own_key != NULL && SSL_CTX_use_certificate(context, own) == 1 &&
                SSL_CTX_use_PrivateKey(context, own_key) == 1;
    X509 *next;
    while (used && (next = PEM_read_bio_X509(cert, NULL, NULL, NULL)) != NULL) {
        if (SSL_CTX_add0_chain_cert(context, next) != 1) {
            X509_free(next);
        }
    }
    X509_free(own);
    EVP_PKEY_free(own_key);
    BIO_free(cert);
    BIO_free(key);
    ERR_clear_error();
    return used;
}

/* Runs one step of TLS until it is through: SSL_ERROR_NONE, or why not. */
static int diagnose_drive(const struct attempt *attempt, int (*step)(SSL *ssl))
{
    for (;;) {
        ERR_clear_error();
        int done = step(attempt->ssl);
        int reason = done > 0 ? SSL_ERROR_NONE : SSL_get_error(attempt->ssl, done);
        if (reason != SSL_ERROR_WANT_READ && reason != SSL_ERROR_WANT_WRITE) {
            return reason;
        }
        if (!wait_for(attempt, reason == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT)) {
            return reason;
        }
    }
}

/* A handshake that accepts any server certificate: it is checked afterwards. */
static int do_handshake(struct attempt *attempt)
{
    const struct tls_material *material = attempt->target->material;
    attempt->context = SSL_CTX_new(TLS_client_method());
    if (attempt->context == NULL ||
        (material != NULL && !use_material(attempt->context, material))) {
        return SSL_ERROR_SYSCALL;
    }
    SSL_CTX_set_verify(attempt->context, SSL_VERIFY_NONE, NULL);
    attempt->ssl = SSL_new(attempt->context);
    if (attempt->ssl == NULL || SSL_set_fd(attempt->ssl, attempt->fd) != 1 ||
        SSL_set_alpn_protos(attempt->ssl, protocols, sizeof protocols) != 0) {
        return SSL_ERROR_SYSCALL;
    }
    return diagnose_drive(attempt, SSL_connect);
}

static int send_preface(SSL *ssl)
{
    return SSL_write(ssl, preface, sizeof preface - 1);
}

static int read_settings(SSL *ssl)
{
    char bytes[64];
    return SSL_read(ssl, bytes, sizeof bytes);
}

/* ---- from the outcome to a message ---- */

static bool names_host(X509 *server, const char *host)
{
    return X509_check_host(server, host, 0, 0, NULL) == 1 ||
           X509_check_ip_asc(server, host, 0) == 1;
}

/* That of a server that is not Cadre's: of the CA, valid now, and of the host's name. */
static cadre_status check_foreign_certificate(const struct attempt *attempt, X509 *server,
    STACK_OF(X509) * roots, const char *what, struct cadre_error *error)
{
    const struct tls_target *target = attempt->target;
    struct tls_certificate_info facts;
    char when[TLS_TIME_BYTES];
    tls_certificate_read_info(server, &facts);
    uint64_t now_s = clock_wall_us() / CADRE_US_PER_S;
    bool early = now_s < facts.not_before_s;
    if (early || now_s > facts.not_after_s) {
        tls_time_text(early ? facts.not_before_s : facts.not_after_s, when);
        return cadre_error_set(error, CADRE_UNAUTHENTICATED,
            early ? "%s is valid only from %s on: check this host's clock"
                  : "%s expired on %s: give the server a new one",
            what, when);
    }
    CADRE_TRY(tls_certificate_check(
        server, SSL_get_peer_cert_chain(attempt->ssl), roots, what, target->ca_file, error));
    if (!names_host(server, target->name)) {
        return cadre_error_set(error, CADRE_UNAUTHENTICATED,
            "%s (\"%s\") does not name the host \"%s\": use a name or address that it names, or "
            "issue it again with this one among its alternative names",
            what, facts.subject, target->name);
    }
    return CADRE_OK;
}

/* That of a coordinator. */
static cadre_status check_coordinator_certificate(const struct attempt *attempt, X509 *server,
    STACK_OF(X509) * roots, const char *what, struct cadre_error *error)
{
    const struct tls_target *target = attempt->target;
    struct tls_identity identity;
    cadre_status status = tls_certificate_check(
        server, SSL_get_peer_cert_chain(attempt->ssl), roots, what, target->ca_file, error);
    if (status == CADRE_OK) {
        status = tls_certificate_identity(server, &identity, error);
        status = status == CADRE_OK ? status : cadre_error_wrap(error, status, "%s", what);
    }
    if (status != CADRE_OK) {
        error->code = CADRE_UNAUTHENTICATED;
    } else if (identity.role != TLS_ROLE_COORDINATOR) {
        status = cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "%s is of the role %s (\"%s\"): only a coordinator's is accepted there", what,
            tls_role_name(identity.role), identity.name);
    }
    return status;
}

/* Checks the server's certificate as a channel does. True: it is at fault, and `error` has the
 * message. */
static bool explain_server_certificate(const struct attempt *attempt, struct cadre_error *error)
{
    const struct tls_target *target = attempt->target;
    X509 *server = SSL_get1_peer_certificate(attempt->ssl);
    STACK_OF(X509) *roots = NULL;
    char what[256];
    snprintf(what, sizeof what, "the certificate of the server at %.120s", target->shown);
    cadre_status status = tls_certificates_parse(target->material->ca_pem, "the CA", &roots, error);
    if (server == NULL) {
        status = CADRE_OK;
    } else if (status == CADRE_OK) {
        status =
            (target->foreign != NULL ? check_foreign_certificate : check_coordinator_certificate)(
                attempt, server, roots, what, error);
        error->code = target->foreign != NULL ? CADRE_UNAUTHENTICATED : error->code;
    }
    sk_X509_pop_free(roots, X509_free);
    X509_free(server);
    return status != CADRE_OK;
}

/* Whether the server named our CA among those whose certificates it takes. It sends names only;
 * a server that names none takes any. */
static bool accepts_our_ca(const struct attempt *attempt, char ret_theirs[TLS_SUBJECT_BYTES])
{
    const STACK_OF(X509_NAME) *theirs = SSL_get0_peer_CA_list(attempt->ssl);
    const X509 *own = SSL_get_certificate(attempt->ssl);
    int count = theirs != NULL ? sk_X509_NAME_num(theirs) : 0;
    ret_theirs[0] = '\0';
    bool found = count == 0 || own == NULL;
    for (int i = 0; i < count && !found; i++) {
        const X509_NAME *name = sk_X509_NAME_value(theirs, i);
        found = X509_NAME_cmp(name, X509_get_issuer_name(own)) == 0;
        tls_name_text(name, ret_theirs);
    }
    return found;
}

/* Our own certificate, which the server refused. */
static bool explain_own_certificate(const struct attempt *attempt, struct cadre_error *error)
{
    const struct tls_target *target = attempt->target;
    char theirs[TLS_SUBJECT_BYTES];
    struct tls_certificate_info facts = {0};
    const X509 *own = SSL_get_certificate(attempt->ssl);
    if (own == NULL) {
        cadre_error_set(error, CADRE_UNAUTHENTICATED,
            "the server at %s demands a certificate of its clients, and none is given here: give "
            "one, and its key",
            target->shown);
        return true;
    }
    tls_certificate_read_info(own, &facts);
    if (!accepts_our_ca(attempt, theirs)) {
        cadre_error_set(error, CADRE_UNAUTHENTICATED,
            "the server at %s takes certificates of the CA \"%s\", and %s is of \"%s\": both ends "
            "need certificates of one CA",
            target->shown, theirs, target->cert_file, facts.issuer);
        return true;
    }
    uint64_t now_s = clock_wall_us() / CADRE_US_PER_S;
    bool early = now_s < facts.not_before_s;
    if (target->foreign == NULL && (early || now_s > facts.not_after_s)) {
        tls_time_fault(&facts, early, target->cert_file, error);
        error->code = CADRE_UNAUTHENTICATED;
        return true;
    }
    cadre_error_set(error, CADRE_UNAUTHENTICATED,
        "the server at %s does not accept %s (\"%s\", of \"%s\"), which is in order here: its CA "
        "file or its clock differs; its log has the reason",
        target->shown, target->cert_file, facts.subject, facts.issuer);
    return true;
}

static bool diagnose_judge(struct attempt *attempt, int shaken, struct cadre_error *error)
{
    const struct tls_target *target = attempt->target;
    unsigned long reason = ERR_peek_error();
    bool met = SSL_get0_peer_certificate(attempt->ssl) != NULL;
    if (met && explain_server_certificate(attempt, error)) {
        return true;
    }
    if (shaken == SSL_ERROR_NONE && diagnose_drive(attempt, send_preface) == SSL_ERROR_NONE) {
        int answer = diagnose_drive(attempt, read_settings);
        /* Since TLS 1.3 a server checks our certificate after our end of the handshake is
         * complete. */
        return answer != SSL_ERROR_NONE && answer != SSL_ERROR_WANT_READ &&
               explain_own_certificate(attempt, error);
    }
    if (met) {
        return explain_own_certificate(attempt, error);
    }
    if (shaken == SSL_ERROR_SSL && (ERR_GET_REASON(reason) == SSL_R_WRONG_VERSION_NUMBER ||
                                       ERR_GET_REASON(reason) == SSL_R_PACKET_LENGTH_TOO_LONG)) {
        cadre_error_set(error, CADRE_UNAVAILABLE,
            target->foreign != NULL
                ? "the server at %s uses plain text, not TLS: give no CA for it, or is it another "
                  "program's port?"
                : "the server at %s uses plain text, not TLS: start it with --tls-dir, or is it "
                  "another program's port?",
            target->shown);
        return true;
    }
    /* A plain etcd closes the connection without an answer. */
    bool closed = target->foreign != NULL && shaken == SSL_ERROR_SSL &&
                  ERR_GET_REASON(reason) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    if (shaken == SSL_ERROR_WANT_READ || closed) {
        cadre_error_set(error, CADRE_UNAVAILABLE,
            "the program that listens at %s does not answer a TLS handshake: is it %s with TLS?",
            target->shown, target->foreign != NULL ? target->foreign : "a coordinator");
        return true;
    }
    return false;
}

/* This end has no TLS material: does the server answer a TLS handshake? */
static bool explain_plain_server(struct attempt *attempt, int shaken, struct cadre_error *error)
{
    bool tls = shaken == SSL_ERROR_NONE || SSL_get0_peer_certificate(attempt->ssl) != NULL;
    if (!tls) {
        return false;
    }
    cadre_error_set(error, CADRE_UNAUTHENTICATED,
        attempt->target->foreign != NULL
            ? "the server at %s requires TLS: give the file of its CA"
            : "the server at %s requires TLS, and no certificate is given here: use --tls-dir (or "
              "CADRE_TLS_DIR) with a folder that `cadre pki issue` made",
        attempt->target->shown);
    return true;
}

/* A peer that closes the connection must not end the program with SIGPIPE: OpenSSL writes with
 * write(2). */
static void block_sigpipe(sigset_t *ret_before)
{
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, ret_before);
}

static void unblock_sigpipe(const sigset_t *before)
{
    const struct timespec now = {0};
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (sigismember(before, SIGPIPE) == 0) {
        (void)TEMP_FAILURE_RETRY(sigtimedwait(&pipe, NULL, &now));
    }
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

bool tls_diagnose(
    const struct tls_target *target, uint64_t timeout_us, struct cadre_error *ret_error)
{
    struct attempt attempt = {
        .target = target, .deadline_us = clock_monotonic_us() + timeout_us, .fd = -1};
    bool found = false;
    sigset_t before;
    block_sigpipe(&before);
    if (diagnose_dial(&attempt)) {
        int shaken = do_handshake(&attempt);
        if (attempt.ssl != NULL) {
            found = target->material != NULL ? diagnose_judge(&attempt, shaken, ret_error)
                                             : explain_plain_server(&attempt, shaken, ret_error);
        }
    }
    close_connection(&attempt);
    unblock_sigpipe(&before);
    return found;
}
