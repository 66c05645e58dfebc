/* SPDX-License-Identifier: Apache-2.0
 * See device_pci.h. Each device is a folder that is named after its address, with its numbers in
 * hexadecimal in files: vendor (0x10de is NVIDIA), device, class (0x03....: a display, of which
 * 00 is a VGA controller and 02 a 3D controller). */
#include "worker/device/device_pci.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

#define VENDOR_NVIDIA 0x10de
#define CLASS_DISPLAY 0x03
#define ADDRESS_MAX   15 /* "10000:65:00.0": domains have up to 8 digits */

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
    bool read = fscanf(file, "%x", ret) == 1;
    fclose(file);
    return read;
}

bool device_pci_nvidia(const char *folder, char *ret_text, size_t size)
{
    char first[ADDRESS_MAX + 1] = "";
    unsigned first_device = 0;
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *devices = opendir(folder);
    ret_text[0] = '\0';
    if (devices == NULL) {
        return false;
    }
    for (struct dirent *entry = readdir(devices); entry != NULL; entry = readdir(devices)) {
        const char *name = entry->d_name;
        unsigned vendor = 0;
        unsigned class = 0;
        unsigned device = 0;
        if (name[0] == '.' || strlen(name) > ADDRESS_MAX ||
            (first[0] != '\0' && strcmp(name, first) > 0)) {
            continue;
        }
        if (read_number(folder, name, "vendor", &vendor) && vendor == VENDOR_NVIDIA &&
            read_number(folder, name, "class", &class) && class >> 16 == CLASS_DISPLAY &&
            read_number(folder, name, "device", &device)) {
            memcpy(first, name, strlen(name) + 1);
            first_device = device;
        }
    }
    if (first[0] == '\0') {
        return false;
    }
    snprintf(ret_text, size, "%04x:%04x at %s", VENDOR_NVIDIA, first_device, first);
    return true;
}
