/* SPDX-License-Identifier: Apache-2.0
 * Finds the cgroup hierarchies of this host, and the folders in them where the daemon may make
 * groups. */
#include "worker/host/isolate/cgroup_tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAF "cadre-daemon"

#define PATH_BYTES 4096
#define OWN_BYTES  240 /* leaves room in CGROUP_PATH_BYTES for groups beneath it */

static const char *const controllers[CGROUP_CONTROLLERS] = {
    [CGROUP_MEMORY] = "memory",
    [CGROUP_PIDS] = "pids",
    [CGROUP_CPU] = "cpu",
    [CGROUP_CPUACCT] = "cpuacct",
    [CGROUP_FREEZER] = "freezer",
};

/* Whether `word` is in a list whose items `separators` separate. */
static bool has_field(const char *list, const char *word, const char *separators)
{
    size_t length = strlen(word);
    while (*list != '\0') {
        size_t size = strcspn(list, separators);
        if (size == length && strncmp(list, word, length) == 0) {
            return true;
        }
        list += size;
        list += strspn(list, separators);
    }
    return false;
}

struct mount {
    char root[PATH_BYTES]; /* the part of the hierarchy that is mounted at `point` */
    char point[PATH_BYTES];
};

/* The mount of the controller's v1 hierarchy; "" is the one of v2. */
static bool find_mount(const char *mounts, const char *controller, struct mount *ret_mount)
{
    FILE *file = fopen(mounts, "re");
    char text_line[3 * PATH_BYTES];
    bool found = false;
    while (file != NULL && !found && fgets(text_line, sizeof text_line, file) != NULL) {
        char type[64];
        char options[PATH_BYTES];
        const char *after = strstr(text_line, " - ");
        found = after != NULL &&
                sscanf(text_line, "%*s %*s %*s %4095s %4095s", ret_mount->root, ret_mount->point) ==
                    2 &&
                sscanf(after, " - %63s %*s %4095s", type, options) == 2 &&
                (controller[0] == '\0'
                        ? strcmp(type, "cgroup2") == 0
                        : strcmp(type, "cgroup") == 0 && has_field(options, controller, ","));
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* The group of this process in it: "N:controllers:path"; v2 is 0 with no controllers. */
static bool find_membership(const char *membership, const char *controller, char path[PATH_BYTES])
{
    FILE *file = fopen(membership, "re");
    char text_line[PATH_BYTES];
    bool found = false;
    while (file != NULL && !found && fgets(text_line, sizeof text_line, file) != NULL) {
        char *list = strchr(text_line, ':');
        char *at = list != NULL ? strchr(list + 1, ':') : NULL;
        if (at == NULL) {
            continue;
        }
        *at++ = '\0';
        at[strcspn(at, "\n")] = '\0';
        found = controller[0] == '\0' ? list[1] == '\0' : has_field(list + 1, controller, ",");
        if (found) {
            memcpy(path, at, strlen(at) + 1);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* A name that does not start with / is relative to the daemon's own folder:
 * ../cadre-tasks.service. */
static bool cgroup_tree_resolve(const char *own, const char *name, char path[PATH_BYTES])
{
    size_t length = name[0] == '/' ? 0 : strlen(own);
    while (name[0] != '/' && strncmp(name, "../", 3) == 0) {
        while (length > 0 && own[--length] != '/') {
        }
        name += 3;
    }
    int size =
        snprintf(path, PATH_BYTES, "%.*s%s%s", (int)length, own, name[0] == '/' ? "" : "/", name);
    return size > 0 && size < PATH_BYTES;
}

/* The daemon's own folder, or the one named, in a hierarchy. In a container only its own part of
 * the hierarchy is mounted, but the membership has the whole path, unless it has a namespace of
 * its own. */
static bool find_own(const struct cgroup_tree_options *options, const char *controller, char *own)
{
    struct mount mount;
    char path[PATH_BYTES];
    char named[PATH_BYTES];
    if (!find_mount(options->mounts, controller, &mount) ||
        !find_membership(options->membership, controller, path)) {
        return false;
    }
    size_t root = strcmp(mount.root, "/") == 0 ? 0 : strlen(mount.root);
    const char *relative = path;
    if (strncmp(path, mount.root, root) == 0 && (path[root] == '/' || path[root] == '\0')) {
        relative = path + root;
    } else if (strncmp(path, "/..", 3) == 0) {
        relative = "/"; /* outside of our namespace: the root of the mount is all that we may use */
    }
    if (options->parent != NULL) {
        if (!cgroup_tree_resolve(relative, options->parent, named)) {
            return false;
        }
        relative = named;
    }
    int size = snprintf(own, CGROUP_PATH_BYTES, "%s%s%s", mount.point,
        relative[0] == '/' || relative[0] == '\0' ? "" : "/", relative);
    while (size > 1 && size < CGROUP_PATH_BYTES && own[size - 1] == '/') {
        own[--size] = '\0';
    }
    return size > 0 && size <= OWN_BYTES;
}

static void __attribute__((format(printf, 2, 3)))
set_reason(struct cgroup_tree *tree, const char *format, ...)
{
    va_list arguments;
    if (tree->why[0] == '\0') { /* the first reason is the cause of the others */
        va_start(arguments, format);
        vsnprintf(tree->why, sizeof tree->why, format, arguments);
        va_end(arguments);
    }
}

/* ---- v1 ---- */

static void open_v1_controller(const struct cgroup_tree_options *options,
    enum cgroup_controller which, struct cgroup_tree *tree)
{
    char own[CGROUP_PATH_BYTES];
    char *folder = tree->folders[which];
    if (!find_own(options, controllers[which], own)) {
        set_reason(
            tree, "the kernel or this container has no cgroup controller %s", controllers[which]);
        return;
    }
    (void)mkdir(own, 0755); /* a parent that was named */
    snprintf(folder, CGROUP_PATH_BYTES, "%.240s/%.64s", own, options->name);
    if ((mkdir(folder, 0755) != 0 && errno != EEXIST) ||
        !cgroup_file_exists(folder, "cgroup.procs") || access(folder, W_OK) != 0) {
        set_reason(tree, "the cgroup %s cannot be written: %s", own, strerror(errno));
        folder[0] = '\0';
        return;
    }
    tree->has[which] = true;
}

/* ---- v2 ---- */

static const enum cgroup_controller divided[] = {CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU};

int cgroup_tree_enable(const char *folder, bool ret_has[CGROUP_CONTROLLERS])
{
    char had[256];
    char word[16];
    int errnum = 0;
    if (!cgroup_file_read(folder, "cgroup.controllers", had, sizeof had)) {
        return ENOENT;
    }
    for (size_t i = 0; i < sizeof divided / sizeof divided[0]; i++) {
        const char *name = controllers[divided[i]];
        snprintf(word, sizeof word, "+%s", name);
        int result = has_field(had, name, " \n")
                         ? cgroup_file_write(folder, "cgroup.subtree_control", word)
                         : ENODEV;
        ret_has[divided[i]] = result == 0;
        errnum = errnum == 0 && result != ENODEV ? result : errnum;
    }
    return errnum;
}

/* A daemon that was started again in its leaf uses the leaf's parent. */
static void move_out_of_leaf(char *own)
{
    char *slash = strrchr(own, '/');
    if (slash != NULL && strcmp(slash + 1, LEAF) == 0) {
        *slash = '\0';
    }
}

/* Only the root of the hierarchy has no type, and may have processes beside groups. */
static int move_into_leaf(const char *own)
{
    char leaf[CGROUP_PATH_BYTES];
    if (!cgroup_file_exists(own, "cgroup.type")) {
        return 0;
    }
    snprintf(leaf, sizeof leaf, "%.240s/" LEAF, own);
    if (mkdir(leaf, 0755) != 0 && errno != EEXIST) {
        return errno;
    }
    return cgroup_file_write(leaf, "cgroup.procs", "0");
}

static bool open_v2(const struct cgroup_tree_options *options, struct cgroup_tree *tree)
{
    char own[CGROUP_PATH_BYTES];
    char had[256];
    if (!find_own(options, "", own)) {
        return false;
    }
    move_out_of_leaf(own);
    if (!cgroup_file_read(own, "cgroup.controllers", had, sizeof had) ||
        !(has_field(had, "memory", " \n") || has_field(had, "pids", " \n"))) {
        return false;
    }
    int errnum = options->parent == NULL ? move_into_leaf(own) : 0;
    if (errnum == 0) {
        errnum = cgroup_tree_enable(own, tree->has);
    }
    snprintf(tree->folders[0], CGROUP_PATH_BYTES, "%.240s/%.64s", own, options->name);
    if (mkdir(tree->folders[0], 0755) != 0 && errno != EEXIST) {
        errnum = errno;
        tree->folders[0][0] = '\0';
    } else {
        (void)cgroup_tree_enable(tree->folders[0], tree->has);
        tree->kind = CGROUP_V2;
    }
    if (errnum == EBUSY) {
        set_reason(tree,
            "the cgroup %s has other processes in it: start the worker in one of its own, with "
            "Delegate=yes",
            own);
    } else if (errnum != 0) {
        set_reason(
            tree, "the cgroup %s cannot be divided by this worker: %s", own, strerror(errnum));
    }
    return true;
}

void cgroup_tree_open(const struct cgroup_tree_options *options, struct cgroup_tree *ret_tree)
{
    *ret_tree = (struct cgroup_tree){.kind = CGROUP_NONE};
    if (open_v2(options, ret_tree)) {
        return;
    }
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        open_v1_controller(options, (enum cgroup_controller)i, ret_tree);
        if (ret_tree->has[i]) {
            ret_tree->kind = CGROUP_V1;
        }
    }
}
