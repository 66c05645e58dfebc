/* SPDX-License-Identifier: Apache-2.0
 * Where settings come from; storage.h includes it. */
#ifndef CADRE_STORAGE_S3_VARIABLES_H
#define CADRE_STORAGE_S3_VARIABLES_H

/* Where settings and credentials come from: as environ, for the process's own. */
struct storage_variables {
    const char *(*find)(void *user, const char *name); /* NULL: it is not set */
    void *user;
};

#endif
