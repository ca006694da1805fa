//! Statistics in the text format of Prometheus: for each metric a HELP line, a TYPE line and samples.
//!
//! The metrics are in tables, one for each thing that is measured: the database, a keyspace, a level.
//! Sizes are in bytes. A counter ends in `_total` and counts since the database was created. The present
//! state is a gauge. Counters of reads, stalls and memory are left out: each command opens the database
//! itself, so they would count only the command.
//!
//! Concurrency: none; no state.

use std::fmt::Display;

use windrow::{KeyspaceStats, LevelIoStats, LevelStats, LifetimeStats, Stats};

/// What Prometheus may do with a metric.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

/// A number of `T`.
struct Metric<T: 'static> {
    kind: Kind,
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> f64,
}

/// Numbers of `T` under one name, distinguished by a label.
struct Split<T: 'static> {
    kind: Kind,
    name: &'static str,
    help: &'static str,
    label: &'static str,
    parts: &'static [Part<T>],
}

/// The value of a label, and its number.
type Part<T> = (&'static str, fn(&T) -> f64);

/// A table of metrics. A row is a kind, a name, a field and a help text.
macro_rules! metrics {
    ($table:ident of $of:ty:
     $($kind:ident $name:literal $($field:ident).+, $help:literal;)*) => {
        const $table: &[Metric<$of>] = &[$(Metric {
            kind: Kind::$kind,
            name: $name,
            help: $help,
            value: |of: &$of| of.$($field).+ as f64,
        }),*];
    };
}

/// A metric whose parts are fields.
macro_rules! split {
    ($table:ident of $of:ty: $kind:ident $name:literal by $label:literal, $help:literal;
     $($part:literal $field:ident;)*) => {
        const $table: Split<$of> = Split {
            kind: Kind::$kind,
            name: $name,
            help: $help,
            label: $label,
            parts: &[$(($part, |of: &$of| of.$field as f64)),*],
        };
    };
}

metrics! { LIFETIME of LifetimeStats:
    Counter "windrow_user_bytes_total" user_bytes, "Bytes of keys and values that callers wrote.";
    Counter "windrow_user_writes_total" user_writes, "Entries that callers wrote.";
    Counter "windrow_wal_written_bytes_total" wal_bytes, "Bytes written to the write-ahead log.";
    Counter "windrow_wal_syncs_total" wal_syncs, "Syncs of the write-ahead log.";
    Counter "windrow_manifest_written_bytes_total" manifest_bytes, "Bytes written to manifests.";
    Counter "windrow_flushes_total" flushes, "Memtables flushed.";
    Counter "windrow_flush_written_bytes_total" flush_bytes, "Bytes of tables written by flushes.";
    Counter "windrow_bulk_loads_total" bulk_loads, "Bulk loads.";
    Counter "windrow_bulk_load_written_bytes_total" bulk_load_bytes,
        "Bytes of tables written by bulk loads.";
    Counter "windrow_ingestions_total" ingestions, "Ingestions of table files.";
    Counter "windrow_compactions_total" compactions, "Compactions finished.";
    Counter "windrow_subcompactions_total" subcompactions,
        "Key ranges of compactions, each done by one thread.";
    Counter "windrow_compaction_written_bytes_total" compaction_bytes_written,
        "Bytes of new tables written by compactions, and of transient logs that they rewrite.";
    Counter "windrow_compaction_read_bytes_total" compaction_bytes_read,
        "Bytes of tables read by compactions.";
    Counter "windrow_appends_total" appends, "Segments that compactions appended to tables.";
    Counter "windrow_append_written_bytes_total" append_bytes_written,
        "Bytes of appended segments.";
    Counter "windrow_consolidation_written_bytes_total" consolidation_bytes_written,
        "Bytes of tables written by consolidations, and of transient logs that they rewrite.";
    Counter "windrow_consolidation_read_bytes_total" consolidation_bytes_read,
        "Bytes of tables read by consolidations.";
    Counter "windrow_trivial_moves_total" trivial_moves,
        "Files moved down a level by an edit alone.";
    Counter "windrow_range_deletes_total" range_deletes, "Range deletes that callers wrote.";
    Counter "windrow_transactions_committed_total" transactions_committed,
        "Transactions committed, prepared ones included.";
    Counter "windrow_conflicts_total" conflicts,
        "Commits of transactions, and changes of one key, that failed with a conflict.";
    Counter "windrow_deadlocks_total" deadlocks, "Requests of locks that failed with a deadlock.";
    Counter "windrow_lock_timeouts_total" lock_timeouts,
        "Requests of locks that failed because the lock was not free in time.";
    Counter "windrow_operands_total" operands, "Operands of merge operators that callers wrote.";
    Counter "windrow_folded_entries_total" entries_folded,
        "Entries that flushes and compactions folded into others.";
    Counter "windrow_failed_folds_total" folds_failed,
        "Folds of flushes and compactions that the merge operator failed, or whose value is damaged.";
    Counter "windrow_expired_entries_total" entries_expired,
        "Expired entries that flushes, compactions and drops of whole files removed.";
    Counter "windrow_judged_entries_total" entries_judged,
        "Entries about which compactions asked a compaction filter.";
    Counter "windrow_judged_entries_removed_total" judged_removed,
        "Entries that compaction filters removed.";
    Counter "windrow_judged_values_replaced_total" judged_replaced,
        "Values that compaction filters replaced.";
    Counter "windrow_judged_changes_dropped_total" judged_dropped,
        "Removals and replacements of compaction filters that were dropped.";
    Counter "windrow_judged_entries_failed_total" judged_failed,
        "Calls of compaction filters that failed, or whose value could not be read.";
    Counter "windrow_read_folds_kept_total" folds_kept,
        "Values that gets folded and a job wrote in place of the operands.";
    Counter "windrow_read_folds_dropped_total" folds_dropped,
        "Values that gets folded and no job wrote.";
    Counter "windrow_transient_log_written_bytes_total" transient_log_bytes_written,
        "Bytes of values written to transient logs by flushes.";
    Counter "windrow_transient_log_read_bytes_total" transient_log_bytes_read,
        "Bytes of transient logs and of relocation tables read by compactions.";
    Counter "windrow_value_log_written_bytes_total" value_log_bytes,
        "Bytes of large values written to value logs.";
    Counter "windrow_garbage_collections_total" garbage_collections,
        "Garbage collections of value logs finished.";
    Counter "windrow_gc_written_bytes_total" gc_bytes_written,
        "Bytes written by garbage collection and pointer rewrites.";
    Counter "windrow_gc_read_bytes_total" gc_bytes_read,
        "Bytes read by garbage collection and pointer rewrites.";
    Counter "windrow_gc_dropped_values_total" gc_values_dropped,
        "Garbage values that garbage collection dropped.";
}

metrics! { DATABASE of Stats:
    Gauge "windrow_prepared_transactions" prepared_transactions,
        "Transactions that are prepared and wait for their end.";
    Gauge "windrow_files_held_by_readers" files_held_by_readers,
        "Files that stay only for readers in other processes.";
    Gauge "windrow_sequence_number" sequence, "The newest visible sequence number.";
    Gauge "windrow_disk_bytes" disk_bytes,
        "Bytes of all files of the database, with the reserve.";
    Gauge "windrow_reserve_bytes" reserve_bytes, "Bytes of disk that the reserve keeps back.";
}

const DISK_FULL: Metric<Stats> = Metric {
    kind: Kind::Gauge,
    name: "windrow_disk_full",
    help: "1 if the disk is full, so that entries can be removed, but not added; else 0.",
    value: |stats| f64::from(u8::from(stats.is_disk_full)),
};

metrics! { KEYSPACES of KeyspaceStats:
    Gauge "windrow_memtable_bytes" memtable_bytes, "Bytes in memtables.";
    Gauge "windrow_memtables" memtables, "Memtables, the active one included.";
    Gauge "windrow_memtable_entries" memtable_entries, "Entries in memtables, tombstones included.";
    Gauge "windrow_memtable_tombstones" memtable_tombstones, "Tombstones in memtables.";
    Gauge "windrow_transient_log_files" transient_logs.files, "Files of transient logs.";
    Gauge "windrow_transient_log_bytes" transient_logs.bytes, "Bytes in transient logs.";
    Gauge "windrow_transient_log_live_bytes" transient_logs.live_bytes,
        "Bytes in transient logs that tables refer to.";
    Gauge "windrow_transient_log_garbage_bytes" transient_logs.garbage_bytes,
        "Bytes in transient logs that no table refers to.";
    Gauge "windrow_value_log_files" value_logs.files, "Value logs.";
    Gauge "windrow_value_log_bytes" value_logs.bytes, "Bytes in value logs.";
    Gauge "windrow_value_log_live_bytes" value_logs.live_bytes,
        "Bytes in value logs that tables refer to.";
    Gauge "windrow_value_log_garbage_bytes" value_logs.garbage_bytes,
        "Bytes in value logs that no table and no memtable refers to.";
    Gauge "windrow_value_log_unflushed_bytes" value_logs.unflushed_bytes,
        "Bytes in value logs that only memtables refer to.";
    Gauge "windrow_discard_lists" discard_lists, "Lists of garbage values of value logs.";
    Gauge "windrow_discard_list_bytes" discard_list_bytes, "Bytes in discard lists.";
}

metrics! { LEVELS of LevelStats:
    Gauge "windrow_level_files" files, "Table files.";
    Gauge "windrow_level_segments" segments, "Segments in table files.";
    Gauge "windrow_level_bytes" bytes, "Bytes in table files.";
    Gauge "windrow_level_capacity_bytes" capacity,
        "Bytes above which a level is compacted; 0 for level 0, which counts runs.";
    Gauge "windrow_level_entries" entries, "Entries, tombstones included.";
    Gauge "windrow_level_tombstones" tombstones, "Tombstones, range tombstones included.";
    Gauge "windrow_level_range_tombstones" range_tombstones, "Range tombstones.";
    Gauge "windrow_level_operands" operands, "Operands that no compaction has folded yet.";
    Gauge "windrow_level_expiring_entries" expiring_entries, "Entries that expire.";
    Gauge "windrow_level_expiring_bytes" expiring_bytes,
        "Bytes of keys and values of entries that expire.";
    Gauge "windrow_level_filter_bytes" filter_bytes,
        "Bytes of filters in memory while the tables are open.";
    Gauge "windrow_level_false_positive_reads" false_positive_reads,
        "Blocks that a get of a key that is not in the level reads on average.";
}

split! { WRITTEN of LevelIoStats: Counter "windrow_level_written_bytes_total" by "cause",
    "Bytes that jobs brought into the level, by cause; trivial moves write nothing.";
    "flush" flushed;
    "append" appended;
    "rewrite" rewritten;
    "consolidation" consolidated;
    "pointer_rewrite" pointers_rewritten;
    "trivial_move" moved;
    "transient_log" transient_logs;
    "bulk_load" bulk_loaded;
}

split! { READ of LevelIoStats: Counter "windrow_level_read_bytes_total" by "cause",
    "Bytes that jobs read for what they wrote into the level, by cause.";
    "compaction" read;
    "consolidation" consolidation_read;
    "pointer_rewrite" pointer_rewrite_read;
    "transient_log" transient_logs_read;
}

/// Labels of a sample.
type Labels<'a> = Vec<(&'static str, &'a str)>;

/// All of `stats`, one metric after the other.
pub(crate) fn text(stats: &Stats) -> String {
    let numbers: Vec<String> = (0..=levels_most(stats))
        .map(|level| level.to_string())
        .collect();
    let database = [(Vec::new(), stats)];
    let lifetime = [(Vec::new(), &stats.lifetime)];
    let keyspaces = stats.keyspaces.iter();
    let keyspaces: Vec<(Labels<'_>, _)> = keyspaces
        .map(|keyspace| (vec![("keyspace", keyspace.name.as_str())], keyspace))
        .collect();
    let mut levels: Vec<(Labels<'_>, &LevelStats)> = Vec::new();
    for (labels, keyspace) in &keyspaces {
        for level in &keyspace.levels {
            let mut labels = labels.clone();
            labels.push(("level", &numbers[level.level]));
            levels.push((labels, level));
        }
    }
    let io_stats: Vec<(Labels<'_>, _)> = levels
        .iter()
        .map(|(labels, level)| (labels.clone(), &level.lifetime_io_stats))
        .collect();

    let mut text = Text::default();
    text.metrics(LIFETIME, &lifetime);
    text.metrics(DATABASE, &database);
    text.metrics(&[DISK_FULL], &database);
    text.metrics(KEYSPACES, &keyspaces);
    text.metrics(LEVELS, &levels);
    text.split(&WRITTEN, &io_stats);
    text.split(&READ, &io_stats);
    text.0
}

/// The highest number of a level.
fn levels_most(stats: &Stats) -> usize {
    let levels = stats.keyspaces.iter().flat_map(|keyspace| &keyspace.levels);
    levels.map(|level| level.level).max().unwrap_or(0)
}

/// The text so far.
#[derive(Debug, Default)]
struct Text(String);

impl Text {
    /// Each of `metrics` with a sample for each of `all`.
    fn metrics<T>(&mut self, metrics: &[Metric<T>], all: &[(Labels<'_>, &T)]) {
        for metric in metrics {
            self.heading(metric.kind, metric.name, metric.help);
            for (labels, of) in all {
                self.sample(metric.name, labels, (metric.value)(of));
            }
        }
    }

    /// One metric with a sample for each part of each of `all`.
    fn split<T>(&mut self, split: &Split<T>, all: &[(Labels<'_>, &T)]) {
        self.heading(split.kind, split.name, split.help);
        for (labels, of) in all {
            for (part, value) in split.parts {
                let mut labels = labels.clone();
                labels.push((split.label, part));
                self.sample(split.name, &labels, value(of));
            }
        }
    }

    fn heading(&mut self, kind: Kind, name: &str, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<_> = labels
            .iter()
            .map(|(label, text)| format!("{label}=\"{}\"", escape(text)))
            .collect();
        if labels.is_empty() {
            self.line(format_args!("{name} {value}"));
        } else {
            self.line(format_args!("{name}{{{}}} {value}", labels.join(",")));
        }
    }

    fn line(&mut self, line: impl Display) {
        self.0 += &line.to_string();
        self.0.push('\n');
    }
}

/// The value of a label: backslashes, quotes and line ends escaped.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_their_help_and_type() {
        let mut stats = Stats::default();
        stats.disk_bytes = 1234;
        stats.lifetime.transient_log_bytes_written = 55;
        stats.lifetime.transient_log_bytes_read = 44;
        stats.lifetime.value_log_bytes = 66;
        stats.lifetime.garbage_collections = 3;
        stats.lifetime.gc_bytes_read = 77;
        stats.lifetime.gc_bytes_written = 11;
        stats.lifetime.gc_values_dropped = 9;
        stats.is_disk_full = true;
        for name in ["plain", "a \"quoted\\\nname"] {
            let mut keyspace = KeyspaceStats::default();
            keyspace.name = name.to_owned();
            keyspace.transient_logs.files = 2;
            keyspace.transient_logs.bytes = 33;
            keyspace.transient_logs.live_bytes = 22;
            keyspace.transient_logs.garbage_bytes = 10;
            keyspace.value_logs.files = 1;
            keyspace.value_logs.bytes = 66;
            keyspace.value_logs.live_bytes = 5;
            keyspace.value_logs.garbage_bytes = 61;
            keyspace.discard_lists = 4;
            keyspace.discard_list_bytes = 44;
            for number in 0..3 {
                let mut level = LevelStats::default();
                level.level = number;
                level.bytes = 10 + number as u64;
                level.false_positive_reads = 0.25;
                level.lifetime_io_stats.appended = 7;
                keyspace.levels.push(level);
            }
            stats.keyspaces.push(keyspace);
        }
        let text = text(&stats);
        let mut metric = "";
        let mut seen = std::collections::BTreeSet::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                metric = help.split(' ').next().unwrap();
                assert!(seen.insert(metric), "{metric} exists twice");
                let kind = lines.next().unwrap();
                let is_counter = metric.ends_with("_total");
                let expected = if is_counter { "counter" } else { "gauge" };
                assert_eq!(kind, format!("# TYPE {metric} {expected}"));
            } else {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                assert_eq!(sample.split('{').next(), Some(metric));
                assert!(value.parse::<f64>().unwrap().is_finite());
            }
        }
        assert!(text.contains("\nwindrow_disk_bytes 1234\n"));
        assert!(text.contains("\nwindrow_disk_full 1\n"));
        assert!(
            text.contains(
                "windrow_level_false_positive_reads{keyspace=\"plain\",level=\"0\"} 0.25\n"
            )
        );
        assert!(text.contains("windrow_level_bytes{keyspace=\"plain\",level=\"2\"} 12\n"));
        for sample in [
            "windrow_level_written_bytes_total{keyspace=\"plain\",level=\"1\",cause=\"append\"} 7",
            "windrow_transient_log_written_bytes_total 55",
            "windrow_transient_log_read_bytes_total 44",
            "windrow_transient_log_files{keyspace=\"plain\"} 2",
            "windrow_transient_log_bytes{keyspace=\"plain\"} 33",
            "windrow_transient_log_live_bytes{keyspace=\"plain\"} 22",
            "windrow_value_log_written_bytes_total 66",
            "windrow_value_log_files{keyspace=\"plain\"} 1",
            "windrow_value_log_bytes{keyspace=\"plain\"} 66",
            "windrow_value_log_live_bytes{keyspace=\"plain\"} 5",
            "windrow_garbage_collections_total 3",
            "windrow_gc_read_bytes_total 77",
            "windrow_gc_written_bytes_total 11",
            "windrow_gc_dropped_values_total 9",
            "windrow_discard_lists{keyspace=\"plain\"} 4",
            "windrow_discard_list_bytes{keyspace=\"plain\"} 44",
            "windrow_transient_log_garbage_bytes{keyspace=\"plain\"} 10",
            "windrow_value_log_garbage_bytes{keyspace=\"plain\"} 61",
        ] {
            assert!(text.contains(&format!("\n{sample}\n")), "{text}");
        }
        let quoted = "windrow_memtables{keyspace=\"a \\\"quoted\\\\\\nname\"} 0\n";
        assert!(text.contains(quoted), "{text}");
        assert!(text.ends_with('\n'));
    }
}
