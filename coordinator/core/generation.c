/* SPDX-License-Identifier: Apache-2.0
 * The generation of a job: hellos, the plan, the reports of frozen members, checkpoint parts.
 * Whatever names another generation than the job's is dropped (rule 13). */
#include "coordinator/core/state.h"

static const struct {
    uint8_t may_become; /* bits of enum phase */
} phase_moves[] = {
    [PHASE_JOIN] = {1 << PHASE_RUN},
    [PHASE_RUN] = {1 << PHASE_COLLECT | 1 << PHASE_DONE},
    [PHASE_COLLECT] = {0},
    [PHASE_DONE] = {0},
};

void phase_move(struct job *job, enum phase phase)
{
    CADRE_ASSERT((phase_moves[job->phase].may_become >> phase & 1) != 0);
    job->phase = phase;
}

void generation_await(struct core *core, struct job *job)
{
    if (job->phase == PHASE_JOIN && job->outcome == 0 && job->deadline == DEADLINE_NONE &&
        job->running == job->tasks && job->joined > 0 && job->joined < job->tasks) {
        deadline_job(core, job, DEADLINE_FORM, core->now_us + core->options.form_us);
    }
}

void generation_overdue(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    uint32_t slot = 0;
    CADRE_ASSERT(job->phase == PHASE_JOIN);
    CADRE_ASSERT(job->joined < job->tasks);
    while (job_task(core, job, slot)->joined) {
        slot++;
    }
    task_name(core, job, slot, &text);
    text_add(&text, " did not join within ");
    text_add_u64(&text, core->options.form_us / 1000);
    text_add(&text, " ms of the others; ");
    text_add_u64(&text, job->joined);
    text_add(&text, " of ");
    text_add_u64(&text, job->tasks);
    text_add(&text, " tasks joined");
    job_fail(core, job, CADRE_DEADLINE_EXCEEDED, 1, sentence);
}

/* All tasks are there: the roster is all of them in the order of their slots. */
static void generation_plan(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->joined == job->tasks);
    CADRE_ASSERT(job->gone == 0);
    job->parent = job->generation;
    job->generation.number++;
    do {
        job->generation.nonce = prng_next(&core->prng);
    } while (job->generation.nonce == 0);
    job->resume = 0;
    job->roster = 0;
    for (uint32_t i = 0; i < job->parties; i++) {
        job_party(core, job, i)->members = 0;
    }
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        struct task *task = job_task(core, job, slot);
        core->members[job->first + job->roster] = slot;
        task->rank = job->roster++;
        job_party(core, job, task->party)->members++;
    }
    barrier_open(core, job);
    phase_move(job, PHASE_RUN);
    deadline_job(core, job, DEADLINE_NONE, 0);
    job_due(core, job, DUE_PLAN | DUE_CHANGED);
}

static void tell_task(struct core *core, const struct job *job, uint32_t slot,
    enum task_down_type type, cadre_status code, const char *sentence)
{
    uint32_t worker = job_party(core, job, job_task(core, job, slot)->party)->worker;
    struct core_action *action = action_add(core, CORE_ACTION_TELL_TASK);
    struct text text = text_begin(action->tell_task.text, sizeof(action->tell_task.text));
    CADRE_ASSERT(worker != NONE);
    action->tell_task.link = core->workers[worker].link;
    action->tell_task.task = job_task_ref(core, job, slot);
    action->tell_task.type = type;
    action->tell_task.code = code;
    text_add(&text, sentence);
}

