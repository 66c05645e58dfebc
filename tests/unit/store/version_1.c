/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/store/version_1.h"

#include <sqlite3.h>
#include <stddef.h>

#include "tests/lib/test.h"

#define JOB_COLUMN "job INTEGER NOT NULL REFERENCES job(id) ON DELETE CASCADE, "
#define JOB_KEY    "job INTEGER PRIMARY KEY REFERENCES job(id) ON DELETE CASCADE, "

/* As version 1 wrote it, to the letter. */
static const char version_1_tables[] =
    "CREATE TABLE meta("
    "  version INTEGER NOT NULL, secret BLOB NOT NULL, job_id_max INTEGER NOT NULL);"
    "CREATE TABLE job("
    "  id INTEGER PRIMARY KEY, spec BLOB NOT NULL, tasks INTEGER NOT NULL,"
    "  priority INTEGER NOT NULL, submitted_us INTEGER NOT NULL,"
    "  started_us INTEGER NOT NULL DEFAULT 0, ended_us INTEGER NOT NULL DEFAULT 0,"
    "  incarnation_max INTEGER NOT NULL DEFAULT 0, state INTEGER NOT NULL DEFAULT 1,"
    "  code INTEGER NOT NULL DEFAULT 0, exit_code INTEGER NOT NULL DEFAULT 0,"
    "  text TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE plan(" JOB_COLUMN
    "  number INTEGER NOT NULL, nonce INTEGER NOT NULL, parent_number INTEGER NOT NULL,"
    "  parent_nonce INTEGER NOT NULL, resume INTEGER NOT NULL, roster BLOB NOT NULL,"
    "  PRIMARY KEY(job, number)) WITHOUT ROWID;"
    "CREATE TABLE watermark(" JOB_KEY
    "  number INTEGER NOT NULL, nonce INTEGER NOT NULL, up_to INTEGER NOT NULL,"
    "  stream INTEGER NOT NULL, epoch INTEGER NOT NULL, first INTEGER NOT NULL,"
    "  steps INTEGER NOT NULL);"
    "CREATE TABLE end_of_data(" JOB_COLUMN
    "  stream INTEGER NOT NULL, epoch INTEGER NOT NULL, first INTEGER NOT NULL,"
    "  steps INTEGER NOT NULL, PRIMARY KEY(job, stream, epoch)) WITHOUT ROWID;"
    "CREATE TABLE checkpoint(" JOB_COLUMN
    "  position INTEGER NOT NULL, number INTEGER NOT NULL, nonce INTEGER NOT NULL,"
    "  slot INTEGER NOT NULL, path TEXT NOT NULL, size_bytes INTEGER NOT NULL,"
    "  sha256 BLOB NOT NULL, PRIMARY KEY(job, position)) WITHOUT ROWID;"
    "CREATE TABLE done(" JOB_KEY
    "  number INTEGER NOT NULL, nonce INTEGER NOT NULL, position INTEGER NOT NULL);"
    "CREATE TABLE task_exit(" JOB_COLUMN
    "  slot INTEGER NOT NULL, incarnation INTEGER NOT NULL, state INTEGER NOT NULL,"
    "  code INTEGER NOT NULL, signal INTEGER NOT NULL, text TEXT NOT NULL,"
    "  PRIMARY KEY(job, slot, incarnation)) WITHOUT ROWID;";

const char version_1_ledger[] =
    "INSERT INTO meta VALUES(1,X'5633c872ae329fbad76b80ed0831a7da6d1200d8e02c1965bf06a321af29c84a"
    "',5);"
    "INSERT INTO job VALUES(1,X'0a04676f6f6412310a07747261696e65721220b53d232ae65716813115803474f"
    "6cabba4a4161a954ee3a6b21422df0b21fbe318f0cc6320011a0232302203413d622a330a0d646174612f66696c6"
    "52e74787412206667b2d1aab6a00caa5aee5af8ad9f1465e567abf1c209d15727d57b3e8f6e5f180530024803',2"
    ",3,1795307545615243,1795307545615251,1795307545702734,2,5,0,0,'finished after 20 steps');"
    "INSERT INTO job VALUES(2,X'0a03626164122f0a0566616c736512207faadececbd287e494595d6a8203bc521"
    "e4463c682a496569187a77e761156bc18d0960220013001',1,0,1795307545741207,1795307545741214,17953"
    "07545749383,1,6,10,1,'task 0 on worker w1 exited with status 1');"
    "INSERT INTO job VALUES(3,X'0a0963616e63656c6c656412310a07747261696e65721220b53d232ae65716813"
    "115803474f6cabba4a4161a954ee3a6b21422df0b21fbe318f0cc6320011a0232301a01301a01351a0468616e673"
    "002',2,0,1795307545771856,1795307545771863,1795307546799496,2,7,1,130,'cancelled');"
    "INSERT INTO job VALUES(4,X'0a0472756e7312310a07747261696e65721220b53d232ae65716813115803474f"
    "6cabba4a4161a954ee3a6b21422df0b21fbe318f0cc6320011a0232301a01311a01371a0468616e673002',2,0,1"
    "795307549333601,1795307549333608,0,2,1,0,0,'');"
    "INSERT INTO job VALUES(5,X'0a0671756575656412310a07747261696e65721220b53d232ae65716813115803"
    "474f6cabba4a4161a954ee3a6b21422df0b21fbe318f0cc6320011a023330300248feffffffffffffffff01',2,-"
    "2,1795307550354053,0,0,0,1,0,0,'');"
    "INSERT INTO plan VALUES(1,1,-9043872762927687068,0,0,0,X'00000000010000000000000001000000020"
    "0000000000000');"
    "INSERT INTO plan VALUES(3,1,6773809881086241370,0,0,0,X'000000000100000000000000010000000200"
    "000000000000');"
    "INSERT INTO plan VALUES(4,1,4113650903220262847,0,0,0,X'000000000100000000000000010000000200"
    "000000000000');"
    "INSERT INTO watermark VALUES(1,1,-9043872762927687068,20,1,0,0,20);"
    "INSERT INTO watermark VALUES(3,1,6773809881086241370,8,1,0,0,20);"
    "INSERT INTO watermark VALUES(4,1,4113650903220262847,20,1,0,0,20);"
    "INSERT INTO end_of_data VALUES(1,1,0,0,20);"
    "INSERT INTO end_of_data VALUES(3,1,0,0,20);"
    "INSERT INTO end_of_data VALUES(4,1,0,0,20);"
    "INSERT INTO checkpoint VALUES(1,20,1,-9043872762927687068,0,'checkpoint-20.safetensors',124,"
    "X'e24a63f53dec1064bd0b43024b2f8c9c6e2596b22820b03dfca344b126f2147f');"
    "INSERT INTO done VALUES(1,1,-9043872762927687068,20);"
    "INSERT INTO task_exit VALUES(1,0,1,4,0,0,'');"
    "INSERT INTO task_exit VALUES(1,1,2,4,0,0,'');"
    "INSERT INTO task_exit VALUES(2,0,1,4,1,0,'');"
    "INSERT INTO task_exit VALUES(3,0,1,4,0,15,'');"
    "INSERT INTO task_exit VALUES(3,1,2,4,1,0,'tests/integration/trainer.c:68: cadre_run(strategy"
    ", add_one, sum, batch, 1, &added): ABORTED: cancelled');";

static void execute(sqlite3 *database, const char *sql)
{
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
}

void version_1_make(const char *path, const char *rows, const char *changes)
{
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    execute(database, version_1_tables);
    execute(database, rows);
    execute(database, changes);
    sqlite3_close(database);
}
