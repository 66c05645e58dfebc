/* SPDX-License-Identifier: Apache-2.0
 * What a test of the mesh for devices sets in the fake plugin, to make it fail. Zero: nothing. */
#ifndef CADRE_TESTS_GPU_MESH_FAKE_H
#define CADRE_TESTS_GPU_MESH_FAKE_H

#include <stdatomic.h>

struct fake_control {
    atomic_uint pending_polls; /* how often a call on a communicator answers PENDING first */
    atomic_uint refuses;       /* rank + 1, whose communicator fails to form */
    atomic_uint no_id;         /* no id can be made */
    atomic_uint never_ready;   /* communicators stay on their way */
    atomic_uint hangs;         /* collectives do not end, but by an abort */
    atomic_uint broken;        /* rank + 1, which has an asynchronous error */
    atomic_uint slow_abort_ms; /* what an abort takes */
    atomic_uint stuck_abort;   /* it does not come back while this is set */
    atomic_uint stuck_destroy;
    atomic_uint same_uuid;     /* all devices say that they are one */
    atomic_uint stuck_call;    /* a collective's call does not come back while this is set */
    atomic_uint broken_stream; /* device + 1, whose streams fail */
    /* What it counts. */
    atomic_uint aborts;
    atomic_uint destroys;
    atomic_uint packs;
    atomic_uint groups;  /* calls on communicators */
    atomic_uint vectors; /* in them */
};

/* The one in the plugin that this process has opened. */
struct fake_control *fake_control(void);

#endif