/* The daemon has checked the frame's version by its preamble already; here it is checked again. */
static cadre_status hello_check(const struct task_hello *hello, struct text *text)
{
    if (hello->frame_version != TASK_FRAME_VERSION) {
        text_add(text, " speaks task frame version ");
        text_add_u64(text, hello->frame_version);
        text_add(text, ", the coordinator ");
        text_add_u64(text, TASK_FRAME_VERSION);
        text_add(text, ": link the program with the libcadre of the same version");
        return CADRE_FAILED_PRECONDITION;
    }
    if (hello->replicas == 0 || hello->replicas > LIMIT_REPLICAS_PER_TASK) {
        text_add(text, " wants to run ");
        text_add_u64(text, hello->replicas);
        text_add(text, " replicas: 1 to ");
        text_add_u64(text, LIMIT_REPLICAS_PER_TASK);
        text_add(text, " are possible");
        return CADRE_INVALID_ARGUMENT;
    }
    if (hello->mesh_address == NULL || strlen(hello->mesh_address) >= LIMIT_ADDRESS_BYTES) {
        text_add(text, " gave a mesh address of more than ");
        text_add_u64(text, LIMIT_ADDRESS_BYTES - 1);
        text_add(text, " bytes");
        return CADRE_INVALID_ARGUMENT;
    }
    return CADRE_OK;
}

static void hello_joins(
    struct core *core, struct job *job, uint32_t slot, const struct task_hello *hello)
{
    struct task *task = job_task(core, job, slot);
    task->pid = hello->pid;
    task->replicas = hello->replicas;
    struct text address = text_begin(task->mesh_address, sizeof(task->mesh_address));
    text_add(&address, hello->mesh_address);
    if (!task->joined) {
        task->joined = true;
        job->joined++;
    }
    job_due(core, job, DUE_CHANGED);
    if (job->outcome != 0) {
        return; /* it is being stopped */
    }
    if (job->silent > 0) {
        ending_silent(core, job);
    } else if (job->joined == job->tasks && job->gone == 0) {
        generation_plan(core, job);
    } else {
        generation_await(core, job);
    }
}

void generation_hello(
    struct core *core, struct job *job, uint32_t slot, const struct task_hello *hello)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    task_name(core, job, slot, &text);
    cadre_status code = hello_check(hello, &text);
    if (code != CADRE_OK) {
        tell_task(core, job, slot, TASK_DOWN_REFUSED, code, sentence);
        job_fail(core, job, code, 1, sentence);
        return;
    }
    bool joiner = hello->generation.number == 0;
    bool ours = generation_equal(hello->generation, job->generation);
    if (job->phase == PHASE_JOIN && joiner) {
        hello_joins(core, job, slot, hello);
    } else if (job->phase != PHASE_JOIN && (ours || (joiner && job->phase != PHASE_DONE))) {
        /* It is back on a new connection, or the plan is still on its way to it. */
        speak_again(core, job, slot, ours);
    } else {
        /* Rule 16: it must not run on as if it had seen the end. */
        tell_task(core, job, slot, TASK_DOWN_SUPERSEDED, CADRE_ABORTED,
            "this task is not of the job's current generation");
    }
}

static void report_finished(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    struct task *task = job_task(core, job, slot);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    if (task->finished || job->phase != PHASE_RUN) {
        return;
    }
    if (!report->clean || report->position > job->released) {
        task_name(core, job, slot, &text);
        text_add(&text, " called cadre_finish at position ");
        text_add_u64(&text, report->position);
        text_add(&text, report->clean ? ", of which only " : " with a step half applied; ");
        text_add_u64(&text, job->released);
        text_add(&text, " steps were released");
        job_fail(core, job, CADRE_INTERNAL, 1, sentence);
        return;
    }
    if (job->finished > 0 && job->finished_position != report->position) {
        task_name(core, job, job->finished_slot, &text);
        text_add(&text, " called cadre_finish at position ");
        text_add_u64(&text, job->finished_position);
        text_add(&text, ", ");
        task_name(core, job, slot, &text);
        text_add(&text, " at position ");
        text_add_u64(&text, report->position);
        text_add(&text, ": the programs took different paths");
        job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
        return;
    }
    if (job->finished == 0) {
        job->finished_slot = slot;
        job->finished_position = report->position;
    }
    task->finished = true;
    job->finished++;
    CADRE_ASSERT(job->finished <= job->roster);
    if (barrier_deserted(core, job)) {
        return;
    }
    if (job->finished == job->roster) {
        phase_move(job, PHASE_DONE);
        deadline_job(core, job, DEADLINE_NONE, 0);
        job_due(core, job, DUE_DONE | DUE_CHANGED);
    }
}

