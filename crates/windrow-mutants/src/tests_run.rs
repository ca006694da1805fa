//! Building and running the tests of the copy.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Fault;
use crate::mutant::Mutant;

/// How long a test may run: a planted bug may make it hang, which counts as found.
const TEST_SECONDS_MAX: u32 = 600;

/// How long a build may take.
const BUILD_SECONDS_MAX: u32 = 3600;

/// The last lines of what a test printed.
const LOG_LINES: usize = 30;

/// The outcome of a test, with the end of what it printed.
#[derive(Debug)]
pub(crate) enum Outcome {
    Passed(String),
    Failed(String),
}

/// Runs commands in the copy.
#[derive(Debug)]
pub(crate) struct TestRuns {
    tree: PathBuf,
    target: PathBuf,
}

impl TestRuns {
    /// `target` is the folder of the repository's own builds, which share their dependencies with the copy.
    pub(crate) fn new(tree: &Path, target: PathBuf) -> Self {
        Self {
            tree: tree.to_owned(),
            target,
        }
    }

    /// Compiles what `build` names.
    pub(crate) fn build(&self, build: &str) -> Result<(), Fault> {
        match self.shell(build, None, BUILD_SECONDS_MAX) {
            Outcome::Passed(_) => Ok(()),
            Outcome::Failed(log) => Err(format!("{log}\n{build} failed").into()),
        }
    }

    /// Runs the shell command `test` with the bug of `mutant`, or with none.
    pub(crate) fn run(&self, test: &str, mutant: Option<u32>) -> Outcome {
        self.shell(test, mutant, TEST_SECONDS_MAX)
    }

    fn shell(&self, test: &str, mutant: Option<u32>, seconds_max: u32) -> Outcome {
        // The schedules have a folder of their own, as in `.ci/run`.
        let target = if test.contains("--cfg shuttle") {
            self.target.join("shuttle")
        } else {
            self.target.clone()
        };
        let mut command = Command::new("timeout");
        command
            .args([&seconds_max.to_string(), "bash", "-c"])
            .arg(format!("{test} 2>&1"))
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", target)
            .env("RUST_BACKTRACE", "0")
            .env_remove("MUTANT");
        if let Some(number) = mutant {
            command.env("MUTANT", number.to_string());
        }
        match command.output() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                let lines: Vec<&str> = text.lines().collect();
                let log = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
                // A name that no test has any more finds nothing.
                let mut counts = lines.iter().filter_map(|line| tests_of(line)).peekable();
                let is_empty = counts.peek().is_some() && counts.all(|count| count == 0);
                if output.status.success() && !is_empty {
                    Outcome::Passed(log)
                } else {
                    Outcome::Failed(log)
                }
            }
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }
}

/// The number of tests, if `line` announces those of a test binary.
fn tests_of(line: &str) -> Option<u32> {
    let count = line.strip_prefix("running ")?;
    let count = count
        .strip_suffix(" tests")
        .or_else(|| count.strip_suffix(" test"))?;
    count.parse().ok()
}

/// The builds that the tests of `mutants` need: each command up to the name of a test, without running.
pub(crate) fn builds(mutants: &[Mutant]) -> BTreeSet<String> {
    let build = |mutant: &Mutant| {
        let mut words = Vec::new();
        let mut test = mutant.test.split(' ');
        while let Some(word) = test.next() {
            words.push(word);
            if word == "--test" {
                words.extend(test.next());
            }
            if ["--test", "--lib"].contains(&word) {
                break;
            }
        }
        words.join(" ").replace("cargo test", "cargo test --no-run")
    };
    mutants.iter().map(build).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_does_not_exist_fails() {
        let folder = std::env::temp_dir();
        let runs = TestRuns::new(&folder, folder.clone());
        let run = |text: &str| runs.run(&format!("printf '{text}'"), None);
        assert!(matches!(run("running 0 tests\\n"), Outcome::Failed(_)));
        assert!(matches!(
            run("running 0 tests\\nrunning 1 test\\n"),
            Outcome::Passed(_)
        ));
        assert!(matches!(run("Finished\\n"), Outcome::Passed(_)));
        assert!(matches!(runs.run("false", None), Outcome::Failed(_)));
    }
}
