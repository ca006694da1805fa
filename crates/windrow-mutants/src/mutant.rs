//! The files of mutants.
//!
//! `NN-name.patch` begins with two lines, `Bug: ` and `Test: `: what is planted, in one sentence, and the
//! command, beginning with `cargo test` or with its environment, that must fail. The patch follows.

use std::ops::Range;
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

/// Which mutants to plant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Those whose names contain one of these; all without one.
    names: Vec<String>,
    /// Of these, in the order of their tests, the part at index `part` of `parts` equal ones.
    part: usize,
    parts: usize,
}

impl Selection {
    /// Reads `[--part K/N] [NAME ...]`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Fault> {
        let (part, names) = match arguments {
            [option, part, names @ ..] if option == "--part" => (&part[..], names),
            names => ("1/1", names),
        };
        if let Some(unknown) = names.iter().find(|name| name.starts_with('-')) {
            return Err(format!("there is no option {unknown}; --help lists them").into());
        }
        let parsed = part.split_once('/').and_then(|(part, parts)| {
            let (part, parts): (usize, usize) = (part.parse().ok()?, parts.parse().ok()?);
            (1..=parts).contains(&part).then(|| (part - 1, parts))
        });
        let (part, parts) = parsed.ok_or("--part takes K/N, with K from 1 to N")?;
        Ok(Self {
            names: names.to_vec(),
            part,
            parts,
        })
    }

    /// The indexes of the part, of `count` mutants.
    fn range(&self, count: usize) -> Range<usize> {
        let from = |part: usize| count * part / self.parts;
        from(self.part)..from(self.part + 1)
    }

    fn has_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|it| name.contains(&**it))
    }
}

/// The mutants of `selection`, in the order of their numbers.
pub(crate) fn read_all(selection: &Selection) -> Result<Vec<Mutant>, Fault> {
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
        if is_patch && selection.has_name(name) {
            mutants.push(read(name.to_owned(), std::fs::canonicalize(&patch)?)?);
        }
    }
    mutants.sort_by_key(|mutant| mutant.number);
    if mutants
        .windows(2)
        .any(|pair| pair[0].number == pair[1].number)
    {
        return Err("two mutants have one number".into());
    }
    // Neighbours in this order need the same builds.
    mutants.sort_by(|one, other| one.test.cmp(&other.test));
    let mut mutants: Vec<Mutant> = mutants.drain(selection.range(mutants.len())).collect();
    mutants.sort_by_key(|mutant| mutant.number);
    if mutants.is_empty() {
        return Err("no mutant is selected".into());
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

#[cfg(test)]
mod tests {
    use super::Selection;

    fn parsed(text: &str) -> Option<Selection> {
        let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Selection::parse(&arguments).ok()
    }

    fn selection(part: usize, parts: usize, names: &[&str]) -> Selection {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Selection { names, part, parts }
    }

    #[test]
    fn each_mutant_is_in_one_part() {
        for count in [0, 1, 5, 12, 40] {
            let parts = (0..12).flat_map(|part| selection(part, 12, &[]).range(count));
            assert!(parts.eq(0..count));
        }
    }

    #[test]
    fn selections() {
        assert_eq!(parsed(""), Some(selection(0, 1, &[])));
        assert_eq!(
            parsed("filter span"),
            Some(selection(0, 1, &["filter", "span"]))
        );
        assert_eq!(parsed("--part 3/3"), Some(selection(2, 3, &[])));
        assert_eq!(parsed("--part 1/2 span"), Some(selection(0, 2, &["span"])));
        for refused in [
            "--part",
            "--part 0/3",
            "--part 4/3",
            "--part 1",
            "--parts 1/2",
            "span -x",
        ] {
            assert_eq!(parsed(refused), None, "{refused}");
        }
    }
}
