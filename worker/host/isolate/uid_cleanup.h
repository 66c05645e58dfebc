/* SPDX-License-Identifier: Apache-2.0
 * Removes what a uid leaves on the host: the next job that has the uid must not find it. What
 * another daemon of this kernel runs under the same uid must stay. */
#ifndef CADRE_WORKER_ISOLATE_UID_CLEANUP_H
#define CADRE_WORKER_ISOLATE_UID_CLEANUP_H

#include <stdbool.h>
#include <sys/types.h>

/* A process that holds a uid: as long as it runs no other daemon of this kernel takes the uid.
 * Daemons in containers and chroots share no folder in which they could lock what they hold, but
 * the kernel counts the processes of a uid over all of them, and refuses a fork beyond
 * RLIMIT_NPROC: one fork shows whether a holder is alone under its uid, and two that start at
 * one time both find that they are not. */

struct uid_holder {
    pid_t pid; /* 0: there is none */
    int fd;    /* a socket; the holder ends when it is closed, with the daemon as well */
};

enum uid_holder_status {
    UID_HOLDER_ALONE,     /* no other process of the kernel runs under the uid */
    UID_HOLDER_NOT_ALONE, /* one does: also one that ended and was not waited for */
    UID_HOLDER_GONE       /* it was killed, as a process of the uid can do, or never began */
};

/* Starts a holder: a child of the caller, in its session, with none of its descriptors. For
 * root, or the capabilities to become another user. All of these may be called in any thread. */
enum uid_holder_status uid_holder_open(uid_t uid, struct uid_holder *ret_holder);
/* Ends it; nothing for {0}. */
void uid_holder_close(struct uid_holder *holder);

/* Counts the processes of the uid again. */
enum uid_holder_status uid_holder_check(const struct uid_holder *holder);
/* Kills all processes of the uid that the caller's pid namespace shows, at once: a program that
 * forks and ends, on and on, cannot be killed by its number. */
enum uid_holder_status uid_holder_kill(const struct uid_holder *holder);
/* Removes the uid's objects of System V, which root without all capabilities cannot remove. */
enum uid_holder_status uid_holder_clear(const struct uid_holder *holder);

/* Makes `holder` hold the uid; then removes what is left of it: System V memory, queues and
 * semaphores, and files and folders at the top of /tmp, /var/tmp, /dev/shm and /dev/mqueue. What
 * cannot be removed stays. False: something runs under the uid, nothing was touched, and the uid
 * is not held. For root, or the capabilities to kill, to become another user and to remove its
 * files. Thread-safe. */
bool uid_cleanup_claim(uid_t uid, struct uid_holder *holder);

/* Kills what this process started under the uid, a job's own: its descendants and those of the
 * children that died, which it adopts as a subreaper. Then, when nothing else runs under it
 * either, removes what belongs to it, as above; else the next uid_cleanup_claim does that. The
 * holder, if any is left, ends. */
void uid_cleanup_remove(uid_t uid, struct uid_holder *holder);

#endif
