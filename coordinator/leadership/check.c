/* SPDX-License-Identifier: Apache-2.0
 * What is read must fit what this coordinator knows: its cluster, terms, log
 * and format. If not, it takes no part until people have looked, and says what
 * to do (HA19, HA20, HA24). */
#include "coordinator/leadership/state.h"

#include <string.h>

#include "common/pure/text.h"

static struct text begin_text(struct leadership *leadership)
{
    return text_begin(leadership->text, sizeof(leadership->text));
}

static bool refuse_with(
    struct leadership *leadership, const char *sentence, struct leadership_actions *out)
{
    struct text text = begin_text(leadership);
    text_add(&text, sentence);
    leadership_refuse(leadership, out);
    return false;
}

/* "<before>, entry <index> is applied here" and what to do. */
static void refuse_older(
    struct leadership *leadership, struct text *text, struct leadership_actions *out)
{
    text_add(text, ", entry ");
    text_add_u64(text, leadership->applied.index);
    text_add(text, " of term ");
    text_add_u64(text, leadership->applied.term);
    text_add(text, " is applied here: start the coordinator with the highest "
                   "entry with --reseed, "
                   "or all of them with --accept-restored, which loses the "
                   "entries in between");
    leadership_refuse(leadership, out);
}

void check_restored(struct leadership *leadership, struct leadership_actions *out)
{
    struct text text = begin_text(leadership);
    text_add(&text, "etcd holds an older ledger than a worker has seen: this "
                    "coordinator leads in it "
                    "with term ");
    text_add_u64(&text, leadership->term);
    text_add(&text, " up to entry ");
    text_add_u64(&text, leadership->head.index);
    refuse_older(leadership, &text, out);
}

/* The SQLite file is not a prefix of the log. */
static bool refuse_copy(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out)
{
    if (leadership->options.accept_restored && !leadership->applying) {
        leadership->options.accept_restored = false; /* what follows must fit */
        leadership->applied = (struct leadership_position){.hash = read->cluster_hash};
        leadership_append(out, LEADERSHIP_ACTION_DISCARD);
        return true;
    }
    struct text text = begin_text(leadership);
    text_add(&text, "etcd holds an older or another ledger than this "
                    "coordinator: its log ends at "
                    "entry ");
    text_add_u64(&text, read->head.index);
    text_add(&text, " of term ");
    text_add_u64(&text, read->head.term);
    refuse_older(leadership, &text, out);
    return false;
}

static bool check_cluster(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out)
{
    const struct leadership_options *known = &leadership->options;
    if (log_nonce_equal(read->cluster.id, (struct log_nonce){0})) {
        return refuse_with(leadership,
            "etcd's key cluster is damaged, or of a version that kept no "
            "secret in it: restore etcd "
            "from a backup, or start the coordinator with the highest entry "
            "with --reseed",
            out);
    }
    if (!read->has_leader || !read->has_head) {
        return refuse_with(leadership,
            "etcd has the key cluster, but leader or head is "
            "missing or damaged: restore etcd from "
            "a backup, or start one coordinator with --reseed",
            out);
    }
    if (read->leader.term != read->head.term ||
        !log_nonce_equal(read->leader.nonce, read->head.nonce)) {
        return refuse_with(leadership,
            "etcd's keys leader and head name different terms: "
            "another program writes beneath this "
            "prefix; give it a prefix of its own",
            out);
    }
    if (known->has_cluster && !log_nonce_equal(known->cluster_id, read->cluster.id)) {
        return refuse_with(leadership,
            "etcd holds the ledger of another cluster than this "
            "coordinator's: correct the prefix "
            "in --ha, or give this coordinator an empty --state-dir",
            out);
    }
    if (!known->has_cluster && !log_nonce_equal(known->contents_id, (struct log_nonce){0}) &&
        !log_nonce_equal(known->contents_id, read->cluster.id)) {
        return refuse_with(leadership,
            "etcd holds the ledger of another cluster than that of the contents in the folder of "
            "--contents: correct the prefix in --ha, or name the folder of this cluster",
            out);
    }
    uint64_t etcd_id = known->has_cluster ? known->etcd_id : read->cluster.etcd_id;
    bool written_here =
        read->cluster.etcd_id == read->etcd_id && read->cluster.reseeded_term > known->term_seen;
    if (etcd_id != read->etcd_id && !written_here && !known->accept_restored) {
        return refuse_with(leadership,
            "etcd has another cluster id than when this ledger was "
            "last read: it was restored from "
            "a backup, or --ha names another etcd; correct --ha, or "
            "start all coordinators with "
            "--accept-restored",
            out);
    }
    if (read->cluster.format > known->format_max) {
        struct text text = begin_text(leadership);
        text_add(&text, "the ledger has format ");
        text_add_u64(&text, read->cluster.format);
        text_add(&text, ", this version knows formats up to ");
        text_add_u64(&text, known->format_max);
        text_add(&text, ": install a newer version");
        leadership_refuse(leadership, out);
        return false;
    }
    return true;
}

