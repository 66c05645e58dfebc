/* SPDX-License-Identifier: Apache-2.0
 * What is done as the user of a job.
 *
 * The kernel checks who opens a file by the thread's effective user. That of this thread is changed
 * by the system calls, because the library's functions change all threads. The real and the saved
 * user stay root's: the job's processes can send it no signal. */
#include "worker/host/isolate/user_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/pure/assert.h"

/* This thread's, before. */
struct own_user {
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    int group_count;
    int dumpable; /* the kernel resets it when a user changes */
};

static bool remember(struct own_user *own)
{
    *own = (struct own_user){.uid = geteuid(), .gid = getegid()};
    own->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    own->group_count = getgroups(0, NULL);
    own->groups = calloc((size_t)own->group_count + 1, sizeof *own->groups);
    if (own->groups == NULL) {
        return false;
    }
    own->group_count = getgroups(own->group_count, own->groups);
    return own->group_count >= 0;
}

static bool become(uid_t uid, gid_t gid)
{
    return syscall(SYS_setgroups, 0, NULL) == 0 && syscall(SYS_setresgid, -1, gid, -1) == 0 &&
           syscall(SYS_setresuid, -1, uid, -1) == 0;
}

/* The user first: it may change the others. */
static void become_again(const struct own_user *own)
{
    bool done = syscall(SYS_setresuid, -1, own->uid, -1) == 0 &&
                syscall(SYS_setresgid, -1, own->gid, -1) == 0 &&
                syscall(SYS_setgroups, own->group_count, own->groups) == 0;
    CADRE_ASSERT(done); /* a thread of this daemon must not go on as another user */
    if (own->dumpable == 1) {
        (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    }
}

cadre_status user_call(const struct isolation_user *user, void (*call)(void *context),
    void *context, struct cadre_error *error)
{
    struct own_user own;
    cadre_status status = CADRE_OK;
    if (!user->change) {
        call(context);
        return CADRE_OK;
    }
    if (!remember(&own)) {
        status = cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to become a job's user");
    } else {
        if (become(user->uid, user->gid)) {
            call(context);
        } else {
            status = cadre_error_errno(error, errno, "cannot become user %u", user->uid);
        }
        become_again(&own);
    }
    free(own.groups);
    return status;
}

/* ---- a file ---- */

struct opening {
    const char *path;
    int fd;
    uint64_t size;
    struct cadre_error error;
};

static void open_file(void *context)
{
    struct opening *opening = context;
    (void)file_open_regular(opening->path, &opening->fd, &opening->size, &opening->error);
}

cadre_status user_file_read(const struct isolation_user *user, const char *path, size_t limit_bytes,
    char **ret_bytes, size_t *ret_size, struct cadre_error *error)
{
    struct opening opening = {.path = path, .fd = -1};
    CADRE_TRY(user_call(user, open_file, &opening, error));
    CADRE_CLOSE_AT_EXIT int fd = opening.fd;
    if (opening.error.code != CADRE_OK) {
        *error = opening.error;
        return error->code;
    }
    return file_read_fd(fd, path, opening.size, limit_bytes, ret_bytes, ret_size, error);
}
