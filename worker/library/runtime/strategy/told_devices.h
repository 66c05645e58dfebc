/* SPDX-License-Identifier: Apache-2.0
 * What all tasks of a generation have told each other of their devices. */
#ifndef CADRE_RUNTIME_TOLD_DEVICES_H
#define CADRE_RUNTIME_TOLD_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

struct told_devices {
    bool any;         /* some replicas are on devices */
    bool alike;       /* all can be connected, with each other */
    uint32_t cannot;  /* the first task that cannot, if any is on devices; UINT32_MAX: none */
    uint32_t differs; /* the first that can, but not with rank 0; UINT32_MAX: none */
};

#endif
