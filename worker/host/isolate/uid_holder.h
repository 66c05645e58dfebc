/* SPDX-License-Identifier: Apache-2.0
 * A process that does nothing but be a uid: as long as it lives no other daemon of this kernel
 * takes the uid. Daemons in containers and chroots share no folder in which they could tell each
 * other what they hold, but the kernel counts the processes of a uid over all of them, and refuses
 * a fork beyond RLIMIT_NPROC: who is alone under a uid learns so by one fork, and two who come at
 * one time both learn that they are not. */
#ifndef CADRE_WORKER_ISOLATE_UID_HOLDER_H
#define CADRE_WORKER_ISOLATE_UID_HOLDER_H

#include <stdbool.h>
#include <sys/types.h>

struct uid_holder {
    pid_t pid; /* 0: there is none */
    int fd;    /* a socket; the holder ends when it is closed, with the daemon as well */
};

enum uid_holder_status {
    UID_HOLDER_ALONE,     /* no other process of the kernel runs under the uid */
    UID_HOLDER_NOT_ALONE, /* one does: also one that ended, and that nobody has waited for */
    UID_HOLDER_GONE       /* it was killed, as whoever runs under the uid can do, or never began */
};

/* A child of the caller, in its session, with none of its descriptors. For root, or the
 * capabilities to become another user. All of these may be called in any thread. */
enum uid_holder_status uid_holder_open(uid_t uid, struct uid_holder *ret_holder);
void uid_holder_close(struct uid_holder *holder);

enum uid_holder_status uid_holder_check(const struct uid_holder *holder);
/* Kills all that runs under the uid and that the caller's pid namespace shows, at one stroke: a
 * program that forks and ends, on and on, cannot be killed by its number. */
enum uid_holder_status uid_holder_kill(const struct uid_holder *holder);
/* Removes the uid's objects of System V, which are not for root to remove unless it may do
 * everything. */
enum uid_holder_status uid_holder_clear(const struct uid_holder *holder);

#endif
