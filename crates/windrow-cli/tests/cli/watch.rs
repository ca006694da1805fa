//! `top`, `serve` and `explain`, beside a process that writes and without one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use windrow::{Db, Event, FilterAllocation, Options, StallCause, inspect};

use crate::common::{code, done, json, objects, problem, run, text, windrow};

/// A database that this process writes, with a status.
fn written(folder: &TempDir) -> Db {
    let mut options = Options::default();
    options.latency_interval = 1;
    let db = Db::open(folder.path().join("db"), options).unwrap();
    let keyspace = db.keyspace("default").unwrap();
    for number in 0..100_u8 {
        keyspace.insert([b'k', number], [7; 100]).unwrap();
    }
    db.flush().unwrap();
    for number in 0..30_u8 {
        assert!(keyspace.get([b'k', number]).unwrap().is_some());
    }
    let start = Instant::now();
    let is_written = || {
        let status = inspect::status(&windrow::vfs::OsVfs, db.path()).unwrap();
        status.is_some_and(|text| text.contains("\nwindrow_gets_total 30\n"))
    };
    while !is_written() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(50));
    }
    db
}

#[test]
fn top_shows_what_the_process_that_writes_does() {
    let folder = TempDir::new().unwrap();
    let db = written(&folder);
    let shown = windrow(&folder, &["top", "db", "--once"]);
    let shown = done(&shown);
    for part in [
        "beside the process that writes",
        "default: ",
        "level 0",
        "gets",
        "get ",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    let numbers = json(&windrow(&folder, &["top", "db", "--json"]));
    assert_eq!(numbers["counters"]["gets"], 30);
    assert_eq!(numbers["counters"]["writes"], 100);
    assert_eq!(numbers["is_live"], true);
    db.close().unwrap();
    let shown = windrow(&folder, &["top", "db"]);
    assert!(done(&shown).contains("no process writes its statistics"));
    assert!(!done(&shown).contains("gets"));
    assert_eq!(code(&windrow(&folder, &["top", "missing"])), 1);
}

/// A database whose next flush does not go on while `is_held`.
fn held(folder: &TempDir, is_held: &Arc<AtomicBool>) -> Db {
    let is_held = Arc::clone(is_held);
    let listener = move |event: &Event| {
        let start = Instant::now();
        while matches!(event, Event::FlushBegan { .. })
            && is_held.load(Ordering::Acquire)
            && start.elapsed() < Duration::from_secs(60)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let mut options = Options::default();
    // The other thread writes the status meanwhile.
    options.background_threads = 2;
    options.keyspace.memtable_bytes = 64 << 10;
    (options.keyspace.medium_from, options.keyspace.large_from) = (1500, 1500);
    // No garbage is collected.
    options.keyspace.max_space_amp = f64::INFINITY;
    let options = options.with_listener(Arc::new(listener));
    Db::open(folder.path().join("db"), options).unwrap()
}

#[test]
fn top_shows_values_memory_a_job_and_a_stall() {
    let folder = TempDir::new().unwrap();
    let is_held = Arc::new(AtomicBool::new(false));
    let db = held(&folder, &is_held);
    let keyspace = db.keyspace("default").unwrap();
    for version in 0..3_u8 {
        keyspace.insert("large", [version; 2000]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let logs = db.stats().keyspaces[0].value_logs;
    assert!(
        logs.files == 1 && logs.garbage_bytes >= 4000 && logs.live_bytes >= 2000,
        "{logs:?}"
    );
    is_held.store(true, Ordering::Release);
    let mut written = 0_u32;
    while db.stats().stall_count() == 0 {
        assert!(written < 1000, "no writer waits for the flush");
        keyspace.insert(written.to_be_bytes(), [7; 1000]).unwrap();
        written += 1;
    }
    let stats = db.stats();
    let mut stalls = stats.stalls.iter();
    let stall = stalls.find(|it| it.cause == StallCause::Memtables).unwrap();
    assert_eq!(stall.delays + stall.stops, stats.stall_count());

    let kib = |bytes: u64| format!("{:.2} KiB", bytes as f64 / 1024.0);
    let garbage = kib(logs.garbage_bytes);
    let parts = [
        format!("  1 value log: {}, {garbage} garbage", kib(logs.bytes)),
        "  flush of default to level 0, for ".to_owned(),
        format!(
            "  memtables: {} delays, {} stops, ",
            stall.delays, stall.stops
        ),
        " of 512.0 MiB".to_owned(),
        format!("  {:<20}{:>12}", "writes", "-"),
    ];
    let numbers = || json(&windrow(&folder, &["top", "db", "--json"]));
    let start = Instant::now();
    // The process writes its status once a second.
    while numbers()["counters"]["writes"] != 3 + written {
        assert!(start.elapsed() < Duration::from_secs(30));
    }
    let shown = windrow(&folder, &["top", "db", "--once"]);
    let shown = done(&shown);
    for part in &parts {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert_eq!(numbers()["jobs"], 1);
    is_held.store(false, Ordering::Release);
    drop(keyspace);
    db.close().unwrap();
}

/// `serve` until it is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &TempDir) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_windrow"))
            .args(["serve", "db", "--metrics", "127.0.0.1:0", "--json"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let object: Value = serde_json::from_str(&line).unwrap();
        let address = object["address"].as_str().unwrap().to_owned();
        Self { child, address }
    }

    /// The head and the body of the answer.
    fn ask(&self, request: &str) -> (String, String) {
        self.ask_with(request, &format!("Host: {}", self.address))
    }

    fn ask_with(&self, request: &str, header: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "{request} HTTP/1.1\r\n{header}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn serve_answers_prometheus_and_browsers() {
    let folder = TempDir::new().unwrap();
    let db = written(&folder);
    let server = Server::start(&folder);
    let (head, body) = server.ask("GET /metrics");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(
        head.contains("Content-Type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(body.contains("\nwindrow_gets_total 30\n"));
    assert!(body.contains("\nwindrow_operation_seconds_count{operation=\"get\"} 30\n"));
    let (head, page) = server.ask("GET /");
    assert!(head.contains("Content-Type: text/html"), "{head}");
    assert!(
        head.contains("Content-Security-Policy: default-src 'none'"),
        "{head}"
    );
    assert!(page.contains("<title>Windrow</title>"));
    // The page is complete in itself, and the names that it reads are served.
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains(" src="));
    let names = page.split('"').filter(|part| part.starts_with("windrow_"));
    for name in names.filter(|name| !name.contains("job")) {
        assert!(body.contains(&format!("\n{name}")), "{name}");
    }
    assert!(server.ask("GET /other").0.starts_with("HTTP/1.1 404"));
    assert!(server.ask("DELETE /metrics").0.starts_with("HTTP/1.1 405"));

    // Others cannot be made to wait, and lengths are only claimed.
    let idle = TcpStream::connect(&server.address).unwrap();
    let mut large = TcpStream::connect(&server.address).unwrap();
    large
        .write_all(b"POST / HTTP/1.1\r\nContent-Length: 9000000000000000000\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    large.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(server.ask("HEAD /metrics").1.is_empty());
    let rebound = server.ask_with("GET /metrics", "Host: example.org");
    assert!(rebound.0.starts_with("HTTP/1.1 403"), "{}", rebound.0);
    drop(idle);

    // After its close the files say the rest, and a look is in no writer's way.
    db.close().unwrap();
    let (_, body) = server.ask("GET /metrics");
    // A job may have moved the file down.
    let files =
        |level: u8| format!("\nwindrow_level_files{{keyspace=\"default\",level=\"{level}\"}} 1\n");
    assert!(
        body.contains(&files(0)) || body.contains(&files(1)),
        "{body}"
    );
    assert!(
        body.contains("\nwindrow_up 0\n") && !body.contains("_total"),
        "{body}"
    );
    for _ in 0..20 {
        server.ask("GET /metrics");
        let db = Db::open(folder.path().join("db"), Options::default()).unwrap();
        db.close().unwrap();
    }
}

#[test]
fn serve_refuses_what_it_cannot_do() {
    let folder = TempDir::new().unwrap();
    assert_eq!(code(&windrow(&folder, &["serve", "missing"])), 1);
    done(&windrow(&folder, &["put", "db", "key", "value"]));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = windrow(&folder, &["serve", "db", "--metrics", &address]);
    assert_eq!(code(&refused), 2);
    assert!(
        problem(&refused).contains(&address),
        "{}",
        problem(&refused)
    );
}

/// What `explain` says of a get under `--json`, whether the key is found or not.
fn explained(path: &str, key: &str) -> Value {
    let output = run(&["explain", path, key, "--json"]);
    serde_json::from_str(text(&output)).unwrap()
}

#[test]
fn explain_shows_the_path_of_a_read() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "apple", "red"]));
    done(&windrow(&folder, &["put", "db", "cherry", "dark"]));
    done(&windrow(&folder, &["flush", "db"]));
    done(&windrow(&folder, &["put", "db", "banana", "yellow"]));
    done(&windrow(&folder, &["delete", "db", "cherry"]));
    let shown = windrow(&folder, &["explain", "db", "apple"]);
    let shown = done(&shown);
    for part in [
        "active memtable, 2 entries",
        ": table ",
        "a value of 3 B",
        "found a value of 3 B; the same read again takes ",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    let path = folder.path().join("db");
    let path = path.to_str().unwrap();
    let how = &objects(&["explain", path, "apple"])[0];
    assert_eq!(how["steps"][0]["answer"], "nothing");
    let table = &how["steps"][1];
    // A job may have moved it down.
    assert!(table["source"]["table"]["level"].as_u64() <= Some(1));
    assert_eq!(table["answer"]["value"], 3);
    assert_eq!(table["block_reads"], 1);
    assert!(table["nanos"].as_u64() > Some(0));

    // The memtable says no, and no table is asked.
    let how = explained(path, "cherry");
    assert_eq!(how["is_found"], false);
    assert_eq!(how["steps"].as_array().map(Vec::len), Some(1));
    assert_eq!(how["steps"][0]["answer"], "tombstone");
    let absent = windrow(&folder, &["explain", "db", "blackberry"]);
    assert_eq!(code(&absent), 1);
    let missing = windrow(&folder, &["explain", "db", "zebra"]);
    let missing = String::from_utf8(missing.stdout).unwrap();
    assert!(
        missing.contains(": 1 table without the key in its range"),
        "{missing}"
    );
    let deleted = windrow(&folder, &["explain", "db", "cherry"]);
    assert_eq!(code(&deleted), 1);
    assert!(
        String::from_utf8(deleted.stdout)
            .unwrap()
            .contains("deleted")
    );

    let how = &objects(&["explain", path, "b", "--seek"])[0];
    assert_eq!(how["is_found"], true);
    assert_eq!(how["key"], serde_json::json!(b"banana"));
    assert_eq!(
        how["steps"][0]["answer"]["key"],
        serde_json::json!(b"banana")
    );
    assert_eq!(
        how["steps"][1]["answer"]["key"],
        serde_json::json!(b"cherry")
    );
    let shown = windrow(&folder, &["explain", "db", "b", "--seek"]);
    assert!(done(&shown).contains("found banana; the same read again takes "));
    // Nothing is left behind the last key.
    assert_eq!(
        code(&windrow(&folder, &["explain", "db", "c", "--seek"])),
        1
    );
}

/// A database with the keys `key00` to `key19` in one table, and three newer runs of level 0 over their range.
fn with_runs(folder: &TempDir) {
    let mut options = Options::default();
    // No compaction merges them.
    options.keyspace.level0_runs = 64;
    options.keyspace.filter_allocation = FilterAllocation::Uniform;
    let db = Db::open(folder.path().join("db"), options).unwrap();
    let keyspace = db.keyspace("default").unwrap();
    for number in 0..20 {
        keyspace.insert(format!("key{number:02}"), "old").unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    // Each run begins before the older ones.
    for first in ["a3", "a2", "a1"] {
        keyspace.insert(first, "new").unwrap();
        keyspace.insert("z", "new").unwrap();
        db.flush().unwrap();
    }
    drop(keyspace);
    db.close().unwrap();
}

/// The cells of each row of a table, with single blanks between them.
fn rows(shown: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    shown.lines().map(words).collect()
}

#[test]
fn explain_shows_runs_filters_and_blocks() {
    let folder = TempDir::new().unwrap();
    with_runs(&folder);
    let path = folder.path().join("db");
    let path = path.to_str().unwrap();
    let tables = |how: &Value| -> Vec<Value> {
        let steps = how["steps"].as_array().unwrap().iter();
        let tables = steps.filter(|step| step["source"]["table"].is_object());
        tables.cloned().collect()
    };
    let excludes = |step: &Value| step["filter_rejects"] == 1;

    // A key that is in the oldest table. Few filters pass a key that they do not have.
    let mut keys = (0..20).map(|number| format!("key{number:02}"));
    let (key, found) = keys
        .find_map(|key| {
            let steps = tables(&explained(path, &key));
            steps[..3].iter().all(excludes).then_some((key, steps))
        })
        .unwrap();
    assert_eq!(found.len(), 4);
    let file = |step: &Value| step["source"]["table"]["file"].as_u64().unwrap();
    assert!(found.iter().rev().map(file).is_sorted());
    let shown = windrow(&folder, &["explain", "db", &key]);
    let shown = rows(done(&shown));
    let mut rows_left = shown.iter();
    for step in &found[..3] {
        assert_eq!(step["source"]["table"]["level"], 0);
        assert_eq!(step["answer"], "nothing");
        assert_eq!(
            (&step["filter_probes"], &step["block_reads"]),
            (&1.into(), &0.into())
        );
        let row = format!("level 0: table {:06}, 1 segment - 1 1 ", file(step));
        let line = rows_left.find(|line| line.contains(&row));
        let line = line.unwrap_or_else(|| panic!("{row} in {shown:?}"));
        // One filter was probed and has excluded the key. There are no blocks: the time, its unit and the border follow.
        let rest = line.split(&row).nth(1).unwrap();
        assert_eq!(rest.split(' ').count(), 3, "{line}");
    }
    let last = &found[3];
    assert_eq!(last["answer"]["value"], 3);
    assert_eq!(
        (&last["filter_probes"], &last["filter_rejects"]),
        (&1.into(), &0.into())
    );
    assert_eq!(
        (&last["block_reads"], &last["block_loads"]),
        (&1.into(), &1.into())
    );
    let level = &last["source"]["table"]["level"];
    let loaded = last["block_load_bytes"].as_u64().unwrap();
    assert!(loaded > 0);
    // One filter, which excludes nothing, and one block, which was loaded first.
    let row = format!(
        "level {level}: table {:06}, 1 segment a value of 3 B 1 1 1 ({loaded} B) ",
        file(last)
    );
    assert!(
        rows_left.any(|line| line.contains(&row)),
        "{row} in {shown:?}"
    );

    // Each run has one key of its own, and the read ends there.
    for (key, asked) in [("a1", 1), ("a2", 2), ("a3", 3)] {
        let how = explained(path, key);
        let steps = tables(&how);
        assert_eq!(steps.len(), asked, "{how}");
        let answer = &steps[asked - 1]["answer"];
        assert_eq!(answer["value"], 3, "{how}");
    }
}
