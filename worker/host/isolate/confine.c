/* SPDX-License-Identifier: Apache-2.0
 * What a child does between fork and exec: nothing here allocates, locks or formats. */
#include "worker/host/isolate/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char procs[] = "/cgroup.procs";

static bool confine_join(const char *folder)
{
    char path[CGROUP_PATH_BYTES + sizeof procs];
    size_t length = strnlen(folder, CGROUP_PATH_BYTES - 1);
    memcpy(path, folder, length);
    memcpy(path + length, procs, sizeof procs);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool joined = write(fd, "0", 1) == 1; /* 0: the writer */
    int errnum = errno;
    close(fd);
    errno = errnum;
    return joined;
}

static bool join_all(const struct task_cgroup *group)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (group->folders[i][0] != '\0' && !confine_join(group->folders[i])) {
            return false;
        }
    }
    return true;
}

static bool confine_limit(int resource, uint64_t most)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)resource, &now) != 0) {
        return false;
    }
    rlim_t wanted = (rlim_t)most < now.rlim_max ? (rlim_t)most : now.rlim_max;
    struct rlimit then = {.rlim_cur = wanted, .rlim_max = wanted};
    return setrlimit((__rlimit_resource_t)resource, &then) == 0;
}

static bool set_limits(const struct task_confinement *confinement)
{
    return confinement->processes_max == 0 ||
           confine_limit(RLIMIT_NPROC, confinement->processes_max);
}

/* The process that started us may have a lower oom_score_adj; a task must not. */
static bool reset_oom_score(void)
{
    static const char path[] = "/proc/self/oom_score_adj";
    char sign = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return true; /* without the file there is no such score */
    }
    bool spared = read(fd, &sign, 1) == 1 && sign == '-';
    close(fd);
    if (!spared) {
        return true;
    }
    fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, "0", 1) == 1;
    int errnum = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = errnum;
    return done;
}

static bool become_user(const struct task_confinement *confinement)
{
    return !confinement->change_user ||
           (setgroups(0, NULL) == 0 &&
               setresgid(confinement->gid, confinement->gid, confinement->gid) == 0 &&
               setresuid(confinement->uid, confinement->uid, confinement->uid) == 0);
}

static bool no_new_privileges(void)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

bool confine_self(const struct task_confinement *confinement, const char **ret_step)
{
    const char *step = "join its control group";
    bool done = join_all(&confinement->group);
    if (done) {
        step = "set its limits";
        done = set_limits(confinement);
    }
    if (done) {
        step = "give up its protection when memory is short";
        done = reset_oom_score();
    }
    if (done) {
        step = "become its user";
        done = become_user(confinement);
    }
    if (done) {
        step = "give up gaining rights";
        done = no_new_privileges();
    }
    if (confinement->umask != 0) {
        umask(confinement->umask);
    }
    if (!done && ret_step != NULL) {
        *ret_step = step;
    }
    return done;
}
