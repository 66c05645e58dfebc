/* SPDX-License-Identifier: Apache-2.0
 * What a path says: a file, an object of a store, or an object that is read alone. */
#ifndef CADRE_STORAGE_PATH_H
#define CADRE_STORAGE_PATH_H

#include "common/storage/storage.h"

#define STORAGE_BUCKET_BYTES 64

enum storage_kind { STORAGE_FILE, STORAGE_S3, STORAGE_WEB };

struct storage_location {
    enum storage_kind kind;
    char bucket[STORAGE_BUCKET_BYTES]; /* of STORAGE_S3 */
    const char *key;                   /* the same; within the path, maybe "" for a folder */
};

/* `may_be_folder`: the key may be empty, or end with "/". INVALID_ARGUMENT names the rule. The
 * location points into `path`. */
cadre_status storage_locate(const char *path, bool may_be_folder,
    struct storage_location *ret_location, struct cadre_error *error);

/* The path as it may be shown: without what follows a "?", which may be a signature. The caller's
 * to free; NULL: no memory. */
char *storage_shown_path(const char *path);
/* How many bytes of the path a sentence shows, likewise; 200 at most. */
int storage_shown_bytes(const char *path);

#endif
