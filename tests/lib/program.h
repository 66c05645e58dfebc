/* SPDX-License-Identifier: Apache-2.0
 * Other programs under test: started in a process group of their own, watched with a deadline, and
 * gone with all their children when closed. Output goes to memory files, so no pipe can fill up or
 * be kept open. */
#ifndef CADRE_TESTS_LIB_PROGRAM_H
#define CADRE_TESTS_LIB_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROGRAM_DEADLINE_US UINT64_C(30000000)

struct program_spec {
    const char *const *argv;        /* ended by NULL; argv[0] is looked up in PATH */
    const char *const *environment; /* "NAME=value" on top of our own, ended by NULL; or NULL */
    const char *input;              /* standard input; NULL: empty */
    size_t input_bytes;
};

struct program {
    pid_t pid; /* 0 once it was waited for */
    int pidfd;
    int out_fd;
    int err_fd;
};

/* How a program ended. Texts are terminated and owned: program_result_free(). */
struct program_result {
    bool timed_out; /* killed at the deadline */
    int exit_code;  /* -1 when a signal ended it */
    int signal;     /* or 0 */
    char *out;
    char *err;
    size_t out_bytes;
    size_t err_bytes;
};

/* Starts it. A program that cannot be started fails the test. */
void program_start(const struct program_spec *spec, struct program *ret_program);

/* Waits until its output (standard output, or error) contains `text`. False at the deadline or when
 * the program ended without it. */
bool program_wait_text(
    struct program *program, bool from_error, const char *text, uint64_t deadline_us);

/* Sends `signal` to the program, not to its children; 0 sends none. */
void program_signal(struct program *program, int signal);

/* Waits for its end, at the deadline kills it; then kills what is left of its process group. */
void program_finish(
    struct program *program, uint64_t deadline_us, struct program_result *ret_result);

/* Kills a program that still runs, with its group, and frees all. Tolerates a zeroed or finished
 * one. */
void program_close(struct program *program);

/* Start and finish with the usual deadline. */
void program_run(const struct program_spec *spec, struct program_result *ret_result);

void program_result_free(struct program_result *result);

#endif
