/* SPDX-License-Identifier: Apache-2.0
 * The methods of cadre.v1 by full path and streaming shape. protobuf-c drops the keyword `stream`,
 * so the shapes are listed here; a test compares them with the .proto files. */
#ifndef CADRE_WIRE_METHODS_H
#define CADRE_WIRE_METHODS_H

#define METHOD_SERVICE_JOBS         "cadre.v1.Jobs"
#define METHOD_SERVICE_AGENTS       "cadre.v1.Agents"
#define METHOD_SERVICE_COORDINATORS "cadre.v1.Coordinators"

#define METHOD_AGENTS_JOIN          "/cadre.v1.Agents/Join"
#define METHOD_AGENTS_GET_BLOB      "/cadre.v1.Agents/GetBlob"
#define METHOD_AGENTS_MISSING_BLOBS "/cadre.v1.Agents/MissingBlobs"
#define METHOD_AGENTS_PUT_BLOB      "/cadre.v1.Agents/PutBlob"
#define METHOD_AGENTS_PUT_OUTPUT    "/cadre.v1.Agents/PutOutput"
#define METHOD_AGENTS_SETTLE_FILE   "/cadre.v1.Agents/SettleFile"

#define METHOD_JOBS_SUBMIT        "/cadre.v1.Jobs/Submit"
#define METHOD_JOBS_GET           "/cadre.v1.Jobs/Get"
#define METHOD_JOBS_LIST          "/cadre.v1.Jobs/List"
#define METHOD_JOBS_WATCH         "/cadre.v1.Jobs/Watch"
#define METHOD_JOBS_LOGS          "/cadre.v1.Jobs/Logs"
#define METHOD_JOBS_CANCEL        "/cadre.v1.Jobs/Cancel"
#define METHOD_JOBS_MISSING_BLOBS "/cadre.v1.Jobs/MissingBlobs"
#define METHOD_JOBS_PUT_BLOB      "/cadre.v1.Jobs/PutBlob"
#define METHOD_JOBS_LIST_OUTPUTS  "/cadre.v1.Jobs/ListOutputs"
#define METHOD_JOBS_GET_OUTPUT    "/cadre.v1.Jobs/GetOutput"
#define METHOD_JOBS_VERIFY        "/cadre.v1.Jobs/Verify"
#define METHOD_JOBS_METRICS       "/cadre.v1.Jobs/Metrics"
#define METHOD_JOBS_HISTORY       "/cadre.v1.Jobs/History"
#define METHOD_JOBS_TRACE         "/cadre.v1.Jobs/Trace"
#define METHOD_JOBS_CHECKPOINT    "/cadre.v1.Jobs/Checkpoint"
#define METHOD_JOBS_DRAIN         "/cadre.v1.Jobs/Drain"
#define METHOD_JOBS_LIST_WORKERS  "/cadre.v1.Jobs/ListWorkers"
#define METHOD_JOBS_LOGIN         "/cadre.v1.Jobs/Login"
#define METHOD_JOBS_VERSION       "/cadre.v1.Jobs/Version"

#define METHOD_COORDINATORS_LEADER "/cadre.v1.Coordinators/Leader"
#define METHOD_COORDINATORS_LIST   "/cadre.v1.Coordinators/List"

/* Which side sends more than one message. */
enum method_shape {
    METHOD_UNARY = 0,
    METHOD_CLIENT_STREAM,
    METHOD_SERVER_STREAM,
    METHOD_BOTH_STREAM
};

/* X(path, shape) for every method, in the order of the .proto files. */
#define METHOD_TABLE(X)                                                                            \
    X(METHOD_AGENTS_JOIN, METHOD_BOTH_STREAM)                                                      \
    X(METHOD_AGENTS_GET_BLOB, METHOD_SERVER_STREAM)                                                \
    X(METHOD_AGENTS_MISSING_BLOBS, METHOD_UNARY)                                                   \
    X(METHOD_AGENTS_PUT_BLOB, METHOD_CLIENT_STREAM)                                                \
    X(METHOD_AGENTS_PUT_OUTPUT, METHOD_CLIENT_STREAM)                                              \
    X(METHOD_AGENTS_SETTLE_FILE, METHOD_UNARY)                                                     \
    X(METHOD_JOBS_SUBMIT, METHOD_UNARY)                                                            \
    X(METHOD_JOBS_GET, METHOD_UNARY)                                                               \
    X(METHOD_JOBS_LIST, METHOD_UNARY)                                                              \
    X(METHOD_JOBS_WATCH, METHOD_SERVER_STREAM)                                                     \
    X(METHOD_JOBS_LOGS, METHOD_SERVER_STREAM)                                                      \
    X(METHOD_JOBS_CANCEL, METHOD_UNARY)                                                            \
    X(METHOD_JOBS_MISSING_BLOBS, METHOD_UNARY)                                                     \
    X(METHOD_JOBS_PUT_BLOB, METHOD_CLIENT_STREAM)                                                  \
    X(METHOD_JOBS_LIST_OUTPUTS, METHOD_UNARY)                                                      \
    X(METHOD_JOBS_GET_OUTPUT, METHOD_SERVER_STREAM)                                                \
    X(METHOD_JOBS_VERIFY, METHOD_UNARY)                                                            \
    X(METHOD_JOBS_METRICS, METHOD_UNARY)                                                           \
    X(METHOD_JOBS_HISTORY, METHOD_UNARY)                                                           \
    X(METHOD_JOBS_TRACE, METHOD_SERVER_STREAM)                                                     \
    X(METHOD_JOBS_CHECKPOINT, METHOD_UNARY)                                                        \
    X(METHOD_JOBS_DRAIN, METHOD_UNARY)                                                             \
    X(METHOD_JOBS_LIST_WORKERS, METHOD_UNARY)                                                      \
    X(METHOD_JOBS_LOGIN, METHOD_UNARY)                                                             \
    X(METHOD_JOBS_VERSION, METHOD_UNARY)                                                           \
    X(METHOD_COORDINATORS_LEADER, METHOD_UNARY)                                                    \
    X(METHOD_COORDINATORS_LIST, METHOD_UNARY)

#endif
