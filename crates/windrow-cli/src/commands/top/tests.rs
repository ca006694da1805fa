//! Pictures of given statistics, on a terminal in memory.

use std::path::Path;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::{View, picture, screen};
use crate::watch::Look;

fn text(time: u32, gets: u32, level1: u64) -> String {
    format!(
        "windrow_status_time_seconds {time}\n\
         windrow_disk_bytes 3145728\n\
         windrow_gets_total {gets}\nwindrow_block_reads_total 200\nwindrow_block_loads_total 50\n\
         windrow_memtable_bytes{{keyspace=\"shop\"}} 2048\nwindrow_memtables{{keyspace=\"shop\"}} 2\n\
         windrow_level_bytes{{keyspace=\"shop\",level=\"0\"}} 1024\n\
         windrow_level_bytes{{keyspace=\"shop\",level=\"1\"}} {level1}\n\
         windrow_level_capacity_bytes{{keyspace=\"shop\",level=\"0\"}} 0\n\
         windrow_level_capacity_bytes{{keyspace=\"shop\",level=\"1\"}} 1048576\n\
         windrow_level_files{{keyspace=\"shop\",level=\"0\"}} 1\n\
         windrow_level_files{{keyspace=\"shop\",level=\"1\"}} 7\n\
         windrow_memory_bytes{{purpose=\"block_cache\"}} 1048576\n\
         windrow_memory_budget_bytes 4194304\n\
         windrow_stall_delays_total{{cause=\"memtables\"}} 3\n\
         windrow_stall_stops_total{{cause=\"memtables\"}} 1\n\
         windrow_stall_stops_total{{cause=\"memory\"}} 0\n\
         windrow_stall_seconds_total{{cause=\"memtables\"}} 0.25\n\
         windrow_job_running_seconds{{job=\"compaction\",keyspace=\"shop\",level=\"2\",purpose=\"tree\",number=\"1\"}} 1.5\n\
         windrow_job_bytes{{job=\"compaction\",keyspace=\"shop\",level=\"2\",purpose=\"tree\",number=\"1\"}} 4096\n\
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

/// The line of the gets.
fn rate(number: &str) -> String {
    format!("  {:<20}{number:>12}", "gets")
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
        "  compaction of shop to level 2, 4.00 KiB, for 1.5 s",
        "  memtables: 3 delays, 1 stops, 250.0 ms",
        "  blocks found in memory: 75.0 %",
        " 1.00 MiB of 4.00 MiB",
        &format!(
            "  {:<18} {:>9} mean {:>9} longest",
            "get", "2.0 \u{b5}s", "500.0 \u{b5}s"
        ),
    ] {
        assert!(shown.contains(line), "{line} in\n{shown}");
    }
    assert!(shown.contains(&rate("-")), "{shown}");
    assert!(!shown.contains("memory: 0 delays"), "{shown}");

    // Rates come from the last two texts that differ.
    let second = view(text(102, 1500, 524_288), Some(&first));
    assert!(picture(&second).contains(&rate("250")));
    let again = view(text(102, 1500, 524_288), Some(&second));
    assert!(picture(&again).contains(&rate("250")));
    let third = view(text(103, 1500, 524_288), Some(&again));
    assert!(picture(&third).contains(&rate("0")));
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
