/* SPDX-License-Identifier: Apache-2.0
 * The one status type of every public function, and the message that explains a failure. */
#ifndef CADRE_STATUS_H
#define CADRE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Before what the shared libraries export. */
#define CADRE_API __attribute__((visibility("default")))

/* The canonical gRPC codes with gRPC's numbers (grpc/status.h), as TensorFlow's errors use them. */
typedef enum cadre_status {
    CADRE_OK = 0,
    CADRE_CANCELLED = 1,           /* the caller or the job cancelled it */
    CADRE_UNKNOWN = 2,             /* a foreign code that has no better translation */
    CADRE_INVALID_ARGUMENT = 3,    /* wrong whatever the state of the system is */
    CADRE_DEADLINE_EXCEEDED = 4,   /* a deadline passed before the answer */
    CADRE_NOT_FOUND = 5,           /* the named thing does not exist */
    CADRE_ALREADY_EXISTS = 6,      /* the name is taken */
    CADRE_PERMISSION_DENIED = 7,   /* the caller is known and may not */
    CADRE_RESOURCE_EXHAUSTED = 8,  /* a limit, a quota, memory or disk */
    CADRE_FAILED_PRECONDITION = 9, /* wrong in this state: the wrong context, not initialised */
    CADRE_ABORTED = 10,            /* a peer or the generation went away; the step is run again */
    CADRE_OUT_OF_RANGE = 11,       /* end of data, or an index past the end */
    CADRE_UNIMPLEMENTED = 12,
    CADRE_INTERNAL = 13,    /* our own bug */
    CADRE_UNAVAILABLE = 14, /* try again later: the daemon is not there */
    CADRE_DATA_LOSS = 15,   /* a file or message is damaged */
    CADRE_UNAUTHENTICATED = 16
} cadre_status;

/* The code's name as gRPC writes it, "INVALID_ARGUMENT"; "UNKNOWN" for a number outside the enum.
 */
CADRE_API const char *cadre_status_name(cadre_status status);

/* The calling thread's last failure: one sentence that names what failed, the value, and what to do
 * next. "" when nothing failed yet on this thread. Valid until the thread's next failing call.
 * libcadre's cadre_fail (cadre/program.h) sets it. */
CADRE_API const char *cadre_error_message(void);

/* For a program's own main(): prints the message to stderr and exits with status 1 when `call`
 * fails. */
#define CADRE_CHECK(call) cadre_check((call), #call, __FILE__, __LINE__)

/* What CADRE_CHECK calls: with CADRE_OK it returns at once. */
CADRE_API void cadre_check(
    cadre_status status, const char *call, const char *file, int line_number);

/* For functions that themselves return a cadre_status: returns a failure to the caller. What the
 * function holds by then is given back by itself where cadre/at_exit.h says so. */
#define CADRE_TRY(call)                                                                            \
    do {                                                                                           \
        cadre_status cadre_try_status_ = (call);                                                   \
        if (cadre_try_status_ != CADRE_OK) {                                                       \
            return cadre_try_status_;                                                              \
        }                                                                                          \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
