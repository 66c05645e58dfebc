/* SPDX-License-Identifier: Apache-2.0
 * GPUs of NVIDIA's that Linux sees on the PCI bus, whether or not anything can use them. */
#ifndef CADRE_WORKER_DEVICE_DEVICE_PCI_H
#define CADRE_WORKER_DEVICE_DEVICE_PCI_H

#include <stdbool.h>
#include <stddef.h>

#define DEVICE_PCI_FOLDER "/sys/bus/pci/devices"

struct device_pci_gpu {
    char bus[24]; /* "0000:65:00.0" */
    unsigned device;
    char driver[32]; /* that the kernel has bound to it: "nvidia"; "": none */
};

/* Those of `folder` in the order of their addresses, at most `room`; how many. A folder that cannot
 * be read has none. */
size_t device_pci_gpus(const char *folder, struct device_pci_gpu ret_gpus[], size_t room);

/* Writes "10de:2335 at 0000:65:00.0" of the first of them; false: there is none. */
bool device_pci_nvidia(const char *folder, char *ret_text, size_t size);

#endif
