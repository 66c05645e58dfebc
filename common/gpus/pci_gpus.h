/* SPDX-License-Identifier: Apache-2.0
 * GPUs of NVIDIA's that Linux sees on the PCI bus, whether or not anything can use them. */
#ifndef CADRE_GPUS_PCI_GPUS_H
#define CADRE_GPUS_PCI_GPUS_H

#include <stdbool.h>
#include <stddef.h>

#define PCI_FOLDER "/sys/bus/pci/devices"

struct pci_gpu {
    char bus[24]; /* "0000:65:00.0" */
    unsigned device;
    char driver[32]; /* that the kernel has bound to it: "nvidia"; "": none */
};

/* Those of `folder` in the order of their addresses, at most `room`; how many. A folder that cannot
 * be read has none. */
size_t pci_gpus(const char *folder, struct pci_gpu ret_gpus[], size_t room);

/* Writes "10de:2335 at 0000:65:00.0" of the first of them; false: there is none. */
bool pci_gpus_first(const char *folder, char *ret_text, size_t size);

#endif
