/* SPDX-License-Identifier: Apache-2.0
 * A file of an older version becomes one of this version, in one transaction: it is of the one or
 * of the other, never in between. */
#include "coordinator/store/sqlite_statements.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"

/* Version 2 has rosters of the newest plan only, checkpoints by their manifests (those of version 1
 * have none; their files stay among the outputs), and where a run begins. */
static const char from_1_tables[] =
    "ALTER TABLE job ADD COLUMN tasks_min INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE job ADD COLUMN max_restarts INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN wait_us INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN stall_us INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE job ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;"
    "UPDATE job SET tasks_min = tasks;"
    "ALTER TABLE plan ADD COLUMN restarted INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE plan ADD COLUMN members INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE plan ADD COLUMN planned_us INTEGER NOT NULL DEFAULT 0;"
    "UPDATE plan SET members = length(roster) / 12;"
    "ALTER TABLE watermark ADD COLUMN start INTEGER NOT NULL DEFAULT 0;"
    "UPDATE watermark SET start = first;"
    "ALTER TABLE end_of_data ADD COLUMN start INTEGER NOT NULL DEFAULT 0;"
    "UPDATE end_of_data SET start = first;"
    "DROP TABLE checkpoint;";

static const char from_1_rosters[] =
    "INSERT INTO roster SELECT job, roster FROM plan p"
    " WHERE number = (SELECT max(number) FROM plan WHERE job = p.job);"
    "ALTER TABLE plan DROP COLUMN roster;"
    "UPDATE meta SET version = 2;";

/* Workers older than the change have another protocol and will not come back with the tasks: a job
 * that ran ends. One that was queued stays queued. */
static cadre_status end_running(struct statements *statements, struct cadre_error *error)
{
    char *sql = sqlite3_mprintf(
        "UPDATE job SET state = %d, code = %d, exit_code = 1, ended_us = %lld,"
        " text = 'it ran while the coordinator was replaced by a newer version, to which its old"
        " workers cannot connect: submit it again'"
        " WHERE state = %d AND started_us > 0",
        (int)JOB_FAILED, (int)CADRE_UNAVAILABLE, (long long)clock_wall_us(), (int)JOB_QUEUED);
    if (sql == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to migrate the store %s", statements->path);
    }
    cadre_status status = statements_execute(statements, "end what ran", sql, error);
    sqlite3_free(sql);
    return status;
}

static cadre_status from_1(struct statements *statements, struct cadre_error *error)
{
    static const char doing[] = "migrate it from version 1";
    CADRE_TRY(statements_execute(statements, doing, from_1_tables, error));
    CADRE_TRY(statements_execute(statements, doing, schema_of_version_2, error));
    return statements_execute(statements, doing, from_1_rosters, error);
}

/* Version 3 has the number of starts of a slot. */
static cadre_status from_2(struct statements *statements, struct cadre_error *error)
{
    static const char doing[] = "migrate it from version 2";
    CADRE_TRY(statements_execute(statements, doing, schema_of_version_3, error));
    CADRE_TRY(statements_execute(statements, doing, "UPDATE meta SET version = 3", error));
    return end_running(statements, error);
}

/* Version 4 has the time of a job's first start. */
static cadre_status from_3(struct statements *statements, struct cadre_error *error)
{
    static const char doing[] = "migrate it from version 3";
    CADRE_TRY(statements_execute(statements, doing, schema_of_version_4, error));
    return statements_execute(statements, doing,
        "UPDATE job SET first_us = started_us; UPDATE meta SET version = 4", error);
}

/* What older versions recorded with a time: submitted (1), started (2), generations (6) and the end
 * (16) of each job. */
