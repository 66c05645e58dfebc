/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/contents_folder.h"

#include <inttypes.h>
#include <stdio.h>

#include <openssl/rand.h>

#include "common/storage/storage.h"
#include "coordinator/daemon/shared/nonce_file.h"

#define NONCE      "%016" PRIx64 " %016" PRIx64
#define SCAN_NONCE "%16" SCNx64 " %16" SCNx64

static const struct log_nonce none;

static cadre_status draw(struct log_nonce *ret_nonce, struct cadre_error *error)
{
    *ret_nonce = none;
    while (log_nonce_equal(*ret_nonce, none)) {
        if (RAND_bytes((unsigned char *)ret_nonce, sizeof *ret_nonce) != 1) {
            return cadre_error_set(error, CADRE_UNAVAILABLE, "the system gives no random bytes");
        }
    }
    return CADRE_OK;
}

cadre_status contents_folder_make(const char *contents, struct log_nonce cluster,
    char ret_text[CONTENTS_FOLDER_TEXT_BYTES], struct cadre_error *error)
{
    struct log_nonce folder;
    ret_text[0] = '\0';
    CADRE_TRY(nonce_file_read(contents, NONCE_FILE_FOLDER, &folder, error));
    if (log_nonce_equal(folder, none)) {
        CADRE_TRY(draw(&folder, error));
        CADRE_TRY(nonce_file_write_once(contents, NONCE_FILE_FOLDER, folder, error));
        CADRE_TRY(nonce_file_read(contents, NONCE_FILE_FOLDER, &folder, error));
    }
    snprintf(ret_text, CONTENTS_FOLDER_TEXT_BYTES, NONCE " " NONCE, cluster.high, cluster.low,
        folder.high, folder.low);
    return CADRE_OK;
}

cadre_status contents_folder_check(const char *contents, struct log_nonce cluster, const char *text,
    bool *ret_named, struct cadre_error *error)
{
    struct log_nonce of, wanted, folder;
    *ret_named = sscanf(text, SCAN_NONCE " " SCAN_NONCE, &of.high, &of.low, &wanted.high,
                     &wanted.low) == 4 &&
                 log_nonce_equal(of, cluster);
    if (!*ret_named) {
        return CADRE_OK;
    }
    CADRE_TRY(nonce_file_read(contents, NONCE_FILE_FOLDER, &folder, error));
    if (log_nonce_equal(folder, wanted)) {
        return CADRE_OK;
    }
    if (storage_is_object(contents)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "--contents %.120s is another folder than the one that this cluster's coordinators "
            "share, for its object %s %s: name that one; or copy its contents here, with "
            "--copy-contents FOLDER and the options of now, while no coordinator runs; if this is "
            "it, without that object, put one with the line \"" NONCE "\"",
            contents, NONCE_FILE_FOLDER,
            log_nonce_equal(folder, none) ? "is missing" : "has another number", wanted.high,
            wanted.low);
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "--contents %.120s is another folder than the one that this cluster's coordinators share, "
        "for its file %s %s: name or mount that one; if this is it, restored without the file, "
        "write there the line \"" NONCE "\"",
        contents, NONCE_FILE_FOLDER,
        log_nonce_equal(folder, none) ? "is missing" : "has another number", wanted.high,
        wanted.low);
}
