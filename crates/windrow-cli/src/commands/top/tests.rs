//! Pictures of given statistics, on a terminal in memory.

use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::{View, picture, screen};
use crate::watch::Look;

/// The other counters follow `gets`.
fn text(time: u32, gets: u32, level1: u64) -> String {
    let counter = |name: &str, each: u32| format!("windrow_{name}_total {}\n", gets * each);
    let counters = [
        counter("seeks", 3),
        counter("user_writes", 2),
        counter("user_bytes", 1 << 10),
        counter("wal_written_bytes", 2 << 10),
        counter("flush_written_bytes", 3 << 10),
        counter("compaction_written_bytes", 1 << 10),
        counter("append_written_bytes", 2 << 10),
        counter("consolidation_written_bytes", 4 << 10),
        counter("gc_written_bytes", 8 << 10),
    ];
    let (counters, loads) = (counters.concat(), gets / 20);
    format!(
        "{counters}windrow_status_time_seconds {time}\n\
         windrow_disk_bytes 3145728\n\
         windrow_gets_total {gets}\nwindrow_block_reads_total 200\nwindrow_block_loads_total {loads}\n\
         windrow_memtable_bytes{{keyspace=\"shop\"}} 2048\nwindrow_memtables{{keyspace=\"shop\"}} 2\n\
         windrow_level_bytes{{keyspace=\"shop\",level=\"0\"}} 1024\n\
         windrow_level_bytes{{keyspace=\"shop\",level=\"1\"}} {level1}\n\
         windrow_level_capacity_bytes{{keyspace=\"shop\",level=\"0\"}} 0\n\
         windrow_level_capacity_bytes{{keyspace=\"shop\",level=\"1\"}} 1048576\n\
         windrow_level_files{{keyspace=\"shop\",level=\"0\"}} 1\n\
         windrow_level_files{{keyspace=\"shop\",level=\"1\"}} 7\n\
         windrow_value_log_files{{keyspace=\"shop\"}} 3\n\
         windrow_value_log_bytes{{keyspace=\"shop\"}} 3145728\n\
         windrow_value_log_garbage_bytes{{keyspace=\"shop\"}} 1048576\n\
         windrow_transient_log_files{{keyspace=\"shop\"}} 1\n\
         windrow_transient_log_bytes{{keyspace=\"shop\"}} 8192\n\
         windrow_memory_bytes{{purpose=\"block_cache\"}} 1048576\n\
         windrow_memory_bytes{{purpose=\"memtables\"}} 2097152\n\
         windrow_memory_budget_bytes 4194304\n\
         windrow_stall_delays_total{{cause=\"memtables\"}} 3\n\
         windrow_stall_stops_total{{cause=\"memtables\"}} 1\n\
         windrow_stall_stops_total{{cause=\"memory\"}} 0\n\
         windrow_stall_seconds_total{{cause=\"memtables\"}} 0.25\n\
         windrow_job_running_seconds{{job=\"compaction\",keyspace=\"shop\",level=\"2\",purpose=\"tree\",number=\"1\"}} 1.5\n\
         windrow_job_bytes{{job=\"compaction\",keyspace=\"shop\",level=\"2\",purpose=\"tree\",number=\"1\"}} 4096\n\
         windrow_job_running_seconds{{job=\"garbage_collection\",keyspace=\"shop\",number=\"2\"}} 0.5\n\
         windrow_job_bytes{{job=\"garbage_collection\",keyspace=\"shop\",number=\"2\"}} 2048\n\
         windrow_job_running_seconds{{job=\"compaction\",keyspace=\"shop\",level=\"3\",purpose=\"consolidation\",number=\"3\"}} 2\n\
         windrow_operation_seconds_sum{{operation=\"get\"}} 0.002\n\
         windrow_operation_seconds_count{{operation=\"get\"}} 1000\n\
         windrow_longest_operation_seconds{{operation=\"get\"}} 0.0005\n"
    )
}

fn view(text: String, earlier: Option<&View>) -> View {
    let is_live = text.contains("windrow_status");
    let look = Look { text, is_live };
    View::new(Path::new("shop.db"), &look, earlier)
}

/// The line of what happens so often per second.
fn rate(name: &str, number: &str) -> String {
    format!("  {name:<20}{number:>12}")
}

