//! No circles: a file uses no names of a file that uses its own, directly or through others.
//!
//! The test reads `use` declarations and paths as text. It follows a name that a module re-exports
//! to the file that defines it; a re-export is not a use. Uses of the modules below a module do not count,
//! and neither do tests and models.

use std::collections::{BTreeMap, BTreeSet};

use crate::report;
use crate::tree::{code, is_word, rust_files, words};

/// Where a module is: the folder of its crate's sources, and the names from the root to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Module {
    source: String,
    names: Vec<String>,
}

impl Module {
    fn child(&self, name: &str) -> Self {
        let mut child = self.clone();
        child.names.push(name.to_owned());
        child
    }

    fn is_below(&self, other: &Self) -> bool {
        self.source == other.source && self.names.starts_with(&other.names)
    }
}

/// A path in code, such as `super::merge::Part`, and the name it is known by in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Use {
    path: Vec<String>,
    name: String,
}

/// What a file defines and uses.
#[derive(Debug)]
struct File {
    path: String,
    definitions: BTreeSet<String>,
    uses: Vec<Use>,
    /// Every name outside of `use` declarations.
    names: BTreeSet<String>,
    /// Paths outside of `use` declarations.
    paths: Vec<Vec<String>>,
}

/// Whether the file at `path` is source of a crate, and not of its tests and models.
fn is_product(path: &str) -> bool {
    let inside = path.split_once("/src/").map(|(_, inside)| inside);
    inside.is_some_and(|inside| {
        let parts = || inside.trim_end_matches(".rs").split('/');
        !parts().any(|part| ["tests", "models"].contains(&part))
    })
}

fn module_of(path: &str) -> Option<Module> {
    let (package, inside) = path.split_once("/src/")?;
    let inside = inside.trim_end_matches(".rs");
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    let names = match inside {
        "lib" | "main" => Vec::new(),
        _ => inside.split('/').map(str::to_owned).collect(),
    };
    Some(Module {
        source: format!("{package}/src/"),
        names,
    })
}

/// `code` without modules in place that are compiled for tests only.
fn without_tests(code: &str) -> String {
    let mut kept = code.to_owned();
    while let Some(start) = kept.find("#[cfg(test)]\nmod ") {
        let Some(open) = kept[start..].find(['{', ';']) else {
            break;
        };
        let mut end = start + open + 1;
        let mut depth = usize::from(kept[start + open..].starts_with('{'));
        while depth > 0 && end < kept.len() {
            match kept.as_bytes()[end] {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            end += 1;
        }
        kept.replace_range(start..end, "");
    }
    kept
}

/// The paths of a `use` declaration: `tree` is the text between `use` and `;`.
fn flatten(prefix: &[String], tree: &str, uses: &mut Vec<Use>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let mut path = prefix.to_vec();
        path.extend(segments(head));
        let group = group.strip_suffix('}').unwrap_or(group);
        let (mut depth, mut start) = (0, 0);
        for (position, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    flatten(&path, &group[start..position], uses);
                    start = position + 1;
                }
                _ => {}
            }
        }
        flatten(&path, &group[start..], uses);
        return;
    }
    let (path_text, alias) = tree
        .split_once(" as ")
        .map_or((tree, None), |(path, alias)| {
            (path, Some(alias.trim().to_owned()))
        });
    let mut path = prefix.to_vec();
    path.extend(segments(path_text));
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(last) = path.last().filter(|_| !path_text.trim().is_empty()) {
        let name = alias.unwrap_or_else(|| last.clone());
        uses.push(Use { path, name });
    }
}

fn segments(path: &str) -> impl Iterator<Item = String> {
    path.split("::")
        .map(str::trim)
        .filter(|segment| !segment.is_empty())
        .map(str::to_owned)
}

/// What a file with this `text` defines at its top, and uses.
fn read(path: &str, text: &str) -> File {
    let mut code = without_tests(&code(text));
    let mut uses = Vec::new();
    let declarations: Vec<usize> = words(&code, "use").collect();
    let mut outside = String::new();
    let mut end = 0;
    for start in declarations
        .into_iter()
        .filter(|&start| is_item(&code[..start]))
    {
        if start < end {
            continue;
        }
        outside.push_str(&code[end..start]);
        let length = code[start..].find(';').unwrap_or(code.len() - start);
        flatten(&[], &code[start + 4..start + length], &mut uses);
        end = start + length;
    }
    outside.push_str(&code[end..]);
    code = outside;
    File {
        path: path.to_owned(),
        definitions: definitions(&code),
        names: code.split(|c| !is_word(c)).map(str::to_owned).collect(),
        paths: paths(&code),
        uses,
    }
}

/// Whether an item may begin after `before`.
fn is_item(before: &str) -> bool {
    let before = before.trim_end();
    before.is_empty() || before.ends_with([';', '}', '{', ']', ')']) || before.ends_with("pub")
}

/// The names of the items at the top of `code`.
fn definitions(code: &str) -> BTreeSet<String> {
    const KINDS: &[&str] = &[
        "fn",
        "struct",
        "enum",
        "trait",
        "union",
        "type",
        "const",
        "static",
        "macro_rules!",
    ];
    let mut names = BTreeSet::new();
    let mut depth = 0;
    let mut top = String::new();
    for character in code.chars() {
        depth += i32::from(character == '{') - i32::from(character == '}');
        top.push(if depth == 0 { character } else { ' ' });
    }
    let tokens: Vec<&str> = top.split_whitespace().collect();
    for pair in tokens.windows(2) {
        if KINDS.contains(&pair[0]) {
            let name = pair[1].chars().take_while(|&c| is_word(c)).collect();
            names.insert(name);
        }
    }
    names
}

