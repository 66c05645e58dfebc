/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/nonce_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/storage/storage.h"

#define TEXT_BYTES 64

/* The loop waits for it. */
#define OBJECT_DEADLINE_US (5 * CADRE_US_PER_S)

static char *path_of(const char *folder, const char *name)
{
    return storage_join(folder, name);
}

static int text_of(struct log_nonce nonce, char ret_text[TEXT_BYTES])
{
    return snprintf(ret_text, TEXT_BYTES, "%016" PRIx64 " %016" PRIx64 "\n", nonce.high, nonce.low);
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
}

/* ---- of an object store: written once, so what was read stays true ---- */

#define KEPT_MAX 4

static struct kept {
    char *path;
    struct log_nonce nonce;
} kept[KEPT_MAX]; /* the loop's */

static bool find_kept(const char *path, struct log_nonce *ret_nonce)
{
    for (size_t i = 0; i < KEPT_MAX && kept[i].path != NULL; i++) {
        if (strcmp(kept[i].path, path) == 0) {
            *ret_nonce = kept[i].nonce;
            return true;
        }
    }
    return false;
}

static void keep(const char *path, struct log_nonce nonce)
{
    size_t i = 0;
    while (i < KEPT_MAX && kept[i].path != NULL) {
        i++;
    }
    char *own = i < KEPT_MAX ? strdup(path) : NULL;
    if (own != NULL) {
        kept[i] = (struct kept){.path = own, .nonce = nonce};
    }
}

static cadre_status open_client(struct storage_client **ret_client, struct cadre_error *error)
{
    const struct storage_options options = {.deadline_us = OBJECT_DEADLINE_US};
    return storage_client_open(&options, ret_client, error);
}

static cadre_status read_object(
    const char *path, char **ret_text, size_t *ret_size, struct cadre_error *error)
{
    struct storage_client *client = NULL;
    struct cadre_error why = {0};
    CADRE_TRY(open_client(&client, error));
    cadre_status status = storage_get(client, path, TEXT_BYTES, ret_text, ret_size, &why);
    storage_client_close(client);
    if (status != CADRE_OK && status != CADRE_NOT_FOUND) {
        *error = why;
        return status;
    }
    return CADRE_OK;
}

static cadre_status write_object_once(
    const char *path, const char *text, size_t size, struct cadre_error *error)
{
    struct storage_client *client = NULL;
    bool was_there = false;
    CADRE_TRY(open_client(&client, error));
    cadre_status status = storage_put_if_absent(client, path, text, size, &was_there, error);
    storage_client_close(client);
    return status;
}

/* ---- of a folder ---- */

cadre_status nonce_file_write(
    const char *folder, const char *name, struct log_nonce nonce, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of(folder, name);
    char text[TEXT_BYTES];
    int length = text_of(nonce, text);
    return path != NULL ? file_write_atomic(path, text, (size_t)length, 0600, error)
                        : no_memory(error);
}

/* A file of another name is written, and gets the name that counts only if no file has it. */
cadre_status nonce_file_write_once(
    const char *folder, const char *name, struct log_nonce nonce, struct cadre_error *error)
{
    char own_name[TEXT_BYTES];
    if (storage_is_object(folder)) {
        CADRE_FREE_AT_EXIT char *object = storage_join(folder, name);
        char text[TEXT_BYTES];
        int length = text_of(nonce, text);
        return object != NULL ? write_object_once(object, text, (size_t)length, error)
                              : no_memory(error);
    }
    snprintf(own_name, sizeof own_name, "%s.%d.%016" PRIx64, name, (int)getpid(), nonce.low);
    CADRE_FREE_AT_EXIT char *own = path_of(folder, own_name);
    CADRE_FREE_AT_EXIT char *path = path_of(folder, name);
    if (own == NULL || path == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(nonce_file_write(folder, own_name, nonce, error));
    bool made = link(own, path) == 0;
    int why = errno;
    nonce_file_remove(folder, own_name);
    if (!made && why != EEXIST) {
        return cadre_error_errno(error, why, "cannot make %s", path);
    }
    return folder_sync(folder, error);
}

cadre_status nonce_file_read(
    const char *folder, const char *name, struct log_nonce *ret_nonce, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of(folder, name);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    *ret_nonce = (struct log_nonce){0};
    if (path == NULL) {
        return no_memory(error);
    }
    if (storage_is_object(folder)) {
        if (find_kept(path, ret_nonce)) {
            return CADRE_OK;
        }
        CADRE_TRY(read_object(path, &text, &size, error));
        if (text == NULL) {
            return CADRE_OK;
        }
    } else if (access(path, F_OK) != 0) {
        return errno == ENOENT ? CADRE_OK
                               : cadre_error_errno(error, errno, "cannot look for %s", path);
    } else {
        CADRE_TRY(file_read(path, TEXT_BYTES, &text, &size, error));
    }
    struct log_nonce nonce;
    if (sscanf(text, "%16" SCNx64 " %16" SCNx64, &nonce.high, &nonce.low) != 2 ||
        log_nonce_equal(nonce, (struct log_nonce){0})) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s does not hold two numbers of 16 hexadecimal digits: put that file back, or remove "
            "it",
            path);
    }
    *ret_nonce = nonce;
    if (storage_is_object(folder)) {
        keep(path, nonce);
    }
    return CADRE_OK;
}

void nonce_file_remove(const char *folder, const char *name)
{
    CADRE_FREE_AT_EXIT char *path = path_of(folder, name);
    if (path != NULL) {
        (void)unlink(path);
    }
}
