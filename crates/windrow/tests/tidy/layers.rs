//! Layer order: a module uses only layers below its own, with the exceptions in `BESIDE`.

use std::collections::BTreeMap;

use crate::report;
use crate::tree::{code, is_word, line, rust_files, words};

/// Every module of the engine and its layer (`docs/architecture.md`).
const LAYERS: &[(&str, u32)] = &[
    ("base", 0),
    ("codec", 1),
    ("vfs", 1),
    ("runtime", 1),
    ("events", 1),
    ("compaction_filter", 1),
    ("merge_operator", 1),
    ("operators", 1),
    ("options", 1),
    ("log", 2),
    ("block", 2),
    ("filter", 2),
    ("table", 2),
    ("value", 2),
    ("memtable", 2),
    ("cache", 2),
    ("latency", 2),
    ("manifest", 3),
    ("policy", 3),
    ("read", 4),
    ("compact", 4),
    ("backup", 4),
    ("simulation", 4),
    ("engine", 5),
    ("inspect", 5),
    ("api", 6),
];

/// What a module may use of its own layer. Each pair goes one way only.
const BESIDE: &[(&str, &[&str])] = &[
    (
        "options",
        &[
            "codec",
            "compaction_filter",
            "events",
            "merge_operator",
            "operators",
            "runtime",
            "vfs",
        ],
    ),
    ("operators", &["merge_operator"]),
    ("table", &["block", "cache", "filter", "value"]),
    ("cache", &["block"]),
    ("value", &["block", "cache", "log"]),
    ("compact", &["read"]),
];

const SOURCE: &str = "crates/windrow/src/";

fn layer(module: &str) -> Option<u32> {
    let found = LAYERS.iter().find(|(name, _)| *name == module);
    found.map(|(_, layer)| *layer)
}

fn allows(user: &str, used: &str) -> bool {
    let beside = BESIDE.iter().find(|(name, _)| *name == user);
    user == used
        || layer(used) < layer(user)
        || beside.is_some_and(|(_, allowed)| allowed.contains(&used))
}

/// The module that each name at the crate root is re-exported from.
fn root_names(library: &str) -> BTreeMap<String, String> {
    let library = code(library);
    let mut names = BTreeMap::new();
    for (position, _) in library.match_indices("use ") {
        let statement = library[position + 4..]
            .split(';')
            .next()
            .unwrap_or_default();
        let module: String = statement.chars().take_while(|&c| is_word(c)).collect();
        for name in statement
            .split(|c| !is_word(c))
            .filter(|name| !name.is_empty())
        {
            if layer(name).is_none() {
                names.insert(name.to_owned(), module.clone());
            }
        }
    }
    names
}

/// The first names after `crate::` at `rest`: one, or those of a group in braces.
fn first_names(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else {
        return vec![rest.chars().take_while(|&c| is_word(c)).collect()];
    };
    let (mut names, mut name, mut depth, mut in_path) = (Vec::new(), String::new(), 0, false);
    for character in group.chars() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(std::mem::take(&mut name));
                in_path = false;
            }
            ':' => in_path |= depth == 0,
            _ if depth == 0 && !in_path && is_word(character) => name.push(character),
            _ => {}
        }
    }
    names.push(name);
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn a_module_uses_only_layers_below_it() {
    let files = rust_files();
    let library = files
        .iter()
        .find(|(path, _)| *path == format!("{SOURCE}lib.rs"));
    let root_names = root_names(&library.expect("the library has a root").1);
    let mut faults = Vec::new();
    for (path, text) in &files {
        let Some(inside) = path
            .strip_prefix(SOURCE)
            .filter(|inside| *inside != "lib.rs")
        else {
            continue;
        };
        let module = inside.split(['/', '.']).next().unwrap_or_default();
        if layer(module).is_none() {
            faults.push(format!("{path}: `{module}` has no layer; add it to LAYERS"));
            continue;
        }
        let code = code(text);
        let uses = words(&code, "crate").filter(|&at| code[at..].starts_with("crate::"));
        for position in uses {
            for name in first_names(&code[position + "crate::".len()..]) {
                let used = root_names.get(&name).unwrap_or(&name);
                let place = format!("{path}:{}", line(&code, position));
                if layer(used).is_none() {
                    faults.push(format!("{place}: no layer is known for `crate::{name}`"));
                } else if !allows(module, used) {
                    faults.push(format!("{place}: `{module}` must not use `{used}`"));
                }
            }
        }
    }
    report("modules that use a layer they must not", &faults);
}

#[test]
fn uses_within_a_layer_go_one_way() {
    for (user, allowed) in BESIDE {
        for used in *allowed {
            assert_eq!(layer(user), layer(used), "{user} and {used}");
            assert!(!allows(used, user), "{user} and {used} use each other");
        }
    }
}

#[test]
fn uses_are_recognised() {
    assert_eq!(first_names("base::Error;"), ["base"]);
    assert_eq!(
        first_names("{\n    Error, base::{a, b::c},\n    log as l};"),
        ["Error", "base", "logasl"]
    );
    let names = root_names("pub use base::limits;\npub use codec::{Compression};");
    assert_eq!(names.get("limits").map(String::as_str), Some("base"));
    assert_eq!(names.get("Compression").map(String::as_str), Some("codec"));
    assert!(allows("policy", "options"));
    assert!(allows("table", "block"));
    assert!(!allows("block", "table"));
    assert!(!allows("manifest", "policy"));
    assert!(!allows("log", "engine"));
}
