/* SPDX-License-Identifier: Apache-2.0
 * Whether the coordinators of a cluster have one folder of contents. The one that leads draws a
 * number for its own, once: it is in CONTENTS/folder and, with that of the cluster, in etcd's key
 * `contents`. A folder without it, or with another one, is not that which they share. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_CONTENTS_FOLDER_H
#define CADRE_COORDINATOR_DAEMON_SHARED_CONTENTS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "coordinator/leadership/log_store.h"

#define CONTENTS_FOLDER_KEY        "contents"
#define CONTENTS_FOLDER_TEXT_BYTES 68 /* with the terminator */

/* What the key is to hold: the folder's number is read, or drawn and written. */
cadre_status contents_folder_make(const char *contents, struct log_nonce cluster,
    char ret_text[CONTENTS_FOLDER_TEXT_BYTES], struct cadre_error *error);
/* `text` is what the key holds; "": there is none. *ret_named is false, with OK, if it names no
 * folder of this cluster: any may be used. FAILED_PRECONDITION: it names another one. Other errors
 * are those of nonce_file_read(). */
cadre_status contents_folder_check(const char *contents, struct log_nonce cluster, const char *text,
    bool *ret_named, struct cadre_error *error);

#endif