static const char from_6_events[] =
    "INSERT INTO event(job, number, time_us, kind, generation, position, tasks, restarted, state,"
    " code, text)"
    " SELECT job, row_number() OVER (PARTITION BY job ORDER BY time_us, kind, generation), time_us,"
    "  kind, generation, position, tasks, restarted, state, code, text FROM ("
    "  SELECT id AS job, submitted_us AS time_us, 1 AS kind, 0 AS generation, 0 AS position, tasks,"
    "   0 AS restarted, 0 AS state, 0 AS code, '' AS text FROM job"
    "  UNION ALL SELECT id, first_us, 2, 0, 0, tasks, 0, 0, 0, '' FROM job WHERE first_us > 0"
    "  UNION ALL SELECT job, planned_us, 6, number, resume, members, restarted, 0, 0, '' FROM plan"
    "   WHERE planned_us > 0"
    "  UNION ALL SELECT id, ended_us, 16, 0, 0, 0, 0, state, code, text FROM job"
    "   WHERE ended_us > 0);"
    "DELETE FROM event WHERE number > 64 AND number <="
    " (SELECT max(number) FROM event AS newest WHERE newest.job = event.job) - 4032;";
_Static_assert(LIMIT_EVENTS_FIRST == 64 && LIMIT_EVENTS - LIMIT_EVENTS_FIRST == 4032,
    "as many are kept as of new jobs");

/* Version 5 has checksums: of its own tables and of those that newer versions add. */
static cadre_status from_4(struct statements *statements, struct cadre_error *error)
{
    static const char doing[] = "migrate it from version 4";
    CADRE_TRY(statements_execute(statements, doing, schema_of_version_5, error));
    CADRE_TRY(statements_execute(statements, doing, schema_of_version_6, error));
    CADRE_TRY(statements_execute(statements, doing, schema_of_version_7, error));
    CADRE_TRY(statements_execute(statements, doing, schema_of_version_8, error));
    CADRE_TRY(statements_execute(statements, doing, from_6_events, error));
    CADRE_TRY(statements_execute(statements, doing, "UPDATE meta SET version = 8", error));
    return schema_fill_sums(statements, error);
}

/* Version 6 has the states that were found equal. */
static cadre_status from_5(struct statements *statements, struct cadre_error *error)
{
    static const char doing[] = "migrate it from version 5";
    CADRE_TRY(statements_execute(statements, doing, schema_of_version_6, error));
    return schema_fill_version_6(statements, error);
}

/* Version 7 has the events of jobs. */
static cadre_status from_6(struct statements *statements, struct cadre_error *error)
{
    static const char doing[] = "migrate it from version 6";
    CADRE_TRY(statements_execute(statements, doing, schema_of_version_7, error));
    CADRE_TRY(statements_execute(statements, doing, from_6_events, error));
    return schema_fill_version_7(statements, error);
}

/* Version 8 has the position of the newest entry of a shared log, and its cluster. */
static cadre_status from_7(struct statements *statements, struct cadre_error *error)
{
    static const char doing[] = "migrate it from version 7";
    CADRE_TRY(statements_execute(statements, doing, schema_of_version_8, error));
    CADRE_TRY(statements_execute(statements, doing, "UPDATE meta SET version = 8", error));
    return schema_fill_version_8(statements, error);
}

cadre_status migrate(struct statements *statements, int version, struct cadre_error *error)
{
    CADRE_ASSERT(version >= 1 && version < STORE_VERSION && STORE_VERSION == 8);
    CADRE_TRY(statements_execute(statements, "begin to migrate it", "BEGIN IMMEDIATE", error));
    cadre_status status = version == 1 ? from_1(statements, error) : CADRE_OK;
    if (status == CADRE_OK && version <= 2) {
        status = from_2(statements, error);
    }
    if (status == CADRE_OK && version <= 3) {
        status = from_3(statements, error);
    }
    if (status == CADRE_OK && version <= 4) {
        status = from_4(statements, error);
    }
    if (status == CADRE_OK && version == 5) {
        status = from_5(statements, error);
    }
    if (status == CADRE_OK && (version == 5 || version == 6)) {
        status = from_6(statements, error);
    }
    if (status == CADRE_OK && version >= 5) {
        status = from_7(statements, error);
    }
    if (status == CADRE_OK) {
        status = statements_execute(statements, "end to migrate it", "COMMIT", error);
    }
    if (status != CADRE_OK) {
        /* It may be over already: its failure is ignored. */
        (void)sqlite3_exec(statements->database, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}
