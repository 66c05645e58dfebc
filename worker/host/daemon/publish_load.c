/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "worker/host/daemon/task_files.h"
#include "worker/host/daemon/publish_state.h"

static cadre_status publish_load_changed(
    const struct publish_source *source, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "%s is not what the program reported that it wrote: it was changed since", source->path);
}

static cadre_status read_manifest(struct publish_source *source, struct cadre_error *error)
{
    struct sha256 made;
    int opened = -1;
    CADRE_TRY(open_beneath(source->folder, source->path, &opened, &source->files[0], error));
    CADRE_CLOSE_AT_EXIT int fd = opened;
    size_t size = (size_t)source->files[0].st_size;
    if (size != source->manifest_bytes || size > LIMIT_MANIFEST_BYTES) {
        return publish_load_changed(source, error);
    }
    source->manifest = malloc(size > 0 ? size : 1);
    if (source->manifest == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to read %s", source->path);
    }
    size_t got = 0;
    while (got < size) {
        ssize_t more = read(fd, source->manifest + got, size - got);
        if (more <= 0) {
            return publish_load_changed(source, error);
        }
        got += (size_t)more;
    }
    CADRE_TRY(sha256_of(source->manifest, size, &made, error));
    return memcmp(made.bytes, source->manifest_sha256, sizeof made.bytes) == 0
               ? CADRE_OK
               : publish_load_changed(source, error);
}

/* The file lies beside its manifest. */
static cadre_status open_file(struct publish_source *source, struct cadre_error *error)
{
    char name[2 * LIMIT_FILE_NAME_BYTES];
    const char *slash = strrchr(source->path, '/');
    int folder_bytes = slash != NULL ? (int)(slash - source->path) + 1 : 0;
    snprintf(name, sizeof name, "%.*s%s", folder_bytes, source->path, source->content.file_name);
    CADRE_TRY(file_name_check(name, error));
    CADRE_TRY(open_beneath(source->folder, name, &source->fd, &source->files[1], error));
    uint64_t size = (uint64_t)source->files[1].st_size;
    if (size != source->content.file_bytes) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s has %" PRIu64 " bytes, not the %" PRIu64 " of its manifest", name, size,
            source->content.file_bytes);
    }
    return CADRE_OK;
}

cadre_status publish_load(struct publish_source *source, struct cadre_error *error)
{
    CADRE_TRY(file_name_check(source->path, error));
    CADRE_TRY(read_manifest(source, error));
    CADRE_TRY(checkpoint_content_read(
        source->manifest, (size_t)source->manifest_bytes, &source->content, error));
    return open_file(source, error);
}

const uint8_t *publish_hash(const struct publish_source *source, size_t content)
{
    return content < source->content.block_count ? source->content.blocks[content].sha256
                                                 : source->manifest_sha256;
}

void publish_source_free(struct publish_source *source)
{
    if (source->fd >= 0) {
        close(source->fd);
    }
    checkpoint_content_free(&source->content);
    free(source->manifest);
    free(source->path);
    free(source->folder);
    *source = (struct publish_source){.fd = -1};
}
