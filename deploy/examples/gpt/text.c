/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

/* Puts the file's bytes behind those that are there. */
static cadre_status join(const char *path, struct text *text)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return cadre_fail(
            CADRE_NOT_FOUND, "the text %s cannot be opened: %s", path, strerror(errno));
    }
    size_t read = 1;
    while (read > 0) {
        const size_t more = (size_t)1 << 20;
        uint8_t *grown = realloc(text->bytes, (size_t)text->size + more);
        if (grown == NULL) {
            fclose(file);
            return cadre_fail(CADRE_RESOURCE_EXHAUSTED, "no memory for the text %s", path);
        }
        text->bytes = grown;
        read = fread(grown + text->size, 1, more, file);
        text->size += (int64_t)read;
    }
    const int failed = ferror(file);
    fclose(file);
    return failed ? cadre_fail(CADRE_DATA_LOSS, "the text %s cannot be read to its end", path)
                  : CADRE_OK;
}

static int plain_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* By bytes, which alphasort is not in every locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static cadre_status join_folder(const char *folder, struct text *text)
{
    struct dirent **entries;
    const int count = scandir(folder, &entries, plain_name, by_name);
    if (count < 0) {
        return cadre_fail(
            CADRE_NOT_FOUND, "the folder %s cannot be read: %s", folder, strerror(errno));
    }
    cadre_status status = CADRE_OK;
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES];
        struct stat found;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (status == CADRE_OK && lstat(path, &found) == 0 && S_ISREG(found.st_mode)) {
            status = join(path, text); /* links would be the same text once more */
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

cadre_status text_read(const char *path, int64_t length, struct text *ret_text)
{
    struct stat found;
    *ret_text = (struct text){0};
    const bool folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
    cadre_status status = folder ? join_folder(path, ret_text) : join(path, ret_text);
    if (status == CADRE_OK && ret_text->size / 10 <= length) {
        status = cadre_fail(CADRE_INVALID_ARGUMENT,
            "the text %s has %lld bytes: a tenth of it, which is held out, has no window of %lld "
            "bytes; give a longer text or a shorter --length",
            path, (long long)ret_text->size, (long long)length);
    }
    if (status != CADRE_OK) {
        text_free(ret_text);
        return status;
    }
    const int64_t held_out = ret_text->size / 10;
    const int64_t training = ret_text->size - held_out;
    ret_text->training = (struct part){ret_text->bytes, training, length};
    ret_text->held_out = (struct part){ret_text->bytes + training, held_out, length};
    return CADRE_OK;
}

void text_free(struct text *text)
{
    free(text->bytes);
    *text = (struct text){0};
}

int64_t text_windows_count(const struct part *part)
{
    return (part->size - 1) / part->length;
}

static cadre_status window(const cadre_element *in, cadre_element *ret_out, void *user)
{
    const struct part *part = user;
    const int64_t number = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    const int64_t dims[1] = {part->length + 1};
    CADRE_TRY(cadre_tensor_from_data(
        CADRE_U8, 1, dims, part->bytes + number * part->length, &ret_out->tensors[0]));
    ret_out->count = 1;
    return CADRE_OK;
}

cadre_dataset *text_windows(struct part *part)
{
    return cadre_dataset_map(
        cadre_dataset_range(0, text_windows_count(part), 1), window, part, NULL);
}
