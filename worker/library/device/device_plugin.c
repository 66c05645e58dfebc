/* SPDX-License-Identifier: Apache-2.0
 * Finding the plugin; device.c and device_count() use what it finds. The plugin is CADRE_PLUGIN,
 * else libcadre-cuda.so
 *  - beside libcadre (or the program, when libcadre is inside of it), in cadre/ of that folder, in
 *    ../lib/cadre and in ../lib of it,
 *  - the same of the program's own folder,
 *  - in the folder that was set when this library was built (CADRE_PLUGIN_FOLDER).
 * Without CADRE_PLUGIN there is no search where there is no driver: a host without a GPU reads no
 * file but the linker's own list for libcuda.so.1. */
#include "worker/library/device/device_plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/library/device/device.h"
#include "common/gpus/pci_gpus.h"

#define DRIVER        "libcuda.so.1"
#define FOLDER_BYTES  4096
#define FOLDERS_EACH  4
#define FOLDERS_MAX   (2 * FOLDERS_EACH + 1)
#define ABSENT_PREFIX "no GPU is used: "

static const char *linker_messages(void)
{
    const char *message = dlerror(); /* once: the call clears it */
    return message != NULL ? message : "the dynamic linker gives no reason";
}

/* Opens one file that exists, and counts its devices. */
static void open_plugin(const char *path, struct device_found *found)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(found->reason, sizeof found->reason, "the plugin cannot be opened: %s",
            linker_messages());
        return;
    }
    void *symbol = dlsym(library, DEVICE_PLUGIN_ENTRY);
    if (symbol == NULL) {
        snprintf(found->reason, sizeof found->reason,
            "%s is no plugin of devices: it has no " DEVICE_PLUGIN_ENTRY, path);
        return;
    }
    device_plugin_entry entry = NULL;
    memcpy(&entry, &symbol, sizeof entry); /* C has no cast from an object to a function */
    const struct device_ops *ops = entry(DEVICE_ABI);
    if (ops == NULL || ops->abi != DEVICE_ABI) {
        snprintf(found->reason, sizeof found->reason,
            "the plugin %s is of another version than this library, which needs ABI %d; install "
            "the one that was built with it",
            path, DEVICE_ABI);
        return;
    }
    char reason[256] = "";
    uint32_t count = ops->count(reason);
    if (count == 0) {
        snprintf(found->reason, sizeof found->reason, "%s",
            reason[0] != '\0' ? reason : "the plugin found none");
        return;
    }
    found->ops = ops;
    found->count = count < DEVICES_MAX ? count : DEVICES_MAX;
}

static bool driver_exists(const struct device_search *search, struct device_found *found)
{
    void *driver = dlopen(search->driver, RTLD_LAZY | RTLD_LOCAL);
    if (driver != NULL) {
        dlclose(driver);
        return true;
    }
    (void)dlerror();
    char card[64];
    if (pci_gpus_first(search->pci_folder, card, sizeof card)) {
        snprintf(found->reason, sizeof found->reason,
            "an NVIDIA GPU is here (%s), but there is no driver for it: %s cannot be opened", card,
            search->driver);
    } else {
        snprintf(found->reason, sizeof found->reason, "no NVIDIA driver: %s cannot be opened",
            search->driver);
    }
    return false;
}

