/* SPDX-License-Identifier: Apache-2.0
 * Graphics cards that Linux knows of, whether or not there is a driver for them. */
#ifndef CADRE_WORKER_DEVICE_DEVICE_PCI_H
#define CADRE_WORKER_DEVICE_DEVICE_PCI_H

#include <stdbool.h>
#include <stddef.h>

#define DEVICE_PCI_FOLDER "/sys/bus/pci/devices"

/* Writes "10de:2335 at 0000:65:00.0" of the first GPU of NVIDIA's in `folder`; false: there is
 * none. First: in the order of addresses. */
bool device_pci_nvidia(const char *folder, char *ret_text, size_t size);

#endif
