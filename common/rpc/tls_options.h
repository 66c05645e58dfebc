/* SPDX-License-Identifier: Apache-2.0
 * The rows for --tls-dir, --tls-cert, --tls-key and --tls-ca, in the option table of every
 * program that listens or connects. */
#ifndef CADRE_RPC_TLS_OPTIONS_H
#define CADRE_RPC_TLS_OPTIONS_H

#include "common/base/options.h"

/* What the rows fill; see common/rpc/tls.h. */
struct rpc_tls_options {
    char *dir; /* holds cert.pem, key.pem and ca.pem, unless the next three name other files */
    char *cert;
    char *key;
    char *ca;
};

/* Four rows for a table of the struct `values`, whose `member` is a struct rpc_tls_options. */
#define TLS_OPTION_ROWS(values, member)                                                            \
    {OPTION_ROW(TEXT, "tls-dir", values, member.dir, "DIR", NULL), .environment = "CADRE_TLS_DIR", \
        .group = "TLS",                                                                            \
        .help = "Folder with cert.pem, key.pem and ca.pem, as `cadre pki issue` makes it: TCP "    \
                "connections use mutual TLS. Without TLS only Unix sockets and loopback are "    \
                "allowed."},                                                                       \
        {OPTION_ROW(TEXT, "tls-cert", values, member.cert, "FILE", NULL),                          \
            .environment = "CADRE_TLS_CERT",                                                       \
            .help = "The certificate instead of DIR/cert.pem. New files are taken up by "          \
                    "themselves, without a restart."},                                             \
        {OPTION_ROW(TEXT, "tls-key", values, member.key, "FILE", NULL),                            \
            .environment = "CADRE_TLS_KEY",                                                        \
            .help = "Its private key instead of DIR/key.pem; it must not be readable by others "  \
                    "(0600)."},                                                                    \
    {                                                                                              \
        OPTION_ROW(TEXT, "tls-ca", values, member.ca, "FILE", NULL),                               \
            .environment = "CADRE_TLS_CA",                                                         \
            .help = "The certificate of the cluster's CA instead of DIR/ca.pem."                   \
    }

#endif