bool check_may_create(const struct leadership *leadership, const struct leadership_read *read)
{
    const struct leadership_options *known = &leadership->options;
    return !read->has_cluster && !known->has_cluster &&
           log_nonce_equal(known->contents_id, (struct log_nonce){0});
}

bool check_store(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out)
{
    const struct leadership_options *known = &leadership->options;
    const struct log_head *head = &read->head;
    if (!read->has_cluster && !known->has_cluster) {
        return refuse_with(leadership,
            "etcd holds no ledger beneath the prefix of --ha, and the folder of --contents is that "
            "of a cluster: correct the prefix, restore etcd from a backup, or name an empty folder "
            "to begin a new cluster",
            out);
    }
    if (!read->has_cluster) {
        return refuse_with(leadership,
            "etcd holds no ledger beneath the prefix of --ha, and "
            "this coordinator has one: "
            "correct the prefix, restore etcd from a backup, or "
            "start the coordinator with the "
            "highest entry with --reseed",
            out);
    }
    if (!check_cluster(leadership, read, out)) {
        return false;
    }
    if (known->accept_restored && leadership->term_above == 0) {
        leadership->term_above = head->term > known->term_seen ? head->term : known->term_seen;
        leadership->term_above += RESTORED_TERMS;
    }
    if (head->term < known->term_seen && known->accept_restored) {
        leadership->options.term_seen = head->term;
    } else if (head->term < known->term_seen) {
        struct text text = begin_text(leadership);
        text_add(&text, "etcd holds an older ledger than this coordinator: its term is ");
        text_add_u64(&text, head->term);
        text_add(&text, ", term ");
        text_add_u64(&text, known->term_seen);
        text_add(&text, " was seen here");
        refuse_older(leadership, &text, out);
        return false;
    }
    bool differs = head->index == leadership->applied.index && known->has_cluster &&
                   !log_hash_equal(&head->hash, &leadership->applied.hash);
    if (head->index < leadership->applied.index || differs) {
        return refuse_copy(leadership, read, out);
    }
    return true;
}

/* What is wrong with an entry behind `before`; NULL: nothing. */
static const char *fault_of(const struct leadership *leadership, const struct log_entry *entry,
    const struct leadership_position *before, const struct log_head *head)
{
    static const struct log_hash none;
    if (entry->index != before->index + 1 || entry->index > head->index) {
        return "is not the one that follows";
    }
    if (entry->term < before->term || entry->term > head->term) {
        return "has a term out of order";
    }
    if (log_hash_equal(&entry->computed, &none)) {
        return "has missing pieces";
    }
    if (!log_hash_equal(&entry->hash, &entry->computed)) {
        return "has another hash than what is applied here and its bytes give";
    }
    if (entry->index == head->index && !log_hash_equal(&entry->hash, &head->hash)) {
        return "has another hash than the key head";
    }
    if (entry->format > leadership->options.format_max) {
        return "has a format that this version does not know: install a newer "
               "version";
    }
    return NULL;
}

uint32_t check_entries(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out)
{
    struct leadership_position before = leadership->applied;
    bool newer_format = false;
    if (read->entry_count == 0 && read->head.index > before.index) {
        struct text text = begin_text(leadership);
        text_add(&text, "etcd's log has no entry ");
        text_add_u64(&text, before.index + 1);
        text_add(&text, ", and its key head names entry ");
        text_add_u64(&text, read->head.index);
        text_add(&text, ": restore etcd from a backup, or start the coordinator "
                        "with the highest "
                        "entry with --reseed");
        leadership_refuse(leadership, out);
        return 0;
    }
    for (uint32_t i = 0; i < read->entry_count; i++) {
        const struct log_entry *entry = &read->entries[i];
        const char *fault = fault_of(leadership, entry, &before, &read->head);
        if (fault == NULL) {
            before = (struct leadership_position){
                .index = entry->index, .term = entry->term, .hash = entry->hash};
            continue;
        }
        newer_format = entry->format > leadership->options.format_max;
        if (i > 0) {
            return i; /* the good ones first; the bad one is read again as the first
                       */
        }
        if (!newer_format && leadership->options.accept_restored) {
            refuse_copy(leadership, read, out);
            return 0;
        }
        struct text text = begin_text(leadership);
        text_add(&text, "the entry of etcd's log behind entry ");
        text_add_u64(&text, before.index);
        text_add(&text, " is number ");
        text_add_u64(&text, entry->index);
        text_add(&text, " and ");
        text_add(&text, fault);
        if (!newer_format) {
            text_add(&text, "; give this coordinator an empty --state-dir if others can read the "
                            "log, else restore etcd from a backup");
        }
        leadership_refuse(leadership, out);
        return 0;
    }
    return read->entry_count;
}
