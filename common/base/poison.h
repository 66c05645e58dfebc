/* SPDX-License-Identifier: Apache-2.0
 * Marks memory that AddressSanitizer must treat as freed, for allocators that keep what was
 * given back: a use after that is then reported where it happens. Nothing in other builds. */
#ifndef CADRE_BASE_POISON_H
#define CADRE_BASE_POISON_H

#if defined(__SANITIZE_ADDRESS__)
#define POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONS 1
#endif
#endif

#ifdef POISONS
#include <sanitizer/asan_interface.h>
#define POISON(memory, bytes)   ASAN_POISON_MEMORY_REGION(memory, bytes)
#define UNPOISON(memory, bytes) ASAN_UNPOISON_MEMORY_REGION(memory, bytes)
#else
#define POISON(memory, bytes)   ((void)(memory), (void)(bytes))
#define UNPOISON(memory, bytes) ((void)(memory), (void)(bytes))
#endif

#endif
