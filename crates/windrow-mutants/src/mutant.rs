//! The files of mutants.
//!
//! `NN-name.patch` begins with two lines, `Bug: ` and `Test: `: what is planted, in one sentence, and the
//! command, beginning with `cargo test` or with its environment, that must fail. The patch follows.

use std::path::PathBuf;

use crate::Fault;

/// A bug, and the test that must find it.
#[derive(Debug)]
pub(crate) struct Mutant {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) bug: String,
    pub(crate) test: String,
    pub(crate) patch: PathBuf,
    /// The files that the patch changes, relative to the root.
    pub(crate) files: Vec<PathBuf>,
}

/// The mutants whose names contain one of `filters`, or all, in the order of their numbers.
pub(crate) fn read_all(filters: &[String]) -> Result<Vec<Mutant>, Fault> {
    let mut mutants = Vec::new();
    for entry in std::fs::read_dir("mutants")? {
        let patch = entry?.path();
        let is_patch = patch
            .extension()
            .is_some_and(|extension| extension == "patch");
        let name = patch
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default();
        let is_wanted = filters.is_empty() || filters.iter().any(|filter| name.contains(&**filter));
        if is_patch && is_wanted {
            mutants.push(read(name.to_owned(), std::fs::canonicalize(&patch)?)?);
        }
    }
    mutants.sort_by_key(|mutant| mutant.number);
    if mutants.is_empty() {
        return Err("no mutant has such a name".into());
    }
    if mutants
        .windows(2)
        .any(|pair| pair[0].number == pair[1].number)
    {
        return Err("two mutants have one number".into());
    }
    Ok(mutants)
}

fn read(name: String, patch: PathBuf) -> Result<Mutant, Fault> {
    let text = std::fs::read_to_string(&patch)?;
    let field = |field: &str| {
        let mut lines = text.lines();
        lines
            .find_map(|line| line.strip_prefix(field))
            .map(str::to_owned)
    };
    let missing = |what: &str| format!("mutants/{name}.patch has no {what}");
    let digits: String = name.chars().take_while(char::is_ascii_digit).collect();
    Ok(Mutant {
        number: digits.parse().map_err(|_| missing("number in its name"))?,
        bug: field("Bug: ").ok_or_else(|| missing("line `Bug: `"))?,
        test: field("Test: ").ok_or_else(|| missing("line `Test: `"))?,
        files: text
            .lines()
            .filter_map(|line| line.strip_prefix("+++ b/"))
            .map(PathBuf::from)
            .collect(),
        name,
        patch,
    })
}
