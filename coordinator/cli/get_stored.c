/* SPDX-License-Identifier: Apache-2.0
 * Called by get.c. */
#include "coordinator/cli/get_stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/checkpoint/named.h"
#include "common/storage/storage.h"

#define FOLDER "checkpoints/"

struct stored_checkpoint {
    const cadre_stored_checkpoint *ledger; /* what the coordinator has of it */
    struct checkpoint_named named;
    struct cadre_error error; /* why it cannot be read; CADRE_OK: it was read */
};

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the list of outputs");
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static cadre_status read_checkpoint(struct storage_client *client,
    const cadre_stored_checkpoint *ledger, struct stored_checkpoint *checkpoint,
    struct cadre_error *error)
{
    CADRE_TRY(checkpoint_named_read(client, ledger->path, &checkpoint->named, error));
    return memcmp(checkpoint->named.sha256, ledger->manifest_sha256,
               sizeof ledger->manifest_sha256) == 0
               ? CADRE_OK
               : cadre_error_set(error, CADRE_DATA_LOSS,
                     "the manifest %s is not the one that the job published: it was written over "
                     "since",
                     ledger->path);
}

static bool add_output(struct stored_outputs *stored, const char *name, uint64_t bytes)
{
    char *path = NULL;
    if (asprintf(&path, FOLDER "%s", name) < 0) {
        return false;
    }
    stored->texts[stored->text_count++] = path;
    stored->outputs[stored->list.count++] = (cadre_output){.path = path, .size_bytes = bytes};
    return true;
}

static bool add_checkpoint(struct stored_outputs *stored, const cadre_stored_checkpoint *ledger)
{
    struct stored_checkpoint *checkpoint = &stored->checkpoints[stored->count++];
    const struct checkpoint_content *content = &checkpoint->named.content;
    checkpoint->ledger = ledger;
    if (read_checkpoint(stored->client, ledger, checkpoint, &checkpoint->error) == CADRE_OK &&
        !add_output(stored, content->file_name, content->file_bytes)) {
        return false;
    }
    return add_output(stored, name_of(ledger->path), ledger->manifest_bytes);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const cadre_output *)a)->path, ((const cadre_output *)b)->path);
}

cadre_status stored_outputs_open(const cadre_output_list *list, bool read,
    struct stored_outputs *ret_stored, struct cadre_error *error)
{
    const struct storage_options options = {.objects_only = true};
    size_t count = read ? list->stored.count : 0;
    *ret_stored = (struct stored_outputs){
        .list = {.count = list->count, .more = list->more, .folder = list->folder},
        .checkpoints = calloc(count + 1, sizeof *ret_stored->checkpoints),
        .texts = calloc(2 * count + 1, sizeof *ret_stored->texts),
        .outputs = calloc(list->count + 2 * count + 1, sizeof *ret_stored->outputs)};
    if (ret_stored->checkpoints == NULL || ret_stored->texts == NULL ||
        ret_stored->outputs == NULL) {
        return no_memory(error);
    }
    CADRE_TRY(storage_client_open(&options, &ret_stored->client, error));
    ret_stored->list.outputs = ret_stored->outputs;
    if (list->count > 0) {
        memcpy(ret_stored->outputs, list->outputs, list->count * sizeof *list->outputs);
    }
    for (size_t i = 0; i < count; i++) {
        if (!add_checkpoint(ret_stored, &list->stored.checkpoints[i])) {
            return no_memory(error);
        }
    }
    qsort(ret_stored->outputs, ret_stored->list.count, sizeof *ret_stored->outputs, by_path);
    return CADRE_OK;
}

void stored_outputs_close(struct stored_outputs *stored)
{
    for (size_t i = 0; i < stored->count; i++) {
        checkpoint_named_free(&stored->checkpoints[i].named);
    }
    for (size_t i = 0; i < stored->text_count; i++) {
        free(stored->texts[i]);
    }
    storage_client_close(stored->client);
    free(stored->checkpoints);
    free(stored->texts);
    free(stored->outputs);
    *stored = (struct stored_outputs){0};
}

const struct cadre_error *stored_outputs_fault(const struct stored_outputs *stored)
{
    for (size_t i = 0; i < stored->count; i++) {
        if (stored->checkpoints[i].error.code != CADRE_OK) {
            return &stored->checkpoints[i].error;
        }
    }
    return NULL;
}

/* *ret_tensors: it is the file of tensors, else the manifest. NULL: it does not lie there. */
static const struct stored_checkpoint *find(
    const struct stored_outputs *stored, const char *path, bool *ret_tensors)
{
    if (strncmp(path, FOLDER, strlen(FOLDER)) != 0) {
        return NULL;
    }
    const char *name = path + strlen(FOLDER);
    for (size_t i = 0; i < stored->count; i++) {
        const struct stored_checkpoint *checkpoint = &stored->checkpoints[i];
        *ret_tensors = strcmp(name, checkpoint->named.content.file_name) == 0;
        if (*ret_tensors || strcmp(name, name_of(checkpoint->ledger->path)) == 0) {
            return checkpoint;
        }
    }
    return NULL;
}

bool stored_outputs_has(const struct stored_outputs *stored, const char *path)
{
    bool tensors = false;
    return find(stored, path, &tensors) != NULL;
}

cadre_status stored_outputs_fetch(const struct stored_outputs *stored, const char *path, int fd,
    void (*each)(void *user), void *user, struct cadre_error *error)
{
    bool tensors = false;
    const struct stored_checkpoint *checkpoint = find(stored, path, &tensors);
    if (checkpoint->error.code != CADRE_OK) {
        *error = checkpoint->error;
        return error->code;
    }
    const struct checkpoint_named *named = &checkpoint->named;
    return tensors ? checkpoint_named_copy_tensors(stored->client, named, fd, each, user, error)
                   : file_write_all(fd, path, named->text, named->text_bytes, error);
}
