//! Help texts on terminals of usual widths, and the commands of the README.

use std::fs;

use tempfile::TempDir;

use crate::common::{code, done, problem, shell, text, windrow};

/// The names of the commands.
fn commands(folder: &TempDir) -> Vec<String> {
    let help = windrow(folder, &["help"]);
    let (_, rest) = done(&help).split_once("Commands:\n").unwrap();
    let lines = rest.lines().take_while(|line| !line.is_empty());
    // A name stands two columns from the left, a text that goes on stands further right.
    let names = lines.filter(|line| !line.starts_with("   "));
    names
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

/// A paragraph is broken where the terminal ends, and nowhere else: a line that is broken by hand as well
/// leaves a short line in the middle of the paragraph.
#[test]
fn help_is_wrapped_once() {
    let folder = TempDir::new().unwrap();
    let commands = commands(&folder);
    assert!(commands.len() > 15, "{commands:?}");
    for columns in [80, 100] {
        for name in commands.iter().map(String::as_str).chain([""]) {
            let line = format!("COLUMNS={columns} windrow help {name}");
            let output = shell(folder.path(), &line);
            let lines: Vec<&str> = done(&output).lines().collect();
            for pair in lines.windows(2) {
                let (this, next) = (pair[0], pair[1]);
                let length = this.chars().count();
                assert!(length <= columns, "{name}: {this}");
                // Prose stands at the left, other than headings and usage.
                let is_prose = |line: &str| {
                    line.starts_with(|first: char| first.is_alphabetic())
                        && !line.ends_with(':')
                        && !line.starts_with("Usage:")
                };
                if is_prose(this) && is_prose(next) {
                    let word = next.split(' ').next().unwrap();
                    let fits = length + 1 + word.chars().count() <= columns;
                    assert!(!fits, "{name} at {columns}: {this}\\n{next}");
                }
            }
        }
    }
}

#[test]
fn every_command_has_examples_that_name_it() {
    let folder = TempDir::new().unwrap();
    for name in commands(&folder) {
        if name == "help" {
            continue;
        }
        let help = windrow(&folder, &["help", &name]);
        let (_, examples) = done(&help).split_once("Example").unwrap();
        assert!(examples.contains(&format!("windrow {name}")), "{name}");
    }
    let unknown = windrow(&folder, &["list-keyspaces", "db"]);
    assert_eq!(code(&unknown), 1);
    assert!(
        problem(&unknown).contains("'keyspaces'"),
        "{}",
        problem(&unknown)
    );
}

/// A newcomer can paste the list of commands from top to bottom.
#[test]
fn the_commands_of_the_readme_work_in_their_order() {
    let folder = TempDir::new().unwrap();
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let (_, section) = readme.split_once("## On the command line").unwrap();
    let (_, block) = section.split_once("```sh\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let project = folder.path().join("src/project/src");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("main.rs"), "fn main() {}\n").unwrap();
    fs::write(folder.path().join("words.txt"), "one\ntwo\n").unwrap();
    fs::write(folder.path().join("users.csv"), "id,name\n1,Ada\n").unwrap();
    let mut run = 0;
    for line in block.lines() {
        let (command, _) = line.split_once('#').unwrap_or((line, ""));
        // Less data than a person would take.
        let small = match command.split(' ').nth(1) {
            Some("bench") if command.contains("ycsb") => " --records 1000 --ops 1000",
            Some("bench") => " --num 1000",
            _ => "",
        };
        let command = command.replace("1PB", "10MB").replace("1TB", "10MB") + small;
        let command = format!("HOME=$PWD; {command}");
        let output = shell(folder.path(), &command);
        assert_eq!(
            code(&output),
            0,
            "{command}: {}{}",
            text(&output),
            problem(&output)
        );
        run += 1;
    }
    assert!(run >= 20, "{run}");
}
