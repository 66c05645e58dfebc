/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/wire/samples.h"

#include "cadre/v1/agent.pb-c.h"
#include "cadre/v1/common.pb-c.h"
#include "cadre/v1/coordinators.pb-c.h"
#include "cadre/v1/jobs.pb-c.h"
#include "cadre/v1/task.pb-c.h"
#include "common/pure/assert.h"
#include "tests/unit/wire/samples_agent.h"
#include "tests/unit/wire/samples_jobs.h"
#include "tests/unit/wire/samples_trace.h"
#include "tests/unit/wire/samples_values.h"

#define KIND(type)                                                                                 \
    static cadre_status pack_##type(                                                               \
        const void *message, struct wire_buffer *buffer, struct cadre_error *error)                \
    {                                                                                              \
        return wire_pack_##type(message, buffer, error);                                           \
    }                                                                                              \
    static cadre_status repack_##type(const void *bytes, size_t size, struct wire_arena *arena,    \
        struct wire_buffer *buffer, bool *ret_unpacked, struct cadre_error *error)                 \
    {                                                                                              \
        struct type message;                                                                       \
        *ret_unpacked = false;                                                                     \
        CADRE_TRY(wire_unpack_##type(bytes, size, arena, &message, error));                        \
        *ret_unpacked = true;                                                                      \
        return wire_pack_##type(&message, buffer, error);                                          \
    }

#define KINDS(X)                                                                                   \
    X(task_up)                                                                                     \
    X(task_down)                                                                                   \
    X(agent_up)                                                                                    \
    X(agent_down)                                                                                  \
    X(job_spec)                                                                                    \
    X(submit_response)                                                                             \
    X(job_request)                                                                                 \
    X(job_info)                                                                                    \
    X(list_jobs_response)                                                                          \
    X(logs_request)                                                                                \
    X(log_chunk)                                                                                   \
    X(blob_list)                                                                                   \
    X(blob_chunk)                                                                                  \
    X(get_blob_request)                                                                            \
    X(output_chunk)                                                                                \
    X(settled_file)                                                                                \
    X(settle_file_request)                                                                         \
    X(list_outputs_response)                                                                       \
    X(get_output_request)                                                                          \
    X(drain_request)                                                                               \
    X(metrics_request)                                                                             \
    X(metrics_response)                                                                            \
    X(history_request)                                                                             \
    X(history_response)                                                                            \
    X(trace_request)                                                                               \
    X(trace_response)                                                                              \
    X(verify_request)                                                                              \
    X(verify_response)                                                                             \
    X(list_workers_request)                                                                        \
    X(list_workers_response)                                                                       \
    X(login_response)                                                                              \
    X(version_response)                                                                            \
    X(leader_response)                                                                             \
    X(list_coordinators_response)

KINDS(KIND)

#define KIND_INDEX(type) KIND_##type,
enum { KINDS(KIND_INDEX) KIND_COUNT };

#define KIND_ROW(type)                                                                             \
    [KIND_##type] = {#type, &cadre__v1__##type##__descriptor, pack_##type, repack_##type},
const struct kind kinds[] = {KINDS(KIND_ROW)};
const size_t kind_count = KIND_COUNT;

const struct sample samples[] = {
    {"task_up hello", &kinds[KIND_task_up], &sample_hello},
    {"task_up hello, bare", &kinds[KIND_task_up], &hello_bare},
    {"task_up arrive", &kinds[KIND_task_up], &sample_arrive},
    {"task_up arrive, nothing consumed", &kinds[KIND_task_up], &arrive_nothing_consumed},
    {"task_up arrive, bare", &kinds[KIND_task_up], &arrive_bare},
    {"task_up report", &kinds[KIND_task_up], &report},
    {"task_up report, bare", &kinds[KIND_task_up], &report_bare},
    {"task_up report, finished", &kinds[KIND_task_up], &report_finished},
    {"task_up report, diverged", &kinds[KIND_task_up], &report_diverged},
    {"task_up join", &kinds[KIND_task_up], &join},
    {"task_up join, without a batch", &kinds[KIND_task_up], &join_without_batch},
    {"task_up stream", &kinds[KIND_task_up], &stream},
    {"task_up stall", &kinds[KIND_task_up], &stall},
    {"task_up stall of replicas", &kinds[KIND_task_up], &stall_of_replicas},
    {"task_up preempt", &kinds[KIND_task_up], &preempt},
    {"task_up backed", &kinds[KIND_task_up], &backed},
    {"task_up backed by no server", &kinds[KIND_task_up], &alone},
    {"task_up part", &kinds[KIND_task_up], &part},
    {"task_up progress", &kinds[KIND_task_up], &progress},
    {"task_up progress of a fetch", &kinds[KIND_task_up], &progress_of_fetch},
    {"task_up progress, bare", &kinds[KIND_task_up], &progress_bare},
    {"task_up shards", &kinds[KIND_task_up], &shards},
    {"task_up shards, bare", &kinds[KIND_task_up], &shards_bare},
    {"task_up values", &kinds[KIND_task_up], &sample_values},
    {"task_up values, of own numbers", &kinds[KIND_task_up], &values_of_own_numbers},
    {"task_up spans", &kinds[KIND_task_up], &spans},
    {"task_up spans, none", &kinds[KIND_task_up], &spans_none},
    {"task_down trace", &kinds[KIND_task_down], &trace},
    {"task_down trace, off", &kinds[KIND_task_down], &trace_off},
    {"task_down values kept", &kinds[KIND_task_down], &values_kept},
    {"task_down plan", &kinds[KIND_task_down], &sample_plan},
    {"task_down plan, without a source", &kinds[KIND_task_down], &plan_without_members},
    {"task_down plan, a part", &kinds[KIND_task_down], &sample_part},
    {"task_down plan, bare", &kinds[KIND_task_down], &plan_bare},
    {"task_down release", &kinds[KIND_task_down], &sample_release},
    {"task_down release, marks at 0", &kinds[KIND_task_down], &release_zero},
    {"task_down release, any stream", &kinds[KIND_task_down], &release_any_stream},
    {"task_down warm", &kinds[KIND_task_down], &warm},
    {"task_down warm, bare", &kinds[KIND_task_down], &warm_bare},
    {"task_down members", &kinds[KIND_task_down], &members},
    {"task_down members, bare", &kinds[KIND_task_down], &members_bare},
    {"task_down release, bare", &kinds[KIND_task_down], &release_bare},
    {"task_down abort", &kinds[KIND_task_down], &abort_task},
    {"task_down reset", &kinds[KIND_task_down], &reset},
    {"task_down bye", &kinds[KIND_task_down], &goodbye},
    {"task_down superseded", &kinds[KIND_task_down], &superseded},
    {"task_down refused", &kinds[KIND_task_down], &task_refused},
    {"agent_up hello", &kinds[KIND_agent_up], &sample_agent_hello},
    {"agent_up heartbeat", &kinds[KIND_agent_up], &heartbeat},
    {"agent_up heartbeat with fetches", &kinds[KIND_agent_up], &heartbeat_with_fetches},
    {"agent_up heartbeat with usages", &kinds[KIND_agent_up], &heartbeat_with_usages},
    {"agent_up draining", &kinds[KIND_agent_up], &draining},
    {"agent_up arrived", &kinds[KIND_agent_up], &sample_agent_arrived},
    {"agent_up started", &kinds[KIND_agent_up], &started},
    {"agent_up gone", &kinds[KIND_agent_up], &gone},
    {"agent_up gone, bare", &kinds[KIND_agent_up], &gone_with_success},
    {"agent_up collected", &kinds[KIND_agent_up], &collected},
    {"agent_up said", &kinds[KIND_agent_up], &relay_up},
    {"agent_up log", &kinds[KIND_agent_up], &log_piece},
    {"agent_down welcome", &kinds[KIND_agent_down], &welcome},
    {"agent_down refused", &kinds[KIND_agent_down], &agent_refused},
    {"agent_down start", &kinds[KIND_agent_down], &start},
    {"agent_down start, again", &kinds[KIND_agent_down], &start_tasks},
    {"agent_down stop", &kinds[KIND_agent_down], &stop},
    {"agent_down stop, all", &kinds[KIND_agent_down], &stop_all},
    {"agent_down tell", &kinds[KIND_agent_down], &relay_down},
    {"agent_down tell, all", &kinds[KIND_agent_down], &tell_all},
    {"agent_down log_ack", &kinds[KIND_agent_down], &log_ack},
    {"agent_down start, of a server", &kinds[KIND_agent_down], &start_server},
    {"agent_down forget", &kinds[KIND_agent_down], &forget},
    {"agent_down keepalive", &kinds[KIND_agent_down], &keepalive},
    {"job_spec of a ps job", &kinds[KIND_job_spec], &spec_of_ps_job},
    {"job_info of a ps job", &kinds[KIND_job_info], &info_of_ps_job},
    {"job_spec", &kinds[KIND_job_spec], &sample_spec},
    {"job_spec, restored", &kinds[KIND_job_spec], &spec_restored},
    {"job_spec, bare", &kinds[KIND_job_spec], &spec_bare},
    {"submit_response", &kinds[KIND_submit_response], &submit_response},
    {"job_request", &kinds[KIND_job_request], &job_request},
    {"job_info", &kinds[KIND_job_info], &sample_info},
    {"job_info, bare", &kinds[KIND_job_info], &info_bare},
    {"list_jobs_response", &kinds[KIND_list_jobs_response], &list_jobs},
    {"list_jobs_response, none", &kinds[KIND_list_jobs_response], &list_no_jobs},
    {"logs_request", &kinds[KIND_logs_request], &logs_request},
    {"logs_request, slot 0", &kinds[KIND_logs_request], &logs_of_slot_0},
    {"logs_request, all", &kinds[KIND_logs_request], &logs_of_all},
    {"log_chunk", &kinds[KIND_log_chunk], &log_chunk},
    {"log_chunk, bare", &kinds[KIND_log_chunk], &log_chunk_bare},
    {"blob_list", &kinds[KIND_blob_list], &blob_list},
    {"blob_list, none", &kinds[KIND_blob_list], &blob_list_bare},
    {"blob_chunk", &kinds[KIND_blob_chunk], &blob_chunk},
    {"blob_chunk, bare", &kinds[KIND_blob_chunk], &blob_chunk_bare},
    {"get_blob_request", &kinds[KIND_get_blob_request], &get_blob},
    {"output_chunk", &kinds[KIND_output_chunk], &output_chunk},
    {"output_chunk, bare", &kinds[KIND_output_chunk], &output_chunk_bare},
    {"settled_file", &kinds[KIND_settled_file], &settle_file.found},
    {"settle_file_request", &kinds[KIND_settle_file_request], &settle_file},
    {"list_outputs_response", &kinds[KIND_list_outputs_response], &list_outputs},
    {"get_output_request", &kinds[KIND_get_output_request], &get_output},
    {"drain_request", &kinds[KIND_drain_request], &drain},
    {"metrics_request", &kinds[KIND_metrics_request], &metrics_request},
    {"metrics_request, bare", &kinds[KIND_metrics_request], &metrics_all},
    {"metrics_response", &kinds[KIND_metrics_response], &sample_metrics},
    {"metrics_response, bare", &kinds[KIND_metrics_response], &metrics_none},
    {"history_request", &kinds[KIND_history_request], &history_some},
    {"history_request, bare", &kinds[KIND_history_request], &history_all},
    {"history_response", &kinds[KIND_history_response], &history},
    {"history_response, bare", &kinds[KIND_history_response], &history_bare},
    {"trace_request", &kinds[KIND_trace_request], &trace_request},
    {"trace_request, bare", &kinds[KIND_trace_request], &trace_request_bare},
    {"trace_response", &kinds[KIND_trace_response], &trace_response},
    {"trace_response, bare", &kinds[KIND_trace_response], &trace_response_bare},
    {"verify_request", &kinds[KIND_verify_request], &verify_request},
    {"verify_request, first page", &kinds[KIND_verify_request], &verify_first},
    {"verify_response", &kinds[KIND_verify_response], &sample_verify},
    {"verify_response, bare", &kinds[KIND_verify_response], &verify_bare},
    {"list_workers_request", &kinds[KIND_list_workers_request], &list_worker},
    {"list_workers_request, all", &kinds[KIND_list_workers_request], &list_all_workers},
    {"list_workers_response", &kinds[KIND_list_workers_response], &list_workers},
    {"login_response", &kinds[KIND_login_response], &login},
    {"login_response, bare", &kinds[KIND_login_response], &login_bare},
    {"version_response", &kinds[KIND_version_response], &version},
    {"version_response, bare", &kinds[KIND_version_response], &version_bare},
    {"leader_response", &kinds[KIND_leader_response], &leader},
    {"leader_response, bare", &kinds[KIND_leader_response], &leader_bare},
    {"list_coordinators_response", &kinds[KIND_list_coordinators_response], &list_coordinators},
};
const size_t sample_count = CADRE_COUNT_OF(samples);
