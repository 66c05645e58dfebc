/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/agent/agent.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

/* The part of a header that 32 and 64 bit share. */
struct head {
    unsigned char ident[EI_NIDENT];
    Elf64_Half type;
    Elf64_Half machine;
};

static size_t read_head(int fd, struct head *ret_head)
{
    *ret_head = (struct head){0};
    ssize_t size = pread(fd, ret_head, sizeof *ret_head, 0);
    return size > 0 ? (size_t)size : 0;
}

/* As this process is itself. */
static bool fits_host(const struct head *head)
{
    struct head own;
    CADRE_CLOSE_AT_EXIT int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read_head(fd, &own) < sizeof own) {
        return true; /* an architecture without an entry here: the kernel decides */
    }
    if (head->ident[EI_DATA] != own.ident[EI_DATA]) {
        return false;
    }
    return head->machine == own.machine || (own.machine == EM_X86_64 && head->machine == EM_386);
}

cadre_status executable_check(
    const char *folder, const char *program, const char *name, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    if (program[0] != '/' && asprintf(&path, "%s/%s", folder, program) < 0) {
        path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to start %s", name);
    }
    int opened = -1;
    if (file_open_regular(path != NULL ? path : program, &opened, NULL, NULL) != CADRE_OK) {
        return CADRE_OK;
    }
    CADRE_CLOSE_AT_EXIT int fd = opened;
    struct head head;
    size_t size = read_head(fd, &head);
    if (size >= 2 && memcmp(head.ident, "#!", 2) == 0) {
        return CADRE_OK;
    }
    if (size < sizeof head || memcmp(head.ident, ELFMAG, SELFMAG) != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cannot start %s: it is neither a program nor a script whose first line is \"#!\" and "
            "an interpreter",
            name);
    }
    if (!fits_host(&head)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cannot start %s: it is built for another architecture than this host's", name);
    }
    return CADRE_OK;
}
