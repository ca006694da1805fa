//! Rules for every file of the repository.

use std::path::Path;

use crate::report;
use crate::tree::{File, code, files, line, rust_files, words};

/// The only files with unsafe code, each with its safety argument: arena, skip list and operating system in
/// the engine, the borders to C, Java, Node and Python, and the bindings of `windrow-peers` to other engines.
const UNSAFE_FILES: &[&str] = &[
    "bindings/java/native/src/arguments.rs",
    "bindings/java/native/src/filters.rs",
    "bindings/java/native/src/functions.rs",
    "bindings/java/native/src/handles.rs",
    "bindings/node/src/border.rs",
    "bindings/python/src/buffers.rs",
    "bindings/python/src/forks.rs",
    "crates/windrow-c/src/functions.rs",
    "crates/windrow-ffi/src/calls.rs",
    "crates/windrow-ffi/src/lib.rs",
    "crates/windrow-ffi/src/transaction.rs",
    "crates/windrow-leveldb/src/functions.rs",
    "crates/windrow-peers/src/leveldb/ffi.rs",
    "crates/windrow-peers/src/lmdb/store.rs",
    "crates/windrow-rocksdb/src/functions.rs",
    "crates/windrow/src/memtable/arena.rs",
    "crates/windrow/src/memtable/skiplist.rs",
    "crates/windrow/src/memtable/skiplist/node.rs",
    "crates/windrow/src/memtable/skiplist/position.rs",
    "crates/windrow/src/memtable/skiplist/record.rs",
    "crates/windrow/src/vfs/os.rs",
];

/// The largest file that is not text.
const BINARY_BYTES_MAX: usize = 256 << 10;

/// Folders of data, whose files may be larger.
const DATA_FOLDERS: &[&str] = &["golden/", "fuzz/corpus/"];

/// Marks of unfinished work, split so that this file does not contain them.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// The beginnings of paths of one machine, split for the same reason.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/Us", "ers/"),
    concat!("C:", "\\"),
];

#[test]
fn modules_begin_with_what_they_are() {
    let files = rust_files();
    let silent = files
        .iter()
        .filter(|(_, text)| !text.trim_start().starts_with("//!"));
    let faults: Vec<String> = silent
        .map(|(path, _)| format!("{path}: say in `//!` what this file is"))
        .collect();
    report("files without a header", &faults);
}

/// A file in `src` that no module names is not even compiled.
#[test]
fn every_source_file_belongs_to_a_module() {
    let files = rust_files();
    let declares = |path: &str, name: &str| {
        let text = files.iter().find(|(found, _)| found == path);
        text.is_some_and(|(_, text)| code(text).contains(&format!("mod {name};")))
    };
    let mut faults = Vec::new();
    for (path, _) in &files {
        let Some((package, inside)) = path.split_once("/src/") else {
            continue;
        };
        let inside = inside.trim_end_matches(".rs");
        let module = inside.trim_end_matches("/mod");
        if ["lib", "main"].contains(&module) || module.starts_with("bin/") {
            continue;
        }
        let (parent, name) = module.rsplit_once('/').unwrap_or(("", module));
        let parents = match parent {
            "" => ["lib.rs".to_owned(), "main.rs".to_owned()],
            _ => [format!("{parent}.rs"), format!("{parent}/mod.rs")],
        };
        if !parents
            .iter()
            .any(|parent| declares(&format!("{package}/src/{parent}"), name))
        {
            faults.push(format!("{path}: no module names it; remove it"));
        }
    }
    report("dead files", &faults);
}

#[test]
fn text_is_ascii() {
    let mut faults = Vec::new();
    for file in files() {
        let Some(text) = file.text() else { continue };
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.is_ascii());
        faults.extend(lines.map(|(number, _)| format!("{}:{}", file.path, number + 1)));
    }
    report("characters beyond ASCII; write them as escapes", &faults);
}

#[test]
fn nothing_is_left_unfinished() {
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        for mark in UNFINISHED {
            let places = words(&text, mark);
            faults.extend(places.map(|place| format!("{path}:{}: {mark}", line(&text, place))));
        }
    }
    report("unfinished work; finish it or open an issue", &faults);
}

/// Whether the file is one of [`UNSAFE_FILES`], or is in the folder with the name of one, whose safety
/// argument then covers it.
fn may_be_unsafe(path: &str) -> bool {
    UNSAFE_FILES.iter().any(|file| {
        let folder = file.strip_suffix(".rs").unwrap_or(file);
        path == *file || Path::new(path).starts_with(folder)
    })
}

#[test]
fn unsafe_code_stays_where_it_is_argued() {
    let mut faults = Vec::new();
    for (path, text) in rust_files() {
        let code = code(&text);
        let places: Vec<usize> = words(&code, "unsafe").collect();
        if !may_be_unsafe(&path) {
            faults.extend(
                places
                    .iter()
                    .map(|&place| format!("{path}:{}: safe code only", line(&code, place))),
            );
        } else if UNSAFE_FILES.contains(&path.as_str())
            && !text.to_lowercase().contains("safety argument")
        {
            faults.push(format!("{path}: needs a section `Safety argument`"));
        }
    }
    report(
        "unsafe code without its argument, or where none may be",
        &faults,
    );
}

#[test]
fn no_path_belongs_to_one_machine() {
    let mut faults = Vec::new();
    for file in files() {
        let Some(text) = file.text() else { continue };
        for path in MACHINE_PATHS {
            let places = text.match_indices(path);
            // A path inside a longer one, as in an address, is not absolute.
            let places = places.filter(|(place, _)| {
                !text[..*place].ends_with(|before: char| before.is_alphanumeric())
            });
            faults.extend(
                places.map(|(place, _)| format!("{}:{}: {path}", file.path, line(text, place))),
            );
        }
    }
    report("paths of one machine; make them relative", &faults);
}

#[test]
fn binaries_are_small() {
    let is_data = |file: &File| DATA_FOLDERS.iter().any(|folder| file.path.contains(folder));
    let large = files().into_iter().filter(|file| {
        file.text().is_none() && file.bytes.len() > BINARY_BYTES_MAX && !is_data(file)
    });
    let faults: Vec<String> = large
        .map(|file| format!("{}: {} bytes", file.path, file.bytes.len()))
        .collect();
    report("binary files above 256 KiB", &faults);
}
