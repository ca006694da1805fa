//! Documents are short, and the files and sections that they refer to exist.

use std::collections::BTreeSet;
use std::path::Path;

use crate::report;
use crate::tree::{File, files, is_word, line, root};

const README_LINES_MAX: usize = 150;
const DOCUMENT_LINES_MAX: usize = 500;

fn documents() -> Vec<File> {
    files()
        .into_iter()
        .filter(|file| file.has_extension("md"))
        .collect()
}

/// `text` without fenced blocks and inline code, with the same lines.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        if !fenced && !is_fence {
            let outside = line
                .split('`')
                .enumerate()
                .filter(|(part, _)| part % 2 == 0);
            prose.extend(outside.map(|(_, text)| text));
        }
        prose.push('\n');
    }
    prose
}

/// The anchors of the headings in `text`, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let headings = text.lines().filter(|line| {
        fenced ^= line.trim_start().starts_with("```");
        !fenced && line.starts_with('#')
    });
    let anchor = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|&c| is_word(c) || c == ' ' || c == '-');
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_between_documents_resolve() {
    let mut faults = Vec::new();
    for file in documents() {
        let text = file.text().expect("documents are text");
        let prose = prose(text);
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (position, _) in prose.match_indices("](") {
            let link = prose[position + 2..]
                .split([')', ' ', '\n'])
                .next()
                .unwrap_or_default();
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = root().join(folder).join(target);
            let is_there = if target.is_empty() || anchor.is_empty() {
                path.exists()
            } else {
                std::fs::read_to_string(&path).is_ok_and(|text| anchors(&text).contains(anchor))
            };
            let is_there = is_there && (!target.is_empty() || anchors(text).contains(anchor));
            if !is_there {
                faults.push(format!("{}:{}: {link}", file.path, line(&prose, position)));
            }
        }
    }
    report("links that lead nowhere", &faults);
}

/// Documents that source, manifests and other documents name exist.
#[test]
fn documents_that_are_named_exist() {
    let mut faults = Vec::new();
    for file in files() {
        let Some(text) = file.text() else { continue };
        for (position, _) in text.match_indices("docs/") {
            let is_path = |c: char| is_word(c) || "/.-".contains(c);
            if text[..position].ends_with(is_path) {
                continue;
            }
            let name: String = text[position..]
                .chars()
                .take_while(|&c| is_path(c))
                .collect();
            let name = name.trim_end_matches('.');
            let is_document = Path::new(name)
                .extension()
                .is_some_and(|found| found == "md");
            if is_document && !root().join(name).exists() {
                faults.push(format!("{}:{}: {name}", file.path, line(text, position)));
            }
        }
    }
    report("documents that are named but missing", &faults);
}

#[test]
fn documents_are_short() {
    let mut faults = Vec::new();
    for file in documents() {
        let lines = file.text().expect("documents are text").lines().count();
        let most = match file.path.rsplit('/').next() {
            Some("README.md") => README_LINES_MAX,
            Some("CHANGELOG.md") => continue,
            _ => DOCUMENT_LINES_MAX,
        };
        if lines > most {
            faults.push(format!("{}: {lines} lines, at most {most}", file.path));
        }
    }
    report("documents that are too long", &faults);
}

#[test]
fn anchors_are_made_as_on_github() {
    let found = anchors("# A log: chunks\n```\n# not this\n```\n## `Sync` & more\n");
    let expected = ["a-log-chunks", "sync--more"];
    assert_eq!(found, expected.map(str::to_owned).into());
}

/// The README says `cargo run`, which needs one default program.
#[test]
fn one_program_is_run_by_default() {
    let manifests = files().into_iter().filter(|file| {
        file.path.ends_with("Cargo.toml")
            && file
                .text()
                .is_some_and(|text| text.lines().any(|line| line.starts_with("default-run")))
    });
    let paths: Vec<String> = manifests.map(|file| file.path).collect();
    assert_eq!(paths, ["crates/windrow-cli/Cargo.toml"]);
}
