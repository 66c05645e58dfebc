/* SPDX-License-Identifier: Apache-2.0
 * Packs a launch into a memfd and reads it: a header, then the note, then texts, each with the
 * zero byte at its end: program, folder, listen ("" is none), arguments, environment. */
#include "worker/host/keeper/packed_launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "worker/host/keeper/messages.h"

#define MAGIC UINT64_C(0x636164726b656570)

struct header {
    uint64_t magic;
    uint32_t version;
    uint32_t terminal; /* where an earlier version had four bytes of padding */
    struct task_confinement confinement;
    uint64_t orphan_ms;
    uint64_t grace_ms;
    uint64_t note_bytes;
    uint64_t argument_count;
    uint64_t variable_count;
};

_Static_assert(offsetof(struct header, confinement) == 16,
    "a daemon reads the launch of a keeper that an earlier version started");

static size_t packed_launch_count(char *const *items)
{
    size_t number = 0;
    while (items[number] != NULL) {
        number++;
    }
    return number;
}

static cadre_status put_text(int fd, const char *text, struct cadre_error *error)
{
    return file_write_all(fd, "a task's launch", text, strlen(text) + 1, error);
}

static cadre_status packed_launch_put(
    int fd, const struct keeper_launch *made, struct cadre_error *error)
{
    const struct launch *launch = &made->launch;
    struct header header = {.magic = MAGIC,
        .version = KEEPER_VERSION,
        .terminal = launch->terminal,
        .confinement = launch->confinement,
        .orphan_ms = made->orphan_ms,
        .grace_ms = made->grace_ms,
        .note_bytes = made->note_bytes,
        .argument_count = packed_launch_count(launch->argv),
        .variable_count = packed_launch_count(launch->environment)};
    CADRE_TRY(file_write_all(fd, "a task's launch", &header, sizeof header, error));
    CADRE_TRY(file_write_all(fd, "a task's launch", made->note, made->note_bytes, error));
    CADRE_TRY(put_text(fd, launch->program, error));
    CADRE_TRY(put_text(fd, launch->folder, error));
    CADRE_TRY(put_text(fd, made->listen != NULL ? made->listen : "", error));
    for (size_t i = 0; launch->argv[i] != NULL; i++) {
        CADRE_TRY(put_text(fd, launch->argv[i], error));
    }
    for (size_t i = 0; launch->environment[i] != NULL; i++) {
        CADRE_TRY(put_text(fd, launch->environment[i], error));
    }
    return CADRE_OK;
}

cadre_status packed_launch_make(
    const struct keeper_launch *launch, int *ret_fd, struct cadre_error *error)
{
    int fd = memfd_create("cadre-launch", MFD_CLOEXEC);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "no memory for what a task is started with");
    }
    cadre_status status = packed_launch_put(fd, launch, error);
    if (status != CADRE_OK) {
        close(fd);
        return status;
    }
    *ret_fd = fd;
    return CADRE_OK;
}

/* The next text; NULL when it is not whole. */
static char *take_text(char **at, const char *end)
{
    char *text = *at;
    char *zero = memchr(text, '\0', (size_t)(end - text));
    if (zero == NULL) {
        return NULL;
    }
    *at = zero + 1;
    return text;
}

static bool take_texts(char **at, const char *end, char **texts, size_t number)
{
    bool whole = true;
    for (size_t i = 0; i < number && whole; i++) {
        texts[i] = take_text(at, end);
        whole = texts[i] != NULL;
    }
    return whole;
}

static bool packed_launch_take(struct packed_launch *packed)
{
    struct header header;
    char *at = packed->memory;
    const char *end = at + packed->memory_bytes;
    if (packed->memory_bytes < sizeof header) {
        return false;
    }
    memcpy(&header, at, sizeof header);
    at += sizeof header;
    size_t left = (size_t)(end - at);
    if (header.magic != MAGIC || header.version != KEEPER_VERSION || header.note_bytes > left ||
        header.argument_count > left || header.variable_count > left) {
        return false;
    }
    struct keeper_launch *made = &packed->launch;
    made->orphan_ms = header.orphan_ms;
    made->grace_ms = header.grace_ms;
    made->note = at;
    made->note_bytes = (size_t)header.note_bytes;
    at += header.note_bytes;
    size_t arguments = (size_t)header.argument_count;
    size_t variables = (size_t)header.variable_count;
    packed->texts = calloc(arguments + variables + 3, sizeof *packed->texts);
    char *firsts[3];
    if (packed->texts == NULL || !take_texts(&at, end, firsts, 3) ||
        !take_texts(&at, end, packed->texts, arguments) ||
        !take_texts(&at, end, packed->texts + arguments + 1, variables)) {
        return false;
    }
    made->listen = firsts[2][0] != '\0' ? firsts[2] : NULL;
    made->launch = (struct launch){.program = firsts[0],
        .folder = firsts[1],
        .argv = packed->texts,
        .environment = packed->texts + arguments + 1,
        .outputs = {-1, -1},
        .inherited = -1,
        .terminal = header.terminal != 0,
        .confinement = header.confinement};
    return true;
}

cadre_status packed_launch_read(int fd, struct packed_launch *ret_packed, struct cadre_error *error)
{
    struct stat status;
    *ret_packed = (struct packed_launch){0};
    if (fstat(fd, &status) != 0 || status.st_size <= 0) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "what a task was started with is not there");
    }
    size_t size = (size_t)status.st_size;
    void *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED) {
        return cadre_error_errno(error, errno, "cannot read what a task was started with");
    }
    ret_packed->memory = memory;
    ret_packed->memory_bytes = size;
    if (!packed_launch_take(ret_packed)) {
        packed_launch_free(ret_packed);
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "what a task was started with is not whole, or of another version");
    }
    return CADRE_OK;
}

void packed_launch_free(struct packed_launch *packed)
{
    free(packed->texts);
    if (packed->memory != NULL) {
        munmap(packed->memory, packed->memory_bytes);
    }
    *packed = (struct packed_launch){0};
}
