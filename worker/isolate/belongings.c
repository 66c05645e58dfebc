/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/isolate/belongings.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

static const char *const folders[] = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"};

static void clear_folder(const char *folder, uid_t uid)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        struct stat about;
        char path[512];
        bool is_entry = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
        if (is_entry && fstatat(dirfd(entries), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            about.st_uid == uid) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            (void)tree_remove(path, NULL);
        }
    }
}

/* What semctl's last argument is; the system's headers leave it to the program. */
union semaphore_argument {
    int value;
    struct semid_ds *about;
    struct seminfo *info;
};

static void clear_memory(uid_t uid)
{
    struct shm_info info;
    int last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);
    for (int i = 0; i <= last; i++) {
        struct shmid_ds about;
        int id = shmctl(i, SHM_STAT, &about);
        if (id >= 0 && about.shm_perm.uid == uid) {
            (void)shmctl(id, IPC_RMID, NULL);
        }
    }
}

static void clear_queues(uid_t uid)
{
    struct msginfo info;
    int last = msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&info);
    for (int i = 0; i <= last; i++) {
        struct msqid_ds about;
        int id = msgctl(i, MSG_STAT, &about);
        if (id >= 0 && about.msg_perm.uid == uid) {
            (void)msgctl(id, IPC_RMID, NULL);
        }
    }
}

static void clear_semaphores(uid_t uid)
{
    struct seminfo info;
    int last = semctl(0, 0, SEM_INFO, (union semaphore_argument){.info = &info});
    for (int i = 0; i <= last; i++) {
        struct semid_ds about;
        int id = semctl(i, 0, SEM_STAT, (union semaphore_argument){.about = &about});
        if (id >= 0 && about.sem_perm.uid == uid) {
            (void)semctl(id, 0, IPC_RMID);
        }
    }
}

void belongings_remove(uid_t uid)
{
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        clear_folder(folders[i], uid);
    }
    clear_memory(uid);
    clear_queues(uid);
    clear_semaphores(uid);
}
