/* SPDX-License-Identifier: Apache-2.0
 * Between the files of this folder. All but crash_stack_release is async-signal-safe. */
#ifndef CADRE_WORKER_CRASH_CRASH_INTERNAL_H
#define CADRE_WORKER_CRASH_CRASH_INTERNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- text --- */

struct crash_text {
    char bytes[512];
    size_t size;
};

/* Adds text: what does not fit is cut; what is no printable ASCII becomes '?'. */
void crash_text_add(struct crash_text *text, const char *more);
/* Adds "0x1f". */
void crash_text_hex(struct crash_text *text, uintptr_t number);
/* Adds "31". */
void crash_text_decimal(struct crash_text *text, uint64_t number);
/* Writes it as a line of text on standard error, and empties it. Does not wait for a reader that
 * does not read. */
void crash_text_end(struct crash_text *text);

/* --- where an address is --- */

#define CRASH_NAME_BYTES 128

struct crash_location {
    char function[CRASH_NAME_BYTES]; /* "": it has no symbol */
    const char *module;              /* its file's name without folders; NULL: in no module */
    uintptr_t offset;                /* in it, as its file counts, which addr2line takes */
    bool in_libc;
    bool in_program; /* the executable */
};

/* `program`: the executable's name, because its module has none. */
void crash_location_find(
    uintptr_t address, const char *program, struct crash_location *ret_location);

/* The function with this address in an ELF file; false: none, or no such file. */
bool crash_symbol_find(const char *path, uintptr_t address, char name[CRASH_NAME_BYTES]);

/* --- frames --- */

#define CRASH_FRAMES_MAX 24

struct crash_frames {
    uintptr_t at[CRASH_FRAMES_MAX]; /* [0] is where it happened; the others were returned to */
    int count;
};

/* Loads what the first call of crash_frames_take would load. */
void crash_frames_prepare(void);
/* The frames of the thread that was interrupted with `context`. */
void crash_frames_take(const void *context, struct crash_frames *ret_frames);
/* Whether the address is where the stack would have grown to. */
bool crash_is_overflow(const void *context, uintptr_t address);

/* --- stacks --- */

/* Allocates the stack for the handler of this thread, unless it has one. */
void crash_stack_release(void);

/* The signals, as a set. */
void crash_signals(sigset_t *ret_set);
/* Whether crash_prepare was called. */
bool crash_prepared(void);

#endif
