//! Statistics in the text format of Prometheus: a HELP and a TYPE line per metric, then its samples.
//!
//! Counters begin anew with each opening of a database; what a database looks like is a gauge.

use std::fmt::Display;

use windrow::{KeyspaceStats, LevelIoStats, LevelStats, MemoryUse, StallStats, Stats};

/// Everything in `stats`, one metric behind the other.
pub(crate) fn text(stats: &Stats) -> String {
    let mut text = Text::default();
    let total = |text: &mut Text, kind, name, help, value: u64| {
        text.metric(kind, name, help);
        text.sample(name, &[], value);
    };
    for (kind, name, help, value) in totals(stats) {
        total(&mut text, kind, name, help, value);
    }
    text.metric(Gauge, MEMORY, "Bytes in memory, by purpose.");
    for (part, value) in OF_MEMORY {
        text.sample(MEMORY, &[("part", part)], value(&stats.memory));
    }
    for (kind, name, help, value) in OF_STALLS {
        text.metric(*kind, name, help);
        for stall in &stats.stalls {
            text.sample(name, &[("cause", stall.cause.name())], value(stall));
        }
    }
    for (kind, name, help, value) in OF_KEYSPACES {
        text.metric(*kind, name, help);
        for keyspace in &stats.keyspaces {
            text.sample(name, &[("keyspace", &keyspace.name)], value(keyspace));
        }
    }
    for (kind, name, help, value) in OF_LEVELS {
        text.metric(*kind, name, help);
        for keyspace in &stats.keyspaces {
            for level in &keyspace.levels {
                let number = level.level.to_string();
                let labels = [("keyspace", keyspace.name.as_str()), ("level", &number)];
                text.sample(name, &labels, value(level));
            }
        }
    }
    for (name, help, causes) in [
        (
            "windrow_level_written_bytes_total",
            "Bytes that jobs have brought into the level, by cause; moved ones were not written.",
            WRITTEN_INTO_LEVELS,
        ),
        (
            "windrow_level_read_bytes_total",
            "Bytes that jobs have read for what they wrote into the level, by cause.",
            READ_FOR_LEVELS,
        ),
    ] {
        text.metric(Counter, name, help);
        for keyspace in &stats.keyspaces {
            for level in &keyspace.levels {
                for (cause, bytes) in causes {
                    let labels = [
                        ("keyspace", keyspace.name.as_str()),
                        ("level", &level.level.to_string()),
                        ("cause", cause),
                    ];
                    text.sample(name, &labels, bytes(&level.io_stats));
                }
            }
        }
    }
    text.metric(
        Gauge,
        FALSE_POSITIVE_READS,
        "Blocks that a get reads on average in vain where the level does not hold the key.",
    );
    for keyspace in &stats.keyspaces {
        for level in &keyspace.levels {
            let labels = [
                ("keyspace", keyspace.name.as_str()),
                ("level", &level.level.to_string()),
            ];
            text.sample(FALSE_POSITIVE_READS, &labels, level.false_positive_reads);
        }
    }
    text.0
}

/// What Prometheus may do with a metric.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

use Kind::{Counter, Gauge};

type Total = (Kind, &'static str, &'static str, u64);
type Of<T> = (Kind, &'static str, &'static str, fn(&T) -> u64);

