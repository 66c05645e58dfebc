/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/store/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/lib/test.h"

static const char *disk;

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return written;
}

static bool become_root_of_a_namespace(void)
{
    char users[64];
    char groups[64];
    snprintf(users, sizeof users, "0 %u 1", (unsigned)geteuid());
    snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getegid());
    return unshare(CLONE_NEWUSER) == 0 && write_text("/proc/self/uid_map", users) &&
           write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/gid_map", groups);
}

const char *small_disk_open(const char *size)
{
    char options[64];
    snprintf(options, sizeof options, "size=%s", size);
    disk = test_temp_dir();
    if (geteuid() != 0 && !become_root_of_a_namespace()) {
        return NULL;
    }
    bool mounted = unshare(CLONE_NEWNS) == 0 &&
                   mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                   mount("none", disk, "tmpfs", 0, options) == 0;
    return mounted ? disk : NULL;
}

void small_disk_grow(const char *size)
{
    char options[64];
    snprintf(options, sizeof options, "size=%s", size);
    assert_int_equal(mount(NULL, disk, NULL, MS_REMOUNT, options), 0);
}

void small_disk_keep_free(unsigned bytes)
{
    char path[TEST_PATH_BYTES];
    char filler[1024] = {0};
    struct statvfs room;
    int fd = open(test_path(path, disk, "filler"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (fstatvfs(fd, &room) == 0 && room.f_bavail * room.f_bsize > bytes &&
           write(fd, filler, sizeof filler) > 0) {
    }
    close(fd);
}

void small_disk_close(void)
{
    umount2(disk, MNT_DETACH);
}