#[test]
fn a_picture_shows_levels_jobs_stalls_rates_and_memory() {
    let first = view(text(100, 1000, 524_288), None);
    let shown = picture(&first);
    for line in [
        "windrow top shop.db: 3.00 MiB on disk, beside the process that writes",
        "shop: 2.00 KiB in 2 memtables",
        &format!(
            "  level 1  {}{} 512.0 KiB of 1.00 MiB, 7 files",
            "\u{2588}".repeat(15),
            "\u{2591}".repeat(15)
        ),
        "  3 value logs: 3.00 MiB, 1.00 MiB garbage",
        "  1 transient log: 8.00 KiB, 0 B garbage",
        "  compaction of shop to level 2, 4.00 KiB, for 1.5 s",
        "  garbage collection of shop, 2.00 KiB, for 500.0 ms",
        "  compaction (consolidation) of shop to level 3, for 2.0 s",
        "  memtables: 3 delays, 1 stops, 250.0 ms",
        "  blocks found in memory: 75.0 %",
        &format!("  {:<16}{:>12}", "block cache", "1.00 MiB"),
        &format!("  {:<16}{:>12}", "memtables", "2.00 MiB"),
        // Of thirty cells.
        &format!(
            "  {}{} 3.00 MiB of 4.00 MiB",
            "\u{2588}".repeat(23),
            "\u{2591}".repeat(7)
        ),
        &format!(
            "  {:<18} {:>9} mean {:>9} longest",
            "get", "2.0 \u{b5}s", "500.0 \u{b5}s"
        ),
    ] {
        assert!(shown.contains(line), "{line} in\n{shown}");
    }
    for name in ["gets", "writes", "compacted"] {
        assert!(shown.contains(&rate(name, "-")), "{name} in\n{shown}");
    }
    assert!(!shown.contains("memory: 0 delays"), "{shown}");

    // Rates come from the last two texts that differ: 250 gets in each of two seconds.
    let rates = [
        rate("gets", "250"),
        rate("seeks", "750"),
        rate("writes", "500"),
        rate("written by callers", "250.0 KiB"),
        rate("written to the log", "500.0 KiB"),
        rate("flushed", "750.0 KiB"),
        rate("compacted", "3.66 MiB"),
        rate("blocks loaded", "13"),
    ];
    let second = view(text(102, 1500, 524_288), Some(&first));
    let again = view(text(102, 1500, 524_288), Some(&second));
    for shown in [picture(&second), picture(&again)] {
        for line in &rates {
            assert!(shown.contains(line), "{line} in\n{shown}");
        }
    }
    let third = view(text(103, 1500, 524_288), Some(&again));
    for line in [
        rate("gets", "0"),
        rate("writes", "0"),
        rate("flushed", "0 B"),
    ] {
        assert!(picture(&third).contains(&line), "{line}");
    }
}

#[test]
fn a_level_above_its_capacity_is_red() {
    let color_of = |bytes: u64| {
        let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
        let view = view(text(100, 0, bytes), None);
        terminal
            .draw(|frame| screen::draw(&view, frame.area(), frame.buffer_mut()))
            .unwrap();
        // Below the title, the heading, the keyspace and level 0.
        let cell = &terminal.backend().buffer()[(11, 4)];
        assert_eq!(cell.symbol(), "\u{2588}");
        cell.fg
    };
    assert_eq!(color_of(500_000), Color::Green);
    assert_eq!(color_of(1_000_000), Color::Yellow);
    assert_eq!(color_of(2_000_000), Color::Red);
}

#[test]
fn without_a_process_only_the_levels_are_shown() {
    let stored = "windrow_memtable_bytes{keyspace=\"shop\"} 0\n\
        windrow_level_bytes{keyspace=\"shop\",level=\"1\"} 1024\n\
        windrow_level_capacity_bytes{keyspace=\"shop\",level=\"1\"} 1e30\n";
    let shown = picture(&view(stored.to_owned(), None));
    assert!(
        shown.contains("no process writes its statistics"),
        "{shown}"
    );
    assert!(
        shown.contains("  level 1 ") && shown.contains(" 1.00 KiB, 0 files"),
        "{shown}"
    );
    assert!(
        !shown.contains("gets") && !shown.contains(" of "),
        "{shown}"
    );
    // A small terminal is no fault.
    let mut terminal = Terminal::new(TestBackend::new(10, 3)).unwrap();
    let view = view(stored.to_owned(), None);
    terminal
        .draw(|frame| screen::draw(&view, frame.area(), frame.buffer_mut()))
        .unwrap();
}
