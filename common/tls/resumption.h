/* SPDX-License-Identifier: Apache-2.0
 * Whether a client may resume a TLS session instead of showing its certificate again. A resumed
 * session is not checked against the end of the certificate, and each gives a new ticket: who has
 * one would stay for as long as the server runs. */
#ifndef CADRE_TLS_RESUMPTION_H
#define CADRE_TLS_RESUMPTION_H

#include "common/base/error.h"

/* From here on each new SSL_CTX of this process neither issues tickets nor takes them, which is
 * also a fifth of a server's CPU for a handshake. gRPC makes its contexts itself and has no option
 * for it, so it is OpenSSL's system default that is changed; what the configuration file has there
 * (`config_file`; NULL: OpenSSL's usual one, if it is there) stays. For daemons, once,
 * before they make threads that use OpenSSL. RESOURCE_EXHAUSTED: no memory; INTERNAL: OpenSSL does
 * not take it. */
cadre_status tls_resumption_disable(const char *config_file, struct cadre_error *error);

#endif
