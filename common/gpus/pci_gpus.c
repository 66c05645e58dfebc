/* SPDX-License-Identifier: Apache-2.0
 * Each device is a folder named by its address, with its numbers in files (vendor, device, class)
 * and a link to the driver that is bound to it. */
#include "common/gpus/pci_gpus.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

#define VENDOR_NVIDIA 0x10deU
#define DEVICES_SHOWN 64    /* of which the first one is named in messages */
#define CLASS_DISPLAY 0x03U /* in the third byte: VGA, 3D and other controllers */

static bool read_number(const char *folder, const char *device, const char *name, unsigned *ret)
{
    char path[512];
    if (snprintf(path, sizeof path, "%s/%s/%s", folder, device, name) >= (int)sizeof path) {
        return false;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    char text[32] = "";
    char *end = text;
    if (fgets(text, sizeof text, file) != NULL) {
        *ret = (unsigned)strtoul(text, &end, 16);
    }
    fclose(file);
    return end != text;
}

static void read_driver(const char *folder, const char *device, char *ret_driver, size_t size)
{
    char path[512];
    char target[512];
    ret_driver[0] = '\0';
    if (snprintf(path, sizeof path, "%s/%s/driver", folder, device) >= (int)sizeof path) {
        return;
    }
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length > 0) {
        target[length] = '\0';
        const char *slash = strrchr(target, '/');
        snprintf(ret_driver, size, "%.31s", slash != NULL ? slash + 1 : target);
    }
}

static bool read_gpu(const char *folder, const char *name, struct pci_gpu *ret_gpu)
{
    unsigned vendor = 0;
    unsigned class = 0;
    unsigned device = 0;
    bool nvidia = name[0] != '.' && strlen(name) < sizeof ret_gpu->bus &&
                  read_number(folder, name, "vendor", &vendor) && vendor == VENDOR_NVIDIA;
    if (!nvidia || !read_number(folder, name, "class", &class) || class >> 16 != CLASS_DISPLAY ||
        !read_number(folder, name, "device", &device)) {
        return false;
    }
    *ret_gpu = (struct pci_gpu){.device = device};
    memcpy(ret_gpu->bus, name, strlen(name) + 1);
    read_driver(folder, name, ret_gpu->driver, sizeof ret_gpu->driver);
    return true;
}

static int by_bus(const void *left, const void *right)
{
    const struct pci_gpu *a = left;
    const struct pci_gpu *b = right;
    return strcmp(a->bus, b->bus);
}

size_t pci_gpus(const char *folder, struct pci_gpu ret_gpus[], size_t room)
{
    size_t count = 0;
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *devices = opendir(folder);
    const struct dirent *entry;
    while (devices != NULL && count < room && (entry = readdir(devices)) != NULL) {
        count += read_gpu(folder, entry->d_name, &ret_gpus[count]) ? 1U : 0U;
    }
    if (count > 0) {
        qsort(ret_gpus, count, sizeof ret_gpus[0], by_bus);
    }
    return count;
}

bool pci_gpus_first(const char *folder, char *ret_text, size_t size)
{
    struct pci_gpu gpus[DEVICES_SHOWN];
    ret_text[0] = '\0';
    if (pci_gpus(folder, gpus, DEVICES_SHOWN) == 0) {
        return false;
    }
    snprintf(ret_text, size, "%04x:%04x at %s", VENDOR_NVIDIA, gpus[0].device, gpus[0].bus);
    return true;
}
