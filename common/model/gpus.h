/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of a host, as its worker daemon found them when it started. Strings are borrowed, as in
 * job.h. */
#ifndef CADRE_MODEL_GPUS_H
#define CADRE_MODEL_GPUS_H

#include <stddef.h>
#include <stdint.h>

#include "common/model/limits.h"

struct gpu {
    const char *name;      /* "NVIDIA H200"; never "" */
    const char *uuid;      /* what CUDA_VISIBLE_DEVICES takes; "" when it is not known */
    const char *bus;       /* "0000:65:00.0"; "" when it is not known */
    uint64_t memory_bytes; /* 0: not known */
    uint32_t compute_major;
    uint32_t compute_minor;
    const char *unused; /* why no task gets it; "": the slots of the worker share it out */
};

struct gpus {
    const struct gpu *devices; /* those that tasks get come in the order of their driver */
    size_t count;
    uint32_t omitted;    /* more than in `devices`: left out of a long listing */
    uint32_t usable;     /* that tasks get, listed or left out */
    const char *driver;  /* "580.159.04 (CUDA 13.0)"; "" */
    const char *runtime; /* "CUDA 13.0"; "" */
    uint32_t nccl;       /* NCCL_VERSION_CODE: 22809; 0: there is none */
    const char *reason;  /* why tasks get none, or not all; ""  */
};

/* GPUs first to end - 1 of a host. */
struct gpus_range {
    uint32_t first;
    uint32_t end;
};

/* The slots of a worker share its GPUs: slot k of S has those from k * G / S up to (k + 1) * G / S,
 * without that one. With fewer GPUs than slots several slots have one. */
static inline struct gpus_range gpus_of_slot(uint32_t gpus, uint32_t slots, uint32_t slot)
{
    if (gpus > 0 && gpus < slots) {
        return (struct gpus_range){.first = slot % gpus, .end = slot % gpus + 1};
    }
    return (struct gpus_range){.first = (uint32_t)((uint64_t)slot * gpus / slots),
        .end = (uint32_t)(((uint64_t)slot + 1) * gpus / slots)};
}

/* What each slot has at least and alone: 0 where slots share a GPU. */
static inline uint32_t gpus_per_slot(uint32_t gpus, uint32_t slots)
{
    return slots > 0 ? gpus / slots : 0;
}

#endif
