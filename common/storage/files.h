/* SPDX-License-Identifier: Apache-2.0
 * Files behind storage.h: the same promises as of objects. What is being written lies beside its
 * path under a name that begins with FILES_HIDDEN, which no list shows. */
#ifndef CADRE_STORAGE_FILES_H
#define CADRE_STORAGE_FILES_H

#include "common/storage/storage.h"

#define FILES_HIDDEN            ".storage-"
#define FILES_UPLOAD_NAME_BYTES 8

/* As storage_open(); the descriptor is the caller's. */
cadre_status files_open(
    const char *path, int *ret_fd, struct storage_info *ret_info, struct cadre_error *error);
/* As storage_read(). */
cadre_status files_read(
    int fd, const char *path, uint64_t offset, void *to, size_t bytes, struct cadre_error *error);
/* As storage_list(); a folder that does not exist has nothing beneath it, as in a store. Links are
 * followed, but by `deep` not those to folders. */
cadre_status files_list(const char *folder, const char *starts, bool deep,
    bool (*each)(void *user, const struct storage_entry *entry), void *user,
    struct cadre_error *error);
/* As storage_put(), or with ret_was_there storage_put_if_absent(), which is exact here. */
cadre_status files_put(const char *path, const void *bytes, size_t size, bool *ret_was_there,
    struct cadre_error *error);
/* As storage_remove(). */
cadre_status files_remove(const char *path, struct cadre_error *error);

/* --- in parts: each a file in a folder beside the path, joined at the end --- */

/* As storage_upload_begin(). */
cadre_status files_upload_begin(
    const char *path, char ret_name[FILES_UPLOAD_NAME_BYTES], struct cadre_error *error);
/* NOT_FOUND: there is no such upload to that path. */
cadre_status files_upload_check(const char *path, const char *name, struct cadre_error *error);
/* As storage_upload_part(). */
cadre_status files_upload_part(const char *path, const char *name, uint32_t number,
    const void *bytes, size_t size, struct cadre_error *error);
/* As storage_upload_finish(), but an upload that cannot be finished stays as it is. */
cadre_status files_upload_finish(
    const char *path, const char *name, uint32_t count, struct cadre_error *error);
/* Removes what there is of it. */
void files_upload_abort(const char *path, const char *name);
/* As storage_uploads_clear(). */
cadre_status files_uploads_clear(
    const char *start, int64_t before_us, uint32_t *ret_count, struct cadre_error *error);

/* --- for the two files that implement this --- */

/* A new file beside `path`, whose folder is made; *ret_temporary is the caller's to free. */
cadre_status files_create_beside(
    const char *path, int *ret_fd, char **ret_temporary, struct cadre_error *error);
/* "FOLDER/.storage-MIDDLE-TAIL" beside the path; NULL: no memory. */
char *files_beside(const char *path, const char *middle, const char *tail);

#endif
