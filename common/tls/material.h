/* SPDX-License-Identifier: Apache-2.0
 * A certificate, its key and the cluster's CA, read from three files and checked before use. */
#ifndef CADRE_TLS_MATERIAL_H
#define CADRE_TLS_MATERIAL_H

#include <stdint.h>

#include "common/tls/identity.h"

#define TLS_FILE_BYTES_MAX (256 * 1024)

struct tls_files {
    const char *cert; /* PEM: the certificate, then those between it and the CA, if any */
    const char *key;  /* PEM: its private key, without a password */
    const char *ca;   /* PEM: the certificates of the CA; several while one takes over from another
                       */
};

/* What was read. The texts are PEM, ended by a zero byte; NULL without a file. */
struct tls_material {
    char *cert_pem, *key_pem, *ca_pem;
    struct tls_identity identity; /* of the certificate; TLS_ROLE_NONE for foreign servers */
    uint64_t not_after_s; /* Unix time: the end of the certificate or of its CA, the sooner one */
};

/* Reads and checks: each file exists, can be read, is PEM; the key's file is not open to others
 * (0600, or 0640 when root owns it and so shares it with a group: as packages install keys and
 * systemd hands credentials over); the key belongs to the certificate; the certificate names a
 * role and a name and is of the CA. A certificate that has expired or is not valid yet is an
 * error too, because every peer would refuse it. Errors name the file and the next step:
 * NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT (its content), FAILED_PRECONDITION (time). On
 * error *ret_material is zeroed. */
cadre_status tls_material_read(
    const struct tls_files *files, struct tls_material *ret_material, struct cadre_error *error);

/* The same for a client of servers that are not Cadre's: `cert` and `key` may both be NULL, the
 * certificate names no role, and it may be of another CA than `ca`, which is the servers'. */
cadre_status tls_material_read_foreign(
    const struct tls_files *files, struct tls_material *ret_material, struct cadre_error *error);

/* Wipes the key and frees all; zeroed material is fine. */
void tls_material_free(struct tls_material *material);

#endif