/// All paths of two names and more in `code`.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (position, _) in code.match_indices("::") {
        let before = code[..position].trim_end_matches(is_word);
        if before.ends_with("::") {
            continue;
        }
        let end = code[position..]
            .find(|c: char| !is_word(c) && c != ':')
            .map_or(code.len(), |length| position + length);
        paths.push(segments(&code[before.len()..end]).collect());
    }
    paths
}

/// The files of the repository's crates, by module.
struct House {
    files: BTreeMap<Module, File>,
}

impl House {
    fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut house = Self {
            files: BTreeMap::new(),
        };
        for (path, text) in files.into_iter().filter(|(path, _)| is_product(path)) {
            let Some(module) = module_of(&path) else {
                continue;
            };
            // A program beside a library uses it as another crate.
            if !house.files.contains_key(&module) || path.ends_with("lib.rs") {
                house.files.insert(module, read(&path, &text));
            }
        }
        house
    }

    /// The file that defines what `path` names in the module `from`.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<&Module> {
        let mut at = from.clone();
        for (index, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" => at.names.clear(),
                "self" => {}
                "super" => {
                    at.names.pop();
                }
                _ if self.files.contains_key(&at.child(name)) => at = at.child(name),
                _ if depth == 0 => return None,
                _ => return self.item(&at, name, &path[index + 1..], depth - 1),
            }
        }
        self.files.get_key_value(&at).map(|(module, _)| module)
    }

    /// The file that defines what the module `at` knows as `name`, or what `rest` names in it.
    fn item(&self, at: &Module, name: &str, rest: &[String], depth: usize) -> Option<&Module> {
        let (module, file) = self.files.get_key_value(at)?;
        if file.definitions.contains(name) {
            return Some(module);
        }
        let mut through = file.uses.iter().filter(|used| used.name == name);
        if let Some(used) = through.next() {
            let path: Vec<String> = used.path.iter().chain(rest).cloned().collect();
            let is_same = path.first().is_some_and(|first| first == name);
            return if is_same {
                None
            } else {
                self.resolve(at, &path, depth)
            };
        }
        let mut globs = file.uses.iter().filter(|used| used.name == "*");
        globs.find_map(|used| {
            let mut path = used.path[..used.path.len() - 1].to_vec();
            path.push(name.to_owned());
            self.resolve(at, &path, depth.min(4))
        })
    }

    /// The files that each file uses names of.
    fn uses(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut uses = BTreeMap::new();
        for (module, file) in &self.files {
            let is_used = |used: &&Use| used.name == "*" || file.names.contains(&used.name);
            let declared = file.uses.iter().filter(is_used).map(|used| &used.path);
            let targets = declared
                .chain(&file.paths)
                .filter_map(|path| self.resolve(module, path, 8))
                .filter(|target| !target.is_below(module))
                .map(|target| self.files[target].path.as_str());
            uses.insert(file.path.as_str(), targets.collect());
        }
        uses
    }
}

/// What is reached from `from`, by one step or more.
fn reached<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        for &used in uses.get(file).into_iter().flatten() {
            if reached.insert(used) {
                next.push(used);
            }
        }
    }
    reached
}

/// Each circle once: the steps inside it.
fn circles(uses: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let reach: BTreeMap<_, _> = uses
        .keys()
        .map(|&file| (file, reached(uses, file)))
        .collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for (&file, from) in &reach {
        let in_circle = |other: &str| from.contains(other) && reach[other].contains(file);
        if !from.contains(file) || !seen.insert(file) {
            continue;
        }
        let members: BTreeSet<&str> = reach
            .keys()
            .copied()
            .filter(|other| in_circle(other))
            .collect();
        seen.extend(&members);
        let steps = members.iter().flat_map(|&member| {
            let inside = uses[member].iter().filter(|used| members.contains(**used));
            inside.map(move |used| format!("{member} uses {used}"))
        });
        circles.push(steps.collect::<Vec<_>>().join("\n    "));
    }
    circles
}

#[test]
fn no_files_use_each_other() {
    let house = House::new(rust_files());
    let uses = house.uses();
    assert!(uses.values().map(BTreeSet::len).sum::<usize>() > 100);
    report("files that use each other", &circles(&uses));
}

#[test]
fn circles_are_found_through_reexports() {
    let file = |path: &str, text: &str| (format!("crates/a/src/{path}"), text.to_owned());
    let house = House::new([
        file(
            "lib.rs",
            "mod b;\npub use b::{C, d::D as E};\nfn main() {}\n",
        ),
        file(
            "b/mod.rs",
            "mod c;\npub mod d;\npub use c::C;\npub use d::D;\n",
        ),
        file("b/c.rs", "use super::D;\npub struct C(D);\n"),
        file(
            "b/d.rs",
            "// use crate::C;\npub struct D;\nfn f() { crate::C::new() }\n",
        ),
        file("b/tests.rs", "use super::*;\n"),
    ]);
    let uses = house.uses();
    assert!(uses["crates/a/src/lib.rs"].is_empty());
    assert!(uses["crates/a/src/b/mod.rs"].is_empty());
    let [circle] = &circles(&uses)[..] else {
        panic!("{uses:?}");
    };
    assert!(circle.contains("c.rs uses crates/a/src/b/d.rs"));
    assert!(circle.contains("d.rs uses crates/a/src/b/c.rs"));
}
