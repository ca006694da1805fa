//! The copy of the tree with all bugs planted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mutant::Mutant;
use crate::{Fault, gate};

/// The folder of builds, unless the environment has another.
const TARGET: &str = "target";

/// The switch that the root of each crate with mutants gets: whether `number` is the mutant of this process.
const SWITCH: &str = r#"
#[inline]
#[allow(clippy::all)]
pub(crate) fn mutant(number: u32) -> bool {
    static MUTANT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let read = || std::env::var("MUTANT").ok().and_then(|text| text.parse().ok());
    *MUTANT.get_or_init(|| read().unwrap_or(u32::MAX)) == number
}
"#;

/// A copy of the tracked files of the repository, with bugs.
#[derive(Debug)]
pub(crate) struct Planted {
    target: PathBuf,
    tree: PathBuf,
}

impl Planted {
    /// Makes the copy anew and plants `mutants` in it.
    pub(crate) fn new(mutants: &[Mutant]) -> Result<Self, Fault> {
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| TARGET.into());
        let target = std::env::current_dir()?.join(target);
        let tree = target.join("mutants");
        copy(&tree)?;
        let mut files = BTreeMap::new();
        let planted = mutants.iter().map(|mutant| {
            plant(&tree, mutant, &mut files)
                .map_err(|fault| format!("mutants/{}.patch: {fault}", mutant.name))
        });
        let faults: Vec<String> = planted.filter_map(Result::err).collect();
        if !faults.is_empty() {
            return Err(faults.join("\n").into());
        }
        let roots: BTreeSet<PathBuf> = files.keys().map(|path| root_of(path)).collect();
        for (path, file) in &files {
            let mut text = prettyplease::unparse(file);
            if roots.contains(path) {
                return Err("the root of a crate cannot have mutants".into());
            }
            text.push('\n');
            std::fs::write(tree.join(path), text)?;
        }
        for root in &roots {
            let root = tree.join(root);
            let text = std::fs::read_to_string(&root)?;
            std::fs::write(root, text + SWITCH)?;
        }
        Ok(Self { target, tree })
    }

    pub(crate) fn target(&self) -> PathBuf {
        self.target.clone()
    }

    pub(crate) fn tree(&self) -> &Path {
        &self.tree
    }
}

/// The root of the crate to which the file at `path` belongs, which is `crates/NAME/...`.
fn root_of(path: &Path) -> PathBuf {
    path.iter().take(2).collect::<PathBuf>().join("src/lib.rs")
}

/// Copies the files that git tracks to `tree`, with new modification times.
fn copy(tree: &Path) -> Result<(), Fault> {
    if tree.exists() {
        std::fs::remove_dir_all(tree)?;
    }
    std::fs::create_dir_all(tree)?;
    let listed = output(Command::new("git").args(["ls-files", "-z"]))?;
    for path in listed
        .split('\0')
        .filter(|path| !path.is_empty() && Path::new(path).is_file())
    {
        let to = tree.join(path);
        std::fs::create_dir_all(to.parent().unwrap_or(tree))?;
        std::fs::write(to, std::fs::read(path)?)?;
    }
    output(
        Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(tree),
    )?;
    Ok(())
}

/// Plants one mutant in `files`, which holds the files that have mutants so far.
fn plant(
    tree: &Path,
    mutant: &Mutant,
    files: &mut BTreeMap<PathBuf, syn::File>,
) -> Result<(), Fault> {
    let parse = |path: &Path| -> Result<syn::File, Fault> {
        Ok(syn::parse_file(&std::fs::read_to_string(tree.join(path))?)?)
    };
    let originals = mutant.files.iter().map(|path| parse(path));
    let originals = originals.collect::<Result<Vec<_>, _>>()?;
    let apply = |flags: &[&str]| {
        let mut git = Command::new("git");
        output(
            git.arg("apply")
                .args(flags)
                .arg(&mutant.patch)
                .current_dir(tree),
        )
    };
    apply(&[])?;
    let changed = mutant.files.iter().map(|path| parse(path));
    let changed = changed.collect::<Result<Vec<_>, _>>();
    apply(&["--reverse"])?;
    let mut planted = 0;
    for ((path, original), changed) in mutant.files.iter().zip(&originals).zip(&changed?) {
        let gated = files
            .entry(path.clone())
            .or_insert_with(|| original.clone());
        planted += gate::plant(gated, original, changed, mutant.number)?;
    }
    match planted {
        0 => Err("the patch changes no function".into()),
        _ => Ok(()),
    }
}

/// What `command` prints.
fn output(command: &mut Command) -> Result<String, Fault> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
