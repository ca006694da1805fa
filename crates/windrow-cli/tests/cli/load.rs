//! `load`: each format, faults in the source, and Ctrl-C.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::common::{code, done, json, json_error, problem, shell, windrow, windrow_with};

#[test]
fn folders_and_lines_load() {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("in/sub")).unwrap();
    fs::write(folder.path().join("in/b.txt"), "beta").unwrap();
    fs::write(folder.path().join("in/sub/a.txt"), "alpha\nline\n").unwrap();
    done(&windrow(
        &folder,
        &["load", "db", "in", "--keyspace", "files"],
    ));
    let scan = windrow(&folder, &["scan", "db", "--keyspace", "files"]);
    assert_eq!(done(&scan), "b.txt\tbeta\nsub/a.txt\talpha\\nline\\n\n");
    symlink("in", folder.path().join("link")).unwrap();
    let linked = json(&windrow(&folder, &["load", "linked", "link", "--json"]));
    assert_eq!(linked["entries"], 2);

    done(&windrow_with(
        folder.path(),
        &["load", "db"],
        b"first\r\nlast",
    ));
    let scan = windrow(&folder, &["scan", "db"]);
    assert_eq!(
        done(&scan),
        "0000000000000001\tfirst\n0000000000000002\tlast\n"
    );
}

#[test]
fn faults_name_the_line_and_keep_the_entries_before_it() {
    let folder = TempDir::new().unwrap();
    let load = ["load", "db", "--format", "tsv"];
    let output = windrow_with(folder.path(), &load, b"a\t1\nno tab\nb\t2\n");
    assert_eq!(code(&output), 1);
    assert!(problem(&output).contains("line 2"), "{}", problem(&output));
    assert_eq!(done(&windrow(&folder, &["scan", "db"])), "a\t1\n");

    let output = windrow_with(folder.path(), &load, b"\tempty key\n");
    assert_eq!(code(&output), 1);
    assert!(problem(&output).contains("line 1"), "{}", problem(&output));

    let load = ["load", "json", "--format", "jsonl"];
    let output = windrow_with(
        folder.path(),
        &load,
        b"{\"key\":\"a\",\"value\":1.0}\n\n \r\n{\"key\"",
    );
    assert_eq!(code(&output), 1);
    assert!(problem(&output).contains("line 4"), "{}", problem(&output));
    assert_eq!(problem(&output).matches("line").count(), 1);
    let output = windrow_with(folder.path(), &load, b"{\"key\":\"b\",\"value\":1e3}\n\n");
    done(&output);
    let scan = windrow(&folder, &["scan", "json"]);
    assert_eq!(done(&scan), "a\t1.0\nb\t1e3\n");
}

/// The message of the first fault survives what follows from it.
#[test]
fn a_write_that_fails_names_the_line() {
    let folder = TempDir::new().unwrap();
    let lines = "line\n".repeat(100_000);
    fs::write(folder.path().join("lines"), lines).unwrap();
    let load = "trap '' XFSZ; ulimit -f 512; windrow load db lines";
    let output = shell(folder.path(), load);
    assert_eq!(code(&output), 2, "{}", problem(&output));
    for part in ["stopped; ", "entries stored", "lines, line ", ".wal"] {
        assert!(problem(&output).contains(part), "{}", problem(&output));
    }
}

#[test]
fn columns_are_chosen_by_name_or_number() {
    let folder = TempDir::new().unwrap();
    let csv = "id,name,note\n1,Ada,\"a, \"\"b\"\"\"\n2,Grace,\n";
    fs::write(folder.path().join("in.csv"), csv).unwrap();
    fs::write(folder.path().join("in.txt"), csv.replace(',', ";")).unwrap();
    let header = ["--header", "--key-column", "id", "--value-column", "note"];
    let note = "1\ta, \"b\"\n2\t\n";
    for (source, options, expected) in [
        ("in.csv", &header[..], note),
        (
            "in.csv",
            &["--header", "--value-column", "2"],
            "1\tAda\n2\tGrace\n",
        ),
        (
            "in.txt",
            &[&["--format", "csv", "--delimiter", ";"], &header[..]].concat(),
            &note.replace(',', ";"),
        ),
    ] {
        let load = [&["load", "db", source], options].concat();
        done(&windrow(&folder, &load));
        let scan = windrow(&folder, &["scan", "db"]);
        assert_eq!(done(&scan), expected, "{load:?}");
    }
    for (options, parts) in [
        (&[][..], ["line 1", "--value-column"]),
        (
            &["--header", "--key-column", "nick"],
            ["nick", "id, name, note"],
        ),
        (
            &["--format", "lines", "--header"],
            ["columns", "--format csv"],
        ),
    ] {
        let output = windrow(&folder, &[&["load", "new", "in.csv"], options].concat());
        assert_eq!(code(&output), 1, "{options:?}");
        let problem = problem(&output);
        assert!(parts.iter().all(|part| problem.contains(part)), "{problem}");
    }
}

#[test]
fn a_load_that_stores_nothing_creates_no_keyspace() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    let load = "load db --keyspace new --format tsv --json";
    let load: Vec<&str> = load.split(' ').collect();
    for source in ["no tab\n", "\tempty key\n", "\n"] {
        let output = windrow_with(folder.path(), &load, source.as_bytes());
        let entries = match source {
            "\n" => json(&output)["entries"].clone(),
            _ => json_error(&output)["entries"].clone(),
        };
        assert_eq!(entries, 0, "{source:?}");
        let keyspaces = json(&windrow(&folder, &["keyspaces", "db", "--json"]));
        assert_eq!(keyspaces["name"], "default", "{source:?}");
    }
    let output = windrow_with(folder.path(), &load, b"a\t1\nno tab\n");
    assert_eq!(json_error(&output)["entries"], 1);
    let count = windrow(&folder, &["count", "db", "--keyspace", "new"]);
    assert_eq!(done(&count), "1\n");
    let output = windrow_with(folder.path(), &load, b"\tempty key\n");
    assert_eq!(json_error(&output)["entries"], 0);
    let count = windrow(&folder, &["count", "db", "--keyspace", "new"]);
    assert_eq!(done(&count), "1\n");
}