fn totals(stats: &Stats) -> Vec<Total> {
    vec![
        (
            Counter,
            "windrow_user_bytes_total",
            "Bytes of keys and values that callers wrote.",
            stats.user_bytes,
        ),
        (
            Counter,
            "windrow_user_writes_total",
            "Entries that callers wrote.",
            stats.user_writes,
        ),
        (Counter, "windrow_gets_total", "Point reads.", stats.gets),
        (
            Counter,
            "windrow_wal_bytes_total",
            "Bytes appended to the write-ahead log.",
            stats.wal_bytes,
        ),
        (
            Counter,
            "windrow_wal_syncs_total",
            "Syncs of the write-ahead log.",
            stats.wal_syncs,
        ),
        (
            Counter,
            "windrow_manifest_bytes_total",
            "Bytes appended to manifests.",
            stats.manifest_bytes,
        ),
        (
            Counter,
            "windrow_flush_bytes_total",
            "Bytes of tables written by flushes.",
            stats.flush_bytes,
        ),
        (
            Counter,
            "windrow_compaction_written_bytes_total",
            "Bytes of tables written by merges.",
            stats.compaction_bytes_written,
        ),
        (
            Counter,
            "windrow_compaction_read_bytes_total",
            "Bytes of tables read by merges.",
            stats.compaction_bytes_read,
        ),
        (
            Counter,
            "windrow_appends_total",
            "Segments that merges have appended to tables.",
            stats.appends,
        ),
        (
            Counter,
            "windrow_append_written_bytes_total",
            "Bytes of these segments.",
            stats.append_bytes_written,
        ),
        (
            Counter,
            "windrow_consolidation_written_bytes_total",
            "Bytes of tables written by consolidations.",
            stats.consolidation_bytes_written,
        ),
        (
            Counter,
            "windrow_consolidation_read_bytes_total",
            "Bytes of tables read by consolidations.",
            stats.consolidation_bytes_read,
        ),
        (
            Counter,
            "windrow_seeks_total",
            "Moves of cursors to a key or to an end.",
            stats.seeks,
        ),
        (
            Counter,
            "windrow_runs_visited_total",
            "Sorted runs of tables that were gone to for them.",
            stats.runs_visited,
        ),
        (
            Counter,
            "windrow_transient_log_written_bytes_total",
            "Bytes of values written to transient logs by flushes.",
            stats.transient_log_bytes_written,
        ),
        (
            Counter,
            "windrow_value_log_written_bytes_total",
            "Bytes of large values written to value logs.",
            stats.value_log_bytes,
        ),
        (
            Counter,
            "windrow_transient_log_read_bytes_total",
            "Bytes of transient logs read by merges that put values in place.",
            stats.transient_log_bytes_read,
        ),
        (
            Counter,
            "windrow_gc_written_bytes_total",
            "Bytes written by collections and to lead pointers to what they moved.",
            stats.gc_bytes_written,
        ),
        (
            Counter,
            "windrow_gc_read_bytes_total",
            "Bytes read by collections and to lead pointers to what they moved.",
            stats.gc_bytes_read,
        ),
        (
            Counter,
            "windrow_gc_total",
            "Collections of value logs finished.",
            stats.garbage_collections,
        ),
        (
            Counter,
            "windrow_gc_values_dropped_total",
            "Dead values that collections left behind.",
            stats.gc_values_dropped,
        ),
        (
            Counter,
            "windrow_flushes_total",
            "Memtables flushed.",
            stats.flushes,
        ),
        (
            Counter,
            "windrow_compactions_total",
            "Merges finished.",
            stats.compactions,
        ),
        (
            Counter,
            "windrow_subcompactions_total",
            "Parts in which merges were carried out.",
            stats.subcompactions,
        ),
        (
            Counter,
            "windrow_trivial_moves_total",
            "Files moved down a level without rewriting.",
            stats.trivial_moves,
        ),
        (
            Counter,
            "windrow_block_reads_total",
            "Blocks that reads consulted.",
            stats.block_reads,
        ),
        (
            Counter,
            "windrow_block_loads_total",
            "Blocks that had to be read or verified first.",
            stats.block_loads,
        ),
        (
            Counter,
            "windrow_block_load_bytes_total",
            "Bytes of blocks that had to be read or verified first.",
            stats.block_load_bytes,
        ),
        (
            Counter,
            "windrow_transient_log_reads_total",
            "Values that gets and scans have read from transient logs.",
            stats.transient_log_reads,
        ),
        (
            Counter,
            "windrow_value_log_reads_total",
            "Values that gets and scans have read from value logs.",
            stats.value_log_reads,
        ),
        (
            Counter,
            "windrow_values_prefetched_total",
            "Values that scans asked the system for before they read them.",
            stats.values_prefetched,
        ),
        (
            Counter,
            "windrow_filter_probes_total",
            "Filters asked.",
            stats.filter_probes,
        ),
        (
            Counter,
            "windrow_filter_rejects_total",
            "Filters that said no.",
            stats.filter_rejects,
        ),
        (
            Counter,
            "windrow_filter_false_positives_total",
            "Filters that said yes where the run did not hold the key.",
            stats.filter_false_positives,
        ),
        (
            Counter,
            "windrow_stalls_total",
            "Writes that had to wait, or were refused on a full disk.",
            stats.stall_count(),
        ),
        (
            Counter,
            "windrow_stall_microseconds_total",
            "Time that writes waited.",
            stats.stall_micros(),
        ),
        (
            Gauge,
            "windrow_cache_bytes",
            "Bytes in the block cache.",
            stats.memory.block_cache,
        ),
        (
            Gauge,
            "windrow_memory_budget_bytes",
            "Bytes that may be in memory; 0 for no limit.",
            stats.memory.budget,
        ),
        (
            Gauge,
            "windrow_sequence_number",
            "The newest visible sequence number.",
            stats.sequence,
        ),
        (
            Gauge,
            "windrow_disk_bytes",
            "Bytes of all files of the database, but for the reserve.",
            stats.disk_bytes,
        ),
        (
            Gauge,
            "windrow_reserve_bytes",
            "Bytes of disk that are kept back.",
            stats.reserve_bytes,
        ),
        (
            Gauge,
            "windrow_disk_full",
            "1 where entries can be removed, but not added, for want of room; else 0.",
            u64::from(stats.is_disk_full),
        ),
    ]
}