/* A member lost its peers and nobody is known to have died: all freeze, and for a while somebody's
 * end is awaited, which tells who it was. A lost lease comes within this time too. */
static void report_peer_error(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    struct text text = text_begin(job->text, sizeof(job->text));
    CADRE_ASSERT(job->outcome == 0);
    task_name(core, job, slot, &text);
    text_add(&text, " lost its peers in step ");
    text_add_u64(&text, report->position);
    if (report->text != NULL && report->text[0] != '\0') {
        text_add(&text, ": ");
        text_add(&text, report->text);
    }
    if (job->early_slot != NONE) {
        ending_early_over(core, job);
        return;
    }
    phase_move(job, PHASE_COLLECT);
    deadline_job(core, job, DEADLINE_CULPRIT, core->now_us + core->options.lease_us);
    job_due(core, job, DUE_ABORT | DUE_CHANGED);
}

void generation_report(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    if (!generation_equal(report->generation, job->generation) ||
        job_task(core, job, slot)->rank == NONE) {
        return;
    }
    switch (report->reason) {
    case REPORT_FINISHED:
        report_finished(core, job, slot, report);
        break;
    case REPORT_PEER_ERROR:
        job_task(core, job, slot)->froze = true;
        if (job->phase == PHASE_RUN) {
            report_peer_error(core, job, slot, report);
        }
        break;
    case REPORT_ABORT:
        job_task(core, job, slot)->froze = true;
        break;
    case REPORT_HALT:
        break; /* it is frozen, as it was told */
    }
}

/* The chief's part is the whole checkpoint: mirrored state is equal everywhere. */
void generation_part(
    struct core *core, struct job *job, uint32_t slot, const struct task_part *part)
{
    if (job->phase != PHASE_RUN || !generation_equal(part->generation, job->generation) ||
        job_task(core, job, slot)->rank != 0) {
        return;
    }
    bool older = job->has_checkpoint && part->position < job->checkpoint_position;
    bool same = job->has_checkpoint && part->position == job->checkpoint_position &&
                strcmp(part->path, job->checkpoint_path) == 0;
    if (older || same || part->path[0] == '\0' || strlen(part->path) >= LIMIT_FILE_NAME_BYTES) {
        return;
    }
    if (part->position > job->released) {
        char sentence[LIMIT_TEXT_BYTES];
        struct text text = text_begin(sentence, sizeof(sentence));
        task_name(core, job, slot, &text);
        text_add(&text, " saved a checkpoint of position ");
        text_add_u64(&text, part->position);
        text_add(&text, ", but only ");
        text_add_u64(&text, job->released);
        text_add(&text, " steps were released");
        job_fail(core, job, CADRE_INTERNAL, 1, sentence);
        return;
    }
    job->has_checkpoint = true;
    job->checkpoint_slot = slot;
    job->checkpoint_position = part->position;
    struct text path = text_begin(job->checkpoint_path, sizeof(job->checkpoint_path));
    text_add(&path, part->path);

    struct core_record *record = record_add(core, job, CORE_RECORD_CHECKPOINT, true);
    record->checkpoint.generation = part->generation;
    record->checkpoint.position = part->position;
    record->checkpoint.slot = slot;
    record->checkpoint.size_bytes = part->size_bytes;
    memcpy(record->checkpoint.sha256, part->sha256, sizeof(record->checkpoint.sha256));
    memcpy(record->checkpoint.path, job->checkpoint_path, sizeof(record->checkpoint.path));
    job_due(core, job, DUE_CHANGED);
}