void device_plugin_find(const struct device_search *search, struct device_found *ret_found)
{
    *ret_found = (struct device_found){.count = 0};
    if (search->devices != NULL && strcmp(search->devices, "cpu") == 0) {
        const char *reason = search->devices_reason;
        snprintf(ret_found->reason, sizeof ret_found->reason, "%s",
            reason != NULL && reason[0] != '\0' ? reason : "CADRE_DEVICES is cpu");
        return;
    }
    if (search->plugin != NULL && search->plugin[0] != '\0') {
        open_plugin(search->plugin, ret_found);
        return;
    }
    if (!driver_exists(search, ret_found)) {
        return;
    }
    for (const char *const *folder = search->folders; *folder != NULL; folder++) {
        char path[FOLDER_BYTES + sizeof "/" DEVICE_PLUGIN_FILE];
        int length = snprintf(path, sizeof path, "%s/%s", *folder, DEVICE_PLUGIN_FILE);
        if (length < (int)sizeof path && access(path, F_OK) == 0) {
            open_plugin(path, ret_found);
            return;
        }
    }
    int used = snprintf(ret_found->reason, sizeof ret_found->reason,
        "the plugin " DEVICE_PLUGIN_FILE " is not installed; name it by CADRE_PLUGIN (looked in");
    for (const char *const *folder = search->folders; *folder != NULL; folder++) {
        size_t room = sizeof ret_found->reason - (size_t)used;
        int length = snprintf(
            ret_found->reason + used, room, "%s %s", folder == search->folders ? "" : ",", *folder);
        if (length < 0 || (size_t)length + sizeof ", ...)" > room) {
            used += snprintf(ret_found->reason + used, room, ", ...");
            break;
        }
        used += length;
    }
    snprintf(ret_found->reason + used, sizeof ret_found->reason - (size_t)used, ")");
}

/* --- the process's --- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct device_found found;
static char absence[sizeof ABSENT_PREFIX + DEVICE_REASON_BYTES];

struct folders {
    char text[FOLDERS_MAX][FOLDER_BYTES];
    const char *list[FOLDERS_MAX + 1];
    size_t count;
};

static void add_folder(struct folders *folders, const char *folder, const char *subfolder)
{
    char *text = folders->text[folders->count];
    int length = snprintf(text, FOLDER_BYTES, "%s%s", folder, subfolder);
    if (length >= FOLDER_BYTES) {
        return;
    }
    for (size_t i = 0; i < folders->count; i++) {
        if (strcmp(folders->list[i], text) == 0) {
            return;
        }
    }
    folders->list[folders->count++] = text;
}

/* The folder of `file`, and those around it. */
static void add_folders_of(struct folders *folders, char *file)
{
    static const char *const subfolders[FOLDERS_EACH] = {"", "/cadre", "/../lib/cadre", "/../lib"};
    char *slash = strrchr(file, '/');
    if (slash == NULL) {
        return;
    }
    *slash = '\0';
    for (size_t i = 0; i < FOLDERS_EACH; i++) {
        add_folder(folders, file, subfolders[i]);
    }
}

static void list_folders(struct folders *folders)
{
    char file[FOLDER_BYTES];
    Dl_info where;
    if (dladdr(&found, &where) != 0 && where.dli_fname != NULL) {
        char *path = realpath(where.dli_fname, NULL);
        if (path != NULL) {
            add_folders_of(folders, path);
        }
        free(path);
    }
    ssize_t length = readlink("/proc/self/exe", file, sizeof file - 1);
    if (length > 0) {
        file[length] = '\0';
        add_folders_of(folders, file);
    }
#ifdef CADRE_PLUGIN_FOLDER
    add_folder(folders, CADRE_PLUGIN_FOLDER, "");
#endif
}

static void find_once(void)
{
    struct folders *folders = calloc(1, sizeof *folders);
    static const char *const nowhere[1];
    if (folders != NULL) {
        list_folders(folders);
    }
    const struct device_search search = {.devices = getenv("CADRE_DEVICES"),
        .devices_reason = getenv("CADRE_DEVICES_REASON"),
        .plugin = getenv("CADRE_PLUGIN"),
        .driver = DRIVER,
        .pci_folder = PCI_FOLDER,
        .folders = folders != NULL ? folders->list : nowhere};
    device_plugin_find(&search, &found);
    if (found.count == 0) {
        snprintf(absence, sizeof absence, ABSENT_PREFIX "%s", found.reason);
    }
    free(folders);
}

uint32_t device_count(void)
{
    (void)pthread_once(&once, find_once);
    return found.count;
}

const char *device_absence_reason(void)
{
    (void)device_count();
    return absence;
}

const struct device_ops *device_plugin(void)
{
    return device_count() > 0 ? found.ops : NULL;
}