const MEMORY: &str = "windrow_memory_bytes";

type Part = (&'static str, fn(&MemoryUse) -> u64);

const OF_MEMORY: &[Part] = &[
    ("memtables", |memory| memory.memtables),
    ("block_cache", |memory| memory.block_cache),
    ("tables", |memory| memory.tables),
    ("cursors", |memory| memory.cursors),
    ("jobs", |memory| memory.jobs),
];

const OF_STALLS: &[Of<StallStats>] = &[
    (
        Counter,
        "windrow_write_delays_total",
        "Writes that were slowed down, by cause.",
        |stall| stall.delays,
    ),
    (
        Counter,
        "windrow_write_stops_total",
        "Writes that waited until a job had finished, or were refused, by cause.",
        |stall| stall.stops,
    ),
    (
        Counter,
        "windrow_write_stall_microseconds_total",
        "Time that writes waited, by cause.",
        |stall| stall.micros,
    ),
    (
        Gauge,
        "windrow_write_stall_longest_microseconds",
        "The longest wait of a write, by cause.",
        |stall| stall.longest_micros,
    ),
];

const OF_KEYSPACES: &[Of<KeyspaceStats>] = &[
    (
        Gauge,
        "windrow_memtable_bytes",
        "Bytes in memtables.",
        |keyspace| keyspace.memtable_bytes,
    ),
    (
        Gauge,
        "windrow_memtables",
        "Memtables, the active one included.",
        |keyspace| keyspace.memtables as u64,
    ),
    (
        Counter,
        "windrow_memtable_gets_answered_total",
        "Gets that a memtable answered.",
        |keyspace| keyspace.gets_answered_by_memtables,
    ),
    (
        Gauge,
        "windrow_transient_log_files",
        "Value files of transient logs.",
        |keyspace| keyspace.transient_logs.files as u64,
    ),
    (
        Gauge,
        "windrow_transient_log_bytes",
        "Bytes in value files of transient logs.",
        |keyspace| keyspace.transient_logs.bytes,
    ),
    (
        Gauge,
        "windrow_transient_log_live_bytes",
        "Bytes in transient logs that tables refer to.",
        |keyspace| keyspace.transient_logs.live_bytes,
    ),
    (
        Gauge,
        "windrow_transient_log_garbage_bytes",
        "Bytes in transient logs that no table refers to.",
        |keyspace| keyspace.transient_logs.garbage_bytes,
    ),
    (
        Gauge,
        "windrow_value_log_files",
        "Value logs.",
        |keyspace| keyspace.value_logs.files as u64,
    ),
    (
        Gauge,
        "windrow_value_log_bytes",
        "Bytes in value logs.",
        |keyspace| keyspace.value_logs.bytes,
    ),
    (
        Gauge,
        "windrow_value_log_live_bytes",
        "Bytes in value logs that tables refer to.",
        |keyspace| keyspace.value_logs.live_bytes,
    ),
    (
        Gauge,
        "windrow_value_log_garbage_bytes",
        "Bytes in value logs that no table refers to, as far as they are flushed.",
        |keyspace| keyspace.value_logs.garbage_bytes,
    ),
    (
        Gauge,
        "windrow_discard_lists",
        "Lists of values in value logs that are dead and not collected.",
        |keyspace| keyspace.discard_lists as u64,
    ),
    (
        Gauge,
        "windrow_discard_list_bytes",
        "Bytes in lists of garbage values.",
        |keyspace| keyspace.discard_list_bytes,
    ),
];

const FALSE_POSITIVE_READS: &str = "windrow_level_false_positive_reads";

const OF_LEVELS: &[Of<LevelStats>] = &[
    (Gauge, "windrow_level_files", "Table files.", |level| {
        level.files as u64
    }),
    (
        Gauge,
        "windrow_level_segments",
        "Segments in table files.",
        |level| level.segments as u64,
    ),
    (
        Gauge,
        "windrow_level_bytes",
        "Bytes in table files.",
        |level| level.bytes,
    ),
    (
        Gauge,
        "windrow_level_capacity_bytes",
        "Bytes above which a level is merged down; 0 for level 0, which counts runs.",
        |level| level.capacity,
    ),
    (
        Gauge,
        "windrow_level_entries",
        "Entries, tombstones included.",
        |level| level.entries,
    ),
    (Gauge, "windrow_level_tombstones", "Tombstones.", |level| {
        level.tombstones
    }),
    (
        Counter,
        "windrow_level_gets_answered_total",
        "Gets that the level answered.",
        |level| level.gets_answered,
    ),
    (
        Gauge,
        "windrow_level_filter_bytes",
        "Bytes of filters in memory while the tables are open.",
        |level| level.filter_bytes,
    ),
];

/// A cause, and the bytes that were moved for it.
type ByCause = (&'static str, fn(&LevelIoStats) -> u64);

/// Bytes of levels, by what they were moved for.
const WRITTEN_INTO_LEVELS: &[ByCause] = &[
    ("flush", |io_stats| io_stats.flushed),
    ("append", |io_stats| io_stats.appended),
    ("rewrite", |io_stats| io_stats.rewritten),
    ("consolidate", |io_stats| io_stats.consolidated),
    ("redirect", |io_stats| io_stats.pointers_rewritten),
    ("move", |io_stats| io_stats.moved),
    ("run", |io_stats| io_stats.transient_logs),
];
const READ_FOR_LEVELS: &[ByCause] = &[
    ("merge", |io_stats| io_stats.read),
    ("consolidate", |io_stats| io_stats.consolidation_read),
    ("redirect", |io_stats| io_stats.pointer_rewrite_read),
    ("run", |io_stats| io_stats.transient_logs_read),
];

/// The text so far.
#[derive(Debug, Default)]
struct Text(String);

impl Text {
    fn metric(&mut self, kind: Kind, name: &str, help: &str) {
        let kind = match kind {
            Counter => "counter",
            Gauge => "gauge",
        };
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
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

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        self.0 += &line.to_string();
        self.0.push('\n');
    }
}

/// A label's value: backslashes, quotes and line ends escaped.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sample_stands_behind_its_help_and_type() {
        let mut stats = Stats::default();
        stats.disk_bytes = 1234;
        stats.transient_log_bytes_written = 55;
        stats.transient_log_bytes_read = 44;
        stats.value_log_bytes = 66;
        stats.garbage_collections = 3;
        stats.gc_bytes_read = 77;
        stats.gc_bytes_written = 11;
        stats.gc_values_dropped = 9;
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
                level.io_stats.appended = 7;
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
                assert!(seen.insert(metric), "{metric} is there twice");
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
        assert!(text.contains("\nwindrow_memory_bytes{part=\"jobs\"} 0\n"));
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
            "windrow_gc_total 3",
            "windrow_gc_read_bytes_total 77",
            "windrow_gc_written_bytes_total 11",
            "windrow_gc_values_dropped_total 9",
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