/// The rest of the file would be one value.
#[test]
fn a_quote_without_an_end_is_an_error() {
    let folder = TempDir::new().unwrap();
    let csv = format!("0,1\n1,\"{}", "x,y\n".repeat(100_000));
    fs::write(folder.path().join("u.csv"), csv).unwrap();
    let output = windrow(&folder, &["load", "db", "u.csv"]);
    assert_eq!(code(&output), 1);
    for part in ["1 entry stored", "u.csv, line 2: a quote"] {
        assert!(problem(&output).contains(part), "{}", problem(&output));
    }
}

#[test]
fn a_database_is_not_loaded_as_files() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    for load in [
        &["load", "new", "db"][..],
        &["load", "new", "db", "--format", "folder"],
    ] {
        let output = windrow(&folder, load);
        assert_eq!(code(&output), 1);
        assert!(problem(&output).contains("db is a database"), "{output:?}");
    }
    assert!(!folder.path().join("new").exists());
}

#[test]
fn skipped_files_are_counted() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    fs::write(folder.path().join("in/file"), "content").unwrap();
    symlink("file", folder.path().join("in/link")).unwrap();
    done(&shell(folder.path(), "mkfifo in/pipe"));
    done(&windrow(&folder, &["put", "in/db", "a", "1"]));
    let loaded = json(&windrow(&folder, &["load", "db", "in", "--json"]));
    assert_eq!(loaded["entries"], 1);
    let skipped = serde_json::json!({"large": 0, "links": 1, "special": 1, "databases": 1});
    assert_eq!(loaded["skipped"], skipped);
    let loaded = windrow(&folder, &["load", "db", "in"]);
    let line = "skipped: 1 link, 1 special file, 1 database\n";
    assert!(done(&loaded).ends_with(line), "{loaded:?}");
}

#[test]
fn an_interrupted_load_says_how_many_entries_are_stored() {
    for json in [false, true] {
        let folder = TempDir::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
        command.args(["load", "db"]).args(json.then_some("--json"));
        let mut child = command
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Two batches and a part of the third; the load then waits for more.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&b"line\n".repeat(2500)).unwrap();
        let stored = || windrow(&folder, &["dump", "db/000002.wal"]);
        let is_waiting = (0..400).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(25));
            str::from_utf8(&stored().stdout).is_ok_and(|dump| dump.contains("0000000000002000"))
        });
        assert!(is_waiting, "{:?}", stored());
        let kill = format!("kill -INT {}", child.id());
        done(&shell(folder.path(), &kill));
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), 130, "{output:?}");
        if json {
            let error = json_error(&output);
            assert_eq!(
                (&error["kind"], &error["entries"]),
                (&"Interrupted".into(), &2000.into())
            );
        } else {
            let message =
                "windrow: interrupted; 2,000 entries stored, the first ones of the source\n";
            assert_eq!(problem(&output), message);
        }
        drop(stdin);
        assert_eq!(done(&windrow(&folder, &["count", "db"])), "2,000\n");
    }
}

#[test]
fn a_bulk_load_stores_what_a_load_stores() {
    let folder = TempDir::new().unwrap();
    // Keys in no order, some of them often.
    let line = |n: u64| format!("{}\tvalue {n}\n", n * 7919 % 3000);
    let lines: String = (0..20_000).map(line).collect();
    fs::write(folder.path().join("in.tsv"), lines).unwrap();
    done(&windrow(&folder, &["load", "plain", "in.tsv"]));
    for memory in ["64K", "1G"] {
        let bulk = [
            "load",
            memory,
            "in.tsv",
            "--bulk",
            "--sort-memory",
            memory,
            "--json",
        ];
        let loaded = json(&windrow(&folder, &bulk));
        assert_eq!(loaded["entries"], 3000);
        let scan = |db| done(&windrow(&folder, &["scan", db])).to_owned();
        assert!(scan(memory) == scan("plain"));
        done(&windrow(&folder, &["verify", memory]));
        let stats = json(&windrow(&folder, &["stats", memory, "--json"]));
        assert_eq!(stats["lifetime"]["bulk_loads"], 1, "{stats}");
    }
}

#[test]
fn a_fault_in_the_source_of_a_bulk_load_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    done(&windrow(&folder, &["put", "db", "a", "1"]));
    let bulk = [
        "load",
        "db",
        "--keyspace",
        "new",
        "--format",
        "tsv",
        "--bulk",
    ];
    for (source, line) in [("b\t1\nno tab\n", "line 2"), ("\tempty key\n", "line 1")] {
        let output = windrow_with(folder.path(), &bulk, source.as_bytes());
        assert_eq!(code(&output), 1);
        let problem = problem(&output);
        assert!(
            problem.contains(line) && problem.contains("nothing stored"),
            "{problem}"
        );
        let keyspaces = json(&windrow(&folder, &["keyspaces", "db", "--json"]));
        assert_eq!(keyspaces["name"], "default", "{source:?}");
    }
    let loaded = json(&windrow_with(
        folder.path(),
        &[&bulk[..], &["--json"]].concat(),
        b"",
    ));
    assert_eq!(loaded["entries"], 0);
    let output = windrow(&folder, &["load", "db", "--sync", "--bulk"]);
    assert_eq!(code(&output), 1, "{output:?}");
}
