//! Building and running the tests of the copy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Fault;

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

    /// The folders of builds: the default, that of the schedules, and that of unoptimized builds, as in `.ci/run`.
    fn targets(&self) -> [PathBuf; 3] {
        let of = |name| self.target.join(name);
        [self.target.clone(), of("shuttle"), of("features")]
    }

    fn shell(&self, test: &str, mutant: Option<u32>, seconds_max: u32) -> Outcome {
        let [default, schedules, unoptimized] = self.targets();
        let target = if test.contains("--cfg shuttle") {
            schedules
        } else if test.contains("OPT_LEVEL=0") {
            unoptimized
        } else {
            default
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

/// Cargo takes builds of the copy for builds of the repository, since they are newer than its sources. So it must forget
/// them.
impl Drop for TestRuns {
    fn drop(&mut self) {
        for target in self.targets() {
            let Ok(entries) = std::fs::read_dir(target.join("debug/.fingerprint")) else {
                continue;
            };
            for entry in entries.flatten() {
                if entry.file_name().to_string_lossy().starts_with("windrow") {
                    // If it stays, a later build may run a planted copy, without a bug.
                    drop(std::fs::remove_dir_all(entry.path()));
                }
            }
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

/// The builds that the tests of `mutants` need: one for each package and environment, with all its targets, since cargo
/// builds targets of one command in parallel.
pub(crate) fn builds<'a>(tests: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut targets: BTreeMap<Vec<&str>, BTreeSet<Vec<&str>>> = BTreeMap::new();
    for test in tests {
        // `SCHEDULES` matters to runs alone.
        let words: Vec<&str> = test
            .split(' ')
            .filter(|word| !word.starts_with("SCHEDULES="))
            .collect();
        let is_target = |word: &&str| ["--test", "--lib"].contains(word);
        let Some(target) = words.iter().position(is_target) else {
            targets.entry(words).or_default();
            continue;
        };
        let length = if words[target] == "--test" { 2 } else { 1 };
        let end = words.len().min(target + length);
        let build = targets.entry(words[..target].to_vec()).or_default();
        build.insert(words[target..end].to_vec());
    }
    let command = |(build, targets): (Vec<&str>, BTreeSet<Vec<&str>>)| {
        let words = [build, targets.into_iter().flatten().collect()].concat();
        words.join(" ").replace("cargo test", "cargo test --no-run")
    };
    targets.into_iter().map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_one_package_and_environment_are_built_together() {
        let tests = [
            "cargo test -p a --test map -- --exact x",
            "cargo test -p a --lib y",
            "cargo test -p a --lib z",
            "SCHEDULES=3 FLAGS=\"f\" cargo test -p b --test c",
            "SCHEDULES=4 FLAGS=\"f\" cargo test -p b --test c d",
        ];
        assert_eq!(
            builds(tests.into_iter()),
            [
                "FLAGS=\"f\" cargo test --no-run -p b --test c",
                "cargo test --no-run -p a --lib --test map",
            ]
        );
    }

    #[test]
    fn builds_of_the_copy_are_forgotten() {
        let target = tempfile::tempdir().unwrap();
        let folder = target.path().join("shuttle/debug/.fingerprint");
        for name in ["windrow-1", "windrow-sim-2", "clap-3"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        drop(TestRuns::new(target.path(), target.path().to_owned()));
        let left = std::fs::read_dir(folder).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["clap-3"]);
    }

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
